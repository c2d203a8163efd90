//! Scenarios: the core of Quittance in virtual time, through the interfaces of callers, providers and operators.
//!
//! Each test checks one promise, or one trap: a mistake that others made. It scripts the provider's replies and lets
//! time pass. Then it checks what the provider received, what the callers got and when, and what the usage shows.

mod accounts;
mod budgets;
mod bulks;
mod callbacks;
mod crashes;
mod doubts;
mod endpoints;
mod far_membership;
mod follow_ups;
mod forgetting;
mod freshness;
mod gates;
mod gone;
mod hedging;
mod herds;
mod keys;
mod late;
mod lost_tasks;
mod market;
mod mishaps;
mod outages;
mod polls;
mod pools;
mod post;
mod provider;
mod queue;
mod reload;
mod retries;
mod retry_limits;
mod review;
mod safety;
mod shared_budgets;
mod slots;
mod spent_budgets;
mod stock;
mod stocks;
mod store;
mod tenants;
mod two_providers;
mod usage;
mod waiting;
mod world;

//! Stories: the core of Quittance in virtual time, through the interfaces that callers, providers and operators use.
//!
//! Each story holds one promise, or one trap that others fell into. It scripts what the provider says, lets time
//! pass, and then looks at three things: what the provider received, what the callers got and when, and what the
//! usage says.

mod accounts;
mod budgets;
mod bulks;
mod callbacks;
mod crashes;
mod doubts;
mod follow_ups;
mod forgetting;
mod freshness;
mod gone;
mod herds;
mod keys;
mod late;
mod mishaps;
mod pools;
mod post;
mod provider;
mod retries;
mod review;
mod safety;
mod stock;
mod stocks;
mod store;
mod tenants;
mod usage;
mod waiting;
mod world;

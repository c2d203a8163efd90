//! The life of an order, as a pure function: events in, effects out.
//!
//! Nothing here reads a clock, draws random numbers, does I/O or knows what a captcha is. An event carries all that
//! its decision needs. Start with [`transition`](transition::transition): it is the only place in Quittance that
//! decides about money.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod answer;
pub mod backoff;
pub mod bad_request;
pub mod counters;
pub mod dead_letter;
pub mod event;
pub mod fault;
pub mod follow_up;
mod in_time;
pub mod key;
pub mod kind;
pub mod order;
pub mod policy;
mod polls;
mod prefix;
pub mod priority;
pub mod retry;
pub mod routing;
pub mod secrets;
pub mod shortage;
pub mod terms;
pub mod time;
pub mod timeline;
pub mod transition;

#[cfg(test)]
mod tests;

pub use account::{account, currency_of, is_in_another_currency, provider_of};
pub use answer::{Answer, Money, Payload, PriceSum, ProviderAnswer};
pub use backoff::{Backoff, Jitter};
pub use bad_request::BadRequest;
pub use counters::Counters;
pub use dead_letter::{DeadLetter, DeadLetterCause, DeadLetterFilter, OnReplay};
pub use event::{
    CallbackResult, DeliveryOutcome, Effect, Event, Offer, Outage, PollOutcome, Receipt, ReportOutcome,
    SubmitOutcome, SubmitRoute, Via,
};
pub use fault::{Evidence, Fault, FaultClass, FaultRule, FaultTable, Reaction, Remedy, Signal};
pub use follow_up::{DeliveryState, Report, ReportState, Webhook, WebhookPauses};
pub use key::{Key, KeyError, KeyHead, Target};
pub use kind::{Field, HostRules, Identity, Kind, Role, Shape};
pub use order::{Attempt, AttemptAccount, DeadCause, FailCause, HandOut, HeldOff, Order, Phase, Progress};
pub use policy::{Pace, Policy, PollRules, Preset, Unsolvable, WhenInDoubt};
pub use polls::EarlyPoll;
pub use prefix::KeyPrefix;
pub use priority::Priority;
pub use retry::{MAX_RETRIES_MAX, RetryLimits};
pub use routing::{Candidate, GateReadiness, PassedOver, Routing, RoutingRule, WhyPassedOver, choose};
pub use shortage::{AtLimit, BudgetDraw, BudgetEffect, Shortage, WhyShort};
pub use terms::{Draft, KeySettings, Reuse, Slot, Terms, Value};
pub use time::Timestamp;
pub use timeline::{Timeline, TimelineEntry, TimelineEvent};
pub use transition::{
    Advance, Decision, Origin, Placement, Refusal, WhyIgnored, age_at_hand_out, from_stock_order, place,
    surplus_as_order, transition, would_be_too_old,
};

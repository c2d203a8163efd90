//! The native API over real sockets, as its callers and the operator see it: every rule of the door, on an engine whose
//! provider does what the site key says and whose clock moves when the test says so.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod about;
mod admin;
mod alerts;
mod apis;
mod counting_store;
mod dead;
mod endings;
mod events;
#[path = "../shared/eventually.rs"]
mod eventually;
mod fields;
#[path = "../shared/flaky_store.rs"]
mod flaky_store;
mod idempotency;
mod live;
mod min_life;
mod money;
mod open_max;
mod orders;
mod pools;
mod problems;
mod provider;
#[path = "../outbound/receiver.rs"]
#[expect(dead_code, reason = "its own tests need more of it")]
mod receiver;
mod remaining_life;
mod reuse;
mod round_trips;
mod shares;
mod slow_uploads;
mod stock;
mod strangers;
mod talk;
mod tenants;
mod traces;
mod usage;
mod world;

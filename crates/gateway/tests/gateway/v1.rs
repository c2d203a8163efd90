//! Tests of the native API. The site key selects what the provider does, and the test moves the clock.

mod about;
mod apis;
mod changing_tenants;
mod counting_store;
mod endings;
mod events;
mod fields;
#[expect(dead_code, reason = "the tests of the operator's API use the rest")]
mod fixture;
mod idempotency;
mod min_life;
mod open_max;
mod orders;
mod problems;
#[expect(dead_code, reason = "the tests of the operator's API use the rest")]
mod provider;
mod remaining_life;
mod reuse;
mod round_trips;
mod shares;
mod slow_uploads;
#[expect(dead_code, reason = "the tests of the operator's API use the rest")]
mod talk;
mod tenants;
mod traces;
mod unknown_senders;

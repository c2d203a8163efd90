//! Planted bugs, each a mistake from real code of this field. A bug is planted by replacing a part (a rule, a store,
//! a provider, a table), never by a switch in the code that ships. Each must be caught. If one is not, the judge
//! lacks a promise.

mod budget_plants;
mod gates;
mod hedge_plants;
pub mod polls;
mod ports;
mod provider_choice;
mod queue;
mod reload_plants;
mod rules;
pub mod story_rules;

pub use budget_plants::{BUDGET_PLANTS, BudgetPlant};
pub use gates::{GATE_PLANTS, GatePlant};
pub use hedge_plants::HEDGE_PLANTS;
pub use provider_choice::{ROUTING_PLANTS, RoutingPlant};
pub use reload_plants::RELOAD_PLANTS;

use crate::fleet::Parts;
use std::fmt;

/// A bug of the queue to the provider. Only a story with a long queue shows it.
#[derive(Clone, Copy)]
pub struct QueuePlant {
    pub name: &'static str,
    pub sow: fn(&mut quittance_engine::Settings),
}

impl fmt::Debug for QueuePlant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub use queue::{
    A_JOIN_LEAVES_THE_PRIORITY, BULK_FIRST, LATE_TASKS_ARE_PAID, THE_HOPELESS_ARE_ACCEPTED,
    TURNS_ARE_NOT_COUNTED, URGENT_ALWAYS_FIRST, WEIGHTS_ARE_IGNORED,
};

/// A bug, and how to plant it.
#[derive(Clone, Copy)]
pub struct Plant {
    pub name: &'static str,
    pub sow: fn(&mut Parts),
}

impl fmt::Debug for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! plants {
    ($($name:literal => $sow:expr),* $(,)?) => { &[$(Plant { name: $name, sow: $sow }),*] };
}

pub const PLANTS: &[Plant] = plants! {
    "effects before commit" => |p| p.wrap_store = ports::effects_before_commit,
    "last write wins" => |p| p.wrap_store = ports::last_write_wins,
    "a lost race still performs its effects" => |p| p.wrap_store = ports::a_lost_race_still_performs,
    "waiters are not woken" => |p| p.wrap_store = ports::no_waiter_is_woken,
    "a lost reply means that it never arrived" => |p| p.wrap_provider = ports::silence_means_no,
    "an error code is a token" => |p| p.wrap_provider = ports::a_code_is_a_token,
    "a closed account is merely busy" => |p| p.wrap_provider = ports::an_account_is_busy,
    "a part missing from a batch means unsolvable" => |p| p.wrap_provider = ports::a_missing_part_is_a_fault,
    "the spill is not replayed" => |p| p.wrap_spill = ports::nothing_is_replayed,
    "200 before it is durable" => |p| p.acks_early = true,
    "a key without a field" => |p| p.settings.kinds = std::sync::Arc::new(ports::a_key_without_a_field),
    "a crashed submit is simply resubmitted" => |p| p.settings.rules.plant_transition(rules::a_crash_is_resubmitted),
    "callbacks without fallback" => |p| p.settings.rules.plant_transition(rules::no_fallback),
    "a callback in doubt is dropped" => |p| p.settings.rules.plant_transition(rules::doubtful_callbacks_dropped),
    "a late answer is dropped" => |p| p.settings.rules.plant_transition(rules::late_answers_dropped),
    "what is paid for is not polled once the order is solved" => |p| p.settings.rules.plant_transition(rules::nothing_trails),
    "a task at a provider that was left is not polled" => |p| p.settings.rules.plant_transition(rules::a_left_task_is_forgotten),
    "an attempt forgets its provider" => |p| p.settings.rules.plant_transition(rules::attempts_forget_their_account),
    "a doubt is over at once where another provider is" => |p| p.settings.rules.plant_transition(rules::doubts_end_at_once),
    "the retry count restarts" => |p| p.settings.rules.plant_transition(rules::retries_restart),
    "a permanent fault is retried" => |p| p.settings.rules.plant_transition(rules::permanent_is_retried),
    "an answer is dated from its submit" => |p| p.settings.rules.plant_transition(rules::dated_from_submit),
    "the provider's clock dates its answers" => |p| p.settings.rules.plant_transition(rules::a_foreign_clock_dates),
    "a callback counts from its last byte" => |p| p.callbacks_count_from_their_end = true,
    "an outage makes no answer older" => |p| p.settings.rules.plant_transition(rules::outages_forgotten),
    "the margin counts for whom an answer was bought" => |p| p.settings.rules.plant_hand_out(rules::margin_for_all),
    "a repeat is given an id without the time to come for it" => |p| p.settings.rules.plant_place(rules::no_time_to_collect),
    "an answer lives from when we see it" => |p| p.settings.rules.plant_transition(rules::expiry_from_arrival),
    "an answer handed out also goes on the stock" => |p| p.settings.rules.plant_transition(rules::handed_out_and_stocked),
    "the timer is not set" => |p| p.settings.rules.plant_transition(rules::no_timer),
    "a doubt is resubmitted without a word in the usage" => |p| p.settings.rules.plant_transition(rules::doubles_unlisted),
    "a failure is remembered for ever" => |p| p.settings.rules.plant_place(rules::failure_for_ever),
    "a new life overwrites an answer that is alive" => |p| p.settings.rules.plant_place(rules::overwrites_what_is_alive),
    "an answer is shared for ever" => |p| p.settings.rules.plant_place(rules::shared_for_ever),
    "placing again pays again" => |p| p.settings.rules.plant_place(rules::placing_pays),
};

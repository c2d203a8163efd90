//! Which provider gets the next submit of an order. The choice depends on the order, on what the gates report and on
//! the operator's rule, and on nothing else. Money is not decided here: [`transition`](crate::transition::transition)
//! decides whether there is a submit at all.

use crate::answer::Money;
use crate::order::{AttemptAccount, Order};
use crate::shortage::Shortage;
use crate::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

/// In which order the providers are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingRule {
    /// As they stand in the configuration.
    #[default]
    Ordered,
    /// By chance, in proportion to their weights.
    Weighted,
    /// The lowest price first. A price that is not known comes last.
    Cheapest,
    /// The shortest measured solve time first. A provider without one comes first, so that it gets one.
    Fastest,
    /// The highest measured share of answers first. A provider without one comes first, so that it gets one.
    Best,
}

impl RoutingRule {
    pub const ALL: [Self; 5] = [Self::Ordered, Self::Weighted, Self::Cheapest, Self::Fastest, Self::Best];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Weighted => "weighted",
            Self::Cheapest => "cheapest",
            Self::Fastest => "fastest",
            Self::Best => "best",
        }
    }

    /// The rule of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

/// How the operator wants providers to be chosen for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    pub rule: RoutingRule,
    /// How long after its placement an order waits for a provider that is only busy, before it goes to the next one.
    pub busy_wait: Duration,
}

impl Routing {
    pub const DEFAULT: Self = Self { rule: RoutingRule::Ordered, busy_wait: Duration::from_secs(5) };
}

/// What the gate before an account reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateReadiness {
    /// A submit may go out now.
    Ready,
    /// The provider has no room, or submits are kept apart: the next may go out at this moment.
    Busy(Timestamp),
    /// The account cannot be used. It is worth looking again at this moment.
    Down(Timestamp, WhyPassedOver),
}

/// A provider account that may take the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub account: AttemptAccount,
    pub readiness: GateReadiness,
    pub weight: u32,
    /// The measured solve time of the order's kind.
    pub solve_time: Option<Duration>,
    /// The measured share of tasks of the order's kind that came to an answer, in thousandths.
    pub success: Option<u32>,
    /// The shortest time in which it answered a task of the order's kind lately.
    pub quickest: Option<Duration>,
    /// The budget that does not allow an attempt there, if there is one.
    pub shortage: Option<Shortage>,
}

/// Why an account did not get a submit that it would have got by the operator's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyPassedOver {
    Busy,
    /// Its circuit breaker has tripped.
    Tripped,
    AccountBlocked,
    NoFunds,
    /// An operator has paused it.
    Paused,
    /// An operator lets it finish its tasks, and gives it no more.
    Drained,
    /// Its budget is spent.
    BudgetSpent,
    /// It does not sell the kind.
    NotSold,
    /// The order's retries there are used up, or it does not sell the kind.
    UsedUp,
    /// It gave this order a fault a moment ago.
    HeldOff,
    /// It has not answered lately within the time that is left until the order's deadline.
    TooSlow,
}

impl WhyPassedOver {
    pub const ALL: [Self; 11] = [
        Self::Busy,
        Self::Tripped,
        Self::AccountBlocked,
        Self::NoFunds,
        Self::Paused,
        Self::Drained,
        Self::BudgetSpent,
        Self::NotSold,
        Self::UsedUp,
        Self::HeldOff,
        Self::TooSlow,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Tripped => "tripped",
            Self::AccountBlocked => "account_blocked",
            Self::NoFunds => "no_funds",
            Self::Paused => "paused",
            Self::Drained => "drained",
            Self::BudgetSpent => "budget_spent",
            Self::NotSold => "not_sold",
            Self::UsedUp => "used_up",
            Self::HeldOff => "held_off",
            Self::TooSlow => "too_slow",
        }
    }
}

impl fmt::Display for WhyPassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "is busy",
            Self::Tripped => "does not answer",
            Self::AccountBlocked => "has blocked the account",
            Self::NoFunds => "has no money of ours left",
            Self::Paused => "is paused",
            Self::Drained => "is drained",
            Self::BudgetSpent => "has spent its budget",
            Self::NotSold => "does not sell this kind",
            Self::UsedUp => "has had its tries",
            Self::HeldOff => "failed a moment ago",
            Self::TooSlow => "is too slow for the time that is left",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    pub account: String,
    pub why: WhyPassedOver,
}

/// What [`choose`] has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The candidate that should get the submit, if one can take it now.
    pub chosen: Option<usize>,
    /// Without a chosen candidate: when it is worth looking again.
    pub until: Timestamp,
    pub passed_over: Vec<PassedOver>,
    /// The budget that is the reason, if no candidate can take the submit for want of money.
    pub shortage: Option<Shortage>,
}

/// Chooses the provider for the next submit of this order.
#[must_use]
pub fn choose(order: &Order, candidates: &[Candidate], routing: Routing, now: Timestamp) -> Choice {
    let (mut until, mut passed_over) = (Timestamp::MAX, Vec::new());
    // The shortage that may end first, and whether anything else than money keeps the order.
    let (mut shortage, mut is_only_money): (Option<&Shortage>, bool) = (None, true);
    // The first that does not sell the kind, and whether that is all that keeps the order.
    let (mut not_sold, mut is_not_sold): (Option<usize>, bool) = (None, true);
    for at in ranked(order, candidates, routing.rule) {
        let candidate = &candidates[at];
        let name = &candidate.account.account;
        let held_off = order.held_off.as_ref().filter(|held| held.account == *name && now < held.until);
        let (again, why) = match (candidate.readiness, held_off, &candidate.shortage) {
            // What the gate reports says more than that the tries are over.
            (GateReadiness::Down(_, why), ..) if order.used_up.contains(name) => (Timestamp::MAX, why),
            _ if order.used_up.contains(name) => (Timestamp::MAX, WhyPassedOver::UsedUp),
            _ if candidate.quickest.is_some_and(|quickest| order.deadline.since(now) < quickest) => {
                (Timestamp::MAX, WhyPassedOver::TooSlow)
            }
            (_, _, Some(short)) => (short.until, WhyPassedOver::BudgetSpent),
            (GateReadiness::Down(again, why), _, None) => (again, why),
            (GateReadiness::Busy(again), Some(held), None) => (again.max(held.until), WhyPassedOver::Busy),
            (GateReadiness::Busy(again), None, None) => (again, WhyPassedOver::Busy),
            (GateReadiness::Ready, Some(held), None) if held.is_busy => (held.until, WhyPassedOver::Busy),
            (GateReadiness::Ready, Some(held), None) => (held.until, WhyPassedOver::HeldOff),
            (GateReadiness::Ready, None, None) => {
                return Choice { chosen: Some(at), until: now, passed_over, shortage: None };
            }
        };
        until = until.min(again);
        passed_over.push(PassedOver { account: name.clone(), why });
        if again == Timestamp::MAX {
            continue;
        }
        match why {
            WhyPassedOver::NotSold => not_sold = not_sold.or(Some(at)),
            _ => is_not_sold = false,
        }
        match (why, &candidate.shortage) {
            (WhyPassedOver::BudgetSpent, Some(short)) if short.stops_the_order() => {
                return Choice { chosen: None, until, passed_over, shortage: Some(short.clone()) };
            }
            (WhyPassedOver::BudgetSpent, Some(short)) => {
                if shortage.is_none_or(|known| known.ends_the_order() && !short.ends_the_order()) {
                    shortage = Some(short);
                }
            }
            _ => is_only_money = false,
        }
        let next_at = order.placed + routing.busy_wait;
        if why == WhyPassedOver::Busy && now < next_at {
            // Another provider may cost more: it gets the order only after the wait.
            return Choice { chosen: None, until: until.min(next_at), passed_over, shortage: None };
        }
    }
    // No provider sells the kind: one is asked all the same, so that the order fails with that reason, and does not wait
    // until its deadline.
    if let Some(at) = not_sold.filter(|_| is_not_sold) {
        passed_over.retain(|passed| passed.account != candidates[at].account.account);
        return Choice { chosen: Some(at), until: now, passed_over, shortage: None };
    }
    Choice { chosen: None, until, passed_over, shortage: shortage.filter(|_| is_only_money).cloned() }
}

/// The candidates in the order in which they are asked.
fn ranked(order: &Order, candidates: &[Candidate], rule: RoutingRule) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..candidates.len()).collect();
    match rule {
        RoutingRule::Ordered => {}
        RoutingRule::Weighted => return drawn(order, candidates),
        RoutingRule::Cheapest => {
            let price = |price: Option<Money>| (price.is_none(), price);
            ranked.sort_by_key(|at| price(candidates[*at].account.price));
        }
        RoutingRule::Fastest => ranked.sort_by_key(|at| candidates[*at].solve_time),
        RoutingRule::Best => ranked.sort_by_key(|at| {
            let success = candidates[*at].success;
            (success.is_some(), Reverse(success))
        }),
    }
    ranked
}

/// Draws the candidates by their weights. The numbers are a hash of the order and its last attempt, so every node
/// draws the same.
fn drawn(order: &Order, candidates: &[Candidate]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let mut ranked = Vec::with_capacity(left.len());
    let mut grain = mixed(order.key.grain() ^ u64::from(order.last_attempt));
    while !left.is_empty() {
        let weight = |at: &usize| u64::from(candidates[*at].weight);
        let total: u64 = left.iter().map(weight).sum();
        let mut ticket = if total == 0 { 0 } else { grain % total };
        let drawn = left.iter().position(|at| {
            let is_it = ticket < weight(at);
            ticket = ticket.saturating_sub(weight(at));
            is_it
        });
        ranked.push(left.remove(drawn.unwrap_or(0)));
        grain = mixed(grain);
    }
    ranked
}

/// Another number that follows from this one (a step of `splitmix64`).
const fn mixed(grain: u64) -> u64 {
    let mut z = grain.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

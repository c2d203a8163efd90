//! Planted bugs in the arithmetic of budgets, and in what a spent budget does. The judge knows no budget, so each is
//! caught by a story instead (`tests/sim/stories/shared_budgets.rs`).

use quittance_engine::Rules;
use quittance_lifecycle::{
    AtLimit, Attempt, BudgetEffect, Candidate, Event, Money, Policy, Shortage, SubmitRoute, Timestamp,
    choose, place, transition,
};
use std::fmt;

/// A bug of budgets, and how to plant it.
#[derive(Clone, Copy)]
pub struct BudgetPlant {
    pub name: &'static str,
    pub sow: fn(&mut Rules),
}

impl fmt::Debug for BudgetPlant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! budget_plants {
    ($($name:literal => $sow:expr),* $(,)?) => { &[$(BudgetPlant { name: $name, sow: $sow }),*] };
}

pub const BUDGET_PLANTS: &[BudgetPlant] = budget_plants! {
    "a node leases more than is left" => |rules| rules.plant_budget(|math| math.lease = |_, need| need),
    "a node writes over its own lease" => |rules| rules.plant_budget(|math| math.may_share = |_| true),
    "an attempt in doubt gives its money back" => |rules| rules.plant_budget(|math| math.effect = |attempt| {
        let effect = attempt.budget_effect();
        if effect.is_unpriced { BudgetEffect::default() } else { effect }
    }),
    "an attempt that cost nothing keeps its money" => |rules| rules.plant_budget(|math| math.effect = keeps_all),
    "a price that is not known is 0" => |rules| rules.plant_budget(|math| math.price = |listed| Some(listed.unwrap_or_default())),
    "a store that forgot begins the budget again" => |rules| rules.plant_budget(|math| math.put_back = |_, _, _| false),
    "a budget never begins again" => |rules| rules.plant_budget(|math| math.begins = |_, _| Timestamp::from_millis(1)),
    "what is spent is spent for a minute" => |rules| rules.plant_budget(|math| {
        math.begins = |_, at| Timestamp::from_millis(at.as_millis() - at.as_millis() % 60_000);
    }),
    "an order waits for a budget that ends it" => |rules| rules.plant_transition(|order, event, now, policy| {
        transition(order, with_shortage(event, |shortage| shortage.at_limit = AtLimit::Wait), now, policy)
    }),
    "an order ends that should wait for the next period" => |rules| rules.plant_transition(|order, event, now, policy| {
        transition(order, with_shortage(event, |shortage| shortage.at_limit = AtLimit::Refuse), now, policy)
    }),
    "a new order is accepted that no budget allows" => |rules| rules.plant_place(|order, next, key, terms, now, policy| {
        let policy = Policy { no_budget_until: None, ..*policy };
        place(order, next, key, terms, now, &policy)
    }),
    "a spent budget stops all providers" => |rules| rules.plant_choose(|order, candidates, routing, now| {
        let strict = |candidate: &Candidate| Candidate {
            shortage: candidate.shortage.clone().map(|short| Shortage {
                is_of_provider: false,
                at_limit: AtLimit::Refuse,
                ..short
            }),
            ..candidate.clone()
        };
        choose(order, &candidates.iter().map(strict).collect::<Vec<_>>(), routing, now)
    }),
};

/// Nothing comes back, whatever the attempt has cost.
fn keeps_all(attempt: &Attempt) -> BudgetEffect {
    let held = attempt.drawn.as_ref().map_or(Money(0), |draw| draw.price);
    BudgetEffect { held, ..attempt.budget_effect() }
}

fn with_shortage(event: Event, change: impl FnOnce(&mut Shortage)) -> Event {
    match event {
        Event::Woken { stamp, route: SubmitRoute::NoBudget(mut shortage) } => {
            change(&mut shortage);
            Event::Woken { stamp, route: SubmitRoute::NoBudget(shortage) }
        }
        event => event,
    }
}

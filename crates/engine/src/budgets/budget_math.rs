//! The arithmetic of budgets, each step a function that the simulation can replace by a wrong one.

use super::BudgetPeriod;
use quittance_lifecycle::{Attempt, BudgetEffect, Money, Timestamp};
use quittance_ports::{BudgetDocument, BudgetShare};

/// A node leases at most this fraction of what is left, beyond what it needs at once. So little is held by a node that
/// dies, and little is out of reach of the others.
const PART_OF_REST: i64 = 16;
/// A node leases at most this many times what it needs at once, so that most submits need no write.
const NEEDS_AHEAD: i64 = 16;

/// The arithmetic of budgets: always [`REAL`](Self::REAL), except in the simulation, which plants wrong steps to prove
/// that it finds them.
#[derive(Clone, Copy, Debug)]
pub struct BudgetMath {
    /// How much a node leases that needs so much at once, if so much of the budget is left.
    pub lease: fn(left: i64, need: i64) -> i64,
    /// Whether a node may write its share while a lease of its own may be on the way.
    pub may_share: fn(is_leasing: bool) -> bool,
    /// The price at which an attempt is drawn, from that of the price list. Without one, nothing is bought.
    pub price: fn(listed: Option<Money>) -> Option<Money>,
    /// What an attempt means for its budgets.
    pub effect: fn(&Attempt) -> BudgetEffect,
    /// When the period of a moment began.
    pub begins: fn(BudgetPeriod, Timestamp) -> Timestamp,
    /// Puts back what this node knows into the document of a store that forgot. Returns whether anything was missing.
    pub put_back: fn(stored: &mut BudgetDocument, known: &BudgetDocument, node: u64) -> bool,
}

impl BudgetMath {
    pub const REAL: Self = Self {
        lease: |left, need| {
            let ahead = (left / PART_OF_REST).min(need.saturating_mul(NEEDS_AHEAD));
            need.max(ahead).min(left).max(0)
        },
        may_share: |is_leasing| !is_leasing,
        price: |listed| listed,
        effect: Attempt::budget_effect,
        begins: BudgetPeriod::begins,
        put_back,
    };
}

/// Puts back the shares that are missing, or older than known. The share of `node` itself is only compared: the node
/// writes it anyway.
fn put_back(stored: &mut BudgetDocument, known: &BudgetDocument, node: u64) -> bool {
    let is_behind = |stored: Option<&BudgetShare>, known: &BudgetShare| {
        stored.is_none_or(|stored| stored.step < known.step)
    };
    // Shares that were known may have been added up since. What is not there then is not missing.
    if stored.gone.step > known.gone.step {
        return false;
    }
    let mut is_any = stored.gone.step < known.gone.step;
    stored.gone = known.gone;
    for (other, share) in &known.nodes {
        if is_behind(stored.nodes.get(other), share) {
            is_any = true;
            if *other != node {
                stored.nodes.insert(*other, *share);
            }
        }
    }
    is_any
}

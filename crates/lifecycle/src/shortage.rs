//! Budgets, as far as a decision needs them: what an attempt has drawn from budgets before its submit, and what is
//! wrong if a budget does not allow an attempt. How much of a budget is left is counted elsewhere.

use crate::answer::Money;
use crate::order::Attempt;
use crate::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What happens to an order that its budget does not allow any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtLimit {
    /// New orders are refused, and orders that were accepted become dead letters.
    #[default]
    Refuse,
    /// Orders wait for the next period, up to their deadline.
    Wait,
    /// Orders go to a provider whose price the rest of the budget allows. If there is none, they are refused.
    CheaperProvider,
}

impl AtLimit {
    pub const ALL: [Self; 3] = [Self::Refuse, Self::Wait, Self::CheaperProvider];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Wait => "wait",
            Self::CheaperProvider => "cheaper_provider",
        }
    }

    /// What happens at the limit, by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|at_limit| at_limit.name() == name)
    }
}

/// Why a budget does not allow an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyShort {
    /// What was charged leaves too little for the attempt until the period ends.
    Spent,
    /// What attempts in progress and other nodes hold leaves too little. Some of that may come back.
    Held,
    /// No price list has the price of the attempt.
    PriceNotKnown,
    /// The price of the attempt, or what was spent, is in another currency than the budget.
    OtherCurrency,
}

impl fmt::Display for WhyShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spent => "what is left of it is less than the price of the order",
            Self::Held => "attempts in progress hold what is left of it",
            Self::PriceNotKnown => "the price of the order is not known",
            Self::OtherCurrency => "the price of the order is in another currency",
        })
    }
}

/// A budget that does not allow an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The name of the budget.
    pub budget: String,
    pub why: WhyShort,
    pub at_limit: AtLimit,
    /// Whether the budget counts one provider only. Then other providers may get the order.
    pub is_of_provider: bool,
    /// When the period of the budget ends.
    pub ends: Timestamp,
    /// When it is worth looking again.
    pub until: Timestamp,
}

impl Shortage {
    /// Whether no provider gets the order because of this, also if another one would cost less.
    #[must_use]
    pub const fn stops_the_order(&self) -> bool {
        !self.is_of_provider && !matches!(self.at_limit, AtLimit::CheaperProvider)
    }

    /// Whether the order ends because of this. Otherwise it waits.
    #[must_use]
    pub const fn ends_the_order(&self) -> bool {
        !matches!(self.at_limit, AtLimit::Wait) && !matches!(self.why, WhyShort::Held)
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the budget `{}` allows no purchase: {}", self.budget.escape_debug(), self.why)
    }
}

/// What an attempt has drawn from budgets before its submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetDraw {
    /// The drawn amount: what the attempt is expected to cost.
    pub price: Money,
    /// The period and the name of each budget, as its shared document has them.
    pub budgets: Vec<String>,
    /// When the first of the periods ends. The submit must begin before that.
    pub until: Timestamp,
}

/// What one attempt means for a budget from which it has drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetEffect {
    /// What stays drawn: the cost, or the drawn amount as long as the cost is not known.
    pub held: Money,
    /// What counts as charged: the cost, or the drawn amount if the attempt is over and its cost is not known.
    pub charged: Money,
    /// Whether the attempt counts as charged at a price that is not known.
    pub is_unpriced: bool,
}

impl Attempt {
    /// What this attempt means for the budgets from which it has drawn; nothing if it has drawn from none.
    #[must_use]
    pub fn budget_effect(&self) -> BudgetEffect {
        let Some(draw) = self.drawn.as_ref().filter(|_| self.made_for.is_none()) else {
            return BudgetEffect::default();
        };
        match self.cost {
            Some(cost) => BudgetEffect { held: cost, charged: cost, is_unpriced: false },
            None if self.is_rejected() => BudgetEffect::default(),
            None if self.is_unpriced() => {
                BudgetEffect { held: draw.price, charged: draw.price, is_unpriced: true }
            }
            None => BudgetEffect { held: draw.price, charged: Money(0), is_unpriced: false },
        }
    }
}

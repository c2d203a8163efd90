//! The names of what a budget's settings may be, as the configuration, the API and the command line write them.

use crate::budgets::{AtLimit, BudgetPeriod};

impl BudgetPeriod {
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }
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

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|at_limit| at_limit.name() == name)
    }
}

//! The names of what a budget's settings may be, as the configuration, the API and the command line write them.

use crate::budgets::{AtLimit, BudgetPeriod};

const PERIODS: [(BudgetPeriod, &str); 3] =
    [(BudgetPeriod::Hour, "hour"), (BudgetPeriod::Day, "day"), (BudgetPeriod::Month, "month")];
const AT_LIMITS: [(AtLimit, &str); 3] =
    [(AtLimit::Refuse, "refuse"), (AtLimit::Wait, "wait"), (AtLimit::CheaperProvider, "cheaper_provider")];

/// The name of a period, such as `day`.
#[must_use]
pub fn period_name(period: BudgetPeriod) -> &'static str {
    PERIODS.into_iter().find(|(known, _)| *known == period).map_or("", |(_, name)| name)
}

/// The period of this name.
#[must_use]
pub fn period_named(name: &str) -> Option<BudgetPeriod> {
    PERIODS.into_iter().find(|(_, known)| *known == name).map(|(period, _)| period)
}

/// The name of what happens at the limit, such as `refuse`.
#[must_use]
pub fn at_limit_name(at_limit: AtLimit) -> &'static str {
    AT_LIMITS.into_iter().find(|(known, _)| *known == at_limit).map_or("", |(_, name)| name)
}

/// What happens at the limit, by its name.
#[must_use]
pub fn at_limit_named(name: &str) -> Option<AtLimit> {
    AT_LIMITS.into_iter().find(|(_, known)| *known == name).map(|(at_limit, _)| at_limit)
}

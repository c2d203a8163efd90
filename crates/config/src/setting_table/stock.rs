//! The stock and the usage: pools, how long answers live, what they cost, what may be spent, and how long the usage is
//! kept.

use super::{POSITIVE, SECOND_OR_MORE, count, rows};
use crate::Config;
use crate::setting::Setting;
use crate::setting_shape::SettingShape;
use quittance::{LifeRule, PoolSpec};
use quittance_engine::BudgetRule;
use quittance_ports::SIZE_MAX;

const SIZE: SettingShape = count(1, SIZE_MAX as u64);
const DAYS: SettingShape = count(1, 3660);

pub(super) fn rows() -> impl Iterator<Item = &'static Setting> {
    [POOLS, LIFETIMES, USAGE, BUDGETS].into_iter().flatten()
}

static POOLS: &[Setting] = rows! {
    PoolSpec:
    "pools.*.tenant" [] SettingShape::Label,
        "tenant whose orders the pool serves; absent: the only tenant, or all callers if there are no tenants";
    "pools.*.kind" [] SettingShape::Kind, "kind of captcha that the pool keeps; its answers must be single-use";
    "pools.*.service_level" [] SettingShape::Ratio,
        "ratio of orders that the stock should serve, such as 0.95; the pool sizes itself. Either this or `size`";
    "pools.*.size" [] SIZE, "number of answers to keep, as long as there is demand. Either this or `service_level`";
    "pools.*.budget_per_hour" [budget] SettingShape::Money,
        "most that the pool plans to spend per clock hour, in UTC; absent: no limit of its own";
    "pools.*.hours" [hours] SettingShape::List(&SettingShape::Hours),
        "times of day, in UTC, during which the pool is filled; absent: always";
    "pools.*.min_life" [min_life] POSITIVE,
        "life that an answer must have left when it is handed out; absent: the kind's margin";
    "pools.*.enabled" [is_on] SettingShape::Flag, "false: the pool is kept but buys nothing";
    "pools.*.params.*" [] SettingShape::Text,
        "parameter of the orders that the pool places, named as in `quittance kinds KIND`";
};

static LIFETIMES: &[Setting] = rows! {
    LifeRule:
    "lifetimes.*.kind" [kind] SettingShape::Kind, "kind that the rule is for; absent: all kinds whose answers expire";
    "lifetimes.*.host" [site] SettingShape::Host, "page host that the rule is for; absent: all";
    "lifetimes.*.provider" [] SettingShape::Label,
        "provider that the rule is for: the rule applies only while that provider is in use; absent: all";
    "lifetimes.*.life" [life] SECOND_OR_MORE, "how long such an answer is good after the solve";
    "lifetimes.*.margin" [margin] POSITIVE,
        "life that a reused answer (cached, or from the stock) must have left when it is handed out";
};

static USAGE: &[Setting] = rows! {
    Config:
    "usage.detail_days" [usage_days] DAYS,
        "days for which the usage names each site; older days keep one row for all sites";
    "usage.sum_days" [sums_days] DAYS, "days for which usage is kept, including the days in detail";
    "prices.*" [] SettingShape::Money,
        "price of an answer of this kind, where the provider does not report one: callbacks never do, and some \
         services never do. Overrides the built-in price list of the service";
};

static BUDGETS: &[Setting] = rows! {
    BudgetRule:
    "budget.*.name" [] SettingShape::Label, "name of the budget";
    "budget.*.limit" [override limit] SettingShape::Money,
        "most that all nodes together may spend in one period; more than 0 (docs/budgets.md)";
    "budget.*.period" [period] SettingShape::OneOf(&["hour", "day", "month"]),
        "when the budget begins again: with each clock hour, day or month, in UTC";
    "budget.*.at_limit" [at_limit] SettingShape::OneOf(&["refuse", "wait", "cheaper_provider"]),
        "what happens to an order that the budget does not allow. `refuse`: it is refused, or becomes a dead letter. \
         `wait`: it waits for the next period, up to its deadline. `cheaper_provider`: it goes to a provider whose price \
         fits into the rest; if there is none, it is refused";
    "budget.*.tenant" [scope.tenant] SettingShape::Label, "counts only orders of this tenant; absent: all";
    "budget.*.target" [scope.target] SettingShape::Host, "counts only orders for these page hosts; absent: all";
    "budget.*.kind" [scope.kind] SettingShape::Kind, "counts only orders of this kind; absent: all";
    "budget.*.provider" [scope.provider] SettingShape::Label, "counts only attempts at this provider; absent: all";
    "budget.*.pool" [scope.pool] SettingShape::Label, "counts only orders that this pool places; absent: all";
    "budget.*.currency" [override currency] SettingShape::Currency,
        "currency of the limit; it must be that of every provider that is counted. Absent: that of `provider`, else that of \
         the first provider";
};

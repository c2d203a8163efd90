//! The budgets: what all nodes together may spend, what is spent of it, and when it is used up.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{BudgetScope, BudgetView};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::{Money, PriceSum, Timestamp};
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(BudgetsProblems: Unauthorized, Forbidden, StoreUnavailable);

/// A budget, and its present period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownBudget {
    pub name: String,
    /// Counts only orders of this tenant; null means all.
    pub tenant: Option<String>,
    /// Counts only orders for these page hosts; null means all.
    pub target: Option<String>,
    /// Counts only orders of this kind; null means all.
    pub kind: Option<String>,
    /// Counts only attempts at this provider; null means all.
    pub provider: Option<String>,
    /// Counts only orders that this pool places; null means all.
    pub pool: Option<String>,
    /// Whether it counts second purchases of urgent orders only: the budget of `hedging.money_per_day`.
    pub hedges: bool,
    #[schema(pattern = "^(hour|day|month)$")]
    pub period: String,
    /// What happens to an order that the budget does not allow.
    #[schema(pattern = "^(refuse|wait|cheaper_provider)$")]
    pub at_limit: String,
    /// Currency of the amounts of this budget.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub limit: String,
    pub limit_micros: u64,
    /// Charged in the present period. Attempts whose cost is not known count at the price that was expected; null if that is
    /// not known either.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub spent: Option<String>,
    pub spent_micros: Option<u64>,
    /// Held for attempts in progress, and by nodes for their next attempts.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub reserved: String,
    pub reserved_micros: u64,
    /// What may still be spent in the present period: `limit` - `spent` - `reserved`.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub left: String,
    pub left_micros: u64,
    /// Attempts whose cost is not known. They are in `spent` at the price that was expected.
    pub unpriced: u64,
    /// When the present period began, and when the next one begins.
    #[schema(format = DateTime)]
    pub begins: String,
    #[schema(format = DateTime)]
    pub ends: String,
    pub ends_ms: u64,
    /// Why nothing is bought from this budget now; null while it allows purchases.
    pub stopped: Option<String>,
    /// When the limit is reached if spending goes on as in this period; null if that is later than its end, or is not
    /// known.
    #[schema(format = DateTime)]
    pub runs_out: Option<String>,
    pub runs_out_ms: Option<u64>,
}

/// All budgets, in the order of the configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BudgetList {
    pub budgets: Vec<ShownBudget>,
}

impl ShownBudget {
    fn of(view: &BudgetView) -> Self {
        let BudgetScope { tenant, target, kind, provider, pool, hedges } = view.rule.scope.clone();
        let spent = PriceSum { sum: view.spent, unpriced: view.unpriced }.known();
        let used = view.spent.0.saturating_add(view.reserved.0);
        let left = Money(view.rule.limit.0.saturating_sub(used));
        Self {
            name: view.rule.name.clone(),
            tenant,
            target,
            kind,
            provider,
            pool,
            hedges,
            period: view.rule.period.name().to_owned(),
            at_limit: view.rule.at_limit.name().to_owned(),
            currency: view.rule.currency.clone(),
            limit: decimal(view.rule.limit),
            limit_micros: view.rule.limit.0,
            spent: spent.map(decimal),
            spent_micros: spent.map(|spent| spent.0),
            reserved: decimal(view.reserved),
            reserved_micros: view.reserved.0,
            left: decimal(left),
            left_micros: left.0,
            unpriced: view.unpriced,
            begins: rfc3339(view.begins),
            ends: rfc3339(view.ends),
            ends_ms: view.ends.as_millis(),
            stopped: view.stopped.clone(),
            runs_out: view.runs_out.map(rfc3339),
            runs_out_ms: view.runs_out.map(Timestamp::as_millis),
        }
    }
}

/// List the budgets
///
/// In the order of the configuration, each with what is spent in its present period, by all nodes.
#[utoipa::path(
    get, path = "/v1/admin/budgets", operation_id = "listBudgets", tag = "admin",
    responses((status = 200, body = BudgetList, description = "All budgets."), BudgetsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let views = state.orders.engine().budget_views().await.map_err(|error| store_problem(&error))?;
    Ok(json(StatusCode::OK, &BudgetList { budgets: views.iter().map(ShownBudget::of).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule};

    fn shown(spent: u64, reserved: u64, unpriced: u64) -> ShownBudget {
        let rule = BudgetRule {
            name: "day".into(),
            scope: BudgetScope::default(),
            period: BudgetPeriod::Day,
            limit: Money(25_000_000),
            currency: "USD".into(),
            at_limit: AtLimit::Refuse,
        };
        let (begins, ends) = (Timestamp::ZERO, Timestamp::from_millis(86_400_000));
        let (spent, reserved) = (Money(spent), Money(reserved));
        let runs_out = Some(Timestamp::from_millis(1_000));
        ShownBudget::of(&BudgetView {
            rule,
            begins,
            ends,
            spent,
            reserved,
            unpriced,
            stopped: None,
            runs_out,
        })
    }

    #[test]
    fn what_is_left_is_what_is_neither_spent_nor_held_and_never_below_zero() {
        let budget = shown(5_000_000, 1_500_000, 0);
        assert_eq!((budget.spent.as_deref(), budget.reserved.as_str()), (Some("5"), "1.5"));
        assert_eq!((budget.left.as_str(), budget.left_micros), ("18.5", 18_500_000));
        assert_eq!(budget.runs_out.as_deref(), Some("1970-01-01T00:00:01.000Z"));
        assert_eq!(shown(25_000_000, 1, 0).left_micros, 0);
        assert_eq!(shown(0, 0, 0).spent_micros, Some(0), "nothing was spent");
    }

    #[test]
    fn an_unknown_cost_is_no_zero() {
        let budget = shown(0, 0, 2);
        assert_eq!((budget.spent_micros, budget.unpriced), (None, 2));
        let budget = shown(5_000_000, 0, 2);
        assert_eq!(
            (budget.spent_micros, budget.left_micros),
            (Some(5_000_000), 20_000_000),
            "at what was expected"
        );
    }
}

//! The metrics of the budgets: limit, spent and held. The label is the name of a budget of the configuration.

use super::{MetricType, Page, escaped};
use quittance_engine::BudgetView;
use quittance_lifecycle::{Money, PriceSum};
use std::fmt::Write;

/// A value of a budget: its name, its help, how it is read, and whether it is an amount.
type BudgetMetric = (&'static str, &'static str, fn(&BudgetView) -> Option<u64>, bool);

const BUDGET_METRICS: [BudgetMetric; 5] = [
    (
        "quittance_budget_limit_micros",
        "Most that may be spent from the budget in one period, in millionths of its currency.",
        |view| Some(view.rule.limit.0),
        true,
    ),
    (
        "quittance_budget_spent_micros",
        "Charged in the present period, in millionths of the budget's currency; costs that are not known count as expected, and it is absent if no price is known.",
        |view| spent(view).map(|spent| spent.0),
        true,
    ),
    (
        "quittance_budget_reserved_micros",
        "Held for attempts, in progress or next, in millionths of the budget's currency.",
        |view| Some(view.reserved.0),
        true,
    ),
    (
        "quittance_budget_unpriced",
        "Attempts of the present period whose cost is not known; they count at the expected price.",
        |view| Some(view.unpriced),
        false,
    ),
    (
        "quittance_budget_stopped",
        "1 if nothing is bought from the budget now, else 0.",
        |view| Some(u64::from(view.stopped.is_some())),
        false,
    ),
];

/// What is known of the spending.
fn spent(view: &BudgetView) -> Option<Money> {
    PriceSum { sum: view.spent, unpriced: view.unpriced }.known()
}

/// Adds the metrics of each budget. A value that is not known has no sample.
pub(super) fn add(page: &mut Page, budgets: &[BudgetView]) {
    if budgets.is_empty() {
        return;
    }
    for (name, help, value, has_currency) in BUDGET_METRICS {
        // The heads of other amounts name the currency of the node, which need not be that of a budget.
        page.plain_head(name, MetricType::Gauge, help);
        for view in budgets {
            let Some(value) = value(view) else { continue };
            let budget = escaped(&view.rule.name);
            let currency = match has_currency {
                true => format!(",currency=\"{}\"", escaped(&view.rule.currency)),
                false => String::new(),
            };
            _ = writeln!(page.0, "{name}{{budget=\"{budget}\"{currency}}} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope};
    use quittance_lifecycle::Timestamp;

    fn view(name: &str, currency: &str, spent: u64, unpriced: u64) -> BudgetView {
        let rule = BudgetRule {
            name: name.into(),
            scope: BudgetScope::default(),
            period: BudgetPeriod::Day,
            limit: Money(25_000_000),
            currency: currency.into(),
            at_limit: AtLimit::Refuse,
        };
        BudgetView {
            rule,
            begins: Timestamp::ZERO,
            ends: Timestamp::ZERO,
            spent: Money(spent),
            reserved: Money(2_990),
            unpriced,
            stopped: (unpriced > 0).then(|| "the price is not known".into()),
            runs_out: None,
        }
    }

    #[test]
    fn each_budget_has_its_amounts_with_their_currency_and_one_that_is_not_known_has_none() {
        let mut page = Page::default();
        add(&mut page, &[view("day", "USD", 5_000_000, 0), view("rubles", "RUB", 0, 3)]);
        let samples: Vec<&str> = page.0.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "quittance_budget_limit_micros{budget=\"day\",currency=\"USD\"} 25000000",
            "quittance_budget_limit_micros{budget=\"rubles\",currency=\"RUB\"} 25000000",
            "quittance_budget_spent_micros{budget=\"day\",currency=\"USD\"} 5000000",
            "quittance_budget_reserved_micros{budget=\"day\",currency=\"USD\"} 2990",
            "quittance_budget_reserved_micros{budget=\"rubles\",currency=\"RUB\"} 2990",
            "quittance_budget_unpriced{budget=\"day\"} 0",
            "quittance_budget_unpriced{budget=\"rubles\"} 3",
            "quittance_budget_stopped{budget=\"day\"} 0",
            "quittance_budget_stopped{budget=\"rubles\"} 1",
        ];
        assert_eq!(samples, expected);
        assert!(page.0.contains("# HELP quittance_budget_limit_micros Most that"), "{}", page.0);
        let mut none = Page::default();
        add(&mut none, &[]);
        assert_eq!(none.0, "", "without budgets there is nothing to show");
    }
}

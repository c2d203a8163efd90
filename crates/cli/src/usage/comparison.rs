//! The second table of a report by provider: what an answer costs there, how long it takes, how many tasks come to one,
//! and how many are rejected.

use super::render::{group_name, names};
use crate::output::harmless;
use crate::text_table::plain_table;
use quittance_admin::usage::{By, UsageReport};

const NOT_KNOWN: &str = "not known";

/// The table; empty if the report is not by provider.
pub(super) fn table(report: &UsageReport) -> String {
    if !report.by.contains(&By::Provider) {
        return String::new();
    }
    let parts = report.by.iter().map(|by| by.name().to_uppercase());
    let headings =
        ["PAID", "SOLVED", "PRICE PER ANSWER", "P50", "P95", "SUCCESS", "REJECTED", "REPORTED BAD"]
            .map(str::to_owned);
    let mut grid: Vec<Vec<String>> = vec![parts.chain(headings).collect()];
    for row in &report.rows {
        let Some(comparison) = &row.comparison else { continue };
        let count = |name: &str| row.sums.count(name).unwrap_or_default().to_string();
        let price = comparison.price_per_answer.as_deref().map_or(NOT_KNOWN.to_owned(), harmless);
        let figures = [
            count("paid"),
            count("solved"),
            price,
            seconds(comparison.p50_ms),
            seconds(comparison.p95_ms),
            percent(comparison.success_permille),
            percent(comparison.rejected_permille),
            count("reported_bad"),
        ];
        grid.push(names(report, row).map(group_name).chain(figures).collect());
    }
    format!("\n{}", plain_table(&grid, report.by.len()))
}

fn seconds(ms: Option<u64>) -> String {
    ms.map_or("-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0))
}

fn percent(permille: Option<u64>) -> String {
    permille.map_or("-".to_owned(), |permille| format!("{:.1} %", permille as f64 / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(by: &[By]) -> UsageReport {
        let row = |name: &str, price: Option<&str>, figure: Option<u64>| {
            let comparison = json!({
                "price_per_answer": price, "price_per_answer_micros": null, "success_permille": figure,
                "rejected_permille": figure.map(|_| 83), "p50_ms": figure.map(|_| 12_340), "p95_ms": figure.map(|_| 40_000),
            });
            json!({ "provider": name, "paid": 10, "solved": 9, "reported_bad": 2, "comparison": comparison })
        };
        let rows = [row("main", Some("0.00299"), Some(900)), row("spare", None, None)];
        serde_json::from_value(json!({
            "from": "2026-11-16", "to": "2026-11-16", "by": by, "currency": "USD", "all": {}, "rows": rows,
            "left_out": 0, "other_currencies": [],
        }))
        .unwrap()
    }

    #[test]
    fn providers_are_compared_by_price_and_success_and_an_unknown_price_is_no_zero() {
        let text = table(&report(&[By::Provider]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "PROVIDER  PAID  SOLVED  PRICE PER ANSWER     P50     P95  SUCCESS  REJECTED  REPORTED BAD"
        );
        assert_eq!(
            lines[2],
            "main        10       9           0.00299  12.3 s  40.0 s   90.0 %     8.3 %             2"
        );
        assert_eq!(
            lines[3],
            "spare       10       9         not known       -       -        -         -             2"
        );
    }

    #[test]
    fn a_report_by_another_part_compares_nothing() {
        assert_eq!(table(&report(&[By::Kind])), "");
    }
}

//! A usage report as a table that fits the terminal, or as comma-separated values. A table that is too wide is shown
//! row by row.

use super::comparison;
use crate::csv;
use crate::days::words;
use crate::output::harmless;
use crate::pool::price_sum;
use crate::text_table::plain_table;
use anstyle::Style;
use quittance::Day;
use quittance::lifecycle::Counters;
use quittance_admin::usage::{UsageGroup, UsageReport};
use quittance_admin::usage_sums::{Sums, UsageSum};
use std::fmt::Write;

const BOLD: Style = Style::new().bold();
/// The name in the usage, the heading of its column, and its name in full.
const LINES: [(&str, &str, &str); 14] = [
    ("asked", "ASKED", "asked"),
    ("joined", "JOINED", "joined"),
    ("cached", "CACHED", "cached"),
    ("from_stock", "STOCK", "from stock"),
    ("paid", "PAID", "paid"),
    ("rejected", "REJECTED", "rejected"),
    ("retried", "RETRIED", "retried"),
    ("recovered_by_poll", "BY POLL", "recovered by poll"),
    ("in_doubt_settled", "SETTLED", "in doubt, settled"),
    ("possible_doubles", "DOUBLES?", "possible doubles"),
    ("wasted", "WASTED", "wasted"),
    ("dead", "DEAD", "dead"),
    ("spent", "SPENT", "spent"),
    ("saved", "SAVED", "saved"),
];
const NO_ORDERS: &str = "No orders were placed.\n";

/// The name of a group as text; orders without a page have an empty site.
pub(super) fn group_name(name: &str) -> String {
    if name.is_empty() { "-".to_owned() } else { harmless(name) }
}

/// A sum as text.
fn cell(sums: &Sums, name: &str, not_known: &str) -> String {
    match sums.0.get(name) {
        Some(UsageSum::Count(count)) => count.to_string(),
        Some(UsageSum::Amount(amount)) => harmless(amount),
        Some(UsageSum::NotKnown) => not_known.to_owned(),
        None => "0".to_owned(),
    }
}

fn value(sums: &Sums, name: &str) -> String {
    cell(sums, name, "not known")
}

fn is_empty(sums: &Sums) -> bool {
    sums.0.values().all(|sum| !matches!(sum, UsageSum::Count(1..)))
}

/// The amounts in other currencies: each keeps the currency in which it was counted.
fn in_other_currencies(report: &UsageReport) -> String {
    let amounts = report
        .other_currencies
        .iter()
        .map(|other| price_sum(other.cost_micros, other.unpriced).words(&harmless(&other.currency)));
    let amounts: Vec<String> = amounts.collect();
    match amounts.is_empty() {
        true => String::new(),
        false => format!(
            "\nIn other currencies: spent {}. It is in none of the sums above, which are in {}.\n",
            amounts.join(" and "),
            harmless(&report.currency)
        ),
    }
}

pub(super) fn text(report: &UsageReport, from: Day, to: Day, width: Option<usize>) -> String {
    let heading = format!("{}, in UTC; money in {}\n\n", words(from, to), harmless(&report.currency));
    if is_empty(&report.all) {
        return heading + NO_ORDERS;
    }
    let unpriced = match report.all.count("unpriced").unwrap_or_default() {
        0 => String::new(),
        answers => {
            let at_least = match report.all.count("cost_micros").is_some() {
                true => "Spent is at least that: the",
                false => "The",
            };
            format!(
                "\n{at_least} price of {answers} attempts that were or may have been charged is not known. Callbacks have no price: \
                 set `prices` in the configuration. An attempt that was accepted and never answered has no price.\n"
            )
        }
    };
    let unpriced = unpriced + &in_other_currencies(report);
    if report.by.is_empty() {
        return heading + &in_full(&report.all) + &unpriced;
    }
    let table = table(report);
    let widest = table.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    let body = match width {
        Some(width) if widest > width => row_by_row(report, width),
        _ => bold_heading(&table),
    };
    let more = match report.left_out {
        0 => String::new(),
        rows => {
            format!("\n{rows} more rows are in the totals and not shown: choose fewer days, or fewer parts\n")
        }
    };
    format!("{heading}{body}{more}{}{unpriced}", comparison::table(report))
}

/// The sums with one line for each counter.
fn in_full(all: &Sums) -> String {
    let mut text = String::new();
    for (name, _, called) in LINES {
        let cost = match name == "wasted" && all.count(name) > Some(0) {
            true => format!("  ({})", value(all, "wasted_cost")),
            false => String::new(),
        };
        _ = writeln!(text, "{called:<22}{:>14}{cost}", value(all, name));
    }
    text
}

fn rows(report: &UsageReport) -> impl Iterator<Item = (Vec<String>, &Sums)> {
    let names = |row: &UsageGroup| names(report, row).map(group_name).collect();
    report.rows.iter().map(move |row| (names(row), &row.sums)).chain([(total(report, "total"), &report.all)])
}

/// The names of a row, in the order of the parts.
pub(super) fn names<'a>(report: &'a UsageReport, row: &'a UsageGroup) -> impl Iterator<Item = &'a str> {
    report.by.iter().map(|by| row.name(*by).unwrap_or_default())
}

/// The names of the row of totals.
fn total(report: &UsageReport, word: &str) -> Vec<String> {
    let mut total = vec![String::new(); report.by.len()];
    if let Some(first) = total.first_mut() {
        word.clone_into(first);
    }
    total
}

/// The report as a table, with names to the left and numbers to the right.
fn table(report: &UsageReport) -> String {
    let heading: Vec<String> = report.by.iter().map(|by| by.name().to_uppercase()).collect();
    let heading = heading.into_iter().chain(LINES.map(|(_, heading, _)| heading.to_owned())).collect();
    let cells = rows(report).map(|(names, sums)| {
        names.into_iter().chain(LINES.map(|(name, ..)| value(sums, name))).collect::<Vec<String>>()
    });
    let grid: Vec<Vec<String>> = std::iter::once(heading).chain(cells).collect();
    plain_table(&grid, report.by.len())
}

fn bold_heading(table: &str) -> String {
    let (heading, rest) = table.split_once('\n').unwrap_or((table, ""));
    format!("{BOLD}{heading}{BOLD:#}\n{rest}")
}

/// Each row as a paragraph, for narrow terminals.
fn row_by_row(report: &UsageReport, width: usize) -> String {
    let mut text = String::new();
    for (names, sums) in rows(report) {
        let about: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        _ = write!(text, "{BOLD}{}{BOLD:#}", about.join(", "));
        // Further than any width, so that the first begins a line of its own.
        let mut column = width;
        for (name, _, called) in LINES {
            let words = format!("{called} {}", value(sums, name));
            let wanted = words.chars().count() + 2;
            if column + wanted > width {
                text += "\n ";
                column = 1;
            }
            _ = write!(text, " {words},");
            column += wanted;
        }
        text.truncate(text.len() - 1);
        text.push('\n');
    }
    text
}

pub(super) fn csv(report: &UsageReport) -> String {
    let names: Vec<&str> =
        Counters::NAMES.iter().copied().chain(["saved_micros", "spent", "saved", "wasted_cost"]).collect();
    let currency = || [report.currency.clone()];
    let parts = report.by.iter().map(|by| by.name());
    let mut text = csv::row(parts.chain(names.iter().copied()).chain(["currency"]));
    let line = |group: Vec<String>, sums: &Sums| {
        csv::row(group.into_iter().chain(names.iter().map(|name| cell(sums, name, ""))).chain(currency()))
    };
    for row in &report.rows {
        text += &line(self::names(report, row).map(str::to_owned).collect(), &row.sums);
    }
    text + &line(total(report, "total"), &report.all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_admin::usage::By;
    use serde_json::{Value, json};

    fn read(by: &[By], all: &Value, rows: &[Value]) -> UsageReport {
        let report = json!({
            "from": "2026-11-16", "to": "2026-11-16", "by": by, "currency": "EUR", "all": all, "rows": rows,
            "left_out": rows.len(), "other_currencies": [],
        });
        serde_json::from_value(report).unwrap()
    }

    fn report(by: &[By], names: &[&[&str]]) -> UsageReport {
        let sums = |asked: u64| {
            json!({
                "asked": asked, "joined": 3, "paid": 4, "solved": 4, "wasted": 1, "cost_micros": 11_960, "spent": "0.01196",
                "wasted_micros": 2_990, "wasted_cost": "0.00299", "saved_micros": 8_970, "saved": "0.00897",
            })
        };
        let rows = names.iter().map(|names| {
            let mut row = sums(7);
            by.iter().zip(names.iter()).for_each(|(by, name)| row[by.name()] = json!(name));
            row
        });
        let rows: Vec<_> = rows.collect();
        read(by, &sums(7 * rows.len() as u64), &rows)
    }

    #[test]
    fn every_line_of_the_list_is_there_in_full() {
        let report = read(
            &[],
            &json!({ "asked": 9, "wasted": 1, "wasted_cost": "0.0005", "cost_micros": 1_500 }),
            &[],
        );
        let text = text(&report, Day(20_773), Day(20_773), Some(80));
        for (_, _, called) in LINES {
            assert!(text.lines().any(|line| line.starts_with(called)), "{called}: {text}");
        }
        assert!(
            text.starts_with("2026-11-16, in UTC; money in EUR\n\n") && text.contains("1  (0.0005)"),
            "{text}"
        );
        assert!(!text.contains("at least"), "{text}");
    }

    #[test]
    fn a_table_ends_with_its_totals_and_a_narrow_terminal_gets_row_by_row() {
        let report = report(&[By::Tenant, By::Site], &[&["anna", "a.example.com"], &["bert", ""]]);
        let wide = text(&report, Day(1), Day(2), None);
        let lines: Vec<&str> = wide.lines().collect();
        assert!(lines[0].starts_with("1970-01-02 to 1970-01-03"), "{wide}");
        assert!(lines[2].contains("TENANT") && lines[2].contains("SETTLED"), "{wide}");
        assert!(lines[4].starts_with("bert    -") && lines[5].starts_with("total"), "{wide}");
        assert!(wide.contains("2 more rows"), "{wide}");
        let narrow = text(&report, Day(1), Day(2), Some(60));
        let narrow = anstream::adapter::strip_str(&narrow).to_string();
        for line in narrow.lines().filter(|line| !line.contains("more rows")) {
            assert!(line.chars().count() <= 60, "{line}");
        }
        assert!(narrow.contains("in doubt, settled 0") && narrow.contains("total\n"), "{narrow}");
    }

    #[test]
    fn a_sum_that_lacks_answers_without_a_price_says_so() {
        let all = json!({ "asked": 9, "unpriced": 4, "cost_micros": 1_500 });
        for by in [&[][..], &[By::Day]] {
            let text = text(&read(by, &all, &[]), Day(1), Day(1), None);
            assert!(text.contains("at least that: the price of 4 attempts that were or may"), "{text}");
        }
    }

    #[test]
    fn a_sum_that_is_not_known_is_not_zero_and_the_currency_is_named() {
        let all = json!({ "asked": 9, "solved": 4, "unpriced": 4, "cost_micros": null, "spent": null, "saved": null });
        let text = text(&read(&[], &all, &[]), Day(1), Day(1), None);
        let spent = text.lines().find(|line| line.starts_with("spent")).unwrap();
        assert!(spent.ends_with("not known"), "{text}");
        assert!(
            text.contains("\nThe price of 4 attempts that were or may have been charged is not known.")
                && !text.contains("at least"),
            "{text}"
        );
        assert!(text.starts_with("1970-01-02, in UTC; money in EUR\n"), "{text}");
    }

    #[test]
    fn what_was_spent_in_another_currency_keeps_it_and_is_in_no_sum() {
        let other = json!({ "currency": "USD", "spent": "0.00299", "cost_micros": 2990, "unpriced": 0, "wasted_micros": 0 });
        let mut report =
            read(&[], &json!({ "asked": 1, "solved": 1, "unpriced": 1, "cost_micros": null }), &[]);
        report.other_currencies.push(serde_json::from_value(other).unwrap());
        let text = text(&report, Day(1), Day(1), None);
        let words =
            "In other currencies: spent 0.00299 USD. It is in none of the sums above, which are in EUR.";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn an_empty_report_says_so() {
        let report = read(&[By::Day], &json!({ "asked": 0 }), &[]);
        let text = text(&report, Day(0), Day(0), None);
        assert_eq!(text, format!("1970-01-01, in UTC; money in EUR\n\n{NO_ORDERS}"));
    }

    #[test]
    fn hostile_names_are_text_in_a_table_and_in_csv() {
        let evil = ["=cmd|' /C calc'!A0", "\u{1b}[2J\nfake,row"];
        let report = report(&[By::Tenant, By::Site], &[&evil]);
        let table = text(&report, Day(0), Day(0), None);
        assert!(!anstream::adapter::strip_str(&table).to_string().contains('\u{1b}'));
        assert!(table.contains("\\u{1b}[2J\\u{a}fake,row"), "{table}");
        let csv = csv(&report);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 3, "{csv}");
        assert!(lines[1].starts_with("'=cmd|' /C calc'!A0,\"\\u{1b}[2J\\u{a}fake,row\",7,3,"), "{csv}");
        assert!(lines[2].starts_with("total,,7,3,"), "{csv}");
        let columns = |line: &str| crate::csv::read(line).unwrap().len();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{csv}");
    }
}

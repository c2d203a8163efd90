//! A report as bars, for those who would rather look than read: what was spent, saved and asked, one bar for each name.

use super::shown::is_day;
use super::told::{Report, Sums};
use crate::output::harmless;
use quittance::lifecycle::PriceSum;
use std::fmt::Write;

const SPENT: &str = "cost_micros";
const ASKED: &str = "asked";
const MEASURES: [(&str, &str); 3] = [("spent", SPENT), ("saved", "saved_micros"), ("asked", ASKED)];
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// How wide it is where nobody says.
const WIDTH: usize = 80;
const BAR_MIN: usize = 8;
const NAME_MAX: usize = 28;
/// So many bars; the rest is one.
const BARS_MAX: usize = 40;

struct Bar {
    name: String,
    sums: Vec<Sums>,
}

impl Bar {
    fn sum(&self, name: &str) -> u64 {
        self.sums.iter().fold(0, |sum, sums| sum.saturating_add(sums.count(name)))
    }

    /// What stands behind the bar.
    fn words(&self, name: &str, currency: &str) -> String {
        let mut all = PriceSum::default();
        self.sums.iter().for_each(|sums| all += money(sums, name));
        if name == ASKED { self.sum(name).to_string() } else { all.words(currency) }
    }
}

/// A sum of money, and how many prices are missing from it. Usage does not count the prices that are missing from what was saved.
fn money(sums: &Sums, name: &str) -> PriceSum {
    let not_known = u64::from(!sums.is_known(name));
    let unpriced = if name == SPENT { sums.count("unpriced").max(not_known) } else { not_known };
    PriceSum { sum: sums.amount(name), unpriced }
}

pub(super) fn draw(report: &Report, width: Option<usize>, is_utf8: bool) -> String {
    if report.all.is_empty() {
        return "Nobody has asked for anything.\n".to_owned();
    }
    let bars = bars(report);
    let by = report.by.first().map_or("", |by| by.name());
    let mut text = String::new();
    for (called, name) in MEASURES {
        _ = writeln!(text, "{called}, by {by}");
        let currency = harmless(&report.currency);
        text += &drawn(&bars, name, &currency, width.unwrap_or(WIDTH), is_utf8);
        let all = Bar { name: String::new(), sums: vec![report.all.clone()] };
        _ = writeln!(text, "in all {}\n", all.words(name, &currency));
    }
    text.truncate(text.len() - 1);
    text
}

/// Days as they come, all others by what they cost.
fn bars(report: &Report) -> Vec<Bar> {
    let name = |names: &[String]| match names.first().map_or("", String::as_str) {
        "" => "-".to_owned(),
        name => shortened(&harmless(name)),
    };
    let mut rows: Vec<_> = report.rows.iter().collect();
    if rows.iter().all(|row| row.names.first().is_some_and(|name| is_day(name))) {
        rows.sort_by(|one, other| one.names.cmp(&other.names));
    }
    let own = rows.len().min(BARS_MAX);
    let bar = |row: &&super::told::Row| Bar { name: name(&row.names), sums: vec![row.sums.clone()] };
    let mut bars: Vec<Bar> = rows[..own].iter().map(bar).collect();
    if rows.len() > own {
        let sums = rows[own..].iter().map(|row| row.sums.clone()).collect();
        bars.push(Bar { name: format!("({} others)", rows.len() - own), sums });
    }
    bars
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 2).chain("..".chars()).collect()
}

fn drawn(bars: &[Bar], name: &str, currency: &str, width: usize, is_utf8: bool) -> String {
    let value = |bar: &Bar| bar.words(name, currency);
    let widest = |of: &dyn Fn(&Bar) -> String| {
        bars.iter().map(|bar| of(bar).chars().count()).max().unwrap_or_default()
    };
    let (names, values) = (widest(&|bar| bar.name.clone()), widest(&value));
    let room = width.saturating_sub(names + values + 4).max(BAR_MIN);
    let most = bars.iter().map(|bar| bar.sum(name)).max().unwrap_or_default();
    let mut text = String::new();
    for bar in bars {
        let line = line(bar.sum(name), most, room, is_utf8);
        _ = writeln!(
            text,
            "{:<names$}  {line}{}  {:>values$}",
            bar.name,
            " ".repeat(room - line.chars().count()),
            value(bar)
        );
    }
    text
}

/// In eighths of a letter where there are such letters. What is anything at all can be seen.
fn line(count: u64, most: u64, room: usize, is_utf8: bool) -> String {
    if count == 0 || most == 0 {
        return String::new();
    }
    let parts = if is_utf8 { 8 } else { 1 };
    let whole = room as u128 * parts;
    let drawn = (u128::from(count) * whole / u128::from(most)).clamp(1, whole);
    let full = usize::try_from(drawn / parts).unwrap_or(room);
    if !is_utf8 {
        return "#".repeat(full);
    }
    let rest = usize::try_from(drawn % 8).unwrap_or_default();
    let last = rest.checked_sub(1).map(|at| EIGHTHS[at]);
    EIGHTHS[7].to_string().repeat(full) + &last.map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::By;
    use serde_json::{Value, json};

    fn report(by: By, rows: &[(&str, u64)]) -> Report {
        let row = |(name, asked): &(&str, u64)| {
            let mut row = json!({ "asked": asked, "cost_micros": asked * 1000, "saved_micros": 0 });
            row[by.name()] = json!(name);
            row
        };
        let all = rows.iter().map(|(_, asked)| asked).sum::<u64>();
        let rows: Vec<Value> = rows.iter().map(row).collect();
        let told = json!({ "all": { "asked": all, "cost_micros": all * 1000 }, "rows": rows });
        Report::read(told, &[by]).unwrap()
    }

    #[test]
    fn the_longest_bar_fills_its_room_and_the_least_can_be_seen() {
        let report = report(By::Tenant, &[("anna", 1000), ("bert", 500), ("carl", 1)]);
        let text = draw(&report, Some(60), true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[4]), ("spent, by tenant", "in all 1.501"));
        let full = |line: &str| line.chars().filter(|letter| *letter == '█').count();
        assert_eq!((full(lines[1]), full(lines[2]), full(lines[3])), (47, 23, 0), "{text}");
        assert!(lines[2].contains('▌') && lines[3].contains('▏'), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{text}");
        let plain = draw(&report, Some(60), false);
        assert!(plain.is_ascii() && plain.contains("carl  #"), "{plain}");
    }

    #[test]
    fn what_is_not_known_is_no_zero_and_money_has_its_currency() {
        let told = json!({
            "currency": "EUR", "all": { "asked": 3, "cost_micros": 2_990, "unpriced": 2, "saved_micros": null },
            "rows": [
                { "tenant": "anna", "asked": 2, "cost_micros": 2_990, "unpriced": 1, "saved_micros": null },
                { "tenant": "bert", "asked": 1, "cost_micros": null, "unpriced": 1, "saved_micros": 0 },
            ],
        });
        let text = draw(&Report::read(told, &[By::Tenant]).unwrap(), Some(80), false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("anna") && lines[1].ends_with("at least 0.00299 EUR"), "{text}");
        assert!(lines[2].starts_with("bert") && lines[2].ends_with("not known"), "{text}");
        assert_eq!(lines[3], "in all at least 0.00299 EUR", "{text}");
        assert!(lines[6].ends_with("not known") && lines[7].ends_with("0 EUR"), "{text}");
        assert_eq!((lines[8], *lines.last().unwrap()), ("in all not known", "in all 3"), "{text}");
    }

    #[test]
    fn days_stand_in_their_order_and_too_many_names_become_one() {
        let text = draw(&report(By::Day, &[("2026-11-16", 9), ("2026-11-15", 3)]), None, false);
        assert!(text.find("2026-11-15") < text.find("2026-11-16"), "{text}");
        let names: Vec<String> = (0..50).map(|n| format!("tenant-{n}")).collect();
        let rows: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
        let text = draw(&report(By::Tenant, &rows), None, false);
        assert!(
            text.contains("(10 others)") && text.contains("20\n") && !text.contains("tenant-45"),
            "{text}"
        );
    }

    #[test]
    fn a_hostile_name_is_short_and_harmless() {
        let evil = format!("\u{1b}[2J{}", "x".repeat(200));
        let text = draw(&report(By::Site, &[(&evil, 1)]), Some(70), true);
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 70), "{text}");
        assert_eq!(draw(&report(By::Site, &[]), None, true), "Nobody has asked for anything.\n");
    }
}

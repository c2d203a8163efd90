//! Writes the study as a table for a document, and as JSON for programs.

use super::promises::Spends;
use super::study::{GOAL_PERMILLE, StepResponse, StudyRow};
use quittance_lifecycle::Money;
use std::fmt::Write;

const HEADINGS: [&str; 11] = [
    "kind",
    "orders/s",
    "in a life",
    "served %",
    "level",
    "best",
    "waste %",
    "$ for 1,000",
    "five: $",
    "followed: up",
    "down",
];

#[must_use]
pub fn table(rows: &[StudyRow]) -> String {
    let mut lines: Vec<Vec<String>> = vec![HEADINGS.iter().map(|heading| (*heading).to_owned()).collect()];
    lines[0].push("promises".to_owned());
    lines.extend(rows.iter().map(cells));
    let columns = lines[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut table = String::new();
    for (n, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(table, "| {cell:<width$} ");
        }
        table.push_str("|\n");
        if n == 0 {
            for width in &widths {
                _ = write!(table, "| {} ", "-".repeat(*width));
            }
            table.push_str("|\n");
        }
    }
    table
}

fn cells(row: &StudyRow) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let holds_something = row.best.size > 0;
    let spends = match row.spends() {
        Spends::Less => "less",
        Spends::Same => "same",
        Spends::MoreForMore => "more (1)",
        Spends::More => "MORE",
    };
    let broken = row.broken();
    vec![
        row.kind.clone(),
        row.rate.to_string(),
        format!("{:.1}", row.per_life()),
        if holds_something { percent(row.served) } else { "-".to_owned() },
        format!("{:.1}", row.level),
        match (row.best.size, row.best.is_limited) {
            (0, _) => "none".to_owned(),
            (size, true) => format!("{size} (2)"),
            (size, false) => size.to_string(),
        },
        if holds_something { percent(row.waste) } else { "-".to_owned() },
        format!("{} {spends}", dollars(row.money)),
        format!("{}, serves {}", dollars(row.five_money), percent(row.five_served)),
        followed(row.up),
        followed(row.down),
        if broken.is_empty() { "hold".to_owned() } else { format!("BROKEN: {}", broken.join(", ")) },
    ]
}

fn followed(steps: StepResponse) -> String {
    format!("{:.2} ({:.2})", steps.median, steps.p90)
}

fn dollars(Money(micros): Money) -> String {
    format!("{}.{:03}", micros / 1_000_000, micros % 1_000_000 / 1000)
}

#[must_use]
pub fn json(rows: &[StudyRow], seed: u64) -> String {
    let rows: Vec<String> = rows.iter().map(json_row).collect();
    let rows = rows.join(",\n  ");
    format!("{{\"seed\": {seed}, \"goal_permille\": {GOAL_PERMILLE}, \"rows\": [\n  {rows}\n]}}\n")
}

fn json_row(row: &StudyRow) -> String {
    let broken: Vec<String> = row.broken().iter().map(|promise| format!("\"{promise}\"")).collect();
    let spends = match row.spends() {
        Spends::Less => "less",
        Spends::Same => "same",
        Spends::MoreForMore => "more_for_more",
        Spends::More => "more",
    };
    let steps = |StepResponse { steps, median, p90 }: StepResponse| {
        format!("{{\"steps\": {steps}, \"median_lives\": {median:.4}, \"p90_lives\": {p90:.4}}}")
    };
    let fields = [
        ("kind", format!("\"{}\"", row.kind)),
        ("rate", row.rate.to_string()),
        ("life_s", row.life.as_secs().to_string()),
        ("usable_s", row.usable.as_secs().to_string()),
        ("lead_s", format!("{:.3}", row.lead.as_secs_f64())),
        ("orders", row.orders.to_string()),
        ("served", format!("{:.5}", row.served)),
        ("waste", format!("{:.5}", row.waste)),
        ("level", format!("{:.3}", row.level)),
        ("share_of_time_within_one", format!("{:.4}", row.near)),
        ("best_level", row.best.size.to_string()),
        ("best_served", format!("{:.5}", row.best.served)),
        ("best_is_limited", row.best.is_limited.to_string()),
        ("micros_per_1000", row.money.0.to_string()),
        ("best_micros_per_1000", row.best.money.0.to_string()),
        ("five_micros_per_1000", row.five_money.0.to_string()),
        ("five_served", format!("{:.5}", row.five_served)),
        ("spends", format!("\"{spends}\"")),
        ("up", steps(row.up)),
        ("down", steps(row.down)),
        ("broken", format!("[{}]", broken.join(", "))),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

//! The report of a demo, for a user or a script. It has 80 columns, begins with what happened, and ends with what to
//! do next. Styles are always written, and removed if the output is not a terminal.

use crate::DemoPlan;
use anstyle::{AnsiColor, Style};
use quittance::lifecycle::Counters;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const HEADING: Style = Style::new().bold();
const NOTE: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// How many breaches are shown in full; `--json` has all of them.
const BREACHES_SHOWN_MAX: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct RequestOutcomes {
    pub(crate) answered: u64,
    /// Other outcomes, by code: dead letters, refusals and so on.
    pub(crate) otherwise: BTreeMap<String, u64>,
    pub(crate) nothing: u64,
}

#[derive(Debug)]
pub struct DemoReport {
    pub(crate) plan: DemoPlan,
    pub(crate) took: Duration,
    pub(crate) kills: u32,
    pub(crate) usage: Counters,
    /// How many tasks the provider took, by its ledger.
    pub(crate) taken: u64,
    /// How many of these tasks the engine has only as in doubt.
    pub(crate) taken_in_doubt: u64,
    pub(crate) dead_letters: u64,
    pub(crate) lost: u64,
    pub(crate) ends: RequestOutcomes,
    pub(crate) spent_micros: u64,
    pub(crate) without_micros: u64,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) forged: u64,
    pub breaches: Vec<String>,
}

impl DemoReport {
    /// The report as a JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        let usage: Map<String, Value> =
            self.usage.lines().map(|(name, count)| (name.into(), json!(count))).collect();
        let object = json!({
            "seed": self.plan.seed,
            "requests": self.plan.requests,
            "captchas": self.plan.captchas,
            "workers": self.plan.workers,
            "kills": self.kills,
            "reuse": "shared",
            "seconds": self.took.as_secs_f64(),
            "answered": self.ends.answered,
            "not_answered": self.ends.otherwise,
            "usage": usage,
            "saved": self.saved(),
            "recovered": self.recovered(),
            "dead": self.dead_letters,
            "lost": self.lost,
            "ledger": { "taken": self.taken, "taken_in_doubt": self.taken_in_doubt },
            "spent_micros": self.spent_micros,
            "cost_without_quittance_micros": self.without_micros,
            "faults": self.faults,
            "forged_callbacks": self.forged,
            "breaches": self.breaches,
            "promises_kept": self.breaches.is_empty(),
        });
        format!("{object}\n")
    }

    const fn saved(&self) -> u64 {
        self.usage.joined + self.usage.cached + self.usage.from_stock
    }

    const fn recovered(&self) -> u64 {
        self.usage.in_doubt_settled + self.usage.recovered_by_poll
    }

    /// The report for a terminal of 80 columns.
    #[must_use]
    pub fn text(&self) -> String {
        let mut page = ReportPage::default();
        let DemoPlan { seed, requests, captchas, workers, .. } = self.plan;
        page.heading(&format!("One storm, seed {seed}"));
        let timeline = format!(
            "{workers} workers made {} requests for {} captchas, in {:.1} s. The engine was killed {} times (kill -9), and went \
             on from its store each time. Equal orders are one job here (`reuse.default = \"shared\"`; docs/reuse.md).",
            grouped(requests.into()),
            grouped(captchas.into()),
            self.took.as_secs_f64(),
            self.kills,
        );
        page.paragraph(&timeline);
        self.usage(&mut page);
        self.ledger(&mut page);
        self.weather(&mut page);
        self.verdict(&mut page);
        page.text
    }

    fn usage(&self, page: &mut ReportPage) {
        let usage = &self.usage;
        page.section("The usage: what Quittance wrote down");
        page.row("asked", usage.asked, "orders placed, again after a kill too");
        page.row("paid", usage.paid, "attempts known to have been taken");
        page.row("saved", self.saved(), "joined an order, or got its answer");
        page.row("retried", usage.retried, "attempts after the first, within limits");
        page.row("in doubt, settled", usage.in_doubt_settled, "replies that were lost: a callback came");
        page.row(
            "recovered by fallback poll",
            usage.recovered_by_poll,
            "callbacks that were lost: a poll found it",
        );
        page.row("possible double payments", usage.possible_doubles, "in doubt, then submitted again");
        page.row("wasted", usage.wasted, "answers that expired unused");
        page.row("dead", self.dead_letters, "wait for a person: `quittance dead`");
        let style = if self.lost == 0 { GOOD } else { BAD };
        page.styled_row("lost", &grouped(self.lost), "counted by the judge, not by the engine", style);
    }

    fn ledger(&self, page: &mut ReportPage) {
        page.line("(Joins cost no write of their own: a kill loses those of its last 20 ms.)");
        page.section("The provider's own ledger beside them");
        page.row("taken by the provider", self.taken, "tasks, each of them paid for");
        page.row("paid, in the usage", self.usage.paid, "");
        page.row("taken in doubt", self.taken_in_doubt, "nothing ever came; listed as in doubt");
        page.section("The money");
        page.styled_row("spent", &money(self.spent_micros), "by the ledger", Style::new());
        page.styled_row(
            "without Quittance",
            &money(self.without_micros),
            "each request pays, none goes wrong",
            Style::new(),
        );
    }

    fn weather(&self, page: &mut ReportPage) {
        page.section("What went wrong meanwhile");
        let mut line = String::new();
        for (name, count) in &self.faults {
            _ = write!(line, "{}{name} {count}", if line.is_empty() { "" } else { ", " });
        }
        line.push('.');
        page.paragraph(&line);
        let RequestOutcomes { answered, otherwise, nothing } = &self.ends;
        let mut ends = format!("Requests: {} answered", grouped(*answered));
        for (code, count) in otherwise {
            _ = write!(ends, ", {count} {code}");
        }
        if *nothing > 0 {
            _ = write!(ends, ", {nothing} without an outcome");
        }
        page.paragraph(&format!("{ends}."));
    }

    fn verdict(&self, page: &mut ReportPage) {
        page.text.push('\n');
        if self.breaches.is_empty() {
            let apart = match self.taken_in_doubt {
                0 => String::new(),
                count => format!(", apart from {count} in doubt"),
            };
            // One line of at most 80 columns: it is not wrapped.
            let verdict = format!("Every promise held, and the usage equals the ledger{apart}.");
            page.styled(&verdict, GOOD);
            page.paragraph(
                "Next: `quittance mock` is a provider to play with, `quittance init` writes a file to begin with, and \
                 `quittance doctor` says what is missing. README.md has more.",
            );
        } else {
            page.styled(&format!("{} promises were broken:", self.breaches.len()), BAD);
            for breach in self.breaches.iter().take(BREACHES_SHOWN_MAX) {
                page.paragraph(breach);
            }
            page.line(&format!("This is a bug. Please report it with the seed, {}.", self.plan.seed));
        }
    }
}

/// An amount in millionths as the provider's currency, with three decimals.
fn money(micros: u64) -> String {
    format!("${}.{:03}", micros / 1_000_000, micros % 1_000_000 / 1000)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The lines of a text that is broken at its blanks. A longer word has a line of its own.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[derive(Default)]
struct ReportPage {
    text: String,
}

impl ReportPage {
    fn heading(&mut self, words: &str) {
        self.styled(words, HEADING);
    }

    fn section(&mut self, words: &str) {
        self.text.push('\n');
        self.styled(words, HEADING);
    }

    fn styled(&mut self, words: &str, style: Style) {
        _ = writeln!(self.text, "{style}{words}{style:#}");
    }

    fn paragraph(&mut self, words: &str) {
        for line in wrapped(words, 76) {
            self.line(&line);
        }
    }

    fn line(&mut self, words: &str) {
        _ = writeln!(self.text, "  {words}");
    }

    fn row(&mut self, name: &str, count: u64, note: &str) {
        self.styled_row(name, &grouped(count), note, Style::new());
    }

    fn styled_row(&mut self, name: &str, count: &str, note: &str, style: Style) {
        let gap = if note.is_empty() { "" } else { "  " };
        _ = writeln!(self.text, "  {name:<26} {style}{count:>8}{style:#}{gap}{NOTE}{note}{NOTE:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_money_read_easily() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!((money(2_990), money(12_345_678)), ("$0.002".into(), "$12.345".into()));
        assert!(wrapped(&"word ".repeat(50), 76).iter().all(|line| line.len() <= 76));
    }
}

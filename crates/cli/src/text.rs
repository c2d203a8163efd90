//! A report for a person at a terminal: 80 columns, what happened first, what to do next last.
//!
//! Styles are always written; whoever prints strips them where they would only be noise.

use crate::demo::Report;
use anstyle::{AnsiColor, Style};
use std::fmt::Write;

const HEADING: Style = Style::new().bold();
const NOTE: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// How many breaches are spelled out; `--json` has them all.
const BREACHES_SHOWN_MAX: usize = 20;

/// `command` is how the reader calls this program.
pub(crate) fn render(report: &Report, command: &str) -> String {
    let mut page = Page::default();
    opening(&mut page, report);
    books(&mut page, report);
    ledger(&mut page, report);
    money(&mut page, report);
    storm(&mut page, report);
    verdict(&mut page, report);
    next_steps(&mut page, report, command);
    page.text
}

fn opening(page: &mut Page, report: &Report) {
    let setup = &report.setup;
    page.heading(&format!("One storm in the simulation, seed {}", report.seed));
    page.line(&format!(
        "{} nodes, {} callers, {} requests for {} things.",
        setup.nodes,
        setup.callers,
        grouped(setup.requests as u64),
        setup.things,
    ));
    page.line(&format!(
        "{} minutes of virtual time, {} of them storm. No network, no key, no money.",
        report.virtual_ms / 60_000,
        setup.storm_ms / 60_000,
    ));
}

fn books(page: &mut Page, report: &Report) {
    let books = &report.books;
    page.section("The books: what Quittance wrote down");
    page.row("asked", books.asked, "orders placed, again after a crash too");
    page.row("joined", books.joined, "shared an order in flight");
    page.row("cached", books.cached, "were given an answer already solved");
    page.row("from stock", books.from_stock, "were given an answer from the stock");
    page.row("refused", books.refused, "told at once why; nothing paid");
    page.row("new", report.new_lives(), "the rest: had to be submitted");
    page.row("paid", books.paid, "attempts known to be taken by the provider");
    page.row("retried", books.retried, "attempts after the first, within limits");
    page.row("doubts", books.doubts, "submits of unknown outcome: taken or not?");
    page.row("recovered from doubt", books.recovered_from_doubt, "settled by a callback or a late reply");
    page.row("recovered by fallback poll", books.recovered_by_poll, "their callback never came");
    page.row("possible double payments", books.possible_doubles, "a doubt waited out, then submitted again");
    page.row("late", books.late, "answers that came after the order moved on");
    page.row("wasted", books.wasted, "answers nobody could use any more");
    page.row("failed", books.failed, "permanent fault: the caller was told");
    let waiting = format!("dead letters; {} still wait for a person", grouped(report.dead_letters));
    page.row("dead", books.dead, &waiting);
    let style = if report.lost() == 0 { GOOD } else { BAD };
    page.styled_row("lost", &grouped(report.lost()), "counted by the judge, not by the engine", style);
}

fn ledger(page: &mut Page, report: &Report) {
    page.section("The provider's own ledger beside them");
    page.row("taken by the provider", report.ledger.payments, "tasks; the solved ones are billed");
    page.row("paid, in the books", report.books.paid, "");
    let open = format!("among the {} doubts still open", grouped(report.doubts_open()));
    page.row("difference", report.unknown_to_the_books(), &open);
}

fn money(page: &mut Page, report: &Report) {
    let money = &report.money;
    page.section(&format!(
        "Money, at ${}.{:05} an answer",
        money.price / 1_000_000,
        money.price % 1_000_000 / 10
    ));
    // Rounded before it is subtracted, so that the reader's sum comes out.
    let (spent, without) = (cents(money.spent), cents(money.without));
    page.money_row("spent", spent, &format!("{} answers billed", grouped(report.ledger.answers)));
    let given = format!("{} answers given, each bought once", grouped(money.answers_given));
    page.money_row("without Quittance", without, &given);
    let percent = ((without - spent) * 100).checked_div(without).unwrap_or(0);
    page.money_row("saved", without - spent, &format!("{percent} %"));
}

fn storm(page: &mut Page, report: &Report) {
    let storm = &report.storm;
    page.section("What the storm did");
    page.row("nodes killed", storm.kills, "at any moment, and started again");
    page.row("nodes frozen", storm.freezes, "for up to 90 seconds");
    page.row("callers left without a word", storm.callers_left_alone, "no node answered; they ask again");
    page.row("replies lost", storm.replies_lost, "to submits that the provider took");
    page.row("callbacks lost", storm.callbacks_lost, "of tasks that were taken");
    page.row("provider busy", storm.busy, "submits to be tried again later");
    page.row("refused for good", storm.refused_for_good, "submits that must not be tried again");
    page.row("unsolvable", storm.unsolvable, "tasks taken and not solved");
    let believed = format!("of which {} were believed", grouped(storm.forged_believed));
    page.row("forged callbacks", storm.forged, &believed);
}

fn verdict(page: &mut Page, report: &Report) {
    page.line("");
    if report.breaches.is_empty() {
        page.styled_line(GOOD, "Verdict: every promise held.");
        return;
    }
    let times =
        if report.breaches.len() == 1 { "once".into() } else { format!("{} times", report.breaches.len()) };
    page.styled_line(BAD, &format!("Verdict: a promise was broken, {times}."));
    for breach in report.breaches.iter().take(BREACHES_SHOWN_MAX) {
        page.line(&format!("  {breach}"));
    }
    let hidden = report.breaches.len().saturating_sub(BREACHES_SHOWN_MAX);
    if hidden > 0 {
        page.line(&format!("  and {hidden} more: --json has them all"));
    }
    page.line("This is a bug in Quittance. Please report it with the seed.");
}

fn next_steps(page: &mut Page, report: &Report, command: &str) {
    page.section("Next");
    page.line(&format!("  Replay this storm:  {command} demo --seed {}", report.seed));
    page.line("  For a script:       add --json");
    page.line("  The five promises:  README.md");
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn styled_line(&mut self, style: Style, line: &str) {
        self.line(&format!("{style}{line}{style:#}"));
    }

    fn heading(&mut self, title: &str) {
        self.styled_line(HEADING, title);
    }

    fn section(&mut self, title: &str) {
        self.line("");
        self.heading(title);
    }

    fn row(&mut self, name: &str, count: u64, note: &str) {
        self.styled_row(name, &grouped(count), note, Style::new());
    }

    fn money_row(&mut self, name: &str, cents: i64, note: &str) {
        self.styled_row(name, &dollars(cents), note, Style::new());
    }

    fn styled_row(&mut self, name: &str, value: &str, note: &str, style: Style) {
        _ = write!(self.text, "  {name:<27}{style}{value:>6}{style:#}");
        if !note.is_empty() {
            _ = write!(self.text, "  {NOTE}{note}{NOTE:#}");
        }
        self.text.push('\n');
    }
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Millionths to the nearest cent.
const fn cents(micros: u64) -> i64 {
    ((micros + 5_000) / 10_000).cast_signed()
}

fn dollars(cents: i64) -> String {
    let (sign, cents) = (if cents < 0 { "-" } else { "" }, cents.unsigned_abs());
    format!("{sign}${}.{:02}", grouped(cents / 100), cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::{a_loss, small_report};

    fn plain(report: &Report) -> String {
        anstream::adapter::strip_str(&render(report, "quittance")).to_string()
    }

    #[test]
    fn numbers_and_money_are_readable() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (micros, rounded) in [(0, 0), (4_999, 0), (5_000, 1), (2_990_000, 299)] {
            assert_eq!(cents(micros), rounded);
        }
        for (cents, text) in [(0, "$0.00"), (5, "$0.05"), (-150, "-$1.50"), (123_456, "$1,234.56")] {
            assert_eq!(dollars(cents), text);
        }
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut report = small_report(Vec::new());
        for line in plain(&report).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        // Columns stay columns when the numbers are large.
        report.books.asked = 123_456;
        assert!(plain(&report).contains("asked                      123,456  "), "{}", plain(&report));
    }

    #[test]
    fn a_held_promise_says_so_and_says_what_to_do_next() {
        let text = plain(&small_report(Vec::new()));
        assert!(text.contains("Verdict: every promise held."), "{text}");
        assert!(text.contains("quittance demo --seed 7\n"), "{text}");
        assert!(text.contains("--json"), "{text}");
        assert!(!text.contains("bug"), "{text}");
    }

    #[test]
    fn a_broken_promise_is_named_with_its_story() {
        let text = plain(&small_report(vec![a_loss()]));
        assert!(text.contains("Verdict: a promise was broken, once."), "{text}");
        assert!(text.contains("never lost: task 1001: known, solved, and is Sent"), "{text}");
        assert!(text.contains("report it with the seed"), "{text}");
        assert!(!text.contains("every promise held"), "{text}");
    }

    #[test]
    fn many_breaches_do_not_flood_the_screen() {
        let text = plain(&small_report(vec![a_loss(); BREACHES_SHOWN_MAX + 3]));
        assert_eq!(text.matches("never lost: ").count(), BREACHES_SHOWN_MAX);
        assert!(text.contains("and 3 more"), "{text}");
    }
}

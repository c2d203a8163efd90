//! The sums of all attempts, and how they compare with the usage and with the ledger.

use super::compare::Compared;
use super::entry::is_known;
use crate::days::{self, words};
use crate::output::harmless;
use crate::pool::price_sum;
use quittance::Day;
use quittance::lifecycle::{Money, PriceSum};
use quittance_admin::audit::PaidAttempt;
use quittance_admin::usage_sums::Sums;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Attempts that the provider is known to have taken, and the cost of their answers.
    paid: u64,
    cost: PriceSum,
    /// How many of these attempts are still worked on, so that their cost is not known yet.
    unsettled: u64,
    doubles: u64,
    by_state: BTreeMap<String, u64>,
    pub(super) unreadable: u64,
    /// The currency of all amounts.
    pub(super) currency: String,
    pub(super) usage: Sums,
    pub(super) balance: Option<String>,
    pub(super) compared: Option<Compared>,
}

fn amount(micros: u64) -> String {
    Money(micros).to_string()
}

fn in_all(cost: Option<PriceSum>) -> String {
    let Some(cost) = cost else { return "cost not known yet".into() };
    match cost.known() {
        None => "price not known".into(),
        Some(_) => format!("{} in all", cost.words("")),
    }
}

impl Summary {
    pub(super) fn add(&mut self, entry: &PaidAttempt) {
        self.paid += u64::from(is_known(entry));
        // What is free is free in every currency; any other cost in another currency is not known in this one.
        let is_ours = |cost: &Money| *cost == Money(0) || entry.currency == self.currency;
        if entry.unpriced || entry.cost_micros.is_some() {
            self.cost.add(entry.cost_micros.map(Money).filter(is_ours));
        } else {
            self.unsettled += u64::from(is_known(entry));
        }
        self.doubles += u64::from(entry.possible_double);
        *self.by_state.entry(entry.state.clone()).or_default() += 1;
    }

    /// The cost of the attempts; `None` if nothing of it is known yet, because all are still worked on.
    fn cost_so_far(&self) -> Option<PriceSum> {
        (self.unsettled == 0 || self.cost != PriceSum::default()).then_some(self.cost)
    }

    /// The cost of the answers according to the usage; `None` if nothing of it is known yet.
    fn booked_cost(&self) -> Option<PriceSum> {
        let (micros, unpriced) = (self.usage.count("cost_micros"), self.booked("unpriced"));
        (micros.is_some() || unpriced > 0 || self.booked("paid") == 0).then(|| price_sum(micros, unpriced))
    }

    /// The value of the usage counter `name`; 0 if there is none.
    fn booked(&self, name: &str) -> u64 {
        self.usage.count(name).unwrap_or_default()
    }

    /// How many payments in the usage belong to attempts that are no longer on record.
    pub(super) fn forgotten(&self) -> u64 {
        self.booked("paid").saturating_sub(self.paid)
    }

    pub(super) fn is_explained(&self) -> bool {
        self.compared.as_ref().is_none_or(Compared::is_explained)
    }

    pub(super) fn json(&self, from: Day, to: Day) -> Value {
        let micros = |cost: Option<PriceSum>| cost.and_then(|cost| cost.known()).map(|cost| cost.0);
        let booked = self.booked_cost();
        let ledger = self.compared.as_ref().map(|compared| {
            let mut ledger = json!(compared);
            ledger["is_explained"] = compared.is_explained().into();
            ledger
        });
        json!({ "summary": {
            "from": days::render(from), "to": days::render(to), "currency": self.currency,
            "paid": self.paid, "cost_micros": micros(self.cost_so_far()), "unpriced": self.cost.unpriced, "possible_doubles": self.doubles,
            "by_state": self.by_state, "unreadable": self.unreadable,
            "usage": { "paid": self.booked("paid"), "cost_micros": micros(booked), "unpriced": self.booked("unpriced") },
            "balance": self.balance, "ledger": ledger,
            "is_explained": self.is_explained(),
        } })
    }

    pub(super) fn text(&self, from: Day, to: Day) -> String {
        let mut text = format!("\n{}, in UTC; money in {}\n", words(from, to), harmless(&self.currency));
        let states =
            self.by_state.iter().map(|(state, count)| format!("{count} {}", state.replace('_', " ")));
        let states: Vec<String> = states.collect();
        let states = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
        let (paid, cost) = (self.paid, in_all(self.cost_so_far()));
        line(&mut text, "on record", &format!("{paid} attempts paid for, {cost} ({states})"));
        if self.doubles > 0 {
            let doubles = self.doubles;
            line(&mut text, "", &format!("{doubles} made while an earlier one may have been paid for"));
        }
        if self.unreadable > 0 {
            let count = self.unreadable;
            line(&mut text, "", &format!("{count} records cannot be read: see `quittance dead list`"));
        }
        self.compare_with_usage(&mut text);
        if let Some(balance) = &self.balance {
            line(&mut text, "balance", &format!("{balance} {}, as the provider says", self.currency));
        }
        if let Some(compared) = &self.compared {
            show_ledger(&mut text, compared);
        }
        text
    }

    fn compare_with_usage(&self, text: &mut String) {
        let (paid, booked) = (self.booked("paid"), self.booked_cost());
        let difference = match (self.paid.cmp(&paid), self.cost_so_far() == booked) {
            (Ordering::Equal, true) => ": the same".to_owned(),
            (Ordering::Greater, _) => {
                format!("; the other {} were counted on another day, or in another store", self.paid - paid)
            }
            _ => {
                let money = match booked.map(|booked| booked.since(&self.cost)) {
                    Some(missing) if missing.known().is_some() => missing.words(""),
                    _ => "price not known".to_owned(),
                };
                let count = paid - self.paid.min(paid);
                format!(
                    "; {count} of them, {money}, by orders that are no longer on record, on another day, or by the oldest of very many attempts of one order"
                )
            }
        };
        line(text, "the usage", &format!("{paid} paid for, {}{difference}", in_all(booked)));
        let unpriced = self.booked("unpriced");
        if unpriced > 0 {
            let what = format!(
                "the price of {unpriced} that were or may have been charged is not known: set `prices`, or compare with --ledger"
            );
            line(text, "", &what);
        }
    }
}

/// Writes a line of the summary: what it is about, and the words.
fn line(text: &mut String, about: &str, words: &str) {
    _ = writeln!(text, "{about:<10} {}", harmless(words));
}

fn show_ledger(text: &mut String, compared: &Compared) {
    let Compared { matched, matched_micros, .. } = compared;
    let mut ours = format!("{matched} tasks, {}, are ours", amount(*matched_micros));
    if compared.unanswered > 0 {
        let (count, money) = (compared.unanswered, amount(compared.unanswered_micros));
        ours += &format!("; {count} of them, {money}, never brought an answer");
    }
    if compared.given_back > 0 {
        let (count, money) = (compared.given_back, amount(compared.given_back_micros));
        ours += &format!("; for {count} of them {money} was given back");
    }
    line(text, "the ledger", &ours);
    for (count, micros, what) in [
        (compared.by_doubt, compared.by_doubt_micros, "our attempts in doubt may explain them"),
        (compared.forgotten, compared.forgotten_micros, "as many are no longer on record here"),
    ] {
        if count > 0 {
            line(text, "", &format!("{count}, {}, only in the ledger; {what}", amount(micros)));
        }
    }
    if compared.theirs_only > 0 {
        let (count, money) = (compared.theirs_only, amount(compared.theirs_only_micros));
        line(text, "", &format!("{count}, {money}, only in the ledger, and nothing explains them"));
    }
    for (count, what) in [
        (compared.ours_only, "only we have"),
        (compared.priced_otherwise, "cost otherwise there"),
        (compared.passed_over, "more attempts in doubt were not compared: compare fewer days at once"),
    ] {
        if count > 0 {
            line(text, "", &format!("{count} {what}"));
        }
    }
    for detail in &compared.details {
        _ = writeln!(text, "  {}", harmless(detail));
    }
    text.push_str(match compared.is_explained() {
        true => "Every cent is explained.\n",
        false => "Not everything is explained.\n",
    });
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::answered;
    use super::*;

    fn summary(usage: &Value) -> Summary {
        let mut summary = Summary { currency: "USD".into(), ..Summary::default() };
        summary.add(&answered("1"));
        summary.add(&PaidAttempt { state: "in_doubt".into(), cost_micros: None, task: None, ..answered("") });
        summary.usage = serde_json::from_value(usage.clone()).unwrap();
        summary
    }

    #[test]
    fn a_doubt_is_listed_and_is_no_payment() {
        let same = summary(&json!({ "paid": 1, "cost_micros": 2990 })).text(Day(20_773), Day(20_773));
        assert!(same.contains("1 attempts paid for, 0.00299 in all (1 answered, 1 in doubt)"), "{same}");
        assert!(same.contains("the usage  1 paid for, 0.00299 in all: the same"), "{same}");
    }

    #[test]
    fn what_is_no_longer_on_record_is_counted_with_its_money() {
        let summary = summary(&json!({ "paid": 3, "cost_micros": 8970 }));
        let text = summary.text(Day(20_773), Day(20_773));
        assert!(text.contains("2 of them, 0.00598, by orders that are no longer on record"), "{text}");
        assert_eq!(summary.forgotten(), 2);
        assert_eq!(summary.json(Day(0), Day(0))["summary"]["paid"], 1);
    }

    #[test]
    fn answers_without_a_price_have_no_cost_of_zero() {
        let mut summary = Summary::default();
        summary.add(&PaidAttempt { cost_micros: None, unpriced: true, ..answered("1") });
        summary.usage =
            serde_json::from_value(json!({ "paid": 2, "unpriced": 2, "cost_micros": null })).unwrap();
        let object = summary.json(Day(0), Day(0));
        let summed = &object["summary"];
        assert!(summed["cost_micros"].is_null() && summed["usage"]["cost_micros"].is_null(), "{summed}");
        let text = summary.text(Day(0), Day(0));
        assert!(text.contains("1 of them, price not known, by orders"), "{text}");
    }

    #[test]
    fn an_attempt_that_is_still_worked_on_has_no_cost_of_zero() {
        let mut summary = Summary::default();
        summary.add(&PaidAttempt { cost_micros: None, state: "solving".into(), ..answered("1") });
        summary.usage = serde_json::from_value(json!({ "paid": 1, "cost_micros": null })).unwrap();
        let object = summary.json(Day(0), Day(0));
        let summed = &object["summary"];
        assert!(summed["cost_micros"].is_null() && summed["usage"]["cost_micros"].is_null(), "{summed}");
        let text = summary.text(Day(0), Day(0));
        assert!(text.contains("1 attempts paid for, cost not known yet (1 solving)"), "{text}");
        assert!(text.contains("the usage  1 paid for, cost not known yet: the same"), "{text}");
    }

    #[test]
    fn a_cost_in_another_currency_is_in_no_sum_and_not_known() {
        let mut summary = Summary { currency: "EUR".into(), ..Summary::default() };
        summary.add(&answered("1"));
        let summed = &summary.json(Day(0), Day(0))["summary"];
        assert!(summed["cost_micros"].is_null() && summed["unpriced"] == 1, "{summed}");
    }

    #[test]
    fn the_verdict_stands_last() {
        let summary = Summary {
            compared: Some(Compared {
                ours_only: 1,
                details: vec!["x\u{1b}[2J".into()],
                ..Compared::default()
            }),
            ..Summary::default()
        };
        let text = summary.text(Day(0), Day(0));
        assert!(text.ends_with("Not everything is explained.\n") && !text.contains('\u{1b}'), "{text}");
        assert!(!summary.is_explained());
    }
}

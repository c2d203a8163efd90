//! One attempt that was paid for, or may have been, as the API tells it and as people read it.

use crate::csv;
use crate::output::harmless;
use quittance::lifecycle::Money;
use quittance_config::decimal;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// The currency of the account now.
    pub(super) currency: String,
    /// As they are, for whoever wants them so.
    pub(super) entries: Vec<Map<String, Value>>,
    pub(super) unreadable: u64,
    pub(super) next: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) tenant: String,
    pub(super) kind: String,
    pub(super) site: String,
    pub(super) provider: String,
    pub(super) attempt: u64,
    pub(super) task: Option<String>,
    pub(super) sent_at: String,
    pub(super) sent_ms: u64,
    pub(super) why: String,
    pub(super) state: String,
    /// `None`: not known, or it is being worked on.
    pub(super) cost_micros: Option<u64>,
    /// What its cost is in; empty if the daemon is too old to say it.
    #[serde(default)]
    pub(super) currency: String,
    /// It was charged, or may have been, and the price is not known.
    pub(super) unpriced: bool,
    pub(super) who: String,
    pub(super) possible_double: bool,
}

impl Entry {
    /// One without a currency of its own is in that of the account.
    pub(super) fn read(told: &Map<String, Value>, currency: &str) -> Result<Self, String> {
        let mut entry = Self::deserialize(told)
            .map_err(|error| format!("an entry of the audit makes no sense: {error}"))?;
        if entry.currency.is_empty() {
            currency.clone_into(&mut entry.currency);
        }
        Ok(entry)
    }

    /// Whether the provider is known to have taken it.
    pub(super) fn is_known(&self) -> bool {
        self.state != "in_doubt"
    }

    pub(super) fn is_answered(&self) -> bool {
        self.state == "answered"
    }

    /// The beginning of its order's key.
    pub(super) fn order(&self) -> &str {
        self.key.get(..8).unwrap_or(&self.key)
    }

    /// An entry as the API has it, for a program that reads line by line: its cost has its currency beside it.
    pub(super) fn json(&self, told: &Map<String, Value>) -> String {
        let mut told = told.clone();
        told.insert("currency".to_owned(), Value::from(self.currency.as_str()));
        format!("{}\n", Value::Object(told))
    }

    /// The heading names `currency`; a cost in another one names its own.
    fn cost(&self, currency: &str) -> String {
        match self.cost_micros {
            Some(micros) if self.currency != currency => {
                decimal::with_currency(Money(micros), &harmless(&self.currency))
            }
            Some(micros) => Money(micros).to_string(),
            None if self.unpriced => "not known".into(),
            None => "-".into(),
        }
    }

    pub(super) fn line(&self, currency: &str) -> String {
        let task = self.task.as_ref().map(|task| format!(", task {}", harmless(task))).unwrap_or_default();
        let site = if self.site.is_empty() { "-" } else { &self.site };
        let double =
            if self.possible_double { "; an earlier attempt may have been paid for, too" } else { "" };
        format!(
            "{}  {:>9}  {:<8}  {} {} {} {}, attempt {}{task}: {}{double}; answer to {}\n",
            harmless(&self.sent_at),
            self.cost(currency),
            self.state.replace('_', " "),
            self.order(),
            harmless(&self.tenant),
            harmless(&self.kind),
            harmless(site),
            self.attempt,
            harmless(&self.why),
            harmless(&self.who),
        )
    }

    pub(super) fn heading() -> String {
        csv::row([
            "sent_at",
            "key",
            "tenant",
            "kind",
            "site",
            "provider",
            "attempt",
            "task",
            "state",
            "cost",
            "cost_micros",
            "currency",
            "why",
            "who",
            "possible_double",
        ])
    }

    pub(super) fn row(&self) -> String {
        csv::row([
            self.sent_at.as_str(),
            &self.key,
            &self.tenant,
            &self.kind,
            &self.site,
            &self.provider,
            &self.attempt.to_string(),
            self.task.as_deref().unwrap_or_default(),
            &self.state,
            &self.cost_micros.map(|micros| Money(micros).to_string()).unwrap_or_default(),
            &self.cost_micros.map(|micros| micros.to_string()).unwrap_or_default(),
            &self.currency,
            &self.why,
            &self.who,
            if self.possible_double { "true" } else { "false" },
        ])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Answered, for 2990 millionths.
    pub(in crate::audit) fn answered(task: &str) -> Entry {
        let told = json!({
            "key": "3f".repeat(32), "id": "1", "tenant": "anna", "kind": "turnstile", "site": "shop.example.com",
            "provider": "main", "attempt": 1, "task": task, "sent_at": "2026-11-16T14:00:00.000Z",
            "sent_ms": 1_794_837_600_000_u64, "why": "the first of the order", "state": "answered", "cost": "0.00299",
            "cost_micros": 2990, "unpriced": false, "who": "anna, and whoever joined", "taken_by": null, "possible_double": false,
        });
        Entry::read(told.as_object().unwrap(), "USD").unwrap()
    }

    #[test]
    fn an_entry_is_one_line_whatever_its_words_are() {
        let evil = Entry { site: "a\u{1b}[2J\nb".into(), task: Some("=1+1".into()), ..answered("7") };
        assert_eq!(evil.line("USD").matches('\n').count(), 1);
        assert!(!evil.line("USD").contains('\u{1b}') && evil.row().contains("'=1+1"), "{}", evil.row());
        assert_eq!(evil.row().matches('\n').count(), 1);
        let line = answered("7").line("USD");
        let (begin, rest) = line.split_once("  answered  ").unwrap();
        assert_eq!(begin, "2026-11-16T14:00:00.000Z    0.00299");
        assert_eq!(
            rest,
            "3f3f3f3f anna turnstile shop.example.com, attempt 1, task 7: the first of the order; answer to anna, and \
             whoever joined\n"
        );
        let told = json!({ "cost": "0.00299" });
        assert_eq!(
            answered("7").json(told.as_object().unwrap()),
            "{\"cost\":\"0.00299\",\"currency\":\"USD\"}\n"
        );
        let columns = |line: String| csv::read(&line).unwrap().len();
        assert_eq!(columns(Entry::heading()), columns(evil.row()));
    }

    #[test]
    fn a_cost_in_another_currency_than_the_accounts_names_its_own() {
        let line = answered("7").line("EUR");
        assert!(line.contains("  0.00299 USD  answered"), "{line}");
        assert!(answered("7").row().contains(",2990,USD,"), "{}", answered("7").row());
    }
}

//! A paid attempt, as a line of text and as a row of CSV.

use crate::csv;
use crate::output::harmless;
use quittance::lifecycle::Money;
use quittance_admin::audit::PaidAttempt;
use quittance_config::decimal;

/// Whether the provider is known to have accepted the attempt.
pub(super) fn is_known(attempt: &PaidAttempt) -> bool {
    attempt.state != "in_doubt"
}

pub(super) fn is_answered(attempt: &PaidAttempt) -> bool {
    attempt.state == "answered"
}

/// The first digits of the key of the attempt's order.
pub(super) fn order(attempt: &PaidAttempt) -> &str {
    attempt.key.get(..8).unwrap_or(&attempt.key)
}

/// The cost of an attempt. The heading names `currency`; a cost in another currency names its own.
fn cost(attempt: &PaidAttempt, currency: &str) -> String {
    match attempt.cost_micros {
        Some(micros) if attempt.currency != currency => {
            decimal::with_currency(Money(micros), &harmless(&attempt.currency))
        }
        Some(micros) => Money(micros).to_string(),
        None if attempt.unpriced => "not known".into(),
        None => "-".into(),
    }
}

pub(super) fn line(attempt: &PaidAttempt, currency: &str) -> String {
    let task = attempt.task.as_ref().map(|task| format!(", task {}", harmless(task))).unwrap_or_default();
    let site = if attempt.site.is_empty() { "-" } else { &attempt.site };
    let double = if attempt.possible_double { "; an earlier attempt may have been paid too" } else { "" };
    format!(
        "{}  {:>9}  {:<8}  {} {} {} {}, attempt {}{task}: {}{double}; answer to {}\n",
        harmless(&attempt.sent_at),
        cost(attempt, currency),
        attempt.state.replace('_', " "),
        order(attempt),
        harmless(&attempt.tenant),
        harmless(&attempt.kind),
        harmless(site),
        attempt.attempt,
        harmless(&attempt.why),
        harmless(&attempt.who),
    )
}

/// The columns of the table, and their values for this attempt.
fn columns(attempt: &PaidAttempt) -> [(&'static str, String); 15] {
    let attempt = attempt.clone();
    [
        ("sent_at", attempt.sent_at),
        ("key", attempt.key),
        ("tenant", attempt.tenant),
        ("kind", attempt.kind),
        ("site", attempt.site),
        ("provider", attempt.provider),
        ("attempt", attempt.attempt.to_string()),
        ("task", attempt.task.unwrap_or_default()),
        ("state", attempt.state),
        ("cost", attempt.cost.unwrap_or_default()),
        ("cost_micros", attempt.cost_micros.map(|micros| micros.to_string()).unwrap_or_default()),
        ("currency", attempt.currency),
        ("why", attempt.why),
        ("who", attempt.who),
        ("possible_double", attempt.possible_double.to_string()),
    ]
}

pub(super) fn heading() -> String {
    csv::row(columns(&PaidAttempt::default()).map(|(name, _)| name))
}

pub(super) fn row(attempt: &PaidAttempt) -> String {
    csv::row(columns(attempt).map(|(_, value)| value))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// An attempt that was answered for 2990 millionths.
    pub(in crate::audit) fn answered(task: &str) -> PaidAttempt {
        let attempt = json!({
            "key": "3f".repeat(32), "id": "1", "tenant": "anna", "kind": "turnstile", "site": "shop.example.com",
            "provider": "main", "attempt": 1, "task": task, "sent_at": "2026-11-16T14:00:00.000Z",
            "sent_ms": 1_794_837_600_000_u64, "why": "the first of the order", "state": "answered", "cost": "0.00299",
            "cost_micros": 2990, "currency": "USD", "unpriced": false, "who": "anna", "claimed_by": null,
            "possible_double": false,
        });
        serde_json::from_value(attempt).unwrap()
    }

    #[test]
    fn an_attempt_is_one_line_for_any_text() {
        let evil = PaidAttempt { site: "a\u{1b}[2J\nb".into(), task: Some("=1+1".into()), ..answered("7") };
        assert_eq!(line(&evil, "USD").matches('\n').count(), 1);
        assert!(!line(&evil, "USD").contains('\u{1b}') && row(&evil).contains("'=1+1"), "{}", row(&evil));
        assert_eq!(row(&evil).matches('\n').count(), 1);
        let line = line(&answered("7"), "USD");
        let (begin, rest) = line.split_once("  answered  ").unwrap();
        assert_eq!(begin, "2026-11-16T14:00:00.000Z    0.00299");
        assert_eq!(
            rest,
            "3f3f3f3f anna turnstile shop.example.com, attempt 1, task 7: the first of the order; answer to anna\n"
        );
        assert_eq!(csv::read(&row(&evil)).unwrap().len(), csv::read(&heading()).unwrap().len());
    }

    #[test]
    fn a_cost_in_another_currency_than_the_accounts_names_its_own() {
        let line = line(&answered("7"), "EUR");
        assert!(line.contains("  0.00299 USD  answered"), "{line}");
        assert!(row(&answered("7")).contains(",2990,USD,"), "{}", row(&answered("7")));
    }
}

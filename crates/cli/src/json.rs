//! A report as one JSON object. The names are stable: scripts read them. Money is in millionths, time in milliseconds.

use crate::demo::Report;
use serde_json::{Map, Value, json};

pub(crate) fn render(report: &Report) -> String {
    format!("{:#}\n", object(report))
}

fn object(report: &Report) -> Value {
    let books: Map<String, Value> =
        report.books.lines().map(|(name, count)| (name.into(), count.into())).collect();
    let breaches: Vec<Value> = report
        .breaches
        .iter()
        .map(|breach| json!({ "promise": breach.promise, "detail": breach.detail }))
        .collect();
    let (setup, ledger, money, storm) = (&report.setup, &report.ledger, &report.money, &report.storm);
    json!({
        "seed": report.seed,
        "setup": {
            "nodes": setup.nodes,
            "callers": setup.callers,
            "requests": setup.requests,
            "things": setup.things,
        },
        "books": books,
        "new_lives": report.new_lives(),
        "dead_letters": report.dead_letters,
        "lost": report.lost(),
        "ledger": {
            "payments": ledger.payments,
            "answers": ledger.answers,
            "unknown_to_the_books": report.unknown_to_the_books(),
            "doubts_open": report.doubts_open(),
        },
        "money": {
            "price_micros": money.price,
            "spent_micros": money.spent,
            "answers_given": money.answers_given,
            "without_micros": money.without,
            "saved_micros": report.saved_micros(),
        },
        "storm": {
            "kills": storm.kills,
            "freezes": storm.freezes,
            "callers_left_alone": storm.callers_left_alone,
            "replies_lost": storm.replies_lost,
            "callbacks_lost": storm.callbacks_lost,
            "busy": storm.busy,
            "refused_for_good": storm.refused_for_good,
            "unsolvable": storm.unsolvable,
            "forged": storm.forged,
            "forged_believed": storm.forged_believed,
        },
        "storm_ms": setup.storm_ms,
        "virtual_ms": report.virtual_ms,
        "verdict": if report.breaches.is_empty() { "held" } else { "broken" },
        "breaches": breaches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::{a_loss, small_report};
    use quittance_lifecycle::Tally;

    #[test]
    fn every_line_of_the_books_is_there() {
        let object = object(&small_report(Vec::new()));
        for name in Tally::NAMES {
            assert!(object["books"][name].is_u64(), "{name}");
        }
        assert_eq!(object["verdict"], "held");
        assert_eq!(object["breaches"], json!([]));
    }

    #[test]
    fn a_broken_promise_is_spelled_out() {
        let object = object(&small_report(vec![a_loss()]));
        assert_eq!(object["verdict"], "broken");
        assert_eq!(object["lost"], 1);
        assert_eq!(object["breaches"][0]["promise"], "never lost");
        assert_eq!(object["breaches"][0]["detail"], a_loss().detail);
    }
}

//! Checks with the ledger whether a client got what the provider sold.

use super::visit::VisitResult;
use crate::provider::SimLedger;
use crate::sandbox::page;
use serde_json::Value;

/// Checks that the client got the provider's answer for its own order, and saw no error.
#[track_caller]
pub(super) fn was_served(result: &VisitResult, ledger: &SimLedger) {
    result.saw_no_error();
    let answer = result.answer();
    match result.visit.what {
        "balance" => {
            let balance: f64 = answer.parse().unwrap_or_else(|why| panic!("{why}: {result:?}"));
            assert!(balance > 0.0, "{result:?}");
        }
        "threads" => {
            let threads: Value =
                serde_json::from_str(answer).unwrap_or_else(|why| panic!("{why}: {result:?}"));
            let count = threads["threads"].as_u64().or_else(|| threads["threads"].as_str()?.parse().ok());
            assert!(count > Some(0), "{result:?}");
        }
        what => {
            let is_sold =
                sold(ledger, what, &result.visit.mark()).any(|task| is_same(answer, &task["answer"]));
            assert!(is_sold, "this was never sold: {result:?}");
        }
    }
}

/// The tasks of one order. If it has no page, the ledger has only a digest, as for an image. Its answer follows from
/// the image, so a search through all tasks is as good.
pub(super) fn sold<'a>(ledger: &'a SimLedger, what: &str, mark: &str) -> impl Iterator<Item = &'a Value> {
    let page = has_page(what).then(|| page(mark));
    ledger.tasks().iter().filter(move |task| {
        let bought_for = task["params"]["pageurl"].as_str();
        page.as_ref().map_or(bought_for.is_none(), |page| bought_for == Some(page))
    })
}

fn has_page(what: &str) -> bool {
    !["image", "text", "grid", "bls", "rotate", "coordinates"].iter().any(|begin| what.starts_with(begin))
}

/// Whether a client's answer is the provider's. Clients parse JSON, and leave out prefixes.
fn is_same(answer: &str, sold: &Value) -> bool {
    if sold.as_str() == Some(answer) {
        return true;
    }
    let unpacked = sold.as_str().and_then(|text| serde_json::from_str(text).ok());
    let Ok(answer) = serde_json::from_str::<Value>(answer) else { return false };
    match (answer, unpacked.as_ref().unwrap_or(sold)) {
        (Value::Object(answer), Value::Object(sold)) => sold.iter().all(|(name, value)| {
            let short = name.trim_start_matches("geetest_");
            [name, short].iter().any(|name| answer.get(*name) == Some(value))
        }),
        (answer, sold) => answer == *sold,
    }
}

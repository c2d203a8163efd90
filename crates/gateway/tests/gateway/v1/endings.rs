//! Tests of what a caller gets for an order without an answer: a true code of its dialect, and the reason. Every API
//! reads one order by the same number.

use super::apis::{Api, PAGE, Placing};
use super::fixture::{ANNA, Fixture, path_of};
use super::talk::Ask;
use serde_json::{Value, json};
use std::time::Duration;

const NO_SLOT: &str = "ERROR_NO_SLOT_AVAILABLE";
const UNSOLVABLE: &str = "ERROR_CAPTCHA_UNSOLVABLE";

/// The end of an order, and its code on the classic API and in the dialects 2captcha, anticaptcha, capsolver and
/// capmonster.
struct Ending {
    /// The site key, which selects what the provider does.
    sitekey: &'static str,
    codes: [&'static str; 5],
    reason: &'static str,
}

const fn ending(sitekey: &'static str, codes: [&'static str; 5], reason: &'static str) -> Ending {
    Ending { sitekey, codes, reason }
}

const NO_SLOTS: [&str; 5] = [NO_SLOT, NO_SLOT, NO_SLOT, "ERROR_SERVICE_UNAVALIABLE", NO_SLOT];

const ENDINGS: [Ending; 9] = [
    ending("busy-1", NO_SLOTS, "the provider has no free slot (ERROR_NO_SLOT_AVAILABLE)"),
    ending("away-1", NO_SLOTS, "the provider cannot be reached"),
    ending("blocked-1", NO_SLOTS, "the provider does not accept the gateway's account"),
    ending("broke-1", ["ERROR_ZERO_BALANCE"; 5], "the gateway's account at the provider has no money"),
    ending(
        "hold-1",
        [UNSOLVABLE, UNSOLVABLE, UNSOLVABLE, "ERROR_TASK_TIMEOUT", "ERROR_MAXIMUM_TIME_EXCEED"],
        "the deadline was reached before the answer came",
    ),
    ending(
        "die-1",
        [UNSOLVABLE; 5],
        "the provider could not solve the task (ERROR_CAPTCHA_UNSOLVABLE); all retries are used up",
    ),
    ending("strange-1", [UNSOLVABLE; 5], "a code that is in no table (ERROR_MOON_PHASE)"),
    ending(
        "refuse-1",
        [
            "ERROR_BAD_PARAMETERS",
            "ERROR_BAD_PARAMETERS",
            "ERROR_BAD_PARAMETERS",
            "ERROR_INVALID_TASK_DATA",
            "ERROR_BAD_PARAMETERS",
        ],
        "the provider rejected the task (ERROR_WRONG_SITEKEY)",
    ),
    ending("doubt-1", [UNSOLVABLE; 5], "it is not known whether the provider took the task"),
];

const READERS: [Api; 5] = [
    Api::Classic,
    Api::Json("2captcha"),
    Api::Json("anticaptcha"),
    Api::Json("capsolver"),
    Api::Json("capmonster"),
];

async fn reads(fixture: &Fixture, id: &Value, codes: &[&str; 5], reason: &str) {
    for (api, code) in READERS.into_iter().zip(codes) {
        // In the JSON protocol ids are numbers.
        let id = match api {
            Api::Json(_) => json!(id.as_str().unwrap().parse::<u64>().unwrap()),
            _ => id.clone(),
        };
        let (found, why) = api.refusal(&api.read(fixture, ANNA, &id).await);
        assert_eq!(found, *code, "{api:?}: {why}");
        assert!(why.contains(reason), "{api:?}: {why}");
    }
}

fn order(sitekey: &str) -> Ask {
    let params = json!({ "sitekey": sitekey, "pageurl": PAGE });
    Ask::post("/v1/orders", &json!({ "kind": "turnstile", "deadline_s": 20, "params": params })).key(ANNA)
}

#[tokio::test]
async fn each_end_of_an_order_has_a_true_code_in_every_dialect_and_names_the_reason() {
    for Ending { sitekey, codes, reason } in ENDINGS {
        // A provider that takes no work from one order would hold up the next.
        let fixture =
            if sitekey.starts_with("doubt") { Fixture::in_doubt().await } else { Fixture::new().await };
        let placed = fixture.ask(order(sitekey)).await.json();
        fixture.run_out(&path_of(&placed)).await;
        reads(&fixture, &placed["id"], &codes, reason).await;
    }
}

#[tokio::test]
async fn an_order_that_was_cancelled_is_answered_as_such_in_every_dialect() {
    let fixture = Fixture::new().await;
    // Nothing is bought while the account has no money, so it waits and can be cancelled.
    let placed = fixture.ask(order("broke-1")).await.json();
    let cancelled = fixture.ask(Ask::new("DELETE", path_of(&placed)).key(ANNA)).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    reads(&fixture, &placed["id"], &[UNSOLVABLE; 5], "the order was cancelled").await;
}

/// A fixture that has measured that no turnstile is solved within 10 s.
async fn measured() -> Fixture {
    let fixture = Fixture::new().await;
    for n in 0..20 {
        let sitekey = format!("hold-{n}");
        let path = path_of(&fixture.place(&sitekey).await.json());
        fixture.until(&path, "solving").await;
        fixture.pass(Duration::from_secs(20));
        fixture.call_back(&sitekey, "token").await;
    }
    fixture
}

/// The codes of our refusal of an order on every API with codes.
async fn refusals(fixture: &Fixture, placing: &Placing) -> Vec<String> {
    let mut codes = Vec::new();
    for api in READERS {
        codes.push(api.refusal(&api.place(fixture, placing).await).0);
    }
    codes
}

#[tokio::test]
async fn an_order_that_was_never_sent_because_it_was_too_late_is_never_called_unsolvable() {
    let fixture = measured().await;
    let params = json!({ "sitekey": "hold-late", "pageurl": PAGE });
    let late = json!({ "kind": "turnstile", "deadline_s": 5, "params": params });
    let late = Ask::post("/v1/orders", &late).key(ANNA).header("Idempotency-Key", "late");
    let placed = fixture.ask(late).await.json();
    fixture.run_out(&path_of(&placed)).await;
    let codes = [NO_SLOT, NO_SLOT, NO_SLOT, "ERROR_TASK_TIMEOUT", "ERROR_MAXIMUM_TIME_EXCEED"];
    reads(&fixture, &placed["id"], &codes, "not submitted, because no answer would come in time").await;
    assert_eq!(fixture.provider.submits("hold-late"), 0);
}

#[tokio::test]
async fn an_order_with_a_timeout_that_is_too_short_is_refused_as_wrong_and_not_as_unsolvable() {
    const WRONG: &str = "ERROR_BAD_PARAMETERS";
    let fixture = measured().await;
    let short = Placing::of("hold-short").field("deadline_s", 5).field("reuse", "exclusive");
    let codes = [WRONG, WRONG, WRONG, "ERROR_TASK_TIMEOUT", "ERROR_MAXIMUM_TIME_EXCEED"];
    assert_eq!(refusals(&fixture, &short).await, codes);
}

/// Clients compare these bodies to the letter.
#[tokio::test]
async fn the_bodies_of_an_order_that_found_no_slot_are_as_each_dialect_has_them() {
    let fixture = Fixture::new().await;
    let placed = fixture.ask(order("busy-1")).await.json();
    let path = path_of(&placed);
    fixture.run_out(&path).await;
    let id = placed["id"].as_str().unwrap();
    let reason = "the deadline was reached before the provider took the task: the provider has no free slot \
                  (ERROR_NO_SLOT_AVAILABLE)";
    let classic = async |json| {
        fixture.ask(Ask::get(format!("/res.php?key={ANNA}&action=get&id={id}{json}"))).await.text
    };
    assert_eq!(classic("").await, "ERROR_NO_SLOT_AVAILABLE");
    assert_eq!(
        classic("&json=1").await,
        format!(r#"{{"status":0,"request":"ERROR_NO_SLOT_AVAILABLE","error_text":"{reason}"}}"#)
    );
    for (dialect, number, code) in [
        ("2captcha", 2, NO_SLOT),
        ("anticaptcha", 2, NO_SLOT),
        ("capsolver", 1, "ERROR_SERVICE_UNAVALIABLE"),
        ("capmonster", 1, NO_SLOT),
    ] {
        let body = format!(r#"{{"clientKey":"{ANNA}","taskId":{id}}}"#);
        let read = fixture.ask(Ask::new("POST", format!("/{dialect}/getTaskResult")).body(&body)).await;
        assert_eq!(
            read.text,
            format!(r#"{{"errorId":{number},"errorCode":"{code}","errorDescription":"{reason}"}}"#),
            "{dialect}"
        );
    }
}

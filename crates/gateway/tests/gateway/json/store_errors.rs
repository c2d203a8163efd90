//! Tests with a store that is down or slow: a caller that may have paid is not made to give up, and no caller waits
//! for long.

use super::dialects::turnstile;
use super::scripted::{Fixture, KEY};
use quittance_lifecycle::Payload;
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn a_poll_stays_pending_as_long_as_the_store_is_away_or_hangs() {
    for hangs in [false, true] {
        let fixture = Fixture::open();
        let id = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].clone();
        fixture.solve(Payload::text("t")).await;
        let outage = if hangs { &fixture.store_hangs } else { &fixture.store_is_away };
        outage.store(true, Ordering::Relaxed);
        let poll = json!({"clientKey": KEY, "taskId": id});
        for dialect in ["2captcha", "anticaptcha", "capmonster"] {
            let response = fixture.post(&format!("/{dialect}/getTaskResult"), poll.to_string()).await;
            assert_eq!(response, "{\"errorId\":0,\"status\":\"processing\"}", "{dialect}");
        }
        assert_eq!(fixture.ask("/capsolver/getTaskResult", &poll).await["status"], "processing");
        outage.store(false, Ordering::Relaxed);
        assert_eq!(fixture.ask("/getTaskResult", &poll).await["status"], "ready");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_put_on_record_is_turned_away_for_now() {
    for hangs in [false, true] {
        let fixture = Fixture::open();
        let outage = if hangs { &fixture.store_hangs } else { &fixture.store_is_away };
        outage.store(true, Ordering::Relaxed);
        for (dialect, number, code) in [
            ("2captcha", 2, "ERROR_NO_SLOT_AVAILABLE"),
            ("anticaptcha", 2, "ERROR_NO_SLOT_AVAILABLE"),
            ("capmonster", 1, "ERROR_NO_SLOT_AVAILABLE"),
            ("capsolver", 1, "ERROR_SERVICE_UNAVALIABLE"),
        ] {
            let response = fixture.ask(&format!("/{dialect}/createTask"), &turnstile(KEY)).await;
            assert_eq!(
                (&response["errorId"], &response["errorCode"]),
                (&json!(number), &json!(code)),
                "{response}"
            );
        }
        let report = json!({"clientKey": KEY, "taskId": 12_345});
        assert_eq!(fixture.ask("/reportCorrect", &report).await["errorCode"], "ERROR_REPORT_NOT_RECORDED");
        outage.store(false, Ordering::Relaxed);
        assert_eq!(fixture.ask("/createTask", &turnstile(KEY)).await["errorId"], 0, "and then taken");
    }
}

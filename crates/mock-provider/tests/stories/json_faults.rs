//! Tests of faults in the JSON protocol: from the provider's own rules, from the script and from random rates.

use crate::json::{DIALECTS, ask, finished, post, result, script, spelled, turnstile};
use crate::wire::{LIMIT, open, quick};
use quittance_mock_provider::{
    BanLimits, DEMO_KEY, FaultAction, Faults, MillisRange, MockClassicDialect, MockJsonLimits, RulePlace,
    ScriptRule, Settings, WireFaults,
};
use serde_json::{Value, json};

#[tokio::test]
async fn each_keeps_results_in_its_own_way() {
    let instant = MockJsonLimits {
        anticaptcha_result_ms: 0,
        capmonster_result_ms: 0,
        capsolver_task_ms: 0,
        polls_max: 9,
    };
    let client = open(Settings { json: instant, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    for (dialect, code) in [
        ("anticaptcha", "ERROR_NO_SUCH_CAPCHA_ID"),
        ("capmonster", "ERROR_NO_SUCH_CAPCHA_ID"),
        ("capsolver", "ERROR_TASKID_INVALID"),
    ] {
        let id = finished(&client, dialect, turnstile(dialect)).await;
        assert_eq!(result(&client, dialect, &id).await["errorCode"], code, "{dialect}");
    }
    let id = finished(&client, "2captcha", turnstile("")).await;
    assert_eq!(result(&client, "2captcha", &id).await["status"], "ready");
}

#[tokio::test]
async fn two_of_them_answer_only_so_often_for_one_task() {
    let few = MockJsonLimits { polls_max: 3, ..MockJsonLimits::default() };
    let client = open(Settings { json: few, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    for (dialect, code) in [
        ("2captcha", None),
        ("anticaptcha", None),
        ("capmonster", Some("ERROR_TOO_MUCH_REQUESTS")),
        ("capsolver", Some("ERROR_TASKID_INVALID")),
    ] {
        let id = finished(&client, dialect, turnstile(dialect)).await;
        for _ in 0..3 {
            assert_eq!(result(&client, dialect, &id).await["status"], "ready", "{dialect}");
        }
        assert_eq!(
            result(&client, dialect, &id).await["errorCode"].as_str().filter(|code| !code.is_empty()),
            code
        );
    }
}

#[tokio::test]
async fn what_cannot_be_solved_is_paid_for_at_anticaptcha_only() {
    for dialect in DIALECTS {
        let client = quick(MockClassicDialect::TwoCaptcha).await;
        script(&client, RulePlace::Submit, FaultAction::Unsolvable);
        let id = finished(&client, dialect, turnstile(dialect)).await;
        let text = result(&client, dialect, &id).await;
        assert_eq!(text["errorCode"], "ERROR_CAPTCHA_UNSOLVABLE");
        let number = if matches!(dialect, "2captcha" | "anticaptcha") { 12 } else { 1 };
        assert_eq!(text["errorId"], number);
        assert_eq!(text["status"] == "failed", dialect == "capsolver");
        assert_eq!(client.entry(&spelled(&id)).charged, dialect == "anticaptcha", "{dialect}");
    }
}

#[tokio::test]
async fn a_rule_meets_the_request_whichever_protocol_it_came_by() {
    let rules = serde_json::from_value::<Vec<ScriptRule>>(json!([
        {"on": "createTask", "nth": 1, "do": {"request_lost": {}}},
        {"on": "in.php", "nth": 2, "do": {"reply_lost": {}}},
        {"on": "createTask", "nth": 3, "do": {"status": 502}},
        {"on": "in.php", "nth": 4, "do": {"truncated": {}}},
        {"on": "createTask", "nth": 5, "do": {"code": "ERROR_NO_SLOT_AVAILABLE"}},
        {"on": "getTaskResult", "nth": 1, "do": {"hang_ms": 1}},
        {"on": "getTaskResult", "nth": 2, "do": {"code": "ERROR_BLUE_MOON"}},
        {"on": "res.php", "nth": 3, "do": {"delay_ms": 1}},
        {"on": "res.php", "nth": 4, "match": {"sitekey": "0x4*"}, "do": {"vanish": {}}},
    ]))
    .expect("a good script");
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.mock.script(rules).expect("a good script");
    let request = json!({"clientKey": DEMO_KEY, "task": turnstile("")});
    for (accepted, status) in [(0, None), (1, None), (1, Some(502)), (2, None), (2, Some(200))] {
        let reply = post(&client, "/anticaptcha/createTask", &request).await;
        assert_eq!(reply.ok().map(|reply| reply.status), status);
        assert_eq!(client.mock.totals().accepted, accepted);
    }
    let id = finished(&client, "anticaptcha", turnstile("")).await;
    let poll = json!({"clientKey": DEMO_KEY, "taskId": id});
    assert!(post(&client, "/anticaptcha/getTaskResult", &poll).await.is_err());
    let moon = result(&client, "anticaptcha", &id).await;
    assert_eq!((&moon["errorCode"], &moon["errorId"]), (&json!("ERROR_BLUE_MOON"), &json!(99)));
    assert_eq!(result(&client, "anticaptcha", &id).await["status"], "ready");
    assert_eq!(result(&client, "anticaptcha", &id).await["errorId"], 16);
    assert_eq!((client.fault("request_lost"), client.fault("hang_ms"), client.fault("vanish")), (1, 1, 1));
}

#[tokio::test]
async fn faults_by_rate_strike_here_as_well_and_speak_json() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let wire = WireFaults { code: 1.0, ..WireFaults::default() };
    let codes = vec!["MAX_USER_TURN".to_owned()];
    client.mock.set_faults(Faults { submit: wire, submit_codes: codes, ..Faults::default() });
    for (dialect, code) in DIALECTS.into_iter().zip([
        "ERROR_NO_SLOT_AVAILABLE",
        "ERROR_NO_SLOT_AVAILABLE",
        "ERROR_TOO_MUCH_REQUESTS",
        "ERROR_RATE_LIMIT",
    ]) {
        let text =
            ask(&client, &format!("/{dialect}/createTask"), json!({ "task": turnstile(dialect) })).await;
        assert_eq!(text["errorCode"], code);
    }
    assert_eq!((client.mock.totals().accepted, client.fault("code")), (0, 4));
}

#[tokio::test]
async fn a_storm_leaves_a_ledger_that_adds_up() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.mock.set_faults(Faults { hang_ms: 5, slow_ms: MillisRange { from: 1, to: 5 }, ..Faults::storm() });
    let mut known = 0;
    for number in 0..80 {
        let dialect = DIALECTS[number % 4];
        let request = json!({"clientKey": DEMO_KEY, "task": turnstile(dialect)});
        let reply = post(&client, &format!("/{dialect}/createTask"), &request).await;
        let text = reply.ok().and_then(|reply| serde_json::from_slice::<Value>(&reply.body).ok());
        known += u64::from(text.is_some_and(|text| text["errorId"] == 0 && !text["taskId"].is_null()));
    }
    assert!(client.mock.until(LIMIT, |ledger| ledger.totals.open == 0).await);
    let ledger = client.mock.ledger();
    let delivered = ledger.tasks.iter().filter(|task| task.reply_delivered).count() as u64;
    assert_eq!(delivered, known);
    assert!(ledger.totals.accepted > known, "some replies were lost");
    let charged: u64 = ledger.tasks.iter().filter(|task| task.charged).map(|task| task.price_micros).sum();
    assert_eq!(client.mock.state().accounts[0].balance_micros, 10_000_000 - charged);
}

#[tokio::test]
async fn a_client_that_polls_too_often_is_blocked_as_by_the_real_provider() {
    let pace = BanLimits { polls_free: 2, polls_per_task: 0, ..BanLimits::default() };
    let client = open(Settings { pace, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    for _ in 0..2 {
        assert_eq!(ask(&client, "/getBalance", json!({})).await["errorId"], 0);
    }
    let text = ask(&client, "/getBalance", json!({})).await;
    assert_eq!((&text["errorId"], &text["errorCode"]), (&json!(21), &json!("ERROR_IP_BLOCKED")));
    assert_eq!(client.tells("action=getbalance").await, "ERROR: 1005", "one account, one ban");
}

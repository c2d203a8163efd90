//! Tests that each tenant is known by its key, keeps its settings, and sees nothing of other tenants.

use super::dialects::turnstile;
use super::scripted::{Fixture, KEY};
use quittance_engine::Outcome;
use quittance_gateway::{KeyDigest, OrderRequest, Rate, TenantSettings};
use quittance_lifecycle::{Draft, Payload, Reuse, Value as Param};
use quittance_protocol::Dialect;
use serde_json::{Value, json};
use std::time::Duration;

const ALICE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const BOB: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn tenants() -> Vec<TenantSettings> {
    let mut alice = TenantSettings::new("alice", KeyDigest::of(ALICE));
    alice.dialect = Some(Dialect::CapSolver);
    vec![alice, TenantSettings::new("bob", KeyDigest::of(BOB))]
}

#[tokio::test]
async fn no_tenant_sees_or_reports_the_order_of_another() {
    let fixture = Fixture::with(tenants(), None);
    let alices = fixture.ask("/2captcha/createTask", &turnstile(ALICE)).await["taskId"].clone();
    let other = fixture.ask("/2captcha/createTask", &turnstile(BOB)).await["taskId"].clone();
    assert_ne!(alices, other, "not even an order for the same thing");
    fixture.until_submitted(2).await;
    fixture.solve_earlier(0, Payload::text("one")).await;
    fixture.solve_earlier(1, Payload::text("other")).await;
    for path in ["getTaskResult", "reportCorrect", "reportIncorrect"] {
        let asked = json!({"clientKey": BOB, "taskId": alices});
        let response = fixture.ask(&format!("/2captcha/{path}"), &asked).await;
        assert_eq!(
            (&response["errorId"], &response["errorCode"]),
            (&json!(16), &json!("ERROR_NO_SUCH_CAPCHA_ID"))
        );
        let never = json!({"clientKey": BOB, "taskId": 123_456_789});
        assert_eq!(
            fixture.ask(&format!("/2captcha/{path}"), &never).await,
            response,
            "as if it did not exist"
        );
    }
    let own = fixture.ask("/2captcha/getTaskResult", &json!({"clientKey": ALICE, "taskId": alices})).await;
    assert_eq!(own["status"], "ready");
}

#[tokio::test]
async fn a_key_that_is_not_known_or_not_there_is_refused_in_every_method() {
    let fixture = Fixture::with(tenants(), None);
    let keys = [json!("short"), json!("cccccccccccccccccccccccccccccccc"), json!(""), json!(null), json!(7)];
    for path in ["createTask", "getTaskResult", "getBalance", "reportCorrect", "feedbackTask"] {
        for key in &keys {
            let mut asked = turnstile("");
            asked["clientKey"] = key.clone();
            for dialect in ["2captcha", "anticaptcha", "capmonster", "capsolver"] {
                let response = fixture.ask(&format!("/{dialect}/{path}"), &asked).await;
                let expected = (&json!(1), &json!("ERROR_KEY_DOES_NOT_EXIST"));
                assert_eq!(
                    (&response["errorId"], &response["errorCode"]),
                    expected,
                    "{dialect} {path} {key}"
                );
            }
        }
    }
    assert_eq!(fixture.provider.submits(), 0);
}

#[tokio::test]
async fn without_tenants_any_key_will_do_but_none_will_not() {
    let fixture = Fixture::open();
    assert_eq!(fixture.ask("/createTask", &turnstile("x")).await["errorId"], 0);
    for key in ["", "  ", "__nocache"] {
        assert_eq!(fixture.ask("/createTask", &turnstile(key)).await["errorId"], 1, "{key:?}");
    }
}

#[tokio::test]
async fn the_path_comes_before_the_tenant_and_the_tenant_before_the_gateway() {
    let fixture = Fixture::with(tenants(), Some(Dialect::CapMonster));
    let is_cap_solver = |created: &Value| created["taskId"].is_string();
    assert!(is_cap_solver(&fixture.ask("/createTask", &turnstile(ALICE)).await));
    assert!(!is_cap_solver(&fixture.ask("/anticaptcha/createTask", &turnstile(ALICE)).await));
    assert!(!is_cap_solver(&fixture.ask("/createTask", &turnstile(BOB)).await));
    let unknown = json!({"clientKey": BOB, "taskId": 1});
    assert_eq!(fixture.ask("/getTaskResult", &unknown).await["errorId"], 1, "the handler is CapMonster's");
    assert_eq!(fixture.ask("/2captcha/getTaskResult", &unknown).await["errorId"], 16);
    assert_eq!(
        fixture.ask("/captchaai/getTaskResult", &unknown).await["errorId"],
        1,
        "it has no JSON of its own"
    );
}

#[tokio::test]
async fn an_answer_of_the_past_is_not_given_to_a_caller_that_wants_none() {
    let fixture = Fixture::open();
    let plain = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].clone();
    assert_eq!(fixture.ask("/createTask", &turnstile(KEY)).await["taskId"], plain);
    let mut fresh = turnstile(KEY);
    fresh["task"]["nocache"] = json!(true);
    let other = fixture.ask("/capmonster/createTask", &fresh).await["taskId"].clone();
    let third = fixture.ask("/createTask", &turnstile(&format!("{KEY}__nocache"))).await["taskId"].clone();
    let short = fixture.ask("/createTask", &turnstile("k__nocache")).await["taskId"].clone();
    assert!(plain != other && other != third && plain != third && short != third && short != plain);
    fresh["task"]["nocache"] = json!(false);
    assert_eq!(fixture.ask("/createTask", &fresh).await["taskId"], plain);
}

#[tokio::test]
async fn what_does_not_name_the_captcha_makes_no_other_order() {
    let fixture = Fixture::open();
    let plain = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].clone();
    let mut asked = turnstile("another key of no tenant");
    asked["softId"] = json!(54);
    asked["soft_id"] = json!("x");
    asked["languagePool"] = json!("rn");
    asked["callbackUrl"] = json!(null);
    assert_eq!(fixture.ask("/createTask", &asked).await["taskId"], plain);
}

#[tokio::test]
async fn an_order_of_another_api_is_the_same_order_with_the_same_id() {
    let fixture = Fixture::open();
    let caller = fixture.orders.tenants().local().unwrap();
    let text = |text: &str| Param::Text(text.to_owned());
    let params = [("sitekey", text("k")), ("pageurl", text("https://example.com/"))];
    let params = params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let reuse = Some(Reuse::Shared);
    let draft = Draft { params, reuse, ..Draft::default() };
    let request = OrderRequest { kind: "turnstile".into(), draft, ..OrderRequest::default() };
    let placed = fixture.orders.place(caller.clone(), request, Duration::from_secs(4)).await.unwrap();
    let created = fixture.ask("/createTask", &turnstile(KEY)).await;
    assert_eq!(created["taskId"], placed.id.number());
    fixture.solve(Payload::text("the-token")).await;
    let poll = json!({"clientKey": KEY, "taskId": placed.id.number()});
    assert_eq!(fixture.ask("/getTaskResult", &poll).await["solution"]["token"], "the-token");
    let seen = fixture.orders.look(&caller, placed.id).await.unwrap();
    assert!(matches!(seen.outcome, Outcome::Answered(answer) if answer.payload.text == "the-token"));
    assert_eq!(fixture.provider.submits(), 1);
}

#[tokio::test]
async fn a_webhook_is_on_record_with_the_dialect_of_its_caller() {
    for (dialect, format) in [
        ("2captcha", "json:2captcha"),
        ("anticaptcha", "json:anticaptcha"),
        ("capsolver", "json:capsolver"),
        ("capmonster", "json:capmonster"),
    ] {
        let fixture = Fixture::open();
        let mut asked = turnstile(KEY);
        asked["callbackUrl"] = json!("https://example.com/hook?x=1");
        let created = fixture.ask(&format!("/{dialect}/createTask"), &asked).await;
        let id = quittance_protocol::json::read_task_id(&created["taskId"]).unwrap();
        let caller = fixture.orders.tenants().local().unwrap();
        let order = fixture.orders.find(&caller, id.to_string().parse().unwrap()).await.unwrap();
        assert_eq!(order.webhooks.len(), 1);
        assert_eq!(order.webhooks[0].dialect, format);
    }
}

#[tokio::test]
async fn what_the_operator_does_not_allow_is_refused_in_the_codes_of_the_protocol() {
    let mut fast = TenantSettings::new("fast", KeyDigest::of(ALICE));
    fast.rate = Some(Rate { every: Duration::from_secs(60), burst: 1 });
    let mut picky = TenantSettings::new("picky", KeyDigest::of(BOB));
    picky.kinds = Some(vec!["image".to_owned()]);
    let fixture = Fixture::with(vec![fast, picky], None);
    assert_eq!(fixture.ask("/createTask", &turnstile(ALICE)).await["errorId"], 0);
    assert_eq!(fixture.ask("/createTask", &turnstile(ALICE)).await["errorId"], 0, "a repeat is not limited");
    let mut other = turnstile(ALICE);
    other["task"]["websiteKey"] = json!("another");
    let response = fixture.ask("/createTask", &other).await;
    assert_eq!(
        (&response["errorId"], &response["errorCode"]),
        (&json!(2), &json!("ERROR_NO_SLOT_AVAILABLE"))
    );
    let response = fixture.ask("/createTask", &turnstile(BOB)).await;
    assert_eq!(
        (&response["errorId"], &response["errorCode"]),
        (&json!(23), &json!("ERROR_TASK_NOT_SUPPORTED"))
    );
}

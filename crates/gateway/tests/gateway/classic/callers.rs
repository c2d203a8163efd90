//! Tests of keys and tenants: each caller sees its own orders only.

use super::fixture::{FORM, Fixture, KEY, tenant};
use quittance_gateway::{GatewaySettings, Rate};
use quittance_lifecycle::{CallbackResult, Money, Payload, ProviderAnswer};
use std::sync::atomic::Ordering;
use std::time::Duration;

const ANNA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const BERT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const ORDER_FIELDS: &str = "method=turnstile&sitekey=k&pageurl=https://example.com/&reuse=shared";

async fn two() -> Fixture {
    Fixture::with(vec![tenant("anna", ANNA), tenant("bert", BERT)], GatewaySettings::default()).await
}

async fn place(fixture: &Fixture, key: &str) -> String {
    let response = fixture.post("/in.php", FORM, format!("key={key}&{ORDER_FIELDS}")).await.body;
    response.strip_prefix("OK|").unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[tokio::test]
async fn a_key_of_the_wrong_length_and_an_unknown_one_have_different_codes() {
    let fixture = two().await;
    for (key, code) in [
        ("", "ERROR_WRONG_USER_KEY"),
        ("short", "ERROR_WRONG_USER_KEY"),
        (&"x".repeat(33), "ERROR_WRONG_USER_KEY"),
        (KEY, "ERROR_KEY_DOES_NOT_EXIST"),
    ] {
        assert_eq!(fixture.post("/in.php", FORM, format!("key={key}&{ORDER_FIELDS}")).await.body, code);
        assert_eq!(fixture.get(&format!("/res.php?key={key}&action=get&id=5")).await.body, code);
        assert_eq!(
            fixture.get(&format!("/res.php?key={key}&action=threadsinfo&json=1")).await.body,
            format!(r#"{{"status":0,"request":"{code}"}}"#)
        );
    }
    assert_eq!(fixture.get("/res.php?action=getbalance").await.body, "ERROR_WRONG_USER_KEY");
    assert_eq!(fixture.silent.tasks(), 0);
}

#[tokio::test]
async fn a_key_may_come_in_the_query_in_the_body_or_in_the_head() {
    let fixture = two().await;
    let id = place(&fixture, ANNA).await;
    let bearer = format!("Bearer {ANNA}");
    let by_head = fixture
        .connect()
        .await
        .ask("GET", &format!("/res.php?action=get&id={id}"), &[("Authorization", &bearer)], b"")
        .await;
    assert_eq!(by_head.body, "CAPCHA_NOT_READY");
    let by_body = fixture.post(&format!("/res.php?action=get&id={id}"), FORM, format!("key={ANNA}")).await;
    assert_eq!(by_body.body, "CAPCHA_NOT_READY");
}

#[tokio::test]
async fn one_tenants_order_is_nothing_to_another() {
    let fixture = two().await;
    let (annas, berts) = (place(&fixture, ANNA).await, place(&fixture, BERT).await);
    assert_ne!(annas, berts, "the same picture, and two orders");
    let word = CallbackResult::Answered(ProviderAnswer {
        payload: Payload::text("hers"),
        took_at_least: None,
        cost: Some(Money(1)),
    });
    fixture.settle(&annas, Some(ANNA), word).await;
    let poll = |key: &str, id: &str| format!("/res.php?key={key}&action=get&id={id}");
    assert_eq!(fixture.get(&poll(ANNA, &annas)).await.body, "OK|hers");
    assert_eq!(fixture.get(&poll(BERT, &annas)).await.body, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(fixture.get(&poll(BERT, &berts)).await.body, "CAPCHA_NOT_READY");
    let report = format!("/res.php?key={BERT}&action=reportbad&id={annas}");
    assert_eq!(fixture.get(&report).await.body, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(fixture.silent.tasks(), 2);
    fixture.get(&format!("/res.php?key={ANNA}&action=add_pingback&addr=example.com")).await;
    assert_eq!(fixture.get(&format!("/res.php?key={BERT}&action=get_pingback")).await.body, "OK|");
}

#[tokio::test]
async fn a_caller_that_is_too_fast_gets_that_there_is_no_slot() {
    let mut anna = tenant("anna", ANNA);
    anna.rate = Some(Rate { every: Duration::from_secs(60), burst: 1 });
    let fixture = Fixture::with(vec![anna], GatewaySettings::default()).await;
    let id = place(&fixture, ANNA).await;
    assert_eq!(place(&fixture, ANNA).await, id, "a repeat is not limited");
    let response = fixture.post("/in.php", FORM, format!("key={ANNA}&{ORDER_FIELDS}&data=other")).await;
    assert_eq!((response.status, response.body.as_str()), (200, "ERROR_NO_SLOT_AVAILABLE"));
    assert_eq!(
        fixture.get(&format!("/res.php?key={ANNA}&action=get&id={id}")).await.body,
        "CAPCHA_NOT_READY",
        "polls are free"
    );
}

#[tokio::test]
async fn while_the_store_is_away_nothing_is_lost_and_nothing_is_an_http_error() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    fixture.store_is_away.store(true, Ordering::Relaxed);
    for (query, sent) in [
        (format!("action=get&id={id}"), "CAPCHA_NOT_READY"),
        (format!("action=get2&id={id}&json=1"), r#"{"status":0,"request":"CAPCHA_NOT_READY"}"#),
        (format!("action=get&ids={id},{id}"), "CAPCHA_NOT_READY|CAPCHA_NOT_READY"),
        ("action=get&id=5".to_owned(), "CAPCHA_NOT_READY"),
        (format!("action=reportbad&id={id}"), "ERROR_REPORT_NOT_RECORDED"),
        ("action=getbalance".to_owned(), "ERROR_NO_SLOT_AVAILABLE"),
    ] {
        assert_eq!(fixture.res(&query).await, sent, "{query}");
    }
    assert_eq!(fixture.place("method=base64&body=".to_owned().as_str()).await, "ERROR_ZERO_CAPTCHA_FILESIZE");
    assert_eq!(
        fixture.place("method=turnstile&sitekey=new&pageurl=https://example.com/").await,
        "ERROR_NO_SLOT_AVAILABLE"
    );
    fixture.store_is_away.store(false, Ordering::Relaxed);
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "CAPCHA_NOT_READY");
}

#[tokio::test]
async fn a_pingback_is_on_record_with_its_dialect() {
    let fixture = Fixture::open().await;
    for (path, sitekey, dialect) in [
        ("/in.php", "a", "2captcha"),
        ("/captchaai/in.php", "b", "captchaai"),
        ("/CaptchaAI/in.php", "c", "captchaai"),
    ] {
        let form = format!(
            "key={KEY}&method=turnstile&sitekey={sitekey}&pageurl=https://example.com/&pingback=https://example.com/hook"
        );
        let response = fixture.post(path, FORM, form).await.body;
        let orders = fixture.gateway.orders();
        let caller = orders.tenants().local().unwrap();
        let order = orders.find(&caller, response[3..].parse().unwrap()).await.unwrap();
        assert_eq!(order.webhooks[0].dialect, dialect);
    }
}

//! Tests of the reply to each action, plain and in JSON, exact to the byte.

use super::fixture::{FORM, Fixture, KEY};
use quittance_lifecycle::{CallbackResult, Money, Payload, ProviderAnswer};
use quittance_ports::{Account, Threads};
use std::sync::atomic::Ordering;

const PLAIN: &str = "text/plain; charset=utf-8";

fn json_payload(text: &str) -> Payload {
    Payload { is_json: true, ..Payload::text(text) }
}

#[tokio::test]
async fn an_order_is_placed_polled_and_read_as_often_as_one_likes() {
    let fixture = Fixture::open().await;
    let form = format!("key={KEY}&method=turnstile&sitekey=k&pageurl=https://example.com/&reuse=shared");
    let plain = fixture.post("/in.php", FORM, &form).await;
    let id = plain.body.strip_prefix("OK|").unwrap().to_owned();
    assert_eq!((plain.status, plain.headers["content-type"].as_str()), (200, PLAIN));
    let json = fixture.post("/in.php", FORM, format!("{form}&json=1")).await;
    assert_eq!(json.body, format!(r#"{{"status":1,"request":"{id}"}}"#), "joined, under the same id");
    assert_eq!((json.status, json.headers["content-type"].as_str()), (200, "application/json"));

    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "CAPCHA_NOT_READY");
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":0,"request":"CAPCHA_NOT_READY"}"#
    );
    fixture.solve(&id, Payload::text("0.to\"ken")).await;
    for _ in 0..30 {
        assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "OK|0.to\"ken");
    }
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":1,"request":"0.to\"ken"}"#
    );
    assert_eq!(fixture.res(&format!("action=get2&id={id}")).await, "OK|0.to\"ken|0.00085");
    assert_eq!(
        fixture.res(&format!("action=get2&id={id}&json=1")).await,
        r#"{"status":1,"request":"0.to\"ken","price":"0.00085"}"#
    );
    assert_eq!((fixture.silent.tasks(), fixture.silent.polls.load(Ordering::Relaxed)), (1, 0));
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_in_a_header_beside_a_plain_code_and_in_the_body_of_json() {
    let fixture = Fixture::open().await;
    let form = format!("key={KEY}&method=turnstile&pageurl=https://example.com/&idempotency_key=job");
    assert!(fixture.post("/in.php", FORM, format!("{form}&sitekey=k")).await.body.starts_with("OK|"));
    let plain = fixture.post("/in.php", FORM, format!("{form}&sitekey=other")).await;
    assert_eq!(plain.body, "ERROR_BAD_PARAMETERS");
    let reason = plain.headers["quittance-error-text"].as_str();
    assert!(reason.contains("key"), "{reason}");
    let json = fixture.post("/in.php", FORM, format!("{form}&sitekey=other&json=1")).await;
    let body: serde_json::Value = serde_json::from_str(&json.body).unwrap();
    assert_eq!(body["error_text"], reason);
    assert!(!json.headers.contains_key("quittance-error-text"), "{json:?}");
}

#[tokio::test]
async fn polls_without_a_pause_reach_no_provider() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    let mut connection = fixture.connect().await;
    for _ in 0..500 {
        let path = format!("/res.php?key={KEY}&action=get&id={id}");
        assert_eq!(connection.ask("GET", &path, &[], b"").await.body, "CAPCHA_NOT_READY");
    }
    assert_eq!(fixture.silent.polls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_answer_keeps_the_type_that_the_provider_gave_it() {
    let fixture = Fixture::open().await;
    let form = "method=geetest_v4&captcha_id=c&pageurl=https://example.com/";
    let id = fixture.place(form).await[3..].to_owned();
    fixture.solve(&id, json_payload(r#"{"lot_number":"1","gen_time":2}"#)).await;
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, r#"OK|{"lot_number":"1","gen_time":2}"#);
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":1,"request":{"lot_number":"1","gen_time":2}}"#
    );
    let id = fixture.token("text").await;
    fixture.solve(&id, Payload::text("[1,4,7]")).await;
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":1,"request":"[1,4,7]"}"#
    );
}

#[tokio::test]
async fn answers_that_are_bound_to_a_browser_carry_it_under_every_name() {
    let fixture = Fixture::open().await;
    let form = "method=userrecaptcha&googlekey=g&enterprise=1&pageurl=https://example.com/";
    let id = fixture.place(form).await[3..].to_owned();
    let extras = [("user_agent".to_owned(), "UA".to_owned()), ("json_cookies".to_owned(), "[1]".to_owned())];
    fixture.solve(&id, Payload { extras: extras.into(), ..Payload::text("03A") }).await;
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":1,"request":"03A","result":"03A","user_agent":"UA","useragent":"UA","json_cookies":[1]}"#
    );
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "OK|03A");
    let form = "method=cloudflare_challenge&proxy=u:p@127.0.0.1:1&proxytype=HTTP&userAgent=Mine&pageurl=https://example.com/";
    let id = fixture.place(form).await[3..].to_owned();
    fixture.solve(&id, Payload::text("cf")).await;
    assert_eq!(
        fixture.res(&format!("action=get&id={id}&json=1")).await,
        r#"{"status":1,"request":"cf","result":"cf","user_agent":"Mine","useragent":"Mine"}"#
    );
}

#[tokio::test]
async fn several_ids_bring_exactly_one_part_each() {
    let fixture = Fixture::open().await;
    let (a, b, c) = (fixture.token("a").await, fixture.token("b").await, fixture.token("c").await);
    fixture.solve(&a, Payload::text("first")).await;
    fixture.solve(&c, Payload::text("40|200|-120")).await;
    let ids = format!("{a},{b},,x,9007199254740992,{c}");
    let parts = "first|CAPCHA_NOT_READY|ERROR_WRONG_ID_FORMAT|ERROR_WRONG_ID_FORMAT|ERROR_WRONG_CAPTCHA_ID|ERROR_BAD_PARAMETERS";
    assert_eq!(fixture.res(&format!("action=get&ids={ids}")).await, parts);
    assert_eq!(
        fixture.res(&format!("action=get&ids={ids}&json=1")).await,
        format!(r#"{{"status":1,"request":"{parts}"}}"#)
    );
    assert_eq!(fixture.res(&format!("action=get&id={c}")).await, "OK|40|200|-120", "alone it is clear");
}

#[tokio::test]
async fn an_order_that_failed_says_so_in_the_providers_code() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    fixture.fail(&id, "ERROR_BAD_TOKEN_OR_PAGEURL").await;
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "ERROR_BAD_TOKEN_OR_PAGEURL");
    assert_eq!(
        fixture.res(&format!("action=get2&id={id}&json=1")).await,
        r#"{"status":0,"request":"ERROR_BAD_TOKEN_OR_PAGEURL","error_text":"the provider rejected the task (ERROR_BAD_TOKEN_OR_PAGEURL)"}"#
    );
    let again = fixture.place("method=turnstile&sitekey=k&pageurl=https://example.com/&reuse=shared").await;
    assert_eq!(again, "ERROR_BAD_TOKEN_OR_PAGEURL", "held back, and not paid for again");
}

#[tokio::test]
async fn a_report_is_recorded_once_and_passed_on_once() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    assert_eq!(fixture.res(&format!("action=reportbad&id={id}")).await, "ERROR_REPORT_NOT_RECORDED");
    fixture.solve(&id, Payload::text("t")).await;
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "OK|t");
    for _ in 0..3 {
        assert_eq!(fixture.res(&format!("action=reportbad&id={id}")).await, "OK_REPORT_RECORDED");
    }
    assert_eq!(
        fixture.res(&format!("action=reportbad&id={id}&json=1")).await,
        r#"{"status":1,"request":"OK_REPORT_RECORDED"}"#
    );
    assert_eq!(fixture.res(&format!("action=reportgood&id={id}")).await, "ERROR_DUPLICATE_REPORT");
    assert_eq!(fixture.res("action=reportgood&id=77").await, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(fixture.res("action=reportgood&id=x").await, "ERROR_WRONG_ID_FORMAT");
    while fixture.silent.reports.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*fixture.silent.reports.lock().unwrap(), [("1".to_owned(), false)]);
}

#[tokio::test]
async fn the_balance_and_the_threads_are_read_once_and_answered_often() {
    let fixture = Fixture::open().await;
    *fixture.silent.account.lock().unwrap() =
        Some(Account { balance: Some(Money(3_500_000)), threads: Some(Threads { total: 5, working: 2 }) });
    for _ in 0..20 {
        assert_eq!(fixture.res("action=getbalance").await, "3.50");
        assert_eq!(fixture.res("action=getbalance&json=1").await, r#"{"status":1,"request":"3.50"}"#);
        let threads = fixture.post("/res.php", FORM, format!("key={KEY}&action=threadsinfo&json=1")).await;
        assert_eq!(threads.body, r#"{"status":1,"threads":5,"working_threads":2}"#);
        assert_eq!(threads.headers["content-type"], "application/json");
    }
    assert_eq!(fixture.silent.accounts.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_balance_that_is_not_known_is_an_error_that_says_ask_again_and_never_zero() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.res("action=getbalance").await, "ERROR_NO_SLOT_AVAILABLE");
    let in_json = fixture.res("action=getbalance&json=1").await;
    assert!(in_json.contains(r#""status":0,"request":"ERROR_NO_SLOT_AVAILABLE""#), "{in_json}");
    assert_eq!(
        fixture.res("action=threadsinfo").await,
        r#"{"status":1,"threads":1000,"working_threads":0}"#,
        "a client that cannot start without it can start"
    );
}

#[tokio::test]
async fn a_client_may_register_pingback_addresses_and_none_is_kept() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.res("action=get_pingback").await, "OK|");
    assert_eq!(fixture.res("action=add_pingback&addr=https://example.com/a").await, "OK");
    assert_eq!(
        fixture.res("action=add_pingback&addr=example.com&json=1").await,
        r#"{"status":1,"request":"OK"}"#
    );
    assert_eq!(fixture.res("action=add_pingback").await, "ERROR_BAD_PARAMETERS");
    assert_eq!(fixture.res("action=del_pingback&addr=example.com").await, "OK");
    assert_eq!(fixture.res("action=get_pingback&json=1").await, r#"{"status":1,"request":""}"#);
    assert_eq!(fixture.res("action=del_pingback&addr=all").await, "OK");
}

#[tokio::test]
async fn what_is_wrong_with_an_order_has_its_code() {
    let fixture = Fixture::open().await;
    for (form, code) in [
        ("method=userrecaptcha&pageurl=https://example.com/", "ERROR_GOOGLEKEY"),
        ("method=userrecaptcha&googlekey=g", "ERROR_PAGEURL"),
        ("method=userrecaptcha&googlekey=g&pageurl=example", "ERROR_PAGEURL"),
        ("method=base64", "ERROR_ZERO_CAPTCHA_FILESIZE"),
        ("method=base64&body=AAAA", "ERROR_ZERO_CAPTCHA_FILESIZE"),
        ("method=base64&body=%21%21%21", "ERROR_UPLOAD"),
        ("", "ERROR_BAD_PARAMETERS"),
        ("method=turnstile&pageurl=https://example.com/", "ERROR_BAD_PARAMETERS"),
        ("method=turnstile&sitekey=k&pageurl=https://example.com/&pingback=nowhere", "ERROR_IP_ADDRES"),
        (
            "method=turnstile&sitekey=k&pageurl=https://example.com/&pingback=http://10.0.0.1/",
            "ERROR_IP_ADDRES",
        ),
    ] {
        assert_eq!(fixture.place(form).await, code, "{form}");
        let response = fixture.place(&format!("{form}&json=1")).await;
        let response: serde_json::Value = serde_json::from_str(&response).unwrap();
        assert_eq!((&response["status"], &response["request"]), (&0.into(), &code.into()), "{form}");
        assert!(
            response["error_text"].as_str().is_some_and(|reason| reason.len() > 20),
            "{form}: {response}"
        );
    }
    for query in ["", "action=", "action=nonsense"] {
        assert_eq!(fixture.res(query).await, "ERROR_EMPTY_ACTION", "{query}");
    }
    for id in ["", "id=", "id=abc", "id=-1", "id=1.5", "id=99999999999999999999"] {
        assert_eq!(fixture.res(&format!("action=get&{id}")).await, "ERROR_WRONG_ID_FORMAT", "{id}");
    }
    assert_eq!(fixture.res("action=get&id=5").await, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(fixture.silent.tasks(), 0);
}

#[tokio::test]
async fn a_method_that_is_not_described_is_ordered_all_the_same() {
    let fixture = Fixture::open().await;
    let id = fixture.place("method=brand_new&a=1").await[3..].to_owned();
    fixture.solve(&id, Payload::text("new")).await;
    assert_eq!(fixture.res(&format!("action=get&id={id}")).await, "OK|new");
}

#[tokio::test]
async fn header_acao_opens_the_answer_for_any_page_and_nothing_else_does() {
    let fixture = Fixture::open().await;
    let header = "access-control-allow-origin";
    let open = fixture.get(&format!("/res.php?key={KEY}&action=getbalance&header_acao=1")).await;
    assert_eq!(open.headers[header], "*");
    let shut = fixture.get(&format!("/res.php?key={KEY}&action=getbalance")).await;
    assert!(!shut.headers.contains_key(header));
    let refused = fixture.get("/in.php?key=short&header_acao=1").await;
    assert_eq!((refused.headers[header].as_str(), refused.body.as_str()), ("*", "ERROR_WRONG_USER_KEY"));
}

#[tokio::test]
async fn the_errors_of_in_php_are_listed() {
    let fixture = Fixture::open().await;
    let listed = fixture.get("/in.php?method=get_server_errors").await.body;
    let codes: Vec<&str> = listed.split('|').collect();
    assert!(codes.contains(&"ERROR_WRONG_USER_KEY") && codes.contains(&"ERROR_PAGEURL"), "{listed}");
    assert!(!codes.contains(&"ERROR_WRONG_CAPTCHA_ID"), "{listed}");
}

#[tokio::test]
async fn solve_php_answers_in_the_same_breath() {
    let fixture = Fixture::open().await;
    let body = "A".repeat(800);
    let form = format!("key={KEY}&method=base64&body={body}");
    let placed = fixture.post("/in.php", FORM, &form).await.body[3..].to_owned();
    let asking = fixture.post("/solve.php", FORM, format!("{form}&json=1"));
    let ((), response) = tokio::join!(fixture.solve(&placed, Payload::text("w9h5k")), asking);
    assert_eq!((response.status, response.body.as_str()), (200, r#"{"status":1,"request":"w9h5k"}"#));
    assert_eq!(fixture.post("/captchaai/solve.php", FORM, &form).await.body, "OK|w9h5k");
    let none = fixture.post("/solve.php", FORM, format!("key={KEY}&method=turnstile&sitekey=k")).await;
    assert_eq!(none.body, "ERROR_UPLOAD");
}

#[tokio::test]
async fn a_price_that_is_not_known_is_left_out_and_never_zero() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    let unpriced = ProviderAnswer { payload: Payload::text("t"), took_at_least: None, cost: None };
    fixture.settle(&id, None, CallbackResult::Answered(unpriced)).await;
    assert_eq!(fixture.res(&format!("action=get2&id={id}")).await, "OK|t");
    let response = fixture.res(&format!("action=get2&id={id}&json=1")).await;
    assert_eq!(response, r#"{"status":1,"request":"t"}"#);
    for dialect in ["2captcha", "anticaptcha", "capmonster"] {
        let ask = format!(r#"{{"clientKey":"{KEY}","taskId":{id}}}"#);
        let response = fixture.post(&format!("/{dialect}/getTaskResult"), "application/json", ask).await.body;
        assert!(
            response.contains(r#""status":"ready""#) && !response.contains("cost"),
            "{dialect}: {response}"
        );
    }
}

#[tokio::test]
async fn the_statistics_of_the_service_are_empty_and_well_formed() {
    let fixture = Fixture::open().await;
    let load = fixture.get("/load.php").await;
    assert_eq!((load.status, load.headers["content-type"].as_str()), (200, "text/xml; charset=utf-8"));
    assert!(load.body.starts_with("<?xml") && load.body.ends_with("</response>"), "{}", load.body);
    assert!(fixture.res("action=stats").await.ends_with("<response></response>"));
    assert_eq!(fixture.res("action=stats&json=1").await, r#"{"status":1,"request":[]}"#);
}

//! Tests of every action, exact to the byte, and of the shape of every answer.

use crate::wire::{MockClient, TURNSTILE, png, quick, v2};
use base64::Engine;
use quittance_mock_provider::{DEMO_KEY, MockClassicDialect, MockReport, RulePlace, ScriptRule};
use quittance_mock_provider::{FaultAction, Settings};
use serde_json::{Value, json};

fn body(number: u8) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(png(number));
    form_urlencoded::byte_serialize(encoded.as_bytes()).collect()
}

#[tokio::test]
async fn a_task_is_taken_waited_for_and_read_in_plain_text() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Submit, 1, FaultAction::SolveMs(3_600_000))])
        .expect("a good script");
    let open = client.task(TURNSTILE).await;
    assert!(open.parse::<u64>().expect("decimal") > 1 << 32);
    let reply = client.poll(&format!("action=get&id={open}")).await.expect("an answer");
    assert_eq!(reply.body, b"CAPCHA_NOT_READY");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=UTF-8"));
    let done = client.finished(TURNSTILE).await;
    let answer = client.entry(&done).answer.expect("it is solved");
    let answer = answer.as_str().expect("a token");
    assert!(answer.starts_with(&format!("0.sim-{done}-")));
    assert_eq!(client.tells(&format!("action=get&id={done}")).await, format!("OK|{answer}"));
    assert_eq!(client.tells(&format!("action=get2&id={done}")).await, format!("OK|{answer}|0.00299"));
    assert_eq!(
        client.tells(&format!("action=get&ids={open},{done},77")).await,
        format!("CAPCHA_NOT_READY|{answer}|ERROR_WRONG_CAPTCHA_ID")
    );
    let entry = client.entry(&done);
    assert_eq!((entry.reads, entry.polls, entry.delivered), (3, 3, true));
    assert!(entry.reply_delivered && entry.first_read_at_ms >= entry.solved_at_ms);
    assert!(!client.entry(&open).delivered);
}

#[tokio::test]
async fn the_same_in_json() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Submit, 1, FaultAction::SolveMs(3_600_000))])
        .expect("a good script");
    let open = client.submit(&format!("{TURNSTILE}&json=1")).await.expect("an answer");
    let id = client.mock.ledger().tasks[0].id.clone();
    assert_eq!(open.text(), format!(r#"{{"status":1,"request":"{id}"}}"#));
    assert_eq!(open.header("content-type"), Some("application/json; charset=UTF-8"));
    assert_eq!(
        client.tells(&format!("action=get&json=1&id={id}")).await,
        r#"{"status":0,"request":"CAPCHA_NOT_READY"}"#
    );
    let done = client.finished(TURNSTILE).await;
    let answer = client.entry(&done).answer.expect("it is solved");
    assert_eq!(
        client.tells(&format!("action=get&json=1&id={done}")).await,
        format!(r#"{{"status":1,"request":{answer}}}"#)
    );
    assert_eq!(
        client.tells(&format!("action=get2&json=1&id={done}")).await,
        format!(r#"{{"status":1,"request":{answer},"price":"0.00299"}}"#)
    );
    assert_eq!(
        client.tells(&format!("action=get&json=1&ids={id},{done}")).await,
        format!(r#"{{"status":1,"request":"CAPCHA_NOT_READY|{}"}}"#, answer.as_str().expect("a token"))
    );
    assert_eq!(
        client.tells("action=get&json=1&id=12").await,
        r#"{"status":0,"request":"ERROR_WRONG_CAPTCHA_ID"}"#
    );
    let refused = client.get("/res.php?action=get&json=1&id=12&key=short").await.expect("an answer");
    assert_eq!(
        refused.text(),
        r#"{"status":0,"request":"ERROR_WRONG_USER_KEY","error_text":"You've provided key parameter value in incorrect format, it should contain 32 symbols."}"#
    );
}

#[tokio::test]
async fn the_balance_goes_down_when_a_task_is_taken_and_back_up_when_it_cannot_be_solved() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    assert_eq!(client.tells("action=getbalance").await, "10.00");
    assert_eq!(client.tells("action=getbalance&json=1").await, r#"{"status":1,"request":"10.00"}"#);
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Submit, 2, FaultAction::Unsolvable)])
        .expect("a good script");
    client.task(TURNSTILE).await;
    assert_eq!(client.tells("action=getbalance").await, "9.99701");
    let id = client.finished(TURNSTILE).await;
    assert_eq!(client.tells(&format!("action=get&id={id}")).await, "ERROR_CAPTCHA_UNSOLVABLE");
    assert_eq!(client.tells("action=getbalance").await, "9.99701");
    let (entry, totals) = (client.entry(&id), client.mock.totals());
    assert!(!entry.charged && !entry.delivered);
    assert_eq!((totals.paid_micros, totals.refunded_micros, totals.failed), (5_980, 2_990, 1));
}

#[tokio::test]
async fn a_report_is_taken_once_and_a_bad_one_gives_the_price_back() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let (good, bad) = (client.finished(TURNSTILE).await, client.finished(TURNSTILE).await);
    assert_eq!(client.tells(&format!("action=reportgood&id={good}")).await, "OK_REPORT_RECORDED");
    assert_eq!(
        client.tells(&format!("action=reportbad&json=1&id={bad}")).await,
        r#"{"status":1,"request":"OK_REPORT_RECORDED"}"#
    );
    assert_eq!(client.tells(&format!("action=reportgood&id={bad}")).await, "ERROR_DUPLICATE_REPORT");
    assert_eq!(client.tells("action=reportbad&id=77").await, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(client.entry(&good).reported, Some(MockReport::Good));
    let entry = client.entry(&bad);
    assert_eq!((entry.reported, entry.charged), (Some(MockReport::Bad), false));
}

#[tokio::test]
async fn a_client_that_reports_four_in_ten_answers_bad_is_no_longer_believed() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(client.finished(TURNSTILE).await);
    }
    for id in &ids[..4] {
        assert_eq!(client.tells(&format!("action=reportbad&id={id}")).await, "OK_REPORT_RECORDED");
    }
    assert_eq!(client.tells(&format!("action=reportbad&id={}", ids[4])).await, "REPORT_NOT_RECORDED");
    assert_eq!(client.tells(&format!("action=reportgood&id={}", ids[4])).await, "OK_REPORT_RECORDED");
}

#[tokio::test]
async fn a_report_comes_too_late_after_its_window() {
    let settings = Settings { report_window_ms: 0, ..Settings::quick(MockClassicDialect::CaptchaAi) };
    let client = crate::wire::open(settings).await;
    let id = client.finished(TURNSTILE).await;
    assert_eq!(client.tells(&format!("action=reportgood&id={id}")).await, "ERROR_REPORT_NOT_RECORDED");
}

#[tokio::test]
async fn pingback_addresses_are_kept_per_account() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let (one, two) = ("http://127.0.0.1:1/a", "http://127.0.0.1:2/b");
    for address in [one, two] {
        assert_eq!(client.tells(&format!("action=add_pingback&addr={address}")).await, "OK");
    }
    assert_eq!(client.tells("action=add_pingback&addr=http://example.com/").await, "ERROR_IP_ADDRES");
    assert_eq!(client.tells("action=get_pingback").await, format!("OK|{one}|{two}"));
    assert_eq!(client.tells(&format!("action=del_pingback&addr={one}")).await, "OK");
    assert_eq!(client.tells("action=get_pingback").await, format!("OK|{two}"));
    assert_eq!(client.tells("action=del_pingback&addr=all").await, "OK");
    assert_eq!(client.tells("action=get_pingback").await, "OK|");
}

#[tokio::test]
async fn captchaai_has_ways_of_its_own() {
    let client = quick(MockClassicDialect::CaptchaAi).await;
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Submit, 1, FaultAction::SolveMs(3_600_000))])
        .expect("a good script");
    let json_reply = client.says(&format!("{}&json=1", v2("a"))).await;
    let id = client.mock.ledger().tasks[0].id.clone();
    assert_eq!(json_reply, format!(r#"{{"status":1,"request":{id}}}"#), "a number, and only here");
    let threads = client
        .post("/res.php", &format!("key={DEMO_KEY}&action=threadsinfo&json=1"))
        .await
        .expect("an answer");
    assert_eq!(threads.text(), r#"{"status":1,"threads":100,"working_threads":1}"#);
    assert_eq!(
        client.says("method=base64&json=1&body=%25").await,
        "ERROR_UPLOAD",
        "plain although JSON was requested"
    );
    assert_eq!(
        quick(MockClassicDialect::TwoCaptcha).await.tells("action=threadsinfo").await,
        "ERROR_EMPTY_ACTION"
    );
}

#[tokio::test]
async fn solve_php_answers_a_picture_in_the_same_breath() {
    let client = quick(MockClassicDialect::CaptchaAi).await;
    let params = format!("key={DEMO_KEY}&method=base64&body={}", body(3));
    let json_reply = client.post("/solve.php", &params).await.expect("an answer");
    let entry = client.mock.ledger().tasks[0].clone();
    let answer = entry.answer.expect("it is solved");
    assert_eq!(json_reply.text(), format!("OK|{}", answer.as_str().expect("text")));
    assert!(entry.delivered && entry.reply_delivered);
    let json = client.post("/solve.php", &format!("{params}&json=1")).await.expect("an answer");
    assert_eq!(json.text(), format!(r#"{{"status":1,"request":{answer}}}"#));
    let other = client.post("/solve.php", &format!("key={DEMO_KEY}&{TURNSTILE}")).await.expect("an answer");
    assert_eq!(other.text(), "ERROR_UPLOAD");
    let elsewhere =
        quick(MockClassicDialect::TwoCaptcha).await.post("/solve.php", &params).await.expect("an answer");
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn extras_that_documentation_promises() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let open = client.submit(&format!("{TURNSTILE}&header_acao=1")).await.expect("an answer");
    assert_eq!(open.header("access-control-allow-origin"), Some("*"));
    let closed = client.poll("action=getbalance").await.expect("an answer");
    assert_eq!(closed.header("access-control-allow-origin"), None);
    assert!(client.says("method=get_server_errors").await.contains("ERROR_NO_SLOT_AVAILABLE|"));
    let dump = client.tells("action=getbalance&debug_dump=1").await;
    let money = client.tells("action=getbalance").await;
    assert_eq!(
        dump,
        format!(
            "Array\n(\n    [action] => getbalance\n    [debug_dump] => 1\n    [key] => {DEMO_KEY}\n)\n{money}"
        )
    );
}

async fn answer(client: &MockClient, params: &str) -> (String, Value) {
    let id = client.finished(params).await;
    let plain = client.tells(&format!("action=get&json=0&id={id}")).await;
    let json = client.tells(&format!("action=get&json=1&id={id}")).await;
    let json = serde_json::from_str(&json).unwrap_or_else(|why| panic!("{why}: {json}"));
    (plain.strip_prefix("OK|").unwrap_or_else(|| panic!("{plain}")).to_owned(), json)
}

#[tokio::test]
async fn each_kind_answers_in_its_own_shape() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let page = "pageurl=https://a.example.com/";
    let image = |extra: &str| format!("method=base64&body={}&{extra}", body(1));
    let (text, json) = answer(&client, &image("numeric=1")).await;
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()) && json["request"] == json!(text));
    let (grid, _) = answer(&client, &image("recaptcha=1&textinstructions=cars")).await;
    assert!(
        grid.starts_with("click:") && grid[6..].split('/').all(|cell| cell.parse::<u8>().is_ok()),
        "{grid}"
    );
    let (points, _) = answer(&client, &image("coordinatescaptcha=1")).await;
    assert!(points.starts_with("coordinate:x=") && points.contains(";x="), "{points}");
    let (canvas, _) = answer(&client, &image("canvas=1&textinstructions=dog")).await;
    assert!(canvas.starts_with("canvas:") && canvas.ends_with(';'), "{canvas}");
    let pictures: String = (1..=3).map(|number| format!("&file_{number}={}", body(number))).collect();
    let (angles, _) = answer(&client, &format!("method=rotatecaptcha{pictures}")).await;
    assert_eq!(angles.split('|').filter(|angle| angle.parse::<i16>().is_ok()).count(), 3, "{angles}");
    let (boxes, json) = answer(&client, &format!("method=bounding_box&image={}", body(4))).await;
    assert!(json["request"][0]["xMin"].is_u64() && boxes.starts_with("[{"), "{boxes}");
    let (fun, _) = answer(&client, &format!("method=funcaptcha&publickey=x&data[blob]=b&{page}")).await;
    assert_eq!(fun.matches('|').count(), 2, "{fun}");
    let (text, _) = answer(&client, "textcaptcha=two+and+two").await;
    assert!(!text.is_empty());
    let (geetest, json) = answer(&client, &format!("method=geetest&json=0&gt=g&challenge=c1&{page}")).await;
    assert_eq!(json["request"]["geetest_challenge"], "c1");
    assert_eq!(serde_json::from_str::<Value>(&geetest).expect("compact JSON"), json["request"]);
    let (_, v4) = answer(&client, &format!("method=geetest_v4&json=0&captcha_id=i&{page}")).await;
    assert!(v4["request"]["pass_token"].is_string());
    let (_, turnstile) = answer(&client, &format!("{TURNSTILE}&data=d&pagedata=p")).await;
    assert!(turnstile["request"].is_string() && turnstile["useragent"].is_string());
    let (token, _) = answer(&client, &format!("method=brand_new_captcha&{page}")).await;
    assert!(token.starts_with("sim-"), "an unknown method is taken: {token}");
}

#[tokio::test]
async fn geetest_replies_in_json_by_default() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let json_reply = client.says("method=geetest&gt=g&challenge=c&pageurl=https://a.test/").await;
    let id = client.mock.ledger().tasks[0].id.clone();
    assert_eq!(json_reply, format!(r#"{{"status":1,"request":"{id}"}}"#));
    client.until(|task| task.answer.is_some()).await;
    assert!(client.tells(&format!("action=get&id={id}")).await.starts_with(r#"{"status":1,"request":{"#));
}

#[tokio::test]
async fn captchaai_says_bound_answers_in_result_and_geetest_as_a_string() {
    let client = quick(MockClassicDialect::CaptchaAi).await;
    let (plain, enterprise) = answer(&client, &format!("{}&enterprise=1", v2("e"))).await;
    assert_eq!(enterprise["result"], json!(plain));
    assert!(enterprise["user_agent"].is_string() && enterprise.get("request").is_none());
    let proxied = "pageurl=https://a.example.com/&proxy=u:p@1.2.3.4:80&proxytype=HTTP";
    let (_, clearance) = answer(&client, &format!("method=cloudflare_challenge&{proxied}")).await;
    assert!(clearance["result"].is_string() && clearance.get("request").is_none());
    let (_, fox) = answer(&client, &format!("method=captchafox&sitekey=s&{proxied}")).await;
    assert!(fox["request"].is_string() && fox["user_agent"].is_string());
    let (_, geetest) =
        answer(&client, "method=geetest&json=0&gt=g&challenge=c2&pageurl=https://a.test/").await;
    let inner: Value = serde_json::from_str(geetest["request"].as_str().expect("a string")).expect("JSON");
    assert_eq!(inner["challenge"], "c2");
    let (cells, _) = answer(
        &client,
        &format!("method=base64&instructions=cars&grid_size=3x3&img_type=recaptcha&body={}", body(1)),
    )
    .await;
    assert!(serde_json::from_str::<Vec<u8>>(&cells).is_ok(), "{cells}");
    let nine: String = (1..=9).map(|number| format!("&image_base64_{number}={}", body(number))).collect();
    let (cells, _) = answer(&client, &format!("method=bls&instructions=664{nine}")).await;
    assert!(serde_json::from_str::<Vec<u8>>(&cells).is_ok(), "{cells}");
}

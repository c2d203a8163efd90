//! Tests of replies as providers send them, and of replies that are damaged on the way.

use super::*;
use crate::json::dialect::JsonDialect;

const CODES: JsonCodes = JsonCodes::of(JsonDialect::TwoCaptcha);

fn create(body: &str) -> CreateReply {
    read_create(body.as_bytes(), "image", &CODES)
}

fn poll(body: &str) -> ResultReply {
    read_result(body.as_bytes(), &CODES)
}

#[test]
fn a_task_is_known_by_whatever_it_is_called() {
    let taken = |task: &str| CreateReply::Taken { task: task.to_owned() };
    assert_eq!(create(r#"{"errorId":0,"taskId":74327409378}"#), taken("74327409378"));
    assert_eq!(create(r#"{"errorId":0,"taskId":"61138bb6-19fb"}"#), taken("61138bb6-19fb"));
    assert_eq!(create(r#"{"errorId":0,"status":"idle","taskId":"a"}"#), taken("a"));
    let at_once = create(r#"{"errorId":0,"status":"ready","taskId":"a","solution":{"text":"44795sds"}}"#);
    let payload = Payload::text("44795sds");
    assert_eq!(at_once, CreateReply::Answered { task: Some("a".to_owned()), payload, cost: None });
}

#[test]
fn an_answer_brings_its_cost_and_how_long_it_took() {
    let body = r#"{"errorId":0,"status":"ready","solution":{"gRecaptchaResponse":"03A","token":"03A"},
        "cost":"0.00299","ip":"1.2.3.4","createTime":1692863536,"endTime":1692863556,"solveCount":1}"#;
    let expected = ResultReply::Answered {
        payload: Payload::text("03A"),
        cost: Some(Money(2990)),
        took_at_least: Some(Duration::from_secs(19)),
    };
    assert_eq!(poll(body), expected);
    assert_eq!(poll(&body.replace("\"0.00299\"", "0.00299")), expected);
    let bare = ResultReply::Answered { payload: Payload::text("03A"), cost: None, took_at_least: None };
    assert_eq!(poll(r#"{"errorId":0,"status":"ready","solution":"03A"}"#), bare);
    for status in ["processing", "idle"] {
        assert_eq!(poll(&format!(r#"{{"errorId":0,"status":"{status}"}}"#)), ResultReply::Pending);
    }
}

/// Trap: the clock of a provider was 60 s ahead, so its answers looked 60 s younger than they were.
#[test]
fn only_the_difference_of_two_times_by_the_providers_clock_says_anything() {
    let took = |times: &str| {
        let body = format!(r#"{{"errorId":0,"status":"ready","solution":{{"token":"03A"}}{times}}}"#);
        match poll(&body) {
            ResultReply::Answered { took_at_least, .. } => took_at_least,
            other => panic!("{other:?}"),
        }
    };
    for off_by in [-300, 0, 300] {
        let (created, ended) = (1_692_863_536 + off_by, 1_692_863_556 + off_by);
        let times = format!(r#","createTime":{created},"endTime":"{ended}""#);
        assert_eq!(took(&times), Some(Duration::from_secs(19)), "both are cut to whole seconds: {times}");
    }
    assert_eq!(took(r#","createTime":1692863536,"endTime":1692863536"#), Some(Duration::ZERO));
    for says_nothing in [
        r#","endTime":1692863556"#,
        r#","createTime":1692863536"#,
        r#","createTime":0,"endTime":1692863556"#,
        r#","createTime":"soon","endTime":1692863556"#,
        r#","createTime":1692863556,"endTime":1692863536"#,
    ] {
        assert_eq!(took(says_nothing), None, "{says_nothing}");
    }
}

#[test]
fn a_no_is_a_code_and_its_class() {
    let outcome = create(r#"{"errorId":10,"errorCode":"ERROR_ZERO_BALANCE","errorDescription":"no funds"}"#);
    assert_eq!(outcome, CreateReply::Fault(Fault::new(FaultClass::NoFunds, "ERROR_ZERO_BALANCE")));
    let outcome =
        poll(r#"{"errorId":1,"errorCode":"ERROR_CAPTCHA_UNSOLVABLE","taskId":"a","status":"failed"}"#);
    assert_eq!(outcome, ResultReply::Fault(Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE")));
    let outcome = poll(r#"{"errorId":"99"}"#);
    assert_eq!(outcome, ResultReply::Fault(Fault::new(FaultClass::UnlistedCode, "errorId 99")));
    assert_eq!(poll(r#"{"errorId":1,"errorCode":"CAPTCHA_NOT_READY"}"#), ResultReply::Pending);
    let ResultReply::Fault(fault) = poll(r#"{"errorId":0,"status":"failed"}"#) else { panic!("failed") };
    assert_eq!(fault.class, FaultClass::Unsolvable);
    let ResultReply::Fault(fault) = poll(r#"{"errorId":0,"status":"ready","solution":{}}"#) else {
        panic!("hollow")
    };
    assert_eq!(fault.class, FaultClass::UnlistedCode);
}

#[test]
fn what_is_not_the_protocol_is_never_guessed_at() {
    let cases = [
        ("", JsonSight::Nothing),
        ("  \r\n", JsonSight::Nothing),
        ("<html>502 Bad Gateway</html>", JsonSight::Html),
        ("Bad Gateway", JsonSight::Junk),
        ("ERROR_ZERO_BALANCE", JsonSight::Junk),
        ("[1]", JsonSight::Junk),
        ("{\"errorId\":0,\"taskI", JsonSight::BrokenJson),
        ("{}", JsonSight::BrokenJson),
        ("{\"message\":\"rate limited\"}", JsonSight::BrokenJson),
        ("{\"errorId\":0}", JsonSight::BrokenJson),
        ("{\"errorId\":0,\"taskId\":null}", JsonSight::BrokenJson),
        ("{\"errorId\":0,\"taskId\":-4}", JsonSight::BrokenJson),
        ("{\"errorId\":0,\"taskId\":\"\"}", JsonSight::BrokenJson),
        ("{\"errorId\":null,\"errorCode\":null}", JsonSight::BrokenJson),
    ];
    for (body, sight) in cases {
        assert_eq!(create(body), CreateReply::Puzzling(sight), "{body}");
        assert_eq!(poll(body), ResultReply::Puzzling(sight), "{body}");
    }
    let long = format!("{{\"errorId\":0,\"taskId\":\"{}\"}}", "x".repeat(REPLY_BYTES_MAX));
    assert_eq!(create(&long), CreateReply::Puzzling(JsonSight::TooLong));
    assert_eq!(read_result(&[0xff, 0xfe], &CODES), ResultReply::Puzzling(JsonSight::Junk));
}

#[test]
fn a_reply_cut_anywhere_is_no_other_reply() {
    let whole = r#"{"errorId":0,"status":"ready","solution":{"text":"a}b"},"cost":"0.1"}"#;
    for end in 0..whole.len() {
        assert!(matches!(poll(&whole[..end]), ResultReply::Puzzling(_)), "{}", &whole[..end]);
    }
}

#[test]
fn a_callback_names_its_task_and_is_final_or_nothing() {
    let callback = |body: &str| read_callback(body.as_bytes(), &CODES);
    let (task, reply) =
        callback(r#"{"errorId":0,"taskId":7,"status":"ready","solution":{"text":"x"}}"#).unwrap();
    assert_eq!(task.as_deref(), Some("7"));
    assert!(matches!(reply, ResultReply::Answered { .. }));
    let (task, reply) = callback(r#"{"errorId":12,"errorCode":"ERROR_CAPTCHA_UNSOLVABLE"}"#).unwrap();
    assert!(task.is_none() && matches!(reply, ResultReply::Fault(_)));
    for body in [r#"{"errorId":0,"status":"processing","taskId":7}"#, "", "id=7&code=x", "<html>"] {
        assert!(callback(body).is_none(), "{body}");
    }
}

#[test]
fn a_balance_is_money_whichever_type_it_has() {
    let balance = |body: &str| read_balance(body.as_bytes(), &CODES);
    assert_eq!(balance(r#"{"errorId":0,"balance":345.678}"#), JsonAccountReply::Is(Money(345_678_000)));
    assert_eq!(balance(r#"{"errorId":0,"balance":"3.50"}"#), JsonAccountReply::Is(Money(3_500_000)));
    assert_eq!(balance(r#"{"errorId":0,"balance":-1}"#), JsonAccountReply::Is(Money(0)));
    assert!(matches!(
        balance(r#"{"errorId":1,"errorCode":"ERROR_KEY_DOES_NOT_EXIST"}"#),
        JsonAccountReply::Fault(_)
    ));
    assert!(matches!(balance("<html>"), JsonAccountReply::Puzzling(JsonSight::Html)));
}

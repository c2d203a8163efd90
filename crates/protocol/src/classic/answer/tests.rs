//! Tests of every known shape of reply, and of what no reply must be taken for.

use super::*;
use crate::classic::dialect::ClassicDialect;
use std::collections::BTreeMap;

fn codes() -> ClassicCodes {
    ClassicCodes::of(ClassicDialect::TwoCaptcha)
}

fn submit(body: &str) -> SubmitReply {
    read_submit(body.as_bytes(), &codes())
}

fn poll(body: &str) -> PollReply {
    read_poll(body.as_bytes(), false, &codes())
}

fn answered(text: &str) -> PollReply {
    PollReply::Answered { payload: Payload::text(text), cost: None }
}

fn fault(class: FaultClass, code: &str) -> Fault {
    Fault::new(class, code)
}

#[test]
fn a_task_is_read_from_every_shape_that_names_one() {
    let bodies = [
        "OK|2122988149",
        "OK|2122988149\r\n",
        "\u{feff}OK|2122988149",
        "\"OK|2122988149\"",
        r#"{"status":1,"request":"2122988149"}"#,
        r#"{"status":1,"request":2122988149}"#,
        r#"{"status":"1","request":"2122988149","error_text":""}"#,
        r#"{"status":true,"request":null,"result":"2122988149"}"#,
        " {\n \"request\" : \"2122988149\",\n \"status\" : 1 }\n",
    ];
    for body in bodies {
        assert_eq!(submit(body), SubmitReply::Taken { task: "2122988149".to_owned() }, "{body}");
    }
    let long = r#"{"status":1,"request":18446744073709551999}"#;
    assert_eq!(
        submit(long),
        SubmitReply::Taken { task: "18446744073709551999".to_owned() },
        "no digit is lost"
    );
}

#[test]
fn a_refusal_is_read_from_every_shape() {
    let refusals = [
        "ERROR_KEY_DOES_NOT_EXIST",
        "\"ERROR_KEY_DOES_NOT_EXIST\"",
        "ERROR_KEY_DOES_NOT_EXIST\n",
        r#"{"status":0,"request":"ERROR_KEY_DOES_NOT_EXIST"}"#,
        r#"{"status":"0","request":"ERROR_KEY_DOES_NOT_EXIST"}"#,
        r#"{"status":1,"request":"ERROR_KEY_DOES_NOT_EXIST"}"#,
        "OK|ERROR_KEY_DOES_NOT_EXIST",
        r#"{"request":"ERROR_KEY_DOES_NOT_EXIST"}"#,
        r#"{"errorId":1,"errorCode":"ERROR_KEY_DOES_NOT_EXIST","errorDescription":"Account not found"}"#,
    ];
    for body in refusals {
        let expected = SubmitReply::Fault(fault(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"));
        assert_eq!(submit(body), expected, "{body}");
    }
}

#[test]
fn a_permanent_code_behind_a_human_error_text_is_seen() {
    let bodies = [
        r#"{"status":0,"request":"ERROR_WRONG_USER_KEY","error_text":"Something went wrong, please try again"}"#,
        r#"{"status":0,"error_text":"Please try again","request":"ERROR_WRONG_USER_KEY"}"#,
        r#"{"status":0,"request":"Please try again later","error_text":"ERROR_WRONG_USER_KEY"}"#,
        r#"{"status":0,"request":"","error_text":"The server sent ERROR_WRONG_USER_KEY, try again"}"#,
        r#"{"status":0,"request":"try again","error_code":"ERROR_WRONG_USER_KEY","error_text":"ERROR_SERVER"}"#,
    ];
    for body in bodies {
        let SubmitReply::Fault(fault) = submit(body) else { panic!("no fault: {body}") };
        assert_eq!(
            (fault.class, fault.code.as_str()),
            (FaultClass::AccountBlocked, "ERROR_WRONG_USER_KEY"),
            "{body}"
        );
        let PollReply::Fault(fault) = poll(body) else { panic!("no fault: {body}") };
        assert_eq!(fault.class, FaultClass::AccountBlocked, "{body}");
    }
}

#[test]
fn plain_text_counts_although_json_was_requested() {
    let SubmitReply::Fault(refused) = submit("ERROR_UPLOAD") else { panic!("no fault") };
    assert_eq!(refused.class, FaultClass::Caller);
    assert_eq!(poll("OK|token"), answered("token"));
    assert_eq!(poll("CAPCHA_NOT_READY"), PollReply::Pending);
}

#[test]
fn a_refusal_in_words_only_is_a_refusal_all_the_same() {
    let SubmitReply::Fault(refused) = submit(r#"{"status":0,"request":"no more today"}"#) else {
        panic!("no fault")
    };
    assert_eq!((refused.class, refused.code.as_str()), (FaultClass::UnlistedCode, "no more today"));
    let SubmitReply::Fault(refused) = submit(r#"{"status":0}"#) else { panic!("no fault") };
    assert_eq!(refused.class, FaultClass::UnlistedCode);
    let article = submit("https://2captcha.com/blog/google-search-recaptcha");
    let SubmitReply::Fault(refused) = article else { panic!("no fault") };
    assert_eq!(refused.class, FaultClass::Caller);
}

#[test]
fn what_is_not_the_protocol_is_puzzling_and_neither_taken_nor_refused() {
    let cases = [
        ("", ClassicSight::Nothing),
        (" \r\n", ClassicSight::Nothing),
        ("<!DOCTYPE html><title>502 Bad Gateway</title>", ClassicSight::Html),
        ("<html>ERROR_ZERO_BALANCE</html>", ClassicSight::Html),
        ("500 Internal Server Error", ClassicSight::Junk),
        ("OK", ClassicSight::Junk),
        ("OK|", ClassicSight::Junk),
        ("OK|12 34", ClassicSight::Junk),
        ("CAPCHA_NOT_READY", ClassicSight::Junk),
        ("[1,2]", ClassicSight::Junk),
        ("{\"status\":1,\"request\":\"21229", ClassicSight::BrokenJson),
        ("{\"status\":1,\"request\":{\"a\":1}}", ClassicSight::Junk),
        ("{\"status\":1}", ClassicSight::Junk),
        ("{\"status\":\"ok\"}", ClassicSight::BrokenJson),
        ("{}", ClassicSight::BrokenJson),
        ("null", ClassicSight::Junk),
    ];
    for (body, sight) in cases {
        assert_eq!(submit(body), SubmitReply::Puzzling(sight), "{body}");
    }
    assert_eq!(read_submit(&[0xff, 0xfe, b'O', b'K'], &codes()), SubmitReply::Puzzling(ClassicSight::Junk));
    let long = format!("OK|{}", "1".repeat(REPLY_BYTES_MAX));
    assert_eq!(submit(&long), SubmitReply::Puzzling(ClassicSight::TooLong));
    assert_eq!(submit(&format!("OK|{}", "1".repeat(129))), SubmitReply::Puzzling(ClassicSight::Junk));
}

#[test]
fn pending_is_seen_in_every_spelling() {
    for code in crate::classic::code::PENDING {
        for body in [
            code.to_owned(),
            format!("{code}\n"),
            format!("\"{code}\""),
            format!("{{\"status\":0,\"request\":\"{code}\"}}"),
            format!("{{\"status\":1,\"request\":\"{code}\"}}"),
            format!("OK|{code}"),
            format!("{{\"request\":\"{code}\"}}"),
        ] {
            assert_eq!(poll(&body), PollReply::Pending, "{body}");
        }
    }
}

#[test]
fn an_error_code_is_never_an_answer() {
    for code in
        ["ERROR_CAPTCHA_UNSOLVABLE", "ERROR_NEVER_SEEN", "ERROR: 1005", "ERROR", "IP_BANNED", "MAX_USER_TURN"]
    {
        for body in [
            code.to_owned(),
            format!("OK|{code}"),
            format!("OK| {code}\n"),
            format!("{{\"status\":1,\"request\":\"{code}\"}}"),
            format!("{{\"status\":1,\"result\":\"{code}\",\"user_agent\":\"x\"}}"),
            format!("{{\"status\":0,\"request\":\"{code}\"}}"),
        ] {
            let PollReply::Fault(fault) = poll(&body) else { panic!("taken for an answer: {body}") };
            assert_eq!(fault.code, code, "{body}");
        }
        let form = Form(BTreeMap::from([("code".to_owned(), Part::Text(code.to_owned()))]));
        assert!(matches!(read_pingback(&form, &codes()), Some((None, Err(_)))), "{code}");
    }
}

#[test]
fn answers_keep_their_text_with_every_mark_in_it() {
    let cases = [
        ("OK|40|200|-120", "40|200|-120"),
        ("OK|coordinate:x=39,y=59;x=252,y=72", "coordinate:x=39,y=59;x=252,y=72"),
        ("OK|click:3/8/9\n", "click:3/8/9"),
        (r#"{"status":1,"request":"a|b|c"}"#, "a|b|c"),
        (r#"{"status":1,"request":"[1,4,7]"}"#, "[1,4,7]"),
        (r#"{"status":1,"request":12345}"#, "12345"),
        (r#"{"status":1,"request":0.50}"#, "0.50"),
        (r#"{"status":1,"result":"token"}"#, "token"),
        (r#"{"status":1,"request":"","result":"token"}"#, "token"),
        (r#"{"status":1,"request":"https://example.com/a"}"#, "https://example.com/a"),
        (r#"{"status":1,"request":"\u0442\u0435\u043a\u0441\u0442"}"#, "текст"),
    ];
    for (body, text) in cases {
        assert_eq!(poll(body), answered(text), "{body}");
    }
}

#[test]
fn documents_stay_documents_and_texts_that_hold_one_stay_texts() {
    let PollReply::Answered { payload, .. } = poll(
        "{\"status\":1,\"request\":{ \"lot_number\": \"1\", \"gen_time\": 1.50, \"captcha_id\": \"c\" }}",
    ) else {
        panic!("no answer")
    };
    assert!(payload.is_json);
    assert_eq!(
        payload.text, r#"{"lot_number":"1","gen_time":1.50,"captcha_id":"c"}"#,
        "in the order it came"
    );
    let PollReply::Answered { payload, .. } = poll(r#"{"status":1,"request":"{\"challenge\":\"c\"}"}"#)
    else {
        panic!("no answer")
    };
    assert!(!payload.is_json);
    assert_eq!(payload.text, r#"{"challenge":"c"}"#);
    let PollReply::Answered { payload, .. } =
        poll(r#"{"challenge":"c","validate":"v","seccode":"s|jordan"}"#)
    else {
        panic!("no answer")
    };
    assert!(payload.is_json, "the bare fields of a puzzle are an answer, too");
    assert!(matches!(poll(r#"{"challenge":"c"}"#), PollReply::Puzzling(_)));
}

#[test]
fn what_comes_along_with_an_answer_is_kept_under_one_name() {
    for name in ["useragent", "user_agent", "userAgent"] {
        let body = format!(
            r#"{{"status":1,"result":"t","{name}":"UA/1","cookies":{{"a": 1}},"price":"0.00299","x":null}}"#
        );
        let PollReply::Answered { payload, cost } = poll(&body) else { panic!("no answer: {body}") };
        assert_eq!(cost, Some(Money(2990)));
        let extras: Vec<_> =
            payload.extras.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(extras, [("cookies", r#"{"a":1}"#), ("user_agent", "UA/1")]);
    }
    let many: String = (0..50).map(|n| format!(",\"x{n}\":1")).collect();
    let PollReply::Answered { payload, .. } = poll(&format!("{{\"status\":1,\"request\":\"t\"{many}}}"))
    else {
        panic!("no answer")
    };
    assert_eq!(payload.extras.len(), 16, "within bounds");
}

#[test]
fn the_price_of_a_plain_answer_is_split_off_only_where_it_was_requested() {
    let answered = |text, cost| PollReply::Answered { payload: Payload::text(text), cost };
    let priced = |body: &str| read_poll(body.as_bytes(), true, &codes());
    assert_eq!(priced("OK|a|b|0.00085"), answered("a|b", Some(Money(850))));
    assert_eq!(poll("OK|a|b|0.00085"), answered("a|b|0.00085", None));
    assert_eq!(
        priced(r#"{"status":1,"request":"a|0.5","price":0.00085}"#),
        answered("a|0.5", Some(Money(850)))
    );
    assert!(matches!(priced("OK|ERROR_CAPTCHA_UNSOLVABLE|0.001"), PollReply::Fault(_)));
}

#[test]
fn a_solved_task_without_an_answer_is_for_a_person() {
    for body in ["OK|", r#"{"status":1}"#, r#"{"status":1,"request":null}"#, r#"{"status":1,"request":" "}"#]
    {
        let PollReply::Fault(fault) = poll(body) else { panic!("{body}") };
        assert_eq!(fault.class, FaultClass::UnlistedCode);
    }
}

#[test]
fn a_batch_is_taken_apart_and_never_interpreted() {
    let parts = |parts: &[&str]| BatchReply::Parts(parts.iter().map(|part| (*part).to_owned()).collect());
    let batch = |body: &str| read_batch(body.as_bytes(), &codes());
    assert_eq!(
        batch(r#"{"status":1,"request":"a|CAPCHA_NOT_READY|b"}"#),
        parts(&["a", "CAPCHA_NOT_READY", "b"])
    );
    assert_eq!(batch("OK|a|b"), parts(&["a", "b"]));
    let all = "CAPCHA_NOT_READY|CAPCHA_NOT_READY";
    assert_eq!(batch(all), parts(&["CAPCHA_NOT_READY", "CAPCHA_NOT_READY"]));
    assert_eq!(batch(&format!("{{\"status\":0,\"request\":\"{all}\"}}")), batch(all));
    assert_eq!(batch("ERROR: 1005"), BatchReply::Fault(fault(FaultClass::Busy, "ERROR: 1005")));
    assert_eq!(batch("CAPCHA_NOT_READY"), BatchReply::Unclear);
    assert_eq!(batch("ERROR_WRONG_CAPTCHA_ID"), BatchReply::Unclear);
    assert_eq!(batch("token|other"), BatchReply::Unclear);
    assert_eq!(batch("<html>"), BatchReply::Puzzling(ClassicSight::Html));
}

#[test]
fn a_pingback_is_read_and_nonsense_says_nothing() {
    let form = |pairs: &[(&str, &str)]| {
        let parts = pairs.iter().map(|(name, value)| ((*name).to_owned(), Part::Text((*value).to_owned())));
        Form(parts.collect())
    };
    let hear = |pairs: &[(&str, &str)]| read_pingback(&form(pairs), &codes());
    assert_eq!(
        hear(&[("id", "7"), ("code", "token")]),
        Some((Some("7".to_owned()), Ok(Payload::text("token"))))
    );
    assert_eq!(hear(&[("id", "7 8"), ("code", "token")]), Some((None, Ok(Payload::text("token")))));
    for nonsense in [&[("id", "7")][..], &[("id", "7"), ("code", "")], &[("code", "CAPCHA_NOT_READY")]] {
        assert_eq!(hear(nonsense), None);
    }
    for page in ["<html><script>x</script>", " <!DOCTYPE html>", "<HTML>502"] {
        assert_eq!(hear(&[("id", "7"), ("code", page)]), None, "a page is no answer: {page}");
    }
    assert!(hear(&[("code", "<3 x")]).is_some(), "a picture may say so");
}

#[test]
fn balance_and_threads_are_read_in_every_shape() {
    let balance = |body: &str| read_balance(body.as_bytes(), &codes());
    for body in ["3.50", "OK|3.50", r#"{"status":1,"request":"3.50"}"#, r#"{"status":1,"request":3.5}"#] {
        assert_eq!(balance(body), ClassicAccountReply::Is(Money(3_500_000)), "{body}");
    }
    assert_eq!(balance("-0.02"), ClassicAccountReply::Is(Money(0)));
    assert!(matches!(balance("ERROR_WRONG_USER_KEY"), ClassicAccountReply::Fault(_)));
    assert_eq!(balance("<html>"), ClassicAccountReply::Puzzling(ClassicSight::Html));
    let threads = |body: &str| read_threads(body.as_bytes(), &codes());
    for body in [
        r#"{"threads":5,"working_threads":2}"#,
        r#"{"threads":"5","working_threads":"2"}"#,
        r#"{"status":1,"request":{"threads":5,"working_threads":"2"}}"#,
        r#"{"status":1,"request":"{\"threads\":5,\"working_threads\":2}"}"#,
    ] {
        assert_eq!(threads(body), ClassicAccountReply::Is(ThreadsReply { total: 5, working: 2 }), "{body}");
    }
    assert!(matches!(
        threads(r#"{"status":0,"request":"ERROR_WRONG_USER_KEY"}"#),
        ClassicAccountReply::Fault(_)
    ));
    assert!(matches!(threads(r#"{"threads":5}"#), ClassicAccountReply::Puzzling(_)));
}

#[test]
fn a_document_has_the_same_type_by_whichever_way_it_comes() {
    let document = r#"{"challenge":"c","validate":"v","seccode":"s"}"#;
    for (dialect, is_json) in [(ClassicDialect::TwoCaptcha, true), (ClassicDialect::CaptchaAi, false)] {
        let codes = ClassicCodes::of(dialect);
        let form = Form(BTreeMap::from([("code".to_owned(), Part::Text(document.to_owned()))]));
        let Some((_, Ok(callback))) = read_pingback(&form, &codes) else { panic!("no answer") };
        let PollReply::Answered { payload, .. } =
            read_poll(format!("OK|{document}").as_bytes(), false, &codes)
        else {
            panic!("no answer")
        };
        assert_eq!((callback.is_json, payload.is_json), (is_json, is_json), "{}", dialect.name());
        assert_eq!((callback.text.as_str(), payload.text.as_str()), (document, document));
    }
    for text in ["[1,4,7]", "{broken", "{}}"] {
        let PollReply::Answered { payload, .. } = poll(&format!("OK|{text}")) else { panic!("no answer") };
        assert!(!payload.is_json, "{text}");
    }
}

/// Damaged bodies never make the reader panic, and never turn a code into an answer.
#[test]
fn whatever_comes_from_the_network_is_read_and_no_code_gets_through() {
    let whole = [
        r#"{"status":1,"request":"ERROR_CAPTCHA_UNSOLVABLE","useragent":"x","price":"0.1"}"#,
        r#"{"status":0,"request":"CAPCHA_NOT_READY","error_text":"ERROR_ZERO_BALANCE"}"#,
        "OK|ERROR_BAD_DUPLICATES|0.001",
        "{\"status\":1,\"request\":[[[[{\"a\":\"\u{fc}\\\"\"}]]]]}",
        "<html>OK|\u{fc}</html>",
    ];
    let mut seed = 1_u64;
    let mut dice = move |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % sides
    };
    for _ in 0..20_000 {
        let mut body = whole[dice(whole.len())].as_bytes().to_vec();
        for _ in 0..=dice(3) {
            let at = dice(body.len());
            match dice(3) {
                0 => drop(body.drain(at..(at + 1 + dice(8)).min(body.len()))),
                1 => body.insert(at, b"|\"{}0E \xff"[dice(8)]),
                _ => body.extend_from_within(at..),
            }
            if body.is_empty() {
                body.push(b'O');
            }
        }
        let is_code = |text: &str| text.starts_with("ERROR") || is_pending(text);
        if let SubmitReply::Taken { task } = read_submit(&body, &codes()) {
            assert!(is_task(&task) && !is_code(&task), "{task}");
        }
        for priced in [false, true] {
            if let PollReply::Answered { payload, .. } = read_poll(&body, priced, &codes()) {
                assert!(!is_code(&payload.text), "{}", payload.text);
            }
        }
        _ = (read_batch(&body, &codes()), read_balance(&body, &codes()), read_threads(&body, &codes()));
    }
    let deep = format!("{{\"status\":1,\"request\":{}", "[".repeat(200_000));
    assert!(matches!(poll(&deep), PollReply::Puzzling(_)));
}

//! Tests of answers of each kind through both protocols: no part is lost.

use super::*;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("an object") };
    fields
}

fn payload(text: &str, is_json: bool, extras: &[(&str, &str)]) -> Payload {
    let extras = extras.iter().map(|(name, solved)| ((*name).to_owned(), (*solved).to_owned())).collect();
    Payload { text: text.to_owned(), is_json, extras }
}

#[test]
fn every_answer_of_a_classic_provider_has_its_fields_and_comes_back() {
    let boxes = "[{\"xMax\":2,\"xMin\":1}]";
    let puzzle = "{\"challenge\":\"c\",\"seccode\":\"s|jordan\",\"validate\":\"v\"}";
    let cases = [
        ("recaptcha_v2", payload("03A", false, &[]), json!({"gRecaptchaResponse": "03A"})),
        ("hcaptcha", payload("P1_", false, &[]), json!({"gRecaptchaResponse": "P1_"})),
        (
            "turnstile",
            payload("0.x", false, &[("user_agent", "U")]),
            json!({"token": "0.x", "userAgent": "U"}),
        ),
        ("funcaptcha", payload("1|r=2|3", false, &[]), json!({"token": "1|r=2|3"})),
        ("image", payload("4", false, &[]), json!({"text": "4"})),
        ("text", payload("hello", false, &[]), json!({"text": "hello"})),
        ("grid", payload("click:3/8/9", false, &[]), json!({"click": [3, 8, 9]})),
        ("coordinates", payload("coordinate:x=39,y=59;x=252,y=72", false, &[]), {
            json!({"coordinates": [{"x": 39, "y": 59}, {"x": 252, "y": 72}]})
        }),
        ("canvas", payload("canvas:1,2,3,4;5,6;", false, &[]), json!({"canvas": "1,2,3,4;5,6;"})),
        ("rotate", payload("-120", false, &[]), json!({"rotate": -120})),
        ("rotate", payload("40|200|-120", false, &[]), json!({"rotate": "40|200|-120"})),
        ("bounding_box", payload(boxes, true, &[]), json!({"bounding_boxes": [{"xMin": 1, "xMax": 2}]})),
        (
            "geetest",
            payload(puzzle, true, &[]),
            json!({"challenge": "c", "validate": "v", "seccode": "s|jordan"}),
        ),
        ("datadome", payload("datadome=x; Path=/", false, &[]), json!({"cookie": "datadome=x; Path=/"})),
        ("cloudflare_challenge", payload("cf", false, &[("user_agent", "U")]), {
            json!({"cookies": {"cf_clearance": "cf"}, "token": "cf", "userAgent": "U"})
        }),
        ("never_seen", payload("t", false, &[]), json!({"token": "t"})),
    ];
    for (kind, payload, expected) in cases {
        let solved = solution(JsonDialect::AntiCaptcha, kind, &payload);
        assert_eq!(Value::Object(solved.clone()), expected, "{kind}");
        assert_eq!(read_solution(kind, &solved), Some(payload), "{kind}");
    }
}

#[test]
fn one_dialect_says_the_token_twice_and_it_is_read_once() {
    let solved = solution(JsonDialect::TwoCaptcha, "recaptcha_v3", &Payload::text("03A"));
    assert_eq!(Value::Object(solved.clone()), json!({"gRecaptchaResponse": "03A", "token": "03A"}));
    assert_eq!(read_solution("", &solved), Some(Payload::text("03A")));
}

#[test]
fn nothing_that_a_json_provider_says_is_lost() {
    let solutions = [
        json!({"gRecaptchaResponse": "a", "userAgent": "U", "createTime": 1_671_615_324_290_u64, "cookies": {"nocookies": "true"}}),
        json!({"gRecaptchaResponse": "a", "token": "b", "respKey": "E0_"}),
        json!({"token": "x", "type": "turnstile", "userAgent": "U"}),
        json!({"captcha_id": "i", "lot_number": "l", "pass_token": "p", "gen_time": "1693924478", "captcha_output": "o"}),
        json!({"captcha_voucher": "v", "existing_token": "t"}),
        json!({"coordinates": [[17, 48, 54, 83], [76, 93, 140, 164]]}),
        json!({"domains": {"example.com": {"cookies": {"a": "b"}, "localStorage": null}}, "url": "u"}),
        json!({"answer": "0xaxakx0", "challenge_id": "e0348984"}),
        json!({"objects": [0, 3]}),
        json!({"captchakey": "k", "challengekey": "c", "answer": "x"}),
        json!({"appid": "1", "ret": 0, "ticket": "t", "randstr": "@r"}),
    ];
    for solved in solutions {
        for kind in ["", "turnstile", "recaptcha_v2", "geetest_v4", "amazon_waf"] {
            let payload = read_solution(kind, &object(solved.clone())).unwrap();
            let back = solution(JsonDialect::CapMonster, kind, &payload);
            for (name, value) in object(solved.clone()) {
                let is_the_answer = back.values().any(|there| *there == value);
                assert!(is_the_answer, "{kind}: {name} is lost from {solved}");
            }
        }
    }
}

#[test]
fn answers_of_a_classic_provider_in_odd_clothes_are_understood() {
    let text =
        Payload::text("{\"geetest_challenge\":\"c\",\"geetest_validate\":\"v\",\"geetest_seccode\":\"s\"}");
    let solved = solution(JsonDialect::TwoCaptcha, "geetest", &text);
    assert_eq!(Value::Object(solved), json!({"challenge": "c", "validate": "v", "seccode": "s"}));
    let listed = solution(JsonDialect::TwoCaptcha, "grid", &Payload::text("[1,4,7]"));
    assert_eq!(Value::Object(listed), json!({"click": [1, 4, 7]}));
    let odd = solution(JsonDialect::TwoCaptcha, "coordinates", &Payload::text("nothing found"));
    assert_eq!(Value::Object(odd), json!({"coordinates": "nothing found"}));
}

#[test]
fn an_empty_solution_is_none() {
    for solved in [json!({}), json!({"text": ""}), json!({"gRecaptchaResponse": null})] {
        assert_eq!(read_solution("image", &object(solved)), None);
    }
}

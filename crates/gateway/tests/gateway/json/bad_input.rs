//! Tests with thousands of invalid bodies: each gets a reply of the protocol, and none breaks the API.

use super::dialects::turnstile;
use super::scripted::{Fixture, KEY};
use serde_json::{Value, json};

/// Random numbers that are equal in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn members(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.members(of.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        let names = ["type", "websiteURL", "websiteKey", "body", "taskId", "task", "proxy", "data", "é", ""];
        match self.members(if depth == 0 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.members(2) == 0),
            2 => json!(self.members(1 << 30)),
            3 => json!(-1.5e300),
            4 => json!("x".repeat(self.members(3000))),
            5 => json!(*self.pick(&["\u{0}", "https://example.com/", "0", "\u{10ffff}", "true", "ERROR"])),
            6 => {
                json!(*self.pick(&["ImageToTextTask", "GeeTestTask", "RecaptchaV2Task", "Strange", "../.."]))
            }
            7 => json!(u64::MAX),
            8 => (0..self.members(5)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let some = self.members(6);
                let fields = (0..some).map(|_| ((*self.pick(&names)).to_owned(), self.value(depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    /// A damaged copy of a valid body.
    fn mutated(&mut self) -> Vec<u8> {
        let mut text = turnstile(KEY);
        for _ in 0..self.members(4) {
            let name =
                *self.pick(&["type", "websiteURL", "websiteKey", "proxyPort", "proxyAddress", "nocache"]);
            text["task"][name] = self.value(2);
        }
        let name = *self.pick(&["taskId", "callbackUrl", "softId", "task", "result", "languagePool"]);
        text[name] = self.value(3);
        if self.members(20) == 0 {
            text["clientKey"] = self.value(1);
        }
        let mut body = text.to_string().into_bytes();
        for _ in 0..self.members(3) {
            let at = self.members(body.len());
            match self.members(3) {
                0 => body[at] = u8::try_from(self.members(256)).unwrap(),
                1 => body.truncate(at.max(1)),
                _ => body.insert(at, *self.pick(b"{}[]\",:\\\0")),
            }
        }
        body
    }
}

const PATHS: [&str; 9] = [
    "/createTask",
    "/getTaskResult",
    "/getBalance",
    "/reportCorrect",
    "/reportIncorrectHcaptcha",
    "/feedbackTask",
    "/capsolver/createTask",
    "/capmonster/getTaskResult",
    "/anticaptcha/createTask",
];

#[tokio::test]
async fn every_body_gets_an_answer_of_the_protocol() {
    let fixture = Fixture::open();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut accepted = 0;
    for turn in 0..4000 {
        let body = match turn % 4 {
            0 => (0..dice.members(200)).map(|_| u8::try_from(dice.members(256)).unwrap()).collect(),
            1 => json!({"clientKey": KEY, "task": dice.value(4), "taskId": dice.value(1)}).to_string().into(),
            _ => dice.mutated(),
        };
        let path = *dice.pick(&PATHS);
        // Status 200 and JSON are asked of every answer there.
        let response = fixture.post(path, body).await;
        let response: Value = serde_json::from_str(&response).unwrap();
        match response["errorId"].as_u64().unwrap() {
            0 => accepted += 1,
            _ => {
                assert!(response["errorCode"].as_str().unwrap().len() > 5, "{response}");
                assert!(!response["errorDescription"].as_str().unwrap().is_empty(), "{response}");
            }
        }
    }
    assert!(accepted > 100, "{accepted}: some of it made sense");
    assert_eq!(fixture.ask("/createTask", &turnstile(KEY)).await["errorId"], 0, "and the API still answers");
}

#[tokio::test]
async fn what_is_deep_wide_or_giant_gets_an_answer_as_well() {
    let fixture = Fixture::open();
    let nested =
        |depth: usize, open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let wide: serde_json::Map<_, _> = (0..20_000).map(|n| (format!("field{n}"), json!(n))).collect();
    let giant = "A".repeat(4_000_000);
    let values = [
        nested(100, "[", "]"),
        nested(100, "{\"a\":", "}"),
        nested(100, "{\"type\":", "}"),
        nested(1_000_000, "[", "]"),
        Value::Object(wide).to_string(),
        json!(giant).to_string(),
        "9".repeat(100_000),
    ];
    for value in &values {
        let bodies = [
            format!("{{\"clientKey\":\"{KEY}\",\"task\":{value}}}"),
            format!(
                "{{\"clientKey\":\"{KEY}\",\"task\":{{\"type\":\"Strange\",\"websiteURL\":{value},\"x\":{value}}}}}"
            ),
            format!("{{\"clientKey\":\"{KEY}\",\"task\":{{\"type\":\"ImageToTextTask\",\"body\":{value}}}}}"),
            format!("{{\"clientKey\":\"{KEY}\",\"taskId\":{value},\"result\":{value}}}"),
            format!("{{\"clientKey\":{value}}}"),
        ];
        for body in bodies {
            for path in PATHS {
                let response: Value = serde_json::from_str(&fixture.post(path, body.clone()).await).unwrap();
                assert!(response["errorId"].is_u64());
                assert!(response.to_string().len() < 2000, "nothing of it is repeated");
            }
        }
    }
    let picture = json!({"clientKey": KEY, "task": {"type": "ImageToTextTask", "body": giant}});
    let response = fixture.ask("/createTask", &picture).await;
    assert_eq!(
        (&response["errorId"], &response["errorCode"]),
        (&json!(4), &json!("ERROR_TOO_BIG_CAPTCHA_FILESIZE"))
    );
}

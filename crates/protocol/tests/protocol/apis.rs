//! Tests that an order has the same kind, key and terms through both protocols.

use quittance_lifecycle::{Draft, Key, KeySettings, Policy, Timestamp, Value as Param};
use quittance_protocol::classic::{Form, Part};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn key(kind: &str, params: BTreeMap<String, Param>) -> Key {
    let described =
        quittance_protocol::kinds::kind(kind).unwrap_or_else(|| quittance_protocol::kinds::open_kind(kind));
    let draft = Draft { params, ..Draft::new("ada") };
    let settings = KeySettings { proxy_counts: true, window: None, secret: None };
    draft.check(&described, settings, &Policy::DEFAULT, Timestamp::from_millis(0), 1).unwrap().0
}

fn by_form(pairs: &[(&str, &str)]) -> (String, BTreeMap<String, Param>) {
    let parts = pairs.iter().map(|(name, explicit)| ((*name).to_owned(), Part::Text((*explicit).to_owned())));
    let wanted = quittance_protocol::classic::method::understand(&Form(parts.collect())).unwrap();
    (wanted.kind, wanted.params)
}

fn by_task(task: &Value) -> (String, BTreeMap<String, Param>) {
    let wanted = quittance_protocol::json::understand(task.as_object().unwrap()).unwrap();
    (wanted.kind, wanted.params)
}

/// 102 bytes: no provider takes a smaller picture.
fn picture() -> String {
    "+/8A".repeat(34)
}

fn same(form: &[(&str, &str)], tasks: &[Value]) {
    let (kind, params) = by_form(form);
    let expected = (kind.clone(), key(&kind, params));
    for task in tasks {
        let (kind, params) = by_task(task);
        assert_eq!((kind.clone(), key(&kind, params)), expected, "{task}");
    }
}

const PAGE: &str = "https://example.com/login";

#[test]
fn a_recaptcha_is_the_same_order_in_both_apis() {
    same(
        &[("method", "userrecaptcha"), ("googlekey", "k"), ("pageurl", PAGE)],
        &[
            json!({"type": "RecaptchaV2TaskProxyless", "websiteURL": PAGE, "websiteKey": "k"}),
            json!({"type": "NoCaptchaTaskProxyless", "websiteURL": PAGE, "websiteKey": "k", "isInvisible": false}),
            json!({"type": "ReCaptchaV2TaskProxyLess", "websiteURL": PAGE, "websiteKey": "k"}),
        ],
    );
    same(
        &[
            ("method", "userrecaptcha"),
            ("googlekey", "k"),
            ("pageurl", PAGE),
            ("invisible", "1"),
            ("data-s", "s"),
            ("enterprise", "1"),
        ],
        &[
            json!({"type": "RecaptchaV2EnterpriseTaskProxyless", "websiteURL": PAGE, "websiteKey": "k",
                "isInvisible": true, "enterprisePayload": {"s": "s"}}),
            json!({"type": "RecaptchaV2TaskProxyless", "websiteURL": PAGE, "websiteKey": "k",
                "isInvisible": true, "isEnterprise": true, "recaptchaDataSValue": "s"}),
        ],
    );
    same(
        &[
            ("method", "userrecaptcha"),
            ("version", "v3"),
            ("googlekey", "k"),
            ("pageurl", PAGE),
            ("action", "login"),
            ("min_score", "0.7"),
        ],
        &[
            json!({"type": "RecaptchaV3TaskProxyless", "websiteURL": PAGE, "websiteKey": "k", "pageAction": "login",
                "minScore": 0.7, "isEnterprise": false}),
            json!({"type": "ReCaptchaV3TaskProxyLess", "websiteURL": PAGE, "websiteKey": "k", "pageAction": "login",
                "minScore": "0.7"}),
        ],
    );
}

#[test]
fn hcaptcha_and_turnstile_are_the_same_order_in_both_apis() {
    same(
        &[("method", "hcaptcha"), ("sitekey", "k"), ("pageurl", PAGE), ("data", "r"), ("invisible", "1")],
        &[
            json!({"type": "HCaptchaTaskProxyless", "websiteURL": PAGE, "websiteKey": "k", "isInvisible": true,
                "enterprisePayload": {"rqdata": "r"}}),
            json!({"type": "HCaptchaTask", "websiteURL": PAGE, "websiteKey": "k", "isInvisible": true, "data": "r"}),
        ],
    );
    same(
        &[("method", "turnstile"), ("sitekey", "k"), ("pageurl", PAGE), ("action", "a"), ("data", "c")],
        &[
            json!({"type": "TurnstileTaskProxyless", "websiteURL": PAGE, "websiteKey": "k", "action": "a", "data": "c"}),
            json!({"type": "TurnstileTask", "websiteURL": PAGE, "websiteKey": "k", "pageAction": "a", "data": "c"}),
            json!({"type": "AntiTurnstileTaskProxyLess", "websiteURL": PAGE, "websiteKey": "k",
                "metadata": {"action": "a", "cdata": "c"}}),
        ],
    );
}

#[test]
fn a_challenge_page_through_a_proxy_is_the_same_order_in_both_apis() {
    same(
        &[
            ("method", "cloudflare_challenge"),
            ("pageurl", PAGE),
            ("proxy", "ada:x@192.0.2.1:8080"),
            ("proxytype", "http"),
            ("userAgent", "U"),
        ],
        &[
            json!({"type": "AntiCloudflareTask", "websiteURL": PAGE, "proxy": "http:192.0.2.1:8080:ada:x",
                "userAgent": "U"}),
            json!({"type": "TurnstileTask", "cloudflareTaskType": "cf_clearance", "websiteURL": PAGE,
                "proxyType": "HTTP", "proxyAddress": "192.0.2.1", "proxyPort": 8080, "proxyLogin": "ada",
                "proxyPassword": "x", "userAgent": "U"}),
        ],
    );
}

#[test]
fn puzzles_are_the_same_order_in_both_apis() {
    same(
        &[
            ("method", "geetest"),
            ("gt", "g"),
            ("challenge", "c"),
            ("pageurl", PAGE),
            ("api_server", "a.test"),
        ],
        &[
            json!({"type": "GeeTestTaskProxyless", "websiteURL": PAGE, "gt": "g", "challenge": "c",
                "geetestApiServerSubdomain": "a.test"}),
            json!({"type": "GeeTestTask", "websiteURL": PAGE, "gt": "g", "challenge": "c", "version": 3,
                "geetestApiServerSubdomain": "a.test"}),
        ],
    );
    same(
        &[("method", "geetest_v4"), ("captcha_id", "i"), ("pageurl", PAGE)],
        &[
            json!({"type": "GeeTestTaskProxyless", "websiteURL": PAGE, "version": 4,
                "initParameters": {"captcha_id": "i"}}),
            json!({"type": "GeeTestTask", "websiteURL": PAGE, "gt": "i", "version": 4}),
            json!({"type": "GeeTestTaskProxyLess", "websiteURL": PAGE, "captchaId": "i"}),
        ],
    );
    same(
        &[
            ("method", "funcaptcha"),
            ("publickey", "k"),
            ("pageurl", PAGE),
            ("surl", "https://api.example.com"),
            ("data[blob]", "b"),
        ],
        &[json!({"type": "FunCaptchaTaskProxyless", "websiteURL": PAGE, "websitePublicKey": "k",
            "funcaptchaApiJSSubdomain": "api.example.com", "data": "{\"blob\": \"b\"}"})],
    );
    same(
        &[
            ("method", "amazon_waf"),
            ("sitekey", "k"),
            ("iv", "i"),
            ("context", "c"),
            ("pageurl", PAGE),
            ("challenge_script", "s"),
        ],
        &[
            json!({"type": "AmazonTaskProxyless", "websiteURL": PAGE, "websiteKey": "k", "iv": "i", "context": "c",
                "challengeScript": "s"}),
            json!({"type": "AntiAwsWafTaskProxyLess", "websiteURL": PAGE, "awsKey": "k", "awsIv": "i",
                "awsContext": "c", "awsChallengeJS": "s"}),
        ],
    );
}

#[test]
fn pictures_are_the_same_order_in_both_apis() {
    let body = picture();
    same(
        &[("method", "base64"), ("body", &body)],
        &[
            json!({"type": "ImageToTextTask", "body": body}),
            json!({"type": "ImageToTextTask", "body": body, "phrase": false, "numeric": 0, "math": false,
                "minLength": 0, "maxLength": 0, "comment": ""}),
        ],
    );
    same(
        &[
            ("method", "base64"),
            ("body", &body),
            ("phrase", "1"),
            ("regsense", "1"),
            ("numeric", "4"),
            ("calc", "1"),
            ("min_len", "2"),
            ("max_len", "9"),
            ("textinstructions", "red letters"),
        ],
        &[json!({"type": "ImageToTextTask", "body": body, "phrase": true, "case": true, "numeric": 4,
            "math": true, "minLength": 2, "maxLength": 9, "comment": "red letters"})],
    );
    same(
        &[
            ("method", "base64"),
            ("recaptcha", "1"),
            ("body", &body),
            ("recaptcharows", "3"),
            ("recaptchacols", "4"),
            ("textinstructions", "cars"),
        ],
        &[json!({"type": "GridTask", "body": body, "rows": 3, "columns": 4, "comment": "cars"})],
    );
    same(
        &[("method", "base64"), ("coordinatescaptcha", "1"), ("body", &body), ("textinstructions", "cars")],
        &[json!({"type": "CoordinatesTask", "body": body, "comment": "cars"})],
    );
    same(
        &[("textcaptcha", "what is 2 and 2?")],
        &[json!({"type": "TextCaptchaTask", "comment": "what is 2 and 2?"})],
    );
    same(
        &[("method", "rotatecaptcha"), ("body", &body), ("angle", "15")],
        &[json!({"type": "RotateTask", "body": body, "angle": 15})],
    );
    same(
        &[("method", "audio"), ("body", &body), ("lang", "en")],
        &[json!({"type": "AudioTask", "body": body, "lang": "en"})],
    );
}

#[test]
fn whatever_a_classic_client_asks_for_can_be_had_from_any_json_provider() {
    let forms: &[&[(&str, &str)]] = &[
        &[("method", "userrecaptcha"), ("googlekey", "k"), ("pageurl", PAGE), ("enterprise", "1")],
        &[
            ("method", "userrecaptcha"),
            ("version", "v3"),
            ("googlekey", "k"),
            ("pageurl", PAGE),
            ("min_score", "0.9"),
        ],
        &[("method", "turnstile"), ("sitekey", "k"), ("pageurl", PAGE), ("data", "d"), ("pagedata", "p")],
        &[("method", "geetest_v4"), ("captcha_id", "i"), ("pageurl", PAGE)],
        &[
            ("method", "made_up"),
            ("odd", "1"),
            ("pageurl", PAGE),
            ("proxy", "p.test:1"),
            ("proxytype", "HTTP"),
        ],
    ];
    for form in forms {
        let (kind, params) = by_form(form);
        for dialect in quittance_protocol::json::JsonDialect::ALL {
            let task = quittance_protocol::json::spell(dialect, &kind, &params).unwrap();
            let (back, request) = by_task(&Value::Object(task));
            assert_eq!(
                (&back, key(&back, request)),
                (&kind, key(&kind, params.clone())),
                "{}",
                dialect.name()
            );
        }
    }
}

//! Tests that tasks keep all their data when they are written and read.

use super::*;
use quittance_lifecycle::Shape as FieldShape;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("an object") };
    fields
}

fn understood(task: Value) -> (String, BTreeMap<String, Param>) {
    let wanted = understand(&object(task)).unwrap();
    (wanted.kind, wanted.params)
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, Param> {
    pairs.iter().map(|(name, reply)| ((*name).to_owned(), Param::from(*reply))).collect()
}

#[test]
fn every_kind_of_the_catalog_comes_back_as_it_went() {
    for kind in crate::kinds::kinds().filter(|kind| kind.name != "bls") {
        for dialect in JsonDialect::ALL {
            let params: BTreeMap<String, Param> = kind
                .fields
                .iter()
                // What the kind or the type says already need not come back.
                .filter(|field| {
                    !["recaptcha", "canvas", "coordinatescaptcha", "version"].contains(&field.name)
                })
                .map(|field| {
                    let value = match (field.shape, field.name) {
                        (FieldShape::File { .. }, _) => Param::Bytes(vec![0xfe, 0xff, 0, 62, 63]),
                        (_, "proxy") => Param::from("ada:love:lace@proxy.example:8080"),
                        (_, "proxytype") => Param::from("SOCKS5"),
                        (_, "cookies") => Param::from("a:b;c:d=e"),
                        (_, "surl") => Param::from("https://client-api.example.com"),
                        (_, "cloudflareTaskType") => Param::from("wait_room"),
                        (_, "min_score") => Param::from("0.7"),
                        (_, "enterprise" | "invisible" | "regsense" | "phrase") => Param::from("1"),
                        _ => Param::Text(format!("{}+/ &=", field.name)),
                    };
                    (field.name.to_owned(), value)
                })
                .collect();
            let sent = spell(dialect, &kind.name, &params).unwrap();
            let back = understand(&sent).unwrap();
            assert_eq!((back.kind.as_str(), back.params), (&*kind.name, params), "{}", dialect.name());
        }
    }
}

#[test]
fn clients_tasks_are_understood_in_every_spelling() {
    let cases = [
        ("NoCaptchaTask", "recaptcha_v2"),
        ("NoCaptchaTaskProxyless", "recaptcha_v2"),
        ("RecaptchaV2TaskProxyless", "recaptcha_v2"),
        ("ReCaptchaV2TaskProxyLess", "recaptcha_v2"),
        ("recaptchav2task", "recaptcha_v2"),
        ("RecaptchaV2EnterpriseTask", "recaptcha_v2"),
        ("RecaptchaV3TaskProxyless", "recaptcha_v3"),
        ("ReCaptchaV3Task", "recaptcha_v3"),
        ("ReCaptchaV3EnterpriseTaskProxyLess", "recaptcha_v3"),
        ("HCaptchaTaskProxyless", "hcaptcha"),
        ("TurnstileTask", "turnstile"),
        ("AntiTurnstileTaskProxyLess", "turnstile"),
        ("AntiCloudflareTask", "cloudflare_challenge"),
        ("FunCaptchaTaskProxyLess", "funcaptcha"),
        ("ImageToTextTask", "image"),
        ("TextCaptchaTask", "text"),
        ("GridTask", "grid"),
        ("CoordinatesTask", "coordinates"),
        ("ImageToCoordinatesTask", "coordinates"),
        ("DatadomeSliderTask", "datadome"),
        ("MadeUpTaskProxyless", "MadeUpTaskProxyless"),
    ];
    for (name, kind) in cases {
        assert_eq!(understood(json!({"type": name})).0, kind);
    }
    for task in [json!({}), json!({"type": ""}), json!({"type": 3}), json!({"type": null})] {
        assert_eq!(understand(&object(task)), Err(BadTask::NoType));
    }
}

#[test]
fn an_enterprise_token_is_requested_as_each_provider_wants() {
    let wanted = params(&[("enterprise", "1"), ("googlekey", "k"), ("data-s", "x")]);
    let sent = |dialect, kind| Value::Object(spell(dialect, kind, &wanted).unwrap());
    let v2 = json!({"type": "RecaptchaV2EnterpriseTaskProxyless", "websiteKey": "k", "enterprisePayload": {"s": "x"}});
    assert_eq!(sent(JsonDialect::AntiCaptcha, "recaptcha_v2"), v2);
    assert_eq!(sent(JsonDialect::CapSolver, "recaptcha_v3")["type"], "ReCaptchaV3EnterpriseTaskProxyLess");
    assert_eq!(sent(JsonDialect::TwoCaptcha, "recaptcha_v3")["isEnterprise"], true);
}

#[test]
fn one_provider_wants_a_score_that_it_offers() {
    let score = |request: &[(&str, &str)]| {
        spell(JsonDialect::AntiCaptcha, "recaptcha_v3", &params(request)).unwrap()["minScore"]
            .as_f64()
            .unwrap()
    };
    assert_eq!([score(&[]), score(&[("min_score", "0.3")]), score(&[("min_score", "1")])], [0.7, 0.3, 0.9]);
    let sent = |dialect| spell(dialect, "recaptcha_v3", &params(&[])).unwrap();
    assert_eq!(sent(JsonDialect::TwoCaptcha)["minScore"], 0.4, "the default, spelled out");
    assert!(!sent(JsonDialect::CapSolver).contains_key("minScore"));
}

#[test]
fn an_unknown_task_passes_through_and_gets_its_types_back() {
    let task = json!({
        "type": "MadeUpTask", "websiteURL": "https://example.com", "deep": {"a": [1, {"b": null}]}, "rows": 3,
        "isOdd": true, "name": "123456789", "ratio": 0.5, "nothing": null, "empty": ""
    });
    let (kind, request) = understood(task.clone());
    let expected = params(&[
        ("deep", "{\"a\":[1,{\"b\":null}]}"),
        ("isOdd", "true"),
        ("name", "123456789"),
        ("pageurl", "https://example.com"),
        ("ratio", "0.5"),
        ("rows", "3"),
    ]);
    assert_eq!((kind.as_str(), &request), ("MadeUpTask", &expected));
    let mut sent = object(task);
    sent.remove("nothing");
    sent.remove("empty");
    for dialect in JsonDialect::ALL {
        assert_eq!(spell(dialect, &kind, &request), Ok(sent.clone()));
    }
}

#[test]
fn text_that_looks_like_something_else_stays_text() {
    let task = json!({
        "type": "MadeUpTask", "number": "1", "flag": "true", "object": "{\"a\":1}", "list": "[1]", "real": 1, "plain": "x"
    });
    let (kind, request) = understood(task.clone());
    assert_eq!(spell(JsonDialect::CapMonster, &kind, &request), Ok(object(task)));
}

#[test]
fn a_proxy_is_one_proxy_however_it_is_written() {
    let ours = params(&[("proxy", "ada:x@1.2.3.4:8080"), ("proxytype", "HTTP")]);
    let fields = json!({"type": "TurnstileTask", "proxyType": "http", "proxyAddress": "1.2.3.4", "proxyPort": 8080,
        "proxyLogin": "ada", "proxyPassword": "x"});
    assert_eq!(understood(fields).1, ours);
    for text in ["http:1.2.3.4:8080:ada:x", "http://ada:x@1.2.3.4:8080"] {
        assert_eq!(understood(json!({"type": "AntiCloudflareTask", "proxy": text})).1, ours);
    }
    let bare = json!({"type": "HCaptchaTask", "proxyType": "socks4", "proxyAddress": "p", "proxyPort": "1"});
    assert_eq!(understood(bare).1, params(&[("proxy", "p:1"), ("proxytype", "SOCKS4")]));
    let without =
        json!({"type": "HCaptchaTaskProxyless", "proxyType": "http", "proxyAddress": "p", "proxyPort": 1});
    assert_eq!(understood(without).1, params(&[]), "no provider would read it");
    let sent = spell(JsonDialect::TwoCaptcha, "hcaptcha", &ours).unwrap();
    assert_eq!(
        (&sent["type"], &sent["proxyPort"], &sent["proxyType"]),
        (&json!("HCaptchaTask"), &json!(8080), &json!("http"))
    );
    let unwanted = spell(JsonDialect::TwoCaptcha, "recaptcha_v3", &ours).unwrap();
    assert!(!unwanted.contains_key("proxyAddress"), "{unwanted:?}");
    let odd = params(&[("proxy", "nowhere")]);
    assert_eq!(spell(JsonDialect::TwoCaptcha, "hcaptcha", &odd), Err(CannotSpellTask::Proxy));
}

#[test]
fn what_no_provider_of_the_protocol_offers_is_refused_before_it_is_sent() {
    let refused = spell(JsonDialect::TwoCaptcha, "bls", &params(&[]));
    assert_eq!(refused, Err(CannotSpellTask::NoType { kind: "bls".to_owned() }));
}

#[test]
fn what_concerns_only_the_talk_goes_no_further() {
    let task = json!({"type": "TurnstileTask", "websiteKey": "k", "softId": 1, "callbackUrl": "http://x.test", "nocache": false});
    assert_eq!(understood(task).1, params(&[("sitekey", "k")]));
    let smuggled =
        params(&[("clientKey", "other"), ("callbackUrl", "http://elsewhere.test"), ("sitekey", "s")]);
    let sent = spell(JsonDialect::TwoCaptcha, "turnstile", &smuggled).unwrap();
    assert_eq!(Value::Object(sent), json!({"type": "TurnstileTaskProxyless", "websiteKey": "s"}));
}

#[test]
fn pictures_are_read_as_clients_write_them() {
    for body in ["+//+AQ==", "+//+AQ", "data:image/png;base64,+//+AQ==", "+//+\r\nAQ==\n"] {
        let request = understood(json!({"type": "ImageToTextTask", "body": body})).1;
        assert_eq!(request.get("body"), Some(&Param::Bytes(vec![0xfb, 0xff, 0xfe, 1])), "{body}");
    }
    for body in [json!("%%%"), json!(7.5), json!({"a": 1})] {
        let refused = understand(&object(json!({"type": "ImageToTextTask", "body": body})));
        assert_eq!(refused, Err(BadTask::NotBase64 { field: "body".to_owned() }));
    }
}

#[test]
fn what_is_left_in_an_object_stays_and_joins_what_was_taken_out() {
    let task = json!({"type": "HCaptchaTaskProxyless", "enterprisePayload": {"rqdata": "r", "sentry": true}});
    let (kind, request) = understood(task.clone());
    assert_eq!(request, params(&[("data", "r"), ("enterprisePayload", "{\"sentry\":true}")]));
    assert_eq!(spell(JsonDialect::TwoCaptcha, &kind, &request), Ok(object(task)));
}

/// Trap: a text with JSON in it stayed a text through `createTask`, and became an object through the other APIs.
#[test]
fn a_text_that_holds_json_is_the_same_text_on_the_wire_from_every_api() {
    let text = r#"{"customlibs": {"url": "https://static.geetest.com/a.js"}}"#;
    for (kind, named, field) in [
        ("geetest", "GeeTestTaskProxyless", "geetestGetLib"),
        ("geetest_v4", "GeeTestTaskProxyless", "geetestGetLib"),
        ("AltchaTaskProxyless", "AltchaTaskProxyless", "challengeJSON"),
    ] {
        let mut task = object(json!({ "type": named, field: text }));
        if kind == "geetest_v4" {
            task.insert("version".into(), json!(4));
        }
        let read = understand(&task).unwrap();
        assert_eq!(read.kind, kind);
        for dialect in JsonDialect::ALL {
            for params in [read.params.clone(), params(&[(field, text)])] {
                let sent = spell(dialect, kind, &params).unwrap();
                assert_eq!(sent[field], Value::from(text), "{} {kind}", dialect.name());
            }
        }
        // The services document a text. A client that sends an object means the text of it.
        task.insert(field.to_owned(), serde_json::from_str(text).unwrap());
        let read = understand(&task).unwrap();
        let sent = spell(JsonDialect::AntiCaptcha, kind, &read.params).unwrap();
        assert_eq!(sent[field], Value::from(text.replace(": ", ":")), "{kind}");
    }
    for params in
        [params(&[("isSession", "1")]), understood(json!({ "type": "RecaptchaV2Task", "isSession": true })).1]
    {
        assert_eq!(spell(JsonDialect::CapSolver, "recaptcha_v2", &params).unwrap()["isSession"], json!(true));
    }
}

//! Tests of the fields of an order in all spellings of clients, and never with two different values.

use super::apis::{APIS, Api, PAGE, Placing};
use super::fixture::{ANNA, Fixture};
use super::talk::{Answered, Ask};
use serde_json::{Value, json};

const DIALECTS: [&str; 4] = ["2captcha", "anticaptcha", "capsolver", "capmonster"];
const SPELLINGS: [&str; 4] = ["idempotencyKey", "IdempotencyKey", "IDEMPOTENCY_KEY", "idempotencykey"];

/// A task that holds this field.
fn with_task_field(sitekey: &str, name: &str, value: &Value) -> Value {
    let mut task = json!({ "type": "TurnstileTaskProxyless", "websiteKey": sitekey, "websiteURL": PAGE });
    task[name] = value.clone();
    json!({ "clientKey": ANNA, "task": task })
}

async fn create(fixture: &Fixture, dialect: &str, body: &Value) -> Answered {
    fixture.ask(Ask::post(format!("/{dialect}/createTask"), body)).await
}

#[tokio::test]
async fn an_idempotency_key_is_known_in_every_spelling() {
    let fixture = Fixture::new().await;
    for api in APIS.into_iter().filter(|api| *api != Api::V1) {
        let sitekey = format!("hold-{}", serde_json::to_string(&format!("{api:?}")).unwrap().len());
        for spelling in SPELLINGS {
            let place = async |key: &str| {
                let placing = Placing::of(&sitekey).field(spelling, format!("{api:?}-{spelling}-{key}"));
                api.id(&api.place(&fixture, &placing).await)
            };
            let first = place("a").await;
            assert_eq!(place("a").await, first, "{api:?} {spelling}: one job");
            assert_ne!(place("b").await, first, "{api:?} {spelling}: another job");
        }
    }
}

#[tokio::test]
async fn our_own_fields_inside_the_task_are_known_in_every_spelling_and_no_provider_gets_them() {
    let fixture = Fixture::new().await;
    for dialect in DIALECTS {
        for spelling in SPELLINGS {
            let place = async |key: &str| {
                let key = json!(format!("{dialect}-{spelling}-{key}"));
                let api = Api::Json("any");
                api.id(&create(&fixture, dialect, &with_task_field("hold-1", spelling, &key)).await)
            };
            let first = place("a").await;
            assert_eq!(place("a").await, first, "{dialect} {spelling}: one job");
            assert_ne!(place("b").await, first, "{dialect} {spelling}: another job");
        }
        for (name, bad) in [
            ("deadlineS", json!(0)),
            ("minLifeS", json!(-1)),
            ("Reuse", json!("both")),
            ("noStock", json!([])),
        ] {
            let refused = create(&fixture, dialect, &with_task_field("hold-2", name, &bad)).await;
            let (_, reason) = Api::Json("any").refusal(&refused);
            assert!(reason.contains(&format!("`{name}`")), "{dialect}: {reason}");
        }
    }
    for field in fixture.provider.fields() {
        let squeezed = field.replace('_', "").to_ascii_lowercase();
        assert!(!["idempotencykey", "deadlines", "minlifes"].contains(&squeezed.as_str()), "{field}");
    }
}

/// Requests to `in.php` that have a field twice: the query, and the body with its content type.
fn classic_doubles(name: &str, one: &str, other: &str) -> Vec<(&'static str, Ask)> {
    let mut rest: Vec<(&str, &str)> = vec![
        ("key", ANNA),
        ("json", "1"),
        ("method", "turnstile"),
        ("sitekey", "hold-1"),
        ("pageurl", PAGE),
        ("reuse", "shared"),
        ("deadline_s", "60"),
        ("min_life_s", "10"),
    ];
    rest.retain(|(known, _)| *known != name);
    let query: Vec<String> = rest.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let query = query.join("&");
    let form = "application/x-www-form-urlencoded";
    let post = |path: String, kind: &str, body: String| {
        Ask::new("POST", path).header("Content-Type", kind).body(&body)
    };
    vec![
        ("twice in the query", Ask::get(format!("/in.php?{query}&{name}={one}&{name}={other}"))),
        (
            "in the query and in the form",
            post(format!("/in.php?{query}&{name}={one}"), form, format!("{name}={other}")),
        ),
        (
            "in the query and in JSON",
            post(
                format!("/in.php?{query}&{name}={one}"),
                "application/json",
                format!(r#"{{"{name}":"{other}"}}"#),
            ),
        ),
        ("twice in the form", post(format!("/in.php?{query}"), form, format!("{name}={one}&{name}={other}"))),
        (
            "twice in JSON",
            post(
                format!("/in.php?{query}"),
                "application/json",
                format!(r#"{{"{name}":"{one}","{name}":"{other}"}}"#),
            ),
        ),
        (
            "twice in multipart",
            post(
                format!("/in.php?{query}"),
                "multipart/form-data; boundary=b",
                [one, other]
                    .map(|value| {
                        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                    })
                    .concat()
                    + "--b--\r\n",
            ),
        ),
    ]
}

#[tokio::test]
async fn two_values_of_one_field_that_decides_are_an_error_on_the_classic_api_and_equal_ones_are_not() {
    let fixture = Fixture::new().await;
    for (name, one, other) in [
        ("idempotency_key", "job-1", "job-2"),
        ("pageurl", PAGE, "https://other.example.com/"),
        ("sitekey", "hold-1", "hold-2"),
        ("method", "turnstile", "hcaptcha"),
        ("reuse", "shared", "exclusive"),
        ("deadline_s", "60", "70"),
        ("min_life_s", "10", "20"),
        ("action", "login", "logout"),
    ] {
        for (how, ask) in classic_doubles(name, one, other) {
            let (code, reason) = Api::Classic.refusal(&fixture.ask(ask).await);
            assert_eq!(code, "ERROR_BAD_PARAMETERS", "{name} {how}");
            assert!(
                reason.contains(&format!("`{name}`")) && reason.contains("different"),
                "{name} {how}: {reason}"
            );
        }
        for (how, ask) in classic_doubles(name, one, one) {
            let accepted = fixture.ask(ask).await;
            assert_eq!(accepted.json()["status"], 1, "{name} {how}: {}", accepted.text);
        }
    }
    // How the client talks is not what it orders: there the last one counts, as it always did.
    let last = Ask::get(format!(
        "/in.php?json=0&json=1&soft_id=1&soft_id=2&key={ANNA}&method=turnstile&sitekey=hold-9&pageurl={PAGE}"
    ));
    assert_eq!(fixture.ask(last).await.json()["status"], 1);
}

#[tokio::test]
async fn two_values_of_one_field_are_an_error_in_json() {
    let fixture = Fixture::new().await;
    let task = |fields: &str| {
        format!(
            r#"{{"clientKey":"{ANNA}","task":{{"type":"TurnstileTaskProxyless","websiteKey":"hold-1","websiteURL":"{PAGE}"{fields}}}}}"#
        )
    };
    let beside = |fields: &str| task("").replacen('{', &format!("{{{fields},"), 1);
    let doubled = [
        ("websiteURL", task(r#","websiteURL":"https://other.example.com/""#)),
        ("websiteKey", task(r#","websiteKey":"hold-2""#)),
        ("type", task(r#","type":"HCaptchaTaskProxyless""#)),
        ("idempotency_key", task(r#","idempotency_key":"a","idempotency_key":"b""#)),
        ("idempotencyKey", task(r#","idempotency_key":"a","idempotencyKey":"b""#)),
        ("idempotency_key", beside(r#""idempotency_key":"a","idempotency_key":"b""#)),
        ("idempotencyKey", beside(r#""idempotency_key":"a","idempotencyKey":"b""#)),
        ("deadline_s", beside(r#""deadline_s":60,"deadline_s":70"#)),
        ("min_life_s", beside(r#""min_life_s":10,"min_life_s":20"#)),
        ("reuse", beside(r#""reuse":"shared","reuse":"exclusive""#)),
        ("task", beside(r#""Task":{"type":"TurnstileTaskProxyless"}"#)),
    ];
    for dialect in DIALECTS {
        let ask = |body: &str| fixture.ask(Ask::new("POST", format!("/{dialect}/createTask")).body(body));
        for (name, body) in &doubled {
            let (code, reason) = Api::Json("any").refusal(&ask(body).await);
            let expected =
                if dialect == "capsolver" { "ERROR_INVALID_TASK_DATA" } else { "ERROR_BAD_PARAMETERS" };
            assert_eq!(code, expected, "{dialect} {name}: {reason}");
            assert!(
                reason.contains(&format!("`{name}`")) && reason.contains("different"),
                "{dialect}: {reason}"
            );
        }
        for same in [
            task(&format!(r#","websiteURL":"{PAGE}""#)),
            beside(r#""idempotency_key":"a","idempotencyKey":"a""#),
            beside(r#""deadline_s":60,"deadline_s":60"#),
        ] {
            Api::Json("any").id(&ask(&same).await);
        }
    }
    let doubled = r#"{"kind":"turnstile","kind":"hcaptcha","params":{"sitekey":"hold-1","pageurl":"https://shop.example.com/"}}"#;
    let ask =
        Ask::new("POST", "/v1/orders").header("Content-Type", "application/json").key(ANNA).body(doubled);
    assert_eq!(fixture.ask(ask).await.must_be(422, "bad_params")["field"], "kind");
    assert_eq!(fixture.provider.submits("hold-2"), 0);
}

/// Trap: a misspelt key beside the task was ignored, so a retry that its client believed to be safe was bought again.
#[tokio::test]
async fn a_field_that_is_nearly_one_of_ours_is_refused_beside_the_task_and_inside_it() {
    let fixture = Fixture::new().await;
    for dialect in DIALECTS {
        for (name, meant) in [
            ("idempotency", "idempotency_key"),
            ("indempotency_key", "idempotency_key"),
            ("x-idempotency-key", "idempotency_key"),
            ("deadline_ms", "deadline_s"),
            ("minLife", "min_life_s"),
            ("mn_life_s", "min_life_s"),
        ] {
            let inside = with_task_field("near-1", name, &json!("20"));
            let mut beside = with_task_field("near-1", "websiteKey", &json!("near-1"));
            beside[name] = json!("20");
            for body in [inside, beside] {
                let (_, reason) = Api::Json("any").refusal(&create(&fixture, dialect, &body).await);
                assert!(reason.contains(&format!("did you mean `{meant}`?")), "{dialect} {name}: {reason}");
            }
        }
    }
    assert_eq!(fixture.provider.submits("near-1"), 0);
}

/// Names that resemble a field of the order, and the field that is meant.
const NEARLY_OURS: [(&str, &str); 8] = [
    ("indempotency_key", "idempotency_key"),
    ("resue", "reuse"),
    ("idempotency", "idempotency_key"),
    ("Idempotency", "idempotency_key"),
    ("idempotency_id", "idempotency_key"),
    ("idempkey", "idempotency_key"),
    ("deadlineSeconds", "deadline_s"),
    ("reuse_mode", "reuse"),
];

#[tokio::test]
async fn a_name_that_only_begins_like_a_field_of_the_order_is_refused_on_every_api() {
    let fixture = Fixture::new().await;
    for (name, meant) in NEARLY_OURS {
        let rest = format!("key={ANNA}&json=1&method=turnstile&sitekey=fresh-1&pageurl={PAGE}");
        let post = |kind: &str, body: String| {
            Ask::new("POST", format!("/in.php?{rest}")).header("Content-Type", kind).body(&body)
        };
        let part =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nlogin-42\r\n--b--\r\n");
        let classic = [
            Ask::get(format!("/in.php?{rest}&{name}=login-42")),
            post("application/x-www-form-urlencoded", format!("{name}=login-42")),
            post("multipart/form-data; boundary=b", part),
            post("application/json", json!({ name: "login-42" }).to_string()),
        ];
        for (n, ask) in classic.into_iter().enumerate() {
            let (code, reason) = Api::Classic.refusal(&fixture.ask(ask).await);
            assert_eq!(code, "ERROR_BAD_PARAMETERS", "{n} {name}");
            assert!(reason.contains(&format!("did you mean `{meant}`")), "{n} {name}: {reason}");
        }
        let mut beside = with_task_field("fresh-1", "action", &json!("login"));
        beside[name] = json!("login-42");
        for body in [with_task_field("fresh-1", name, &json!("login-42")), beside] {
            let (_, reason) = Api::Json("any").refusal(&create(&fixture, "2captcha", &body).await);
            assert!(reason.contains(&format!("did you mean `{meant}`")), "{name}: {reason}");
        }
        let body = json!({ "kind": "turnstile", "params": { "sitekey": "fresh-1", "pageurl": PAGE, name: "login-42" } });
        let refused = fixture.ask(Ask::post("/v1/orders", &body).key(ANNA)).await;
        let (code, reason) = Api::V1.refusal(&refused);
        assert_eq!(code, "bad_params", "{name}");
        assert!(reason.contains(&format!("did you mean `{meant}`")), "{name}: {reason}");
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

#[tokio::test]
async fn what_belongs_beside_an_order_is_refused_among_the_params_with_the_place_where_it_goes() {
    let fixture = Fixture::new().await;
    for (name, place) in [
        ("pingback", "`callback_url`"),
        ("callbackUrl", "`callback_url`"),
        ("key", "`Authorization: Bearer`"),
        ("clientKey", "`Authorization: Bearer`"),
        ("method", "`kind`"),
        ("json", "classic API"),
        ("soft_id", "settings"),
        ("idempotency_key", "beside `params`"),
    ] {
        let body =
            json!({ "kind": "turnstile", "params": { "sitekey": "fresh-1", "pageurl": PAGE, name: "x" } });
        let (code, reason) = Api::V1.refusal(&fixture.ask(Ask::post("/v1/orders", &body).key(ANNA)).await);
        assert_eq!(code, "bad_params", "{name}");
        assert!(reason.contains(place), "{name}: {reason}");
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

#[tokio::test]
async fn a_misspelt_callback_address_beside_the_task_and_a_key_that_is_no_text_are_refused() {
    let fixture = Fixture::new().await;
    for dialect in DIALECTS {
        for name in ["callback_ur", "callbackUr", "callback", "pingback", "pingbak"] {
            let mut body = with_task_field("fresh-1", "action", &json!("login"));
            body[name] = json!("http://127.0.0.1:1/");
            let (_, reason) = Api::Json("any").refusal(&create(&fixture, dialect, &body).await);
            assert!(reason.contains("did you mean `callbackUrl`?"), "{dialect} {name}: {reason}");
        }
        for name in ["idempotency_key", "deadline_s"] {
            let mut body = with_task_field("fresh-1", "action", &json!("login"));
            body[name] = json!(true);
            let (_, reason) = Api::Json("any").refusal(&create(&fixture, dialect, &body).await);
            assert!(reason.contains("must be a text or a number"), "{dialect} {name}: {reason}");
        }
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

/// Trap: `true` became the key `1`, and `["a"]` the key `["a"]`: callers with such a mistake shared one job.
#[tokio::test]
async fn a_field_of_an_order_that_is_neither_text_nor_number_is_refused_on_every_api() {
    let fixture = Fixture::new().await;
    for api in APIS {
        for value in [json!(true), json!(false), json!(["a"]), json!({ "a": 1 })] {
            for name in ["idempotency_key", "idempotencyKey", "deadline_s", "min_life_s", "reuse"] {
                if api == Api::V1 && name == "idempotencyKey" {
                    continue;
                }
                let placing = Placing::of("fresh-1").field(name, value.clone());
                let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
                assert!(reason.contains(name), "{api:?} {name} {value}: {reason}");
            }
        }
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
    let switch = Placing::of("hold-2").field("no_stock", true);
    Api::Classic.id(&Api::Classic.place(&fixture, &switch).await);
}

/// Trap: JSON numbers of more than 64 bits were rounded, so ten keys of 24 digits were one job, and ten callers got
/// one token.
#[tokio::test]
async fn a_number_as_a_key_is_kept_digit_by_digit_or_refused_on_every_api() {
    let fixture = Fixture::new().await;
    for api in APIS {
        let refused = Placing::of("fresh-1").field("idempotency_key", "NUMBER");
        for number in ["202611190000000000000001", "1180591620717411303424", "1.5", "1.0", "1e3", "-0"] {
            let (_, reason) = api.refusal(&api.place_number(&fixture, &refused, number).await);
            assert!(reason.contains("as text") || reason.contains("a string"), "{api:?} {number}: {reason}");
        }
        if api == Api::V1 {
            continue;
        }
        let placing = Placing::of("hold-1").field("idempotency_key", "NUMBER");
        let mut ids = Vec::new();
        for number in ["9007199254740992", "9007199254740993", "18446744073709551615", "-7"] {
            let id = api.id(&api.place_number(&fixture, &placing, number).await);
            assert!(!ids.contains(&id), "{api:?} {number}");
            let as_text = Placing::of("hold-1").field("idempotency_key", number);
            assert_eq!(api.id(&api.place(&fixture, &as_text).await), id, "{api:?} {number} as text");
            ids.push(id);
        }
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

#[tokio::test]
async fn a_number_as_a_parameter_is_kept_digit_by_digit_or_refused_on_every_api() {
    let fixture = Fixture::new().await;
    for api in APIS {
        let placing = Placing::of("NUMBER").field("reuse", "shared");
        let long = api.place_number(&fixture, &placing, "202611190000000000000001").await;
        let (_, reason) = api.refusal(&long);
        assert!(reason.contains("send it as text"), "{api:?}: {reason}");
        for number in ["9007199254740992", "9007199254740993"] {
            let id = api.id(&api.place_number(&fixture, &placing, number).await);
            let as_text = Placing::of(number).field("reuse", "shared");
            assert_eq!(api.id(&api.place(&fixture, &as_text).await), id, "{api:?} {number} as text");
        }
    }
}

#[tokio::test]
async fn a_field_beside_the_task_that_says_other_than_the_task_is_refused() {
    let fixture = Fixture::new().await;
    for dialect in DIALECTS {
        for (name, value) in [
            ("websiteURL", json!("https://other.example.com/")),
            ("websiteurl", json!("https://other.example.com/")),
            ("websiteKey", json!("other")),
            ("type", json!("HCaptchaTaskProxyless")),
            ("pageurl", json!("https://other.example.com/")),
            ("proxy", json!("a:b@127.0.0.1:80")),
        ] {
            let mut body = with_task_field("fresh-1", "action", &json!("login"));
            body[name] = value;
            let (_, reason) = Api::Json("any").refusal(&create(&fixture, dialect, &body).await);
            assert!(reason.contains("stands beside the task"), "{dialect} {name}: {reason}");
        }
        let mut body = with_task_field("hold-1", "action", &json!("login"));
        (body["websiteURL"], body["websiteKey"]) = (json!(PAGE), json!("hold-1"));
        (body["softId"], body["appId"], body["proxy"]) = (json!(7), json!("x"), json!(""));
        Api::Json("any").id(&create(&fixture, dialect, &body).await);
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

#[tokio::test]
async fn a_parameter_that_asks_for_another_kind_is_refused_on_every_api() {
    let fixture = Fixture::new().await;
    for (name, value) in [("coordinatescaptcha", "1"), ("recaptcha", "1"), ("textcaptcha", "2+2")] {
        let rest = format!("key={ANNA}&json=1&method=userrecaptcha&googlekey=fresh-1&pageurl={PAGE}");
        let asked = Ask::new("POST", format!("/in.php?{rest}"))
            .header("Content-Type", "application/json")
            .body(&json!({ name: value }).to_string());
        let (_, reason) = Api::Classic.refusal(&fixture.ask(asked).await);
        assert!(reason.contains("another kind"), "{name}: {reason}");
        let task = with_task_field("fresh-1", name, &json!(value));
        let (_, reason) = Api::Json("any").refusal(&create(&fixture, "2captcha", &task).await);
        assert!(reason.contains("another kind"), "{name}: {reason}");
        let body = json!({ "kind": "recaptcha_v2", "params": { "googlekey": "fresh-1", "pageurl": PAGE, name: value } });
        let (_, reason) = Api::V1.refusal(&fixture.ask(Ask::post("/v1/orders", &body).key(ANNA)).await);
        assert!(reason.contains("another kind"), "{name}: {reason}");
    }
    let unlike =
        json!({ "kind": "cloudflare_turnstile", "params": { "sitekey": "fresh-1", "pageurl": PAGE } });
    let (_, reason) = Api::V1.refusal(&fixture.ask(Ask::post("/v1/orders", &unlike).key(ANNA)).await);
    assert!(reason.contains("did you mean `turnstile`"), "{reason}");
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

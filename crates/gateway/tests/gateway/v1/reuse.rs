//! Tests that one job gets one answer on every API: each cell of the table in docs/reuse.md. The provider gives a new
//! token at once for each submitted `fresh...` site key, and one for `hold...` when the test calls back.

use super::apis::{APIS, Api, PAGE, Placing};
use super::fixture::{ADMIN, ANNA, BERT, Fixture, path_of};
use super::talk::{Answered, Ask};
use futures_util::future::join_all;
use quittance_lifecycle::Priority;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How a caller sets which placements are one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Key,
    Shared,
    Exclusive,
    /// The request has no `reuse`: turnstile tokens are single-use.
    Default,
}

const SETTINGS: [Setting; 4] = [Setting::Key, Setting::Shared, Setting::Exclusive, Setting::Default];

impl Setting {
    /// A placement of this job.
    fn placing(self, sitekey: &str, job: &str) -> Placing {
        let placing = Placing::of(sitekey);
        match self {
            Self::Key => placing.keyed(job),
            Self::Shared => placing.field("reuse", "shared"),
            Self::Exclusive => placing.field("reuse", "exclusive"),
            Self::Default => placing,
        }
    }

    const fn repeats_are_one_job(self) -> bool {
        matches!(self, Self::Key | Self::Shared)
    }
}

/// Places an order twice, and again after the answer was read. Returns the tokens.
async fn twice(fixture: &Fixture, api: Api, placing: &Placing) -> (Vec<Value>, Vec<String>) {
    let mut ids = Vec::new();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let id = api.id(&api.place(fixture, placing).await);
        tokens.push(api.token(fixture, placing.tenant, &id).await);
        ids.push(id);
    }
    (ids, tokens)
}

fn distinct<T: std::fmt::Display>(all: &[T]) -> u32 {
    let distinct: BTreeSet<_> = all.iter().map(T::to_string).collect();
    distinct.len().try_into().unwrap()
}

#[tokio::test]
async fn a_retry_after_a_timeout_is_one_job_with_a_key_or_shared_and_another_where_exclusive() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        for setting in SETTINGS {
            let sitekey = format!("hold-{n}-{setting:?}");
            let placing = setting.placing(&sitekey, &sitekey);
            // The reply to the first was lost: the caller never saw its id, and asks again while it is in flight.
            let lost = api.id(&api.place(&fixture, &placing).await);
            let again = api.place(&fixture, &placing).await;
            let jobs = if setting.repeats_are_one_job() { 1 } else { 2 };
            assert_eq!(distinct(&[lost, api.id(&again)]), jobs, "{api:?} {setting:?}");
            while fixture.provider.submits(&sitekey) < jobs {
                tokio::task::yield_now().await;
            }
            if jobs == 1 {
                fixture.call_back(&sitekey, "token").await;
                assert_eq!(api.token(&fixture, ANNA, &api.id(&again)).await, "token", "{api:?} {setting:?}");
            }
            assert_eq!(fixture.provider.submits(&sitekey), jobs, "{api:?} {setting:?}");
        }
    }
}

#[tokio::test]
async fn ten_workers_on_one_page_get_ten_tokens_by_default_with_ten_keys_and_exclusive_and_one_if_shared() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        for setting in SETTINGS {
            let sitekey = format!("fresh-{n}-{setting:?}");
            let worker = async |n: usize| {
                let placing = setting.placing(&sitekey, &format!("{sitekey}-{n}"));
                let id = api.id(&api.place(&fixture, &placing).await);
                let token = api.token(&fixture, ANNA, &id).await;
                // To look again is not to ask again.
                assert_eq!(api.token(&fixture, ANNA, &id).await, token, "{api:?} {setting:?}");
                (id.to_string(), token)
            };
            let (ids, tokens): (Vec<_>, Vec<_>) = join_all((0..10).map(worker)).await.into_iter().unzip();
            let answers = if setting == Setting::Shared { 1 } else { 10 };
            assert_eq!((distinct(&ids), distinct(&tokens)), (answers, answers), "{api:?} {setting:?}");
            assert_eq!(fixture.provider.submits(&sitekey), answers, "{api:?} {setting:?}");
        }
    }
}

#[tokio::test]
async fn ten_workers_with_one_key_get_one_token() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("fresh-{n}");
        let worker = async |worker: usize| {
            // Half of them cannot set headers.
            let placing = Placing::of(&sitekey);
            let placing = match worker % 2 {
                0 => placing.keyed(&sitekey),
                _ => placing.field("idempotency_key", sitekey.as_str()),
            };
            let id = api.id(&api.place(&fixture, &placing).await);
            (id.to_string(), api.token(&fixture, ANNA, &id).await)
        };
        let (ids, tokens): (Vec<_>, Vec<_>) = join_all((0..10).map(worker)).await.into_iter().unzip();
        assert_eq!((distinct(&ids), distinct(&tokens)), (1, 1), "{api:?}");
        assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}");
    }
}

#[tokio::test]
async fn a_replayed_message_is_one_job_with_a_key_or_shared_and_another_where_exclusive() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        for setting in SETTINGS {
            let sitekey = format!("fresh-{n}-{setting:?}");
            // The message comes again when the job is done, and its caller has the answer.
            let (ids, tokens) = twice(&fixture, api, &setting.placing(&sitekey, &sitekey)).await;
            let jobs = if setting.repeats_are_one_job() { 1 } else { 2 };
            assert_eq!((distinct(&ids), distinct(&tokens)), (jobs, jobs), "{api:?} {setting:?}");
            assert_eq!(fixture.provider.submits(&sitekey), jobs, "{api:?} {setting:?}");
        }
    }
}

/// Trap: a repeat with a key was refused as expired although its token was alive, because it had less than 15 s left.
#[tokio::test]
async fn a_repeat_with_a_key_gets_its_answer_as_long_as_it_lives() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("fresh-{n}-alive");
        let placing = Setting::Key.placing(&sitekey, &sitekey);
        let id = api.id(&api.place(&fixture, &placing).await);
        let token = api.token(&fixture, ANNA, &id).await;
        // Of 300 s, and a few are over before the answer is known.
        for passed in [270, 14, 6] {
            fixture.pass(Duration::from_secs(passed));
            let again = api.id(&api.place(&fixture, &placing).await);
            assert_eq!((&again, api.token(&fixture, ANNA, &again).await), (&id, token.clone()), "{api:?}");
        }
        assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}");
    }
}

#[tokio::test]
async fn a_replayed_message_after_the_answer_expired_is_an_error_with_a_key_and_a_new_job_without() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        for setting in SETTINGS {
            let sitekey = format!("fresh-{n}-{setting:?}");
            let placing = setting.placing(&sitekey, &sitekey);
            let id = api.id(&api.place(&fixture, &placing).await);
            api.token(&fixture, ANNA, &id).await;
            fixture.pass(Duration::from_secs(301));
            let again = api.place(&fixture, &placing).await;
            if setting == Setting::Key {
                let (code, reason) = api.refusal(&again);
                let expected = if api == Api::V1 { "answer_expired" } else { "ERROR_TOKEN_EXPIRED" };
                assert_eq!(code, expected, "{api:?}");
                assert!(reason.contains("has expired") && reason.contains("another key"), "{reason}");
                assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}");
            } else {
                api.token(&fixture, ANNA, &api.id(&again)).await;
                assert_eq!(fixture.provider.submits(&sitekey), 2, "{api:?} {setting:?}");
            }
        }
    }
}

/// Trap: the repeat got the error that its answer had expired, which it had not.
#[tokio::test]
async fn a_cancelled_job_whose_answer_went_to_another_order_is_bought_once_more_when_it_comes_again() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("hold-{n}");
        let placing = Placing::of(&sitekey).keyed(&format!("job-{n}"));
        let first = api.id(&api.place(&fixture, &placing).await);
        let path = path_of(&Api::V1.place(&fixture, &placing).await.json());
        fixture.until(&path, "solving").await;
        fixture.ask(Ask::new("DELETE", path.clone()).key(ANNA)).await.order(200);
        fixture.call_back(&sitekey, "first").await;
        let taker = api.id(&api.place(&fixture, &Placing::of(&sitekey).field("reuse", "exclusive")).await);
        assert_eq!(api.token(&fixture, ANNA, &taker).await, "first", "{api:?}");
        let again =
            [api.id(&api.place(&fixture, &placing).await), api.id(&api.place(&fixture, &placing).await)];
        assert!(again[0] == again[1] && again[0] != first, "{api:?}: {again:?}");
        while fixture.provider.submits(&sitekey) < 2 {
            tokio::task::yield_now().await;
        }
        fixture.call_back(&sitekey, "second").await;
        assert_eq!(api.token(&fixture, ANNA, &again[0]).await, "second", "{api:?}");
        assert_eq!(api.id(&api.place(&fixture, &placing).await), again[0], "{api:?}");
        assert_eq!(api.token(&fixture, ANNA, &taker).await, "first", "{api:?}: it is still the taker's");
        assert_eq!(fixture.get(&path).await.order(200)["error"]["code"], "claimed_by_another", "{api:?}");
        fixture.pass(Duration::from_secs(301));
        let (code, _) = api.refusal(&api.place(&fixture, &placing).await);
        let expected = if api == Api::V1 { "answer_expired" } else { "ERROR_TOKEN_EXPIRED" };
        assert_eq!((code.as_str(), fixture.provider.submits(&sitekey)), (expected, 2), "{api:?}");
    }
}

#[tokio::test]
async fn a_page_refresh_is_one_job_with_the_visits_key_or_shared_and_another_where_exclusive() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        for setting in SETTINGS {
            let sitekey = format!("fresh-{n}-{setting:?}");
            let placing = setting.placing(&sitekey, &format!("visit-{n}"));
            // Two refreshes before the answer is read, and one after.
            let mut ids = Vec::new();
            for _ in 0..3 {
                ids.push(api.id(&api.place(&fixture, &placing).await));
            }
            let mut tokens = Vec::new();
            for id in &ids {
                tokens.push(api.token(&fixture, ANNA, id).await);
            }
            let refreshed = api.id(&api.place(&fixture, &placing).await);
            tokens.push(api.token(&fixture, ANNA, &refreshed).await);
            let jobs = if setting.repeats_are_one_job() { 1 } else { 4 };
            assert_eq!(distinct(&tokens), jobs, "{api:?} {setting:?}");
            assert_eq!(fixture.provider.submits(&sitekey), jobs, "{api:?} {setting:?}");
        }
    }
}

#[tokio::test]
async fn another_key_is_another_job_and_so_is_the_same_key_of_another_tenant() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("fresh-{n}");
        let placing = |key: &str| Placing::of(&sitekey).keyed(&format!("{n}-{key}"));
        let mut tokens = Vec::new();
        for placing in [placing("a"), placing("b"), placing("a").by(BERT)] {
            let id = api.id(&api.place(&fixture, &placing).await);
            tokens.push(api.token(&fixture, placing.tenant, &id).await);
        }
        assert_eq!((distinct(&tokens), fixture.provider.submits(&sitekey)), (3, 3), "{api:?}");
    }
}

#[tokio::test]
async fn one_key_is_one_job_whichever_api_it_comes_by() {
    let fixture = Fixture::new().await;
    let placing = Placing::of("fresh-1").keyed("everywhere");
    let mut tokens = Vec::new();
    for api in APIS {
        let id = api.id(&api.place(&fixture, &placing).await);
        tokens.push(api.token(&fixture, ANNA, &id).await);
    }
    assert_eq!((distinct(&tokens), fixture.provider.submits("fresh-1")), (1, 1));
}

#[tokio::test]
async fn the_same_key_with_other_parameters_is_an_error_that_says_so_and_must_not_be_retried() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let key = format!("job-{n}");
        api.id(&api.place(&fixture, &Placing::of("fresh-1").keyed(&key)).await);
        let (code, reason) = api.refusal(&api.place(&fixture, &Placing::of("fresh-2").keyed(&key)).await);
        let expected = match api {
            Api::V1 => "idempotency_mismatch",
            Api::Json("capsolver") => "ERROR_INVALID_TASK_DATA",
            Api::Classic | Api::Json(_) => "ERROR_BAD_PARAMETERS",
        };
        assert_eq!(code, expected, "{api:?}");
        assert!(
            reason.contains("idempotency key") && reason.contains("other parameters"),
            "{api:?}: {reason}"
        );
        assert_eq!(fixture.provider.submits("fresh-2"), 0, "{api:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_no_key_and_two_that_differ_are_clear_errors_and_nothing_is_bought() {
    let fixture = Fixture::new().await;
    let long = "k".repeat(256);
    let differ = Placing::of("fresh-1").keyed("a").field("idempotency_key", "b");
    let wrong = |key: &str| Placing::of("fresh-1").field("idempotency_key", key);
    for api in APIS {
        for (placing, word) in [
            (differ.clone(), "differ"),
            (wrong(""), "visible ASCII"),
            (wrong("a b"), "visible ASCII"),
            (wrong("\u{e9}"), "visible ASCII"),
            (wrong(&long), "256 bytes"),
            (Placing::of("fresh-1").keyed(&long), "256 bytes"),
        ] {
            let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
            assert!(reason.contains(word), "{api:?} {placing:?}: {reason}");
        }
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

#[tokio::test]
async fn deadline_and_least_life_are_taken_on_every_api_and_never_passed_on() {
    let fixture = Fixture::new().await;
    let orders = fixture.gateway.orders();
    let anna = orders.tenants().caller(ANNA).unwrap();
    for (n, api) in APIS.into_iter().enumerate() {
        let placing = Placing::of(&format!("hold-{n}"))
            .field("deadline_s", 77)
            .field("min_life_s", 120.5)
            .field("idempotency_key", format!("terms-{n}"))
            .field("reuse", "exclusive")
            .field("no_stock", true);
        let id = api.id(&api.place(&fixture, &placing).await);
        let order = orders.find(&anna, number(&id)).await.unwrap();
        let terms = &order.terms;
        assert_eq!(order.deadline.since(order.placed), Duration::from_secs(77), "{api:?}");
        assert_eq!(terms.min_life, Duration::from_millis(120_500), "{api:?}");
        assert!(terms.keyed && !terms.takes_stock, "{api:?}");
        let sent: Vec<_> = terms.params.keys().map(String::as_str).collect();
        assert_eq!(sent, ["pageurl", "sitekey"], "{api:?}");
        for (field, value) in
            [("deadline_s", json!(0.5)), ("deadline_s", json!(86_401)), ("min_life_s", json!(-1))]
        {
            let placing = Placing::of(&format!("hold-{n}")).field(field, value);
            let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
            assert!(reason.contains(field) && reason.contains("seconds from"), "{api:?}: {reason}");
        }
        // A turnstile token lives 300 s, and not all of that can be promised.
        let placing = Placing::of(&format!("hold-{n}")).field("min_life_s", 299);
        let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
        assert!(reason.contains("225 s") || reason.contains("225"), "{api:?}: {reason}");
    }
}

#[tokio::test]
async fn fewer_retries_are_taken_on_every_api_and_never_passed_on() {
    let fixture = Fixture::new().await;
    let orders = fixture.gateway.orders();
    let anna = orders.tenants().caller(ANNA).unwrap();
    for (n, api) in APIS.into_iter().enumerate() {
        let placing = Placing::of(&format!("hold-{n}"))
            .field("max_retries", 0)
            .field("retry_base_s", 1.5)
            .field("retry_cap_s", 90);
        let id = api.id(&api.place(&fixture, &placing).await);
        let order = orders.find(&anna, number(&id)).await.unwrap();
        let retry = order.terms.retry;
        assert_eq!(retry.max_retries, Some(0), "{api:?}");
        assert_eq!(retry.base, Some(Duration::from_millis(1_500)), "{api:?}");
        assert_eq!(retry.cap, Some(Duration::from_secs(90)), "{api:?}");
        let sent: Vec<_> = order.terms.params.keys().map(String::as_str).collect();
        assert_eq!(sent, ["pageurl", "sitekey"], "{api:?}");
        for (field, value, words) in [
            ("max_retries", json!(51), "a whole number from 0 to 50"),
            ("max_retries", json!(-1), "a whole number from 0 to 50"),
            ("max_retries", json!(1.5), "a whole number from 0 to 50"),
            ("retry_base_s", json!(86_401), "seconds from"),
            ("retry_cap_s", json!(-1), "seconds from"),
        ] {
            let placing = Placing::of(&format!("hold-{n}")).field(field, value);
            let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
            assert!(reason.contains(field) && reason.contains(words), "{api:?}: {reason}");
        }
    }
}

#[tokio::test]
async fn a_priority_is_taken_on_every_api_and_never_passed_on() {
    let fixture = Fixture::new().await;
    let orders = fixture.gateway.orders();
    let anna = orders.tenants().caller(ANNA).unwrap();
    for (n, api) in APIS.into_iter().enumerate() {
        let site = format!("hold-{n}");
        let usual = api.id(&api.place(&fixture, &Placing::of(&site).field("reuse", "exclusive")).await);
        assert_eq!(orders.find(&anna, number(&usual)).await.unwrap().priority, Priority::Normal, "{api:?}");
        for priority in Priority::ALL {
            let placing = Placing::of(&site).field("reuse", "exclusive").field("priority", priority.name());
            let id = api.id(&api.place(&fixture, &placing).await);
            let order = orders.find(&anna, number(&id)).await.unwrap();
            assert_eq!(order.priority, priority, "{api:?}");
            let sent: Vec<_> = order.terms.params.keys().map(String::as_str).collect();
            assert_eq!(sent, ["pageurl", "sitekey"], "{api:?}");
        }
        for bad in ["urgent", "Bulk"] {
            let placing = Placing::of(&site).field("reuse", "exclusive").field("priority", bad);
            let (_, reason) = api.refusal(&api.place(&fixture, &placing).await);
            assert!(reason.contains("priority") && reason.contains("`bulk`"), "{api:?}: {reason}");
        }
    }
    let joined = json!({ "reuse": "shared", "priority": "interactive" });
    let mut order = super::fixture::order("hold-9");
    order["reuse"] = json!("shared");
    fixture.ask(Ask::post("/v1/orders", &order).key(ANNA)).await;
    order.as_object_mut().unwrap().extend(joined.as_object().unwrap().clone());
    let shown = fixture.ask(Ask::post("/v1/orders", &order).key(ANNA)).await.json();
    assert_eq!((&shown["origin"], &shown["priority"]), (&json!("joined"), &json!("interactive")), "{shown}");
}

fn number(id: &Value) -> quittance_gateway::OrderId {
    let found = id.as_str().and_then(|text| text.parse().ok());
    let found = found
        .or_else(|| quittance_gateway::OrderId::from_number(quittance_protocol::json::read_task_id(id)?));
    found.unwrap_or_else(|| panic!("{id}"))
}

#[tokio::test]
async fn on_the_json_protocol_the_fields_may_stand_inside_the_task_and_never_say_two_things() {
    let fixture = Fixture::new().await;
    let ask = |beside: Value, inside: Value| {
        let mut task =
            json!({ "type": "TurnstileTaskProxyless", "websiteKey": "fresh-1", "websiteURL": PAGE });
        task.as_object_mut().unwrap().extend(inside.as_object().unwrap().clone());
        let mut body = json!({ "clientKey": ANNA, "task": task });
        body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        fixture.ask(Ask::post("/2captcha/createTask", &body))
    };
    let beside = ask(json!({ "idempotency_key": "a", "deadline_s": "60" }), json!({})).await;
    let inside = ask(json!({}), json!({ "idempotency_key": "a", "deadline_s": 60 })).await;
    let both = ask(json!({ "idempotency_key": "a" }), json!({ "idempotency_key": "a" })).await;
    let api = Api::Json("2captcha");
    assert_eq!(distinct(&[api.id(&beside), api.id(&inside), api.id(&both)]), 1);
    for (beside, inside, word) in [
        (json!({ "idempotency_key": "a" }), json!({ "idempotency_key": "b" }), "different values"),
        (json!({ "idempotency_key": ["a"] }), json!({}), "must be a text"),
        (json!({}), json!({ "reuse": "sometimes" }), "`shared` or `exclusive`"),
    ] {
        let (code, reason) = api.refusal(&ask(beside, inside).await);
        assert_eq!(code, "ERROR_BAD_PARAMETERS");
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 1);
}

#[tokio::test]
async fn on_the_classic_protocol_the_fields_come_in_the_query_a_form_or_a_multipart_body() {
    let fixture = Fixture::new().await;
    let order =
        format!("key={ANNA}&method=turnstile&sitekey=fresh-1&pageurl={PAGE}&idempotency_key=a&deadline_s=60");
    let multipart: String = order
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        })
        .collect();
    let post = |content_type: &str, body: &str| {
        Ask::new("POST", "/in.php").header("Content-Type", content_type).body(body)
    };
    let mut response = Vec::new();
    for ask in [
        Ask::get(format!("/in.php?{order}")),
        post("application/x-www-form-urlencoded", &order),
        post("multipart/form-data; boundary=b", &format!("{multipart}--b--\r\n")),
    ] {
        let answered = fixture.ask(ask).await;
        assert!(answered.text.starts_with("OK|"), "{answered:?}");
        response.push(answered.text);
    }
    assert_eq!(distinct(&response), 1);
    // A client that wants plain text gets the code alone.
    let wrong = fixture.ask(Ask::get(format!("/in.php?{order}&sitekey=fresh-2"))).await;
    assert_eq!(wrong.text, "ERROR_BAD_PARAMETERS");
    assert_eq!(fixture.provider.submits("fresh-1"), 1);
}

#[tokio::test]
async fn solve_php_takes_a_key_and_pictures_are_shared_unless_an_order_wants_its_own() {
    let fixture = Fixture::new().await;
    // 100 bytes of zero in base64: any picture will do.
    let body = format!("{}AA==", "A".repeat(132));
    let ask = |more: Value| {
        let mut order = json!({ "key": ANNA, "json": 1, "method": "base64", "body": body });
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    let place = async |more: Value| {
        let answered = fixture.ask(Ask::post("/in.php", &ask(more))).await;
        Api::Classic.id(&answered).to_string()
    };
    let usual = place(json!({})).await;
    assert_eq!(place(json!({})).await, usual, "a picture has one answer");
    let own = [
        place(json!({ "reuse": "exclusive" })).await,
        place(json!({ "reuse": "exclusive" })).await,
        place(json!({ "nocache": 1 })).await,
        place(json!({ "idempotency_key": "p-1" })).await,
        place(json!({ "idempotency_key": "p-2" })).await,
        usual,
    ];
    assert_eq!(distinct(&own), 6);
    let solve = async |key: &str| {
        fixture.ask(Ask::post("/solve.php", &ask(json!({}))).header("Idempotency-Key", key)).await
    };
    assert_eq!(solve("s-1").await.header("quittance-origin"), Some("api"));
    let again = solve("s-1").await;
    assert_eq!(
        (again.header("quittance-origin"), again.header("idempotent-replayed")),
        (Some("replayed"), Some("true"))
    );
    assert_eq!(again.json()["request"], "picture");
}

#[tokio::test]
async fn a_response_says_when_a_single_use_answer_goes_to_a_second_placement_and_it_is_counted() {
    let fixture = Fixture::new().await;
    let shared_so_far = async || {
        let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
        let line = metrics.lines().find(|line| line.starts_with("quittance_node_shared_single_use_total "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let origin = |api: Api, answered: &Answered| match api {
        Api::V1 => answered.json()["origin"].as_str().unwrap().to_owned(),
        _ => answered.header("quittance-origin").unwrap().to_owned(),
    };
    for (n, api) in APIS.into_iter().enumerate() {
        let before = shared_so_far().await;
        let sitekey = format!("hold-{n}");
        let shared = Placing::of(&sitekey).field("reuse", "shared");
        let mut origins = Vec::new();
        for _ in 0..2 {
            origins.push(origin(api, &api.place(&fixture, &shared).await));
        }
        fixture.call_back(&sitekey, "token").await;
        let third = api.place(&fixture, &shared).await;
        origins.push(origin(api, &third));
        assert_eq!(origins, ["api", "joined", "cached"], "{api:?}");
        assert_eq!(third.header("idempotent-replayed"), None, "{api:?}");
        assert_eq!(shared_so_far().await, before + 2, "{api:?}");
        // The same job again is nothing to count.
        let keyed = Placing::of(&format!("fresh-{n}")).keyed(&sitekey);
        for expected in [None, Some("true")] {
            let answered = api.place(&fixture, &keyed).await;
            assert_eq!(answered.header("idempotent-replayed"), expected, "{api:?}");
            api.token(&fixture, ANNA, &api.id(&answered)).await;
        }
        assert_eq!(shared_so_far().await, before + 2, "{api:?}");
    }
}

#[tokio::test]
async fn two_jobs_on_one_page_are_read_together_and_reported_on_one_by_one() {
    let fixture = Fixture::new().await;
    let placing = Placing::of("fresh-1");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = Api::Classic.id(&Api::Classic.place(&fixture, &placing).await);
        Api::Classic.token(&fixture, ANNA, &id).await;
        ids.push(id.as_str().unwrap().to_owned());
    }
    let res = async |rest: String| fixture.ask(Ask::get(format!("/res.php?key={ANNA}&{rest}"))).await.text;
    let both = res(format!("action=get&ids={}", ids.join(","))).await;
    assert_eq!(both, "token 1 of fresh-1|token 2 of fresh-1");
    assert_eq!(res(format!("action=reportgood&id={}", ids[0])).await, "OK_REPORT_RECORDED");
    assert_eq!(res(format!("action=reportbad&id={}", ids[1])).await, "OK_REPORT_RECORDED");
    assert_eq!(res(format!("action=reportbad&id={}", ids[0])).await, "ERROR_DUPLICATE_REPORT");
}

#[tokio::test]
async fn on_v1_the_fields_of_an_order_do_not_hide_among_its_params() {
    let fixture = Fixture::new().await;
    for name in quittance_protocol::kinds::ORDER_FIELDS {
        let mut order = super::fixture::order("fresh-1");
        order["params"][name] = json!("1");
        let response =
            fixture.ask(Ask::post("/v1/orders", &order).key(ANNA)).await.must_be(422, "bad_params");
        assert_eq!(response["field"], format!("params.{name}"));
    }
    assert_eq!(fixture.provider.submits("fresh-1"), 0);
}

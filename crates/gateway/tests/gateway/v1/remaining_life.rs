//! Tests of the remaining life of an answer: in the body of `/v1`, and in a header of the other APIs.

use super::apis::{APIS, Api, Placing};
use super::fixture::{ANNA, Fixture};
use super::talk::{Answered, Ask};
use serde_json::{Value, json};
use std::time::Duration;

/// The remaining life after 12.4 s: a turnstile token lives for 300 s.
const LEFT: Duration = Duration::from_millis(287_600);

/// The remaining life in a response.
fn response(api: Api, answered: &Answered) -> Option<Duration> {
    match api {
        Api::V1 => answered.json()["expires_in_ms"].as_u64().map(Duration::from_millis),
        _ => answered
            .header("quittance-remaining-life")
            .map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
    }
}

/// The remaining life as this API writes it: a header has whole seconds, rounded down.
fn left(api: Api) -> Duration {
    if api == Api::V1 { LEFT } else { Duration::from_secs(LEFT.as_secs()) }
}

#[tokio::test]
async fn the_remaining_life_comes_with_the_answer_on_every_api() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("hold-{n}");
        let placed = api.place(&fixture, &Placing::of(&sitekey)).await;
        let id = api.id(&placed);
        let pending = api.read(&fixture, ANNA, &id).await;
        assert_eq!(
            (response(api, &placed), response(api, &pending)),
            (None, None),
            "{api:?}: there is no answer"
        );
        // Nothing says when it arrived, so it is dated from its submit.
        fixture.call_back(&sitekey, "token").await;
        fixture.pass(Duration::from_millis(12_400));
        let read = api.read(&fixture, ANNA, &id).await;
        assert_eq!(response(api, &read), Some(left(api)), "{api:?}");
        fixture.pass(Duration::from_secs(300));
        let expired = api.read(&fixture, ANNA, &id).await;
        assert_eq!(response(api, &expired), None, "{api:?}: {}", expired.text);
    }
}

#[tokio::test]
async fn a_placement_that_is_answered_at_once_gets_the_remaining_life() {
    let fixture = Fixture::new().await;
    let mut answered_at_once = Vec::new();
    for (n, api) in APIS.into_iter().enumerate() {
        let shared = Placing::of(&format!("fresh-{n}")).field("reuse", "shared");
        let id = api.id(&api.place(&fixture, &shared).await);
        api.token(&fixture, ANNA, &id).await;
        fixture.pass(Duration::from_millis(12_400));
        let again = api.place(&fixture, &shared).await;
        let has_answer = again.text.contains(&format!("token 1 of fresh-{n}"));
        assert_eq!(response(api, &again), has_answer.then(|| left(api)), "{api:?}: {}", again.text);
        if has_answer {
            answered_at_once.push(api);
        }
    }
    assert_eq!(answered_at_once, [Api::Json("capsolver"), Api::V1]);
}

/// The caller of a cached answer has the same id as the caller for which it was bought.
#[tokio::test]
async fn a_cached_caller_that_comes_late_gets_the_answer_while_it_lives_and_learns_how_long() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let shared = Placing::of(&format!("fresh-{n}")).field("reuse", "shared");
        let id = api.id(&api.place(&fixture, &shared).await);
        api.token(&fixture, ANNA, &id).await;
        // 66 s are left, and a repeat is given at least the margin of 50 s when it comes within 15 s.
        fixture.pass(Duration::from_secs(234));
        let repeat = api.id(&api.place(&fixture, &shared).await);
        assert_eq!(repeat, id, "{api:?}");
        fixture.pass(Duration::from_secs(15));
        assert_eq!(
            response(api, &api.read(&fixture, ANNA, &repeat).await),
            Some(Duration::from_secs(51)),
            "{api:?}"
        );
        fixture.pass(Duration::from_secs(50));
        assert_eq!(
            response(api, &api.read(&fixture, ANNA, &repeat).await),
            Some(Duration::from_secs(1)),
            "{api:?}"
        );
        fixture.pass(Duration::from_secs(1));
        assert_eq!(response(api, &api.read(&fixture, ANNA, &repeat).await), None, "{api:?}");
    }
}

#[tokio::test]
async fn an_answer_without_an_expiry_has_no_remaining_life() {
    let fixture = Fixture::new().await;
    // 100 bytes of zero in base64: any picture will do.
    let body = format!("{}AA==", "A".repeat(132));
    let solve = json!({ "key": ANNA, "json": 1, "method": "base64", "body": body });
    let task = json!({ "clientKey": ANNA, "task": { "type": "ImageToTextTask", "body": body } });
    for (path, order) in [("/solve.php", solve), ("/capsolver/createTask", task)] {
        let answered = fixture.ask(Ask::post(path, &order)).await;
        assert!(answered.text.contains("picture"), "{answered:?}");
        assert_eq!(answered.header("quittance-remaining-life"), None, "{path}");
    }
}

#[tokio::test]
async fn of_several_ids_the_shortest_remaining_life_is_sent() {
    let fixture = Fixture::new().await;
    let mut ids: Vec<Value> = Vec::new();
    for sitekey in ["fresh-1", "fresh-2", "hold-3"] {
        let id = Api::Classic.id(&Api::Classic.place(&fixture, &Placing::of(sitekey)).await);
        if sitekey.starts_with("fresh") {
            Api::Classic.token(&fixture, ANNA, &id).await;
        }
        ids.push(id);
        fixture.pass(Duration::from_secs(10));
    }
    let life_of = async |ids: &[Value]| {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
        let path = format!("/res.php?key={ANNA}&action=get&ids={}", ids.join(","));
        response(Api::Classic, &fixture.ask(Ask::get(path)).await)
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(life_of(&ids).await, seconds(270));
    assert_eq!((life_of(&ids[1..]).await, life_of(&ids[2..]).await), (seconds(280), None));
}

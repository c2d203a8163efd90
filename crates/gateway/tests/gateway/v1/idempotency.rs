//! Tests that a repeated request is not paid twice without a sign, and that every answer names its origin.

use super::apis::{APIS, Placing};
use super::fixture::{ANNA, BERT, Fixture, keyed, order, path_of};
use super::talk::{Answered, Ask};
use serde_json::json;
use std::time::Duration;

#[track_caller]
fn is_repeat(answered: &Answered) -> bool {
    answered.header("idempotent-replayed").map(|value| assert_eq!(value, "true")).is_some()
}

#[tokio::test]
async fn the_same_key_joins_what_is_in_flight_and_replays_what_is_done() {
    let fixture = Fixture::new().await;
    let ask =
        || fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Idempotency-Key", "k-1"));
    let first = ask().await;
    assert_eq!((&first.order(202)["origin"], is_repeat(&first)), (&json!("api"), false));
    let second = ask().await;
    assert_eq!((&second.order(202)["origin"], is_repeat(&second)), (&json!("joined"), true));
    fixture.call_back("hold-1", "token").await;
    fixture.end_of(&path_of(&first.json())).await;
    let third = ask().await;
    assert_eq!((&third.order(200)["origin"], is_repeat(&third)), (&json!("replayed"), true));
    assert_eq!(third.json()["answer"]["text"], "token");
    assert_eq!(third.json()["id"], first.json()["id"]);
    assert_eq!(fixture.provider.submits("hold-1"), 1);
}

#[tokio::test]
async fn the_same_key_with_another_body_is_a_mismatch_and_another_tenants_is_not() {
    let fixture = Fixture::new().await;
    fixture.place_keyed("solve-1", "k-1").await.order(200);
    fixture.place_keyed("solve-2", "k-1").await.must_be(422, "idempotency_mismatch");
    assert_eq!(fixture.provider.submits("solve-2"), 0);
    let ask = Ask::post("/v1/orders", &order("solve-2")).key(BERT).header("Idempotency-Key", "k-1");
    fixture.ask(ask).await.order(202);
}

#[tokio::test]
async fn a_strict_caller_gets_that_the_same_order_is_in_flight() {
    let fixture = Fixture::new().await;
    let first = fixture.place("hold-1").await.order(202);
    let strict = || {
        fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", "handling=strict"))
    };
    let refused = strict().await;
    refused.must_be(409, "in_flight");
    assert_eq!(refused.header("location"), Some(path_of(&first).as_str()));
    fixture.call_back("hold-1", "token").await;
    fixture.end_of(&path_of(&first)).await;
    let after = strict().await;
    assert_eq!(after.order(200)["origin"], "cached", "it is in flight no more");
    assert_eq!(after.header("preference-applied"), Some("handling=strict"));
}

#[tokio::test]
async fn an_expired_answer_is_gone_and_not_bought_again_in_silence() {
    let fixture = Fixture::new().await;
    let first = fixture.place_keyed("solve-1", "k-1").await.order(200);
    fixture.pass(Duration::from_secs(301));
    fixture.place_keyed("solve-1", "k-1").await.must_be(410, "answer_expired");
    assert_eq!(fixture.provider.submits("solve-1"), 1);
    let read = fixture.get(&path_of(&first)).await.order(200);
    assert_eq!((&read["status"], read.get("answer")), (&json!("expired"), None));
    fixture.place_keyed("solve-1", "k-2").await.order(200);
    assert_eq!(fixture.provider.submits("solve-1"), 2, "another key buys another");
}

#[tokio::test]
async fn an_order_that_may_have_been_paid_for_needs_a_person() {
    let fixture = Fixture::in_doubt().await;
    let dead = fixture.end_of(&path_of(&fixture.place("doubt-1").await.order(202))).await;
    assert_eq!((&dead["status"], &dead["error"]["code"]), (&json!("dead"), &json!("in_doubt")));
    fixture.place("doubt-1").await.must_be(409, "needs_a_person");
    assert_eq!(fixture.provider.submits("doubt-1"), 1);
}

#[tokio::test]
async fn a_repeat_without_a_key_is_joined_or_cached_and_no_repeat_of_a_key() {
    let fixture = Fixture::new().await;
    let first = fixture.place("hold-1").await.order(202);
    let joined = fixture.place("hold-1").await;
    assert_eq!((&joined.order(202)["origin"], is_repeat(&joined)), (&json!("joined"), false));
    fixture.call_back("hold-1", "token").await;
    fixture.end_of(&path_of(&first)).await;
    let cached = fixture.place("hold-1").await;
    assert_eq!((&cached.order(200)["origin"], is_repeat(&cached)), (&json!("cached"), false));
    assert_eq!(cached.json()["cost"], "0.00299");
}

#[tokio::test]
async fn what_no_caller_wanted_any_more_is_taken_from_the_stock() {
    let fixture = Fixture::new().await;
    let exclusive = json!({
        "kind": "turnstile", "reuse": "exclusive",
        "params": { "sitekey": "hold-1", "pageurl": "https://shop.example.com/" },
    });
    let ask = || fixture.ask(Ask::post("/v1/orders", &exclusive).key(ANNA));
    let first = path_of(&ask().await.order(202));
    fixture.until(&first, "solving").await;
    assert_eq!(
        fixture.ask(Ask::new("DELETE", first.clone()).key(ANNA)).await.order(200)["status"],
        "cancelled"
    );
    fixture.call_back("hold-1", "token").await;
    let taken = ask().await.order(200);
    assert_eq!((&taken["origin"], &taken["answer"]["text"]), (&json!("stock"), &json!("token")));
    assert_eq!(fixture.provider.submits("hold-1"), 1);
    let read = fixture.get(&path_of(&taken)).await.order(200);
    assert_eq!((&read["origin"], &read["answer"]), (&json!("stock"), &taken["answer"]));
    assert_ne!(path_of(&taken), first);
    let other = fixture.get(&first).await.order(200);
    assert!(other.get("answer").is_none(), "the caller that cancelled does not get it: {other}");
}

#[tokio::test]
async fn a_key_that_cannot_be_repeated_exactly_is_refused() {
    let fixture = Fixture::new().await;
    for odd in ["", "with space", "grün", &"k".repeat(256)] {
        let refused = fixture.ask(keyed(&order("solve-1"), odd)).await;
        assert_eq!(refused.must_be(422, "bad_params")["field"], "Idempotency-Key", "{odd}");
    }
    let twice = keyed(&order("solve-1"), "k-1").header("Idempotency-Key", "k-2");
    fixture.ask(twice).await.must_be(422, "bad_params");
    fixture.ask(keyed(&order("solve-1"), &"k".repeat(255))).await.order(200);
}

/// Trap: the header was ignored in silence, so each repeat was a new order.
#[tokio::test]
async fn x_idempotency_key_is_another_name_of_the_header_on_every_api() {
    let fixture = Fixture::new().await;
    for api in APIS {
        let place = async |headers: &[(&str, &str)]| {
            let ask = api.ask(&Placing::of("hold-1").field("reuse", "exclusive"));
            let ask = headers.iter().fold(ask, |ask, (name, key)| ask.header(name, key));
            fixture.ask(ask).await
        };
        let first = api.id(&place(&[("X-Idempotency-Key", "k-1")]).await);
        assert_eq!(api.id(&place(&[("x-idempotency-key", "k-1")]).await), first, "{api:?}");
        assert_eq!(api.id(&place(&[("Idempotency-Key", "k-1")]).await), first, "{api:?}");
        let both = [("Idempotency-Key", "k-1"), ("X-Idempotency-Key", "k-1")];
        assert_eq!(api.id(&place(&both).await), first, "{api:?}");
        assert_ne!(api.id(&place(&[("X-Idempotency-Key", "k-2")]).await), first, "{api:?}");
        for bad in [
            [("Idempotency-Key", "k-1"), ("X-Idempotency-Key", "k-2")],
            [("X-Idempotency-Key", "k-1"), ("X-Idempotency-Key", "k-2")],
        ] {
            let (_, reason) = api.refusal(&place(&bad).await);
            assert!(reason.contains("X-Idempotency-Key"), "{api:?}: {reason}");
        }
    }
}

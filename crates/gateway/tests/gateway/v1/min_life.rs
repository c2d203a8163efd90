//! Tests that `min_life_s` holds for the caller that set it, even if others placed the same order. A turnstile token
//! lives for 300 s.

use super::apis::{APIS, Api, Placing};
use super::fixture::{ANNA, Fixture};
use serde_json::Value;
use std::time::Duration;

/// The outcome of this id for its caller: `expired`, or the token.
async fn read(api: Api, fixture: &Fixture, id: &Value) -> String {
    loop {
        let answered = api.read(fixture, ANNA, id).await;
        let response = answered.json();
        let is_expired = answered.text.contains("ERROR_TOKEN_EXPIRED") || response["status"] == "expired";
        let is_pending = answered.text.contains("NOT_READY")
            || response["status"] == "processing"
            || response["status"] == "pending";
        match (is_expired, is_pending) {
            (true, _) => return "expired".to_owned(),
            (false, true) => tokio::task::yield_now().await,
            (false, false) => return api.look(fixture, ANNA, id).await.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_caller_of_an_answer_that_is_there_keeps_the_life_that_it_asked_for_and_others_keep_theirs() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let plain = Placing::of(&format!("fresh-{n}")).field("reuse", "shared");
        let choosy = plain.clone().field("min_life_s", 200);
        for (first, second) in [(&plain, &choosy), (&choosy, &plain)] {
            let sitekey = format!("fresh-{n}-{}", first.fields.len());
            let place = async |placing: &Placing| {
                let placing = Placing { sitekey: sitekey.clone(), ..placing.clone() };
                api.id(&api.place(&fixture, &placing).await)
            };
            let ids = [place(first).await, place(second).await];
            let choosy = usize::from(second.fields.len() > first.fields.len());
            for id in &ids {
                assert!(read(api, &fixture, id).await.starts_with("token"), "{api:?}");
            }
            fixture.pass(Duration::from_secs(120));
            assert_eq!(read(api, &fixture, &ids[choosy]).await, "expired", "{api:?}: 180 s are left of 200");
            let served = read(api, &fixture, &ids[1 - choosy]).await;
            assert!(served.starts_with("token"), "{api:?}: it asked for no life, and got {served}");
        }
    }
}

#[tokio::test]
async fn callers_that_ask_for_the_same_life_join_one_order_and_each_is_kept_to_it() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("hold-{n}");
        let choosy = Placing::of(&sitekey).field("reuse", "shared").field("min_life_s", 200);
        let ids = [api.id(&api.place(&fixture, &choosy).await), api.id(&api.place(&fixture, &choosy).await)];
        assert_eq!(ids[0], ids[1], "{api:?}");
        fixture.call_back(&sitekey, "token").await;
        assert_eq!(read(api, &fixture, &ids[1]).await, "token", "{api:?}");
        fixture.pass(Duration::from_secs(120));
        assert_eq!(read(api, &fixture, &ids[1]).await, "expired", "{api:?}");
        assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}");
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_life_that_was_asked_for() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let job = Placing::of(&format!("hold-{n}")).keyed(&format!("job-{n}"));
        let choosy = job.clone().field("min_life_s", 100);
        let first = api.id(&api.place(&fixture, &choosy).await);
        assert_eq!(api.id(&api.place(&fixture, &choosy).await), first, "{api:?}");
        for other in [job.clone(), job.clone().field("min_life_s", 200)] {
            let (code, reason) = api.refusal(&api.place(&fixture, &other).await);
            let expected = match api {
                Api::V1 => "idempotency_mismatch",
                Api::Json("capsolver") => "ERROR_INVALID_TASK_DATA",
                Api::Json(_) | Api::Classic => "ERROR_BAD_PARAMETERS",
            };
            assert_eq!(code, expected, "{api:?}: {reason}");
        }
    }
}

#[tokio::test]
async fn a_caller_that_is_served_from_the_stock_keeps_the_life_that_it_asked_for() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("hold-{n}");
        fixture.stock(&sitekey, "from-stock").await;
        let choosy = Placing::of(&sitekey).field("min_life_s", 200);
        let id = api.id(&api.place(&fixture, &choosy).await);
        assert_eq!(read(api, &fixture, &id).await, "from-stock", "{api:?}");
        fixture.pass(Duration::from_secs(120));
        assert_eq!(read(api, &fixture, &id).await, "expired", "{api:?}");
        assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}: nothing was bought");
    }
}

/// Trap: a repeat with a key got the id, and its caller was refused when it came for the answer 5 s later.
#[tokio::test]
async fn a_repeat_with_a_key_gets_the_id_only_if_the_life_that_it_asked_for_lasts_for_15_s_more() {
    let fixture = Fixture::new().await;
    for (n, api) in APIS.into_iter().enumerate() {
        let sitekey = format!("fresh-{n}");
        let choosy = Placing::of(&sitekey).keyed(&format!("job-{n}")).field("min_life_s", 200);
        let id = api.id(&api.place(&fixture, &choosy).await);
        let token = read(api, &fixture, &id).await;
        // Of 300 s, and a few are over before the answer is known.
        fixture.pass(Duration::from_secs(70));
        assert_eq!(api.id(&api.place(&fixture, &choosy).await), id, "{api:?}");
        fixture.pass(Duration::from_secs(14));
        assert_eq!(read(api, &fixture, &id).await, token, "{api:?}");
        fixture.pass(Duration::from_secs(6));
        let again = api.place(&fixture, &choosy).await;
        if api == Api::V1 {
            assert_eq!(api.id(&again), id, "the answer is in the reply");
        } else {
            let (code, reason) = api.refusal(&again);
            assert_eq!(code, "ERROR_TOKEN_EXPIRED", "{api:?}");
            assert!(reason.contains("`min_life_s`") && reason.contains("another key"), "{reason}");
        }
        assert_eq!(fixture.provider.submits(&sitekey), 1, "{api:?}");
    }
}

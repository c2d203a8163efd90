//! Tests of what a callback changes and does not change, and of its response.

use super::fixture::Fixture;
use crate::still_clock::NOW;
use quittance_gateway::Limits;
use quittance_lifecycle::{Event, Outage, Receipt, Timestamp};
use quittance_ports::{Reach, Spill};
use std::sync::atomic::Ordering;
use std::time::Duration;

const OK: &str = "HTTP/1.1 200 OK";
const FORM: &str = "application/x-www-form-urlencoded";

async fn fixture() -> Fixture {
    Fixture::with_one_order(Limits::default()).await
}

#[tokio::test]
async fn a_callback_by_get_and_one_by_post_are_both_heard() {
    let by_get = fixture().await;
    assert_eq!(by_get.get(&format!("{}?id=7&code=token", by_get.path)).await, OK);
    assert_eq!(by_get.phase().await, "solved");
    let by_post = fixture().await;
    assert_eq!(by_post.post(&by_post.path, FORM, "id=7&code=token").await, OK);
    assert_eq!(by_post.phase().await, "solved");
}

#[tokio::test]
async fn a_token_of_sixty_thousand_characters_fits_into_the_query() {
    let fixture = fixture().await;
    let token = "t".repeat(60_000);
    assert_eq!(fixture.get(&format!("{}?id=7&code={token}", fixture.path)).await, OK);
    assert_eq!(fixture.phase().await, "solved");
}

#[tokio::test]
async fn forged_unknown_and_repeated_ones_change_nothing_and_are_answered_alike() {
    let fixture = fixture().await;
    let mut forged = fixture.path.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == '0' { '1' } else { '0' });
    for path in [forged.as_str(), "/callback/", "/callback/unknown", "/callback/a/b", "/callback/%00%ff"] {
        assert_eq!(fixture.get(&format!("{path}?id=7&code=stolen")).await, OK, "{path}");
        assert_eq!(fixture.phase().await, "solving", "{path}");
    }
    assert_eq!(fixture.engine.forged(), 5);
    assert_eq!(fixture.read_by_adapter(), 0, "what is not proven is not read");
    assert_eq!(fixture.get(&format!("{}?id=7&code=first", fixture.path)).await, OK);
    assert_eq!(fixture.get(&format!("{}?id=7&code=second", fixture.path)).await, OK);
    let order = fixture.engine.read(&fixture.placed.key).await.unwrap().unwrap();
    let quittance_lifecycle::Phase::Solved { answer, .. } = &order.phase else {
        panic!("{}", order.phase.name())
    };
    assert_eq!(answer.payload.text, "first");
}

/// A node that does not know yet with which secrets other nodes sign.
#[tokio::test]
async fn a_callback_of_another_node_is_not_forged_while_its_secret_is_on_its_way() {
    let fixture = fixture().await;
    let address = fixture.engine.callback_address().unwrap();
    address.set_secrets(vec![[9; 32]]);
    address.is_unsettled_until(Timestamp::MAX);
    let path = format!("{}?id=7&code=true", fixture.path);
    let mut calling = std::pin::pin!(fixture.get(&path));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut calling).await;
    assert!(early.is_err(), "it was answered before its result could be known: {early:?}");
    address.set_secrets(vec![[9; 32], [7; 32]]);
    assert_eq!(calling.await, OK);
    assert_eq!((fixture.phase().await, fixture.engine.forged()), ("solved", 0));
}

#[tokio::test]
async fn what_makes_no_sense_is_counted_and_changes_nothing() {
    let fixture = fixture().await;
    for query in ["", "?", "?id=7", "?CODE"] {
        assert_eq!(fixture.get(&format!("{}{query}", fixture.path)).await, OK);
    }
    assert_eq!(fixture.post(&fixture.path, "application/json", "{").await, OK);
    assert_eq!((fixture.api.senseless(), fixture.phase().await), (5, "solving"));
}

/// Trap: a callback arrives garbled and gets 200, and the provider repeats it a minute later. The answer must not
/// look as young as the repeat.
#[tokio::test]
async fn a_garbled_callback_counts_as_one_that_the_provider_may_repeat() {
    let fixture = fixture().await;
    let reach = || fixture.engine.reach().expect("it listens for callbacks");
    let before = reach();
    assert_eq!(fixture.get("/callback/0-0-0-0000000000000000-0").await, OK);
    assert_eq!(reach(), before, "a forged one says nothing");
    assert_eq!(fixture.post(&fixture.path, "application/json", "{").await, OK);
    let unanswered = [(fixture.placed.key, Outage { from: NOW, to: NOW })].into();
    assert_eq!(reach(), Reach { unanswered, ..before }, "it counts for its own order");
}

#[tokio::test]
async fn the_provider_gets_200_only_when_the_result_is_safe() {
    let fixture = fixture().await;
    fixture.outages.store_is_away.store(true, Ordering::Relaxed);
    fixture.outages.spill_is_full.store(true, Ordering::Relaxed);
    let address = format!("{}?id=7&code=token", fixture.path);
    assert_eq!(fixture.get(&address).await, "HTTP/1.1 503 Service Unavailable");
    fixture.outages.spill_is_full.store(false, Ordering::Relaxed);
    assert_eq!(fixture.get(&address).await, OK);
    assert_eq!(
        fixture.spill.waiting().unwrap().len(),
        1,
        "it is in the spill before the provider gets its 200"
    );
}

/// The receipt of the last callback in the spill: its time, and the outages before it.
fn last_receipt(fixture: &Fixture) -> Receipt {
    match fixture.spill.waiting().unwrap().pop().map(|incoming| incoming.event) {
        Some(Event::CalledBack { receipt: Some(receipt), .. }) => receipt,
        other => panic!("{other:?}"),
    }
}

/// Trap: an answer was dated from the last byte of its callback, which took 19 s to arrive.
#[tokio::test]
async fn a_callback_that_arrives_slowly_counts_from_its_beginning() {
    const PAUSE: Duration = Duration::from_millis(100);
    let fixture = fixture().await;
    fixture.outages.store_is_away.store(true, Ordering::Relaxed);
    let mut caller = fixture.connect().await;
    fixture.send(&mut caller, &format!("POST {} HTTP/1.1\r\nHost: x\r\n", fixture.path)).await;
    tokio::time::sleep(PAUSE).await;
    fixture.send(&mut caller, "Connection: close\r\nContent-Length: 15\r\n\r\nid=7").await;
    tokio::time::sleep(PAUSE).await;
    fixture.send(&mut caller, "&code=token").await;
    assert_eq!(fixture.answer(caller).await, OK);
    let receipt = last_receipt(&fixture);
    assert!(receipt.at + 2 * PAUSE <= NOW, "{:?} before its last byte", NOW.since(receipt.at));
}

/// Trap: the repeat of a callback that broke off was dated from the end of the first call.
#[tokio::test]
async fn a_callback_that_breaks_off_is_an_outage_from_its_beginning() {
    const PAUSE: Duration = Duration::from_millis(100);
    let fixture = fixture().await;
    fixture.outages.store_is_away.store(true, Ordering::Relaxed);
    let mut caller = fixture.connect().await;
    let half = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\nid=7", fixture.path);
    fixture.send(&mut caller, &half).await;
    tokio::time::sleep(PAUSE).await;
    drop(caller);
    let outage = loop {
        assert_eq!(fixture.get(&format!("{}?id=7&code=token", fixture.path)).await, OK);
        // The others are from before this node began to listen.
        let is_new = |outage: &Outage| outage.from > Timestamp::ZERO;
        if let Some(outage) = last_receipt(&fixture).outages.into_iter().find(is_new) {
            break outage;
        }
    };
    assert!(outage.from + PAUSE <= NOW && outage.to == NOW, "{outage:?}");
}

#[tokio::test]
async fn other_paths_other_methods_and_oversized_requests_are_turned_away() {
    let fixture =
        Fixture::with_one_order(Limits { body_bytes_max: 1000, head_bytes_max: 8192, ..Limits::default() })
            .await;
    assert_eq!(fixture.get("/").await, "HTTP/1.1 404 Not Found");
    assert_eq!(fixture.get("/callbacks").await, "HTTP/1.1 404 Not Found");
    let put =
        format!("PUT {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", fixture.path);
    assert_eq!(fixture.say(&put).await, "HTTP/1.1 405 Method Not Allowed");
    let large = format!("id=7&code={}", "t".repeat(2000));
    assert_eq!(fixture.post(&fixture.path, FORM, &large).await, "HTTP/1.1 413 Payload Too Large");
    let chunked = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n{}\r\n0\r\n\r\n",
        fixture.path,
        "t".repeat(0x800)
    );
    assert_eq!(
        fixture.say(&chunked).await,
        "HTTP/1.1 413 Payload Too Large",
        "an unannounced length is no way around it"
    );
    let long = format!("{}?code={}", fixture.path, "t".repeat(20_000));
    assert!(fixture.get(&long).await.starts_with("HTTP/1.1 4"));
    assert_eq!(fixture.say("nonsense\r\n\r\n").await, "HTTP/1.1 400 Bad Request");
    assert_eq!(fixture.phase().await, "solving");
    assert_eq!(
        fixture.get(&format!("{}?id=7&code=token", fixture.path)).await,
        OK,
        "and the API still answers"
    );
}

#[tokio::test]
async fn a_caller_that_never_ends_its_request_does_not_keep_others_out() {
    let limits =
        Limits { connections_max: 1, read_wait: std::time::Duration::from_millis(50), ..Limits::default() };
    let fixture = Fixture::with_one_order(limits).await;
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", fixture.path);
    let (endless, headless) = tokio::join!(fixture.say(&head), fixture.say("GET /callback"));
    assert!(endless.starts_with("HTTP/1.1 408"), "{endless}");
    assert!(headless.is_empty() || headless.starts_with("HTTP/1.1 4"), "{headless}");
    assert_eq!(fixture.get(&format!("{}?id=7&code=token", fixture.path)).await, OK);
}

#[tokio::test]
async fn a_server_that_closes_answers_open_requests_and_lets_no_other_in() {
    let fixture = fixture().await;
    assert_eq!(fixture.get(&format!("{}?id=7&code=token", fixture.path)).await, OK);
    let half = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n",
        fixture.path
    );
    let mut caller = fixture.connect().await;
    fixture.send(&mut caller, &half).await;
    assert_eq!(fixture.word(&mut caller).await, "HTTP/1.1 100 Continue", "it is being read");
    let closing = fixture.api.clone();
    let closed = tokio::spawn(async move { closing.close().await });
    while fixture.knock().await {
        tokio::task::yield_now().await;
    }
    assert!(!closed.is_finished(), "a connection is open");
    fixture.send(&mut caller, "id=7&code=again").await;
    assert_eq!(fixture.answer(caller).await, OK);
    closed.await.unwrap();
}

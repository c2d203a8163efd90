//! Tests of pingbacks, with and without faults.

use crate::wire::{MockClient, PingbackListener, TURNSTILE, open, quick};
use quittance_mock_provider::{
    DEMO_KEY, FaultAction, Faults, MockClassicDialect, PingbackFaults, RulePlace, ScriptRule, Settings,
};
use std::collections::BTreeMap;

fn pairs(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn escaped(url: &str) -> String {
    form_urlencoded::byte_serialize(url.as_bytes()).collect()
}

async fn with(action: FaultAction) -> (MockClient, PingbackListener) {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.mock.script(vec![ScriptRule::always(RulePlace::Pingback, action)]).expect("a good script");
    (client, PingbackListener::open(200).await)
}

async fn submit(client: &MockClient, url: &str) -> String {
    client.task(&format!("{TURNSTILE}&pingback={}", escaped(url))).await
}

#[tokio::test]
async fn two_captcha_posts_a_form() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    let id = submit(&client, &format!("{}/cb/x?a=1&b=2", listener.url)).await;
    let received = listener.next().await;
    assert_eq!((received.verb.as_str(), received.target.as_str()), ("POST", "/cb/x?a=1&b=2"));
    client.until(|task| task.pingbacks_acked == 1).await;
    let entry = client.entry(&id);
    let answer = entry.answer.expect("it is solved");
    let body = pairs(&received.body);
    assert_eq!((body["id"].as_str(), Some(body["code"].as_str())), (id.as_str(), answer.as_str()));
    assert!(received.body.starts_with(&format!("id={id}&code=")));
    assert!(entry.delivered && entry.reads == 0);
}

#[tokio::test]
async fn captchaai_gets_with_the_answer_in_the_query() {
    let (client, mut listener) =
        (quick(MockClassicDialect::CaptchaAi).await, PingbackListener::open(200).await);
    let id = submit(&client, &format!("{}/cb", listener.url)).await;
    let received = listener.next().await;
    assert_eq!((received.verb.as_str(), received.body.as_str()), ("GET", ""));
    let query = pairs(received.target.strip_prefix("/cb?").expect("a query"));
    client.until(|task| task.pingbacks_acked == 1).await;
    assert_eq!(client.entry(&id).answer.expect("it is solved"), query["code"].as_str());
    submit(&client, &format!("{}/cb?x=1", listener.url)).await;
    assert!(listener.next().await.target.starts_with("/cb?x=1&id="));
}

#[tokio::test]
async fn of_an_address_that_was_submitted_by_get_only_the_first_parameter_survives() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    let url = escaped(&format!("{}/cb?a=1&b=2", listener.url));
    client.get(&format!("/in.php?key={DEMO_KEY}&{TURNSTILE}&pingback={url}")).await.expect("an answer");
    assert_eq!(listener.next().await.target, "/cb?a=1");
}

#[tokio::test]
async fn a_pingback_that_is_not_answered_with_200_delivers_nothing() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(503).await);
    let id = submit(&client, &listener.url).await;
    listener.next().await;
    client.until(|task| task.pingbacks_sent == 1).await;
    let entry = client.entry(&id);
    assert_eq!((entry.pingbacks_acked, entry.delivered), (0, false));
}

#[tokio::test]
async fn a_pingback_to_a_closed_port_does_no_harm() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let id = submit(&client, "http://127.0.0.1:1/").await;
    client.until(|task| task.pingbacks_sent == 1).await;
    assert!(client.tells(&format!("action=get&id={id}")).await.starts_with("OK|"));
}

#[tokio::test]
async fn an_unsolvable_task_calls_back_with_its_code() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    client
        .mock
        .script(vec![ScriptRule::always(RulePlace::Submit, FaultAction::Unsolvable)])
        .expect("a good script");
    let id = submit(&client, &listener.url).await;
    assert_eq!(listener.next().await.body, format!("id={id}&code=ERROR_CAPTCHA_UNSOLVABLE"));
    client.until(|task| task.pingbacks_acked == 1).await;
    assert!(!client.entry(&id).delivered);
}

#[tokio::test]
async fn only_this_machine_is_called_and_the_ledger_says_why() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    for (url, why) in [
        ("http://example.com/", "not on this machine"),
        ("https://127.0.0.1/", "not http"),
        ("nonsense", "not http"),
    ] {
        let id = submit(&client, url).await;
        let entry = client.entry(&id);
        assert_eq!(entry.pingback_refused.as_deref(), Some(why));
        assert!(entry.pingback_wanted);
    }
    assert_eq!(client.mock.totals().pingbacks_refused, 3);
}

#[tokio::test]
async fn a_strict_provider_calls_only_where_it_was_registered() {
    let client =
        open(Settings { strict_pingback: true, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    let mut listener = PingbackListener::open(200).await;
    let id = submit(&client, &listener.url).await;
    assert_eq!(client.entry(&id).pingback_refused.as_deref(), Some("not registered"));
    client.tells(&format!("action=add_pingback&addr={}", escaped(&listener.url))).await;
    let id = submit(&client, &format!("{}/another/path", listener.url)).await;
    assert!(listener.next().await.body.starts_with(&format!("id={id}&")));
}

#[tokio::test]
async fn a_lost_pingback_is_never_sent() {
    let (client, listener) = with(FaultAction::Lost).await;
    let id = submit(&client, &listener.url).await;
    client.until(|task| task.answer.is_some()).await;
    assert_eq!(client.fault("pingback_lost"), 1);
    assert!(listener.is_empty() && client.entry(&id).pingbacks_sent == 0);
    assert!(client.tells(&format!("action=get&id={id}")).await.starts_with("OK|"));
}

#[tokio::test]
async fn a_doubled_pingback_comes_twice_and_delivers_once() {
    let (client, mut listener) = with(FaultAction::Doubled).await;
    submit(&client, &listener.url).await;
    assert_eq!(listener.next().await.body, listener.next().await.body);
    client.until(|task| task.pingbacks_acked == 2).await;
    assert_eq!(client.mock.totals().delivered, 1);
}

#[tokio::test]
async fn a_delayed_pingback_comes_later_than_the_answer() {
    let (client, mut listener) = with(FaultAction::Delay { ms: 80 }).await;
    let id = submit(&client, &listener.url).await;
    client.until(|task| task.answer.is_some()).await;
    listener.next().await;
    let entry = client.entry(&id);
    assert!(client.mock.ledger().now_ms >= entry.solved_at_ms.expect("it is solved") + 80);
}

#[tokio::test]
async fn an_early_pingback_is_there_before_the_id_is() {
    let (client, mut listener) = with(FaultAction::Early).await;
    let id = submit(&client, &listener.url).await;
    assert!(!listener.is_empty(), "it came before the answer to the submit");
    assert!(listener.next().await.body.starts_with(&format!("id={id}&")));
    let entry = client.entry(&id);
    assert_eq!((entry.pingbacks_sent, entry.delivered), (1, true));
}

#[tokio::test]
async fn strangers_call_at_almost_the_right_address_and_at_an_invented_one() {
    let (client, mut listener) = with(FaultAction::Forged).await;
    let id = submit(&client, &format!("{}/cb/7/0123456789abcdef", listener.url)).await;
    let mut targets = Vec::new();
    for _ in 0..3 {
        let received = listener.next().await;
        let is_forged = received.body.contains("sim-forged");
        targets.push((received.target, pairs(&received.body)["id"] == id, is_forged));
    }
    targets.sort();
    let real = ("/cb/7/0123456789abcdef".to_owned(), true, false);
    assert!(targets.contains(&real), "{targets:?}");
    assert!(targets.iter().any(|(target, own, forged)| target.starts_with("/cb/7/01234567")
        && *target != real.0
        && *own
        && *forged));
    assert!(
        targets.iter().any(|(target, own, forged)| target.starts_with("/sim-forged/") && !own && *forged)
    );
    client.until(|task| task.pingbacks_acked == 1).await;
    assert!(client.mock.until(crate::wire::LIMIT, |ledger| ledger.totals.pingbacks_forged == 2).await);
    assert_eq!(client.entry(&id).pingbacks_sent, 1, "what strangers do is not ours");
}

#[tokio::test]
async fn a_pingback_with_a_code_in_place_of_the_answer_delivers_nothing() {
    let (client, mut listener) = with(FaultAction::Code("ERROR_SERVER_ERROR".to_owned())).await;
    let id = submit(&client, &listener.url).await;
    assert_eq!(listener.next().await.body, format!("id={id}&code=ERROR_SERVER_ERROR"));
    client.until(|task| task.pingbacks_acked == 1).await;
    assert!(!client.entry(&id).delivered);
    assert!(client.tells(&format!("action=get&id={id}")).await.starts_with("OK|"));
}

#[tokio::test]
async fn a_task_whose_reply_was_lost_calls_back_all_the_same() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    client
        .mock
        .script(vec![ScriptRule::always(RulePlace::Submit, FaultAction::ReplyLost)])
        .expect("a good script");
    assert!(client.submit(&format!("{TURNSTILE}&pingback={}", listener.url)).await.is_err());
    let received = listener.next().await;
    let id = client.mock.ledger().tasks[0].id.clone();
    assert!(received.body.starts_with(&format!("id={id}&")));
    client.until(|task| task.delivered && !task.reply_delivered).await;
}

#[tokio::test]
async fn pingbacks_go_wrong_at_the_rates_that_are_set() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    let pingback = PingbackFaults { lost: 1.0, early: 1.0, forged: 1.0, ..PingbackFaults::default() };
    client.mock.set_faults(Faults { pingback, ..Faults::default() });
    let id = submit(&client, &listener.url).await;
    assert!(listener.next().await.body.starts_with(&format!("id={id}&code=0.sim-{id}")));
    for _ in 0..2 {
        assert!(listener.next().await.body.contains("sim-forged"));
    }
    for name in ["pingback_lost", "pingback_early", "pingback_forged"] {
        assert_eq!(client.fault(name), 1, "{name}");
    }
    let pingback = PingbackFaults { code: 1.0, ..PingbackFaults::default() };
    client.mock.set_faults(Faults { pingback, ..Faults::default() });
    let id = submit(&client, &listener.url).await;
    assert_eq!(listener.next().await.body, format!("id={id}&code=ERROR_CAPTCHA_UNSOLVABLE"));
    assert!(!client.entry(&id).charged, "what could not be solved costs nothing");
    client.finished(TURNSTILE).await;
    assert_eq!(client.mock.totals().failed, 1, "a task without a pingback is not concerned");
}

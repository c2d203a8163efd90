//! Tests of webhooks over real HTTP: their content, format and signature, and addresses that are never called.

mod fixture;
mod receiver;

use fixture::{SECRET, World, token};
use quittance_gateway::{BadCallback, Declined, OrderId, OrderRequest, WebhookFormat};
use quittance_lifecycle::{DeliveryState, Draft, Reuse, Timestamp, Webhook};
use quittance_ports::WebhookSender;
use receiver::Receiver;

fn turnstile(site: &str, webhook: Option<(String, &'static str)>) -> OrderRequest {
    let params = [("sitekey", site), ("pageurl", "https://example.com/")];
    let draft = Draft {
        params: params.map(|(name, value)| (name.to_owned(), value.into())).into(),
        reuse: Some(Reuse::Shared),
        ..Draft::default()
    };
    let webhook = webhook.map(|(url, format)| (url, WebhookFormat::parse(format).unwrap()));
    OrderRequest { kind: "turnstile".into(), draft, webhook, is_strict: false }
}

#[tokio::test]
async fn each_protocol_is_called_in_the_form_that_it_promises() {
    let receiver = Receiver::start(&[]).await;
    let world = World::start(&["127.0.0.1"]).await;
    for dialect in [
        "2captcha",
        "captchaai",
        "json:2captcha",
        "json:anticaptcha",
        "json:capmonster",
        "json:capsolver",
        "v1",
    ] {
        let url = receiver.url(&format!("/hook?mine={}", dialect.replace(':', "-")));
        let accepted = world.place(turnstile(dialect, Some((url, dialect)))).await.unwrap();
        let heard = receiver.next().await;
        let id = accepted.id.to_string();
        let mine = format!("/hook?mine={}", dialect.replace(':', "-"));
        match dialect {
            "2captcha" => {
                assert_eq!((heard.method.as_str(), heard.target.as_str()), ("POST", mine.as_str()));
                assert_eq!(heard.header("content-type"), "application/x-www-form-urlencoded");
                assert_eq!(heard.body, format!("id={id}&code={}", token(dialect)));
            }
            "captchaai" => {
                assert_eq!(heard.method, "GET");
                assert_eq!(heard.target, format!("{mine}&id={id}&code={}", token(dialect)));
                assert_eq!(heard.body, "");
            }
            _ => {
                assert_eq!((heard.method.as_str(), heard.target.as_str()), ("POST", mine.as_str()));
                assert_eq!(heard.header("content-type"), "application/json");
                let body: serde_json::Value = serde_json::from_str(&heard.body).unwrap();
                assert!(heard.body.contains(&token(dialect).replace("%3A", ":")), "{}", heard.body);
                if dialect == "v1" {
                    assert_eq!(body["data"]["id"], id.as_str());
                } else if dialect == "json:capsolver" {
                    assert!(body["taskId"].is_string(), "{body}");
                } else {
                    assert_eq!(body["taskId"], accepted.id.number());
                    assert_eq!((&body["errorId"], &body["status"]), (&0.into(), &"ready".into()));
                }
            }
        }
        // Callers of all APIs learn how long the answer lives: of `/v1` in the body, too.
        let life: u64 = heard.header("quittance-remaining-life").parse().unwrap();
        assert!((290..=300).contains(&life), "{dialect}: {life}");
        // What is sent is signed: the body, or else the query.
        let text = if heard.method == "GET" { heard.target.split_once('?').unwrap().1 } else { &heard.body };
        let signed = format!("{}.{}.{text}", heard.header("webhook-id"), heard.header("webhook-timestamp"));
        assert_eq!(heard.header("webhook-signature"), receiver::signature(&SECRET, &signed));
    }
    world.stop().await;
}

#[tokio::test]
async fn a_webhook_about_an_order_without_an_answer_has_a_code_of_its_dialect_and_the_reason() {
    let receiver = Receiver::start(&[]).await;
    let world = World::start(&["127.0.0.1"]).await;
    let reason = "the provider rejected the task (ERROR_OF_ITS_OWN)";
    for (dialect, code) in [
        ("2captcha", "ERROR_BAD_PARAMETERS"),
        ("captchaai", "ERROR_BAD_PARAMETERS"),
        ("json:2captcha", "ERROR_BAD_PARAMETERS"),
        ("json:anticaptcha", "ERROR_BAD_PARAMETERS"),
        ("json:capmonster", "ERROR_BAD_PARAMETERS"),
        ("json:capsolver", "ERROR_INVALID_TASK_DATA"),
    ] {
        let request = turnstile(&format!("refuse-{dialect}"), Some((receiver.url("/hook"), dialect)));
        let id = world.place(request).await.unwrap().id;
        let heard = receiver.next().await;
        match dialect {
            "2captcha" => assert_eq!(heard.body, format!("id={id}&code={code}")),
            "captchaai" => assert_eq!(heard.target, format!("/hook?id={id}&code={code}")),
            _ => {
                let body: serde_json::Value = serde_json::from_str(&heard.body).unwrap();
                assert_eq!(
                    (&body["errorCode"], &body["errorDescription"]),
                    (&code.into(), &reason.into()),
                    "{body}"
                );
            }
        }
    }
    world.stop().await;
}

/// A webhook that was not accepted is sent again with the same id, so that a caller that got it twice can see that.
#[tokio::test]
async fn a_message_that_was_not_accepted_is_sent_again_under_the_same_name() {
    let receiver = Receiver::start(&[500]).await;
    let world = World::start(&["127.0.0.1"]).await;
    let request = turnstile("again", Some((receiver.url("/"), "2captcha")));
    let accepted = world.place(request).await.unwrap();
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    world.until_delivered(accepted.placed.key).await;
    world.stop().await;
}

/// Without this rule, a route that allows only the other method would be called in vain for ever.
#[tokio::test]
async fn a_route_that_does_not_allow_the_method_is_called_by_the_other_one_from_then_on() {
    for (dialect, first, then) in [("2captcha", "POST", "GET"), ("captchaai", "GET", "POST")] {
        let receiver = Receiver::start(&[405]).await;
        let world = World::start(&["127.0.0.1"]).await;
        let place =
            |site: &'static str| turnstile(site, Some((receiver.url(&format!("/hook?of={site}")), dialect)));
        let accepted = world.place(place("one")).await.unwrap();
        assert_eq!([receiver.next().await.method, receiver.next().await.method], [first, then]);
        world.until_delivered(accepted.placed.key).await;
        world.place(place("two")).await.unwrap();
        assert_eq!(receiver.next().await.method, then, "it is remembered");
        world.stop().await;
    }
}

/// A redirect could lead into the operator's network, so none is followed: the webhook counts as not accepted.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let receiver = Receiver::start(&[302]).await;
    let world = World::start(&["127.0.0.1"]).await;
    let request = turnstile("redirected", Some((receiver.url("/from"), "2captcha")));
    world.place(request).await.unwrap();
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!((first.target.as_str(), second.target.as_str()), ("/from", "/from"));
    world.stop().await;
}

#[tokio::test]
async fn an_address_inside_is_refused_and_nothing_is_bought() {
    let receiver = Receiver::start(&[]).await;
    let world = World::start(&[]).await;
    for url in
        [receiver.url("/"), receiver.url("/").replace("127.0.0.1", "localhost"), "http://10.0.0.1/".into()]
    {
        let declined = world.place(turnstile("inside", Some((url, "2captcha")))).await;
        assert!(matches!(declined, Err(Declined::Callback(BadCallback::Inside))), "{declined:?}");
    }
    assert_eq!(world.submits(), 0);
    world.stop().await;
}

/// A name can resolve to another address after the order was accepted, so it is checked again at the call.
#[tokio::test]
async fn a_name_that_leads_inside_is_not_called() {
    let receiver = Receiver::start(&[]).await;
    let world = World::start(&[]).await;
    let accepted = world.place(turnstile("later", None)).await.unwrap();
    let order = world.orders.find(&world.caller, accepted.id).await.unwrap();
    let webhook = Webhook {
        number: 1,
        url: receiver.url("/").replace("127.0.0.1", "localhost"),
        dialect: "2captcha".into(),
        state: DeliveryState::Owed { at: Timestamp::ZERO, tries: 0 },
    };
    let response = world.webhooks.tell(&order, &webhook).await;
    assert!(format!("{response:?}").contains("operator's network"), "{response:?}");
    assert_eq!(receiver.heard(), 0);
    world.stop().await;
}

#[tokio::test]
async fn a_caller_that_comes_after_the_answer_is_called_too() {
    let receiver = Receiver::start(&[]).await;
    let world = World::start(&["127.0.0.1"]).await;
    let first = world.place(turnstile("shared", None)).await.unwrap();
    world.until_solved(first.placed.key).await;
    let url = receiver.url("/late");
    let second = world.place(turnstile("shared", Some((url, "2captcha")))).await.unwrap();
    assert_eq!(second.id, first.id);
    assert_eq!(receiver.next().await.body, format!("id={}&code={}", first.id, token("shared")));
    assert_eq!(OrderId::of(&first.placed.key, first.placed.origin), first.id);
    assert_eq!(world.submits(), 1);
    world.stop().await;
}

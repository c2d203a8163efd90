//! Alerts on the API, and at the operator's webhook.

use super::fixture::{ADMIN, ANNA, Fixture, path_of};
use super::receiver::{Receiver, signature};
use super::talk::Ask;
use crate::eventually::eventually;
use quittance_admin::{Admin, AdminSettings};
use quittance_ports::SharedDocument;
use quittance_telemetry::{AlertSettings, AlertWebhook, Announcement};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::broadcast;

fn settings(webhook: Option<AlertWebhook>) -> AdminSettings {
    let alerts =
        AlertSettings { webhook, sample_interval: Duration::from_millis(20), ..AlertSettings::default() };
    AdminSettings { alerts, ..AdminSettings::default() }
}

async fn alerts(fixture: &Fixture) -> Vec<Value> {
    let alerts = fixture.ask(Ask::get("/v1/admin/alerts").key(ADMIN)).await.order(200);
    alerts["alerts"].as_array().unwrap().clone()
}

/// Waits, while time passes, until there is an alert of which this is true.
async fn until(fixture: &Fixture, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually("such an alert", async || {
        let found = alerts(fixture).await.into_iter().find(&is_so);
        if found.is_none() {
            fixture.pass(Duration::from_secs(1));
            fixture.heartbeat(1, "here").await;
        }
        found
    })
    .await
}

fn run(admin: &Admin) -> broadcast::Receiver<Announcement> {
    let announced = admin.monitor().announced();
    tokio::spawn(admin.clone().run());
    announced
}

#[tokio::test]
async fn an_alert_is_raised_called_out_seen_and_cleared() {
    let receiver = Receiver::start(&[500]).await;
    let webhook = AlertWebhook { url: receiver.url("/alerts/hook"), secret: [9; 32] };
    let fixture = Fixture::operated(settings(Some(webhook))).await;
    let mut announced = run(&fixture.admin);
    let path = path_of(&fixture.place("broke-1").await.order(202));
    let alert = until(&fixture, |alert| alert["rule"] == "provider_paused").await;
    assert_eq!(
        (&alert["is_grave"], &alert["cleared_at"], &alert["seen_at"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    assert!(alert["words"].as_str().unwrap().contains("ERROR_ZERO_BALANCE"), "{alert}");
    assert_eq!(announced.recv().await.unwrap().event, "raised");

    let (refused, heard) = (receiver.next().await, receiver.next().await);
    assert_eq!((heard.method.as_str(), heard.target.as_str()), ("POST", "/alerts/hook"));
    assert_eq!(heard.header("webhook-id"), refused.header("webhook-id"), "the same webhook, sent again");
    let webhook: Value = serde_json::from_str(&heard.body).unwrap();
    assert_eq!(
        (&webhook["event"], &webhook["rule"], &webhook["at"]),
        (&json!("raised"), &alert["rule"], &alert["raised_at"])
    );
    let (id, at) = (heard.header("webhook-id"), heard.header("webhook-timestamp"));
    let signed = format!("{id}.{at}.{}", heard.body);
    assert_eq!(heard.header("webhook-signature"), signature(&[9; 32], &signed));

    let say = |body: Value| fixture.ask(Ask::post("/v1/admin/alerts/seen", &body).key(ADMIN));
    let named = json!({ "rule": alert["rule"], "subject": alert["subject"] });
    let seen = say(named.clone()).await.order(200);
    assert!(seen["seen_at"].is_string() && seen["cleared_at"].is_null(), "{seen}");
    assert_eq!(say(named).await.order(200), seen, "once is enough");
    say(json!({ "rule": "provider_paused", "subject": "another" })).await.must_be(404, "unknown_alert");
    say(json!({ "subject": "" })).await.must_be(422, "bad_params");
    say(json!({ "rule": "x", "subject": "", "more": 1 })).await.must_be(422, "bad_params");

    // Or it would be refused again.
    fixture.ask(Ask::new("DELETE", path).key(ANNA)).await.order(200);
    fixture.ask(Ask::new("POST", "/v1/admin/resume").key(ADMIN)).await.order(200);
    let cleared =
        until(&fixture, |alert| alert["rule"] == "provider_paused" && !alert["cleared_at"].is_null()).await;
    assert_eq!(cleared["seen_at"], seen["seen_at"]);
    let heard = receiver.next().await;
    assert!(heard.body.contains("\"event\":\"cleared\""), "{}", heard.body);
    let webhook: Value = serde_json::from_str(&heard.body).unwrap();
    let words = webhook["words"].as_str().unwrap();
    assert!(words.starts_with("over after ") && words.ends_with("says ERROR_ZERO_BALANCE"), "{words}");
}

#[tokio::test]
async fn one_node_reports_all_know_and_a_node_that_comes_later_does_not_report_again() {
    let fixture = Fixture::operated(settings(None)).await;
    fixture.heartbeat(1, "here").await;
    fixture.heartbeat(2, "there").await;
    let (_, there) = fixture.neighbour(2, settings(None));
    let mut announced = [run(&fixture.admin), run(&there)];
    fixture.place("broke-1").await.order(202);
    until(&fixture, |alert| alert["rule"] == "provider_paused").await;
    // The other node has seen the first alert by the time the next one is raised.
    fixture.store_is_away.store(true, Ordering::Relaxed);
    until(&fixture, |alert| alert["rule"] == "store_away").await;
    fixture.store_is_away.store(false, Ordering::Relaxed);
    let mut rules = Vec::new();
    for announced in &mut announced {
        while let Ok(announcement) = announced.try_recv() {
            rules.push(announcement.rule);
        }
    }
    assert_eq!(rules.iter().filter(|rule| *rule == "provider_paused").count(), 1, "{rules:?}");

    let (_, later) = fixture.neighbour(3, settings(None));
    fixture.heartbeat(3, "later").await;
    let mut announced = run(&later);
    until(&fixture, |alert| alert["rule"] == "store_away" && !alert["cleared_at"].is_null()).await;
    let paused = alerts(&fixture).await.into_iter().find(|alert| alert["rule"] == "provider_paused").unwrap();
    assert_eq!(paused["cleared_at"], Value::Null, "it stands for as long as it is so");
    while let Ok(announcement) = announced.try_recv() {
        assert_ne!(announcement.rule, "provider_paused", "{announcement:?}");
    }
}

#[tokio::test]
async fn a_node_that_went_silent_is_reported() {
    let fixture = Fixture::operated(settings(None)).await;
    fixture.heartbeat(1, "here").await;
    fixture.heartbeat(2, "gone").await;
    run(&fixture.admin);
    let alert = until(&fixture, |alert| alert["rule"] == "node_silent").await;
    assert_eq!((&alert["subject"], &alert["is_grave"]), (&json!("gone"), &json!(false)));
}

#[tokio::test]
async fn a_dead_letter_that_no_person_looks_at_is_reported_after_a_day() {
    let fixture = Fixture::operated(settings(None)).await;
    run(&fixture.admin);
    let dead = fixture.run_out(&path_of(&fixture.place("die-1").await.order(202))).await;
    assert_eq!(dead["status"], "dead");
    fixture.pass(Duration::from_secs(24 * 3600));
    until(&fixture, |alert| alert["rule"] == "dead_letters_old").await;
    let drop = format!("/v1/admin/dead/{}/drop", dead["key"].as_str().unwrap());
    fixture.ask(Ask::new("POST", drop).key(ADMIN)).await.order(200);
    until(&fixture, |alert| alert["rule"] == "dead_letters_old" && !alert["cleared_at"].is_null()).await;
}

#[tokio::test]
async fn what_the_provider_reports_to_one_node_is_reported_by_another() {
    let fixture = Fixture::operated(settings(None)).await;
    fixture.heartbeat(1, "here").await;
    // Only the other one looks.
    let (_, there) = fixture.neighbour(2, settings(None));
    fixture.heartbeat(2, "there").await;
    run(&there);
    fixture.place("broke-1").await.order(202);
    let alert = until(&fixture, |alert| alert["rule"] == "provider_paused").await;
    assert!(alert["words"].as_str().unwrap().contains("says ERROR_ZERO_BALANCE: "), "{alert}");
}

#[tokio::test]
async fn what_was_counted_before_a_restart_is_counted_after_it() {
    let few = |webhook| {
        let mut settings = settings(webhook);
        settings.alerts.thresholds.dead_new = 3;
        settings
    };
    let fixture = Fixture::operated(few(None)).await;
    fixture.heartbeat(1, "here").await;
    let watching = tokio::spawn(fixture.admin.clone().run());
    let is_marked = async || {
        let documents = fixture.gateway.orders().engine().membership().documents().await.unwrap();
        documents.iter().any(
            |found| matches!(&found.document, SharedDocument::Alerts(document) if !document.marks.is_empty()),
        )
    };
    eventually("it is marked", async || is_marked().await.then_some(())).await;
    for n in 1..=3 {
        fixture.run_out(&path_of(&fixture.place(&format!("die-{n}")).await.order(202))).await;
    }
    watching.abort();
    let (_, restarted) = fixture.neighbour(1, few(None));
    run(&restarted);
    for n in 4..=5 {
        fixture.run_out(&path_of(&fixture.place(&format!("die-{n}")).await.order(202))).await;
    }
    let alert = until(&fixture, |alert| alert["rule"] == "dead_letters_grow").await;
    assert!(alert["words"].as_str().unwrap().starts_with("5 orders"), "{alert}");
}

#[tokio::test]
async fn a_second_loss_takes_the_place_of_the_first_in_the_alert_and_is_reported_again() {
    let fixture = Fixture::operated(settings(None)).await;
    fixture.heartbeat(1, "here").await;
    let mut announced = run(&fixture.admin);
    fixture.engine.note_forgetting("the store was flushed; 3 orders were put back: look".into());
    let is_it = |alert: &Value| alert["rule"] == "store_forgot" && alert["cleared_at"].is_null();
    let first = until(&fixture, is_it).await;
    assert_eq!(announced.recv().await.unwrap().words, first["words"]);
    let named = json!({ "rule": first["rule"], "subject": first["subject"] });
    fixture.pass(Duration::from_secs(60));

    fixture.engine.note_forgetting("the store was flushed; 7 orders were put back: look".into());
    let second = until(&fixture, |alert| is_it(alert) && alert["words"] != first["words"]).await;
    assert!(second["words"].as_str().unwrap().contains("7 orders"), "{second}");
    assert!(second["raised_at"].as_str() > first["raised_at"].as_str(), "{first} {second}");
    let announcement = announced.recv().await.unwrap();
    assert_eq!(
        (announcement.event, &json!(announcement.words)),
        ("raised", &second["words"]),
        "and it is reported again"
    );

    // The same words once more are another loss, and a person has not seen it.
    fixture.ask(Ask::post("/v1/admin/alerts/seen", &named).key(ADMIN)).await.order(200);
    fixture.engine.note_forgetting("the store was flushed; 7 orders were put back: look".into());
    let third = until(&fixture, |alert| is_it(alert) && alert["seen_at"].is_null()).await;
    assert!(third["raised_at"].as_str() > second["raised_at"].as_str(), "{second} {third}");
}

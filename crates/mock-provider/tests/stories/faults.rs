//! Tests of each fault: what the client sees, and what the ledger says.

use crate::wire::{LIMIT, MockClient, TURNSTILE, open, quick, v2};
use quittance_mock_provider::{
    DEMO_KEY, FaultAction, Faults, Ledger, MockClassicDialect, RulePlace, ScriptRule, Settings, WireFaults,
};
use std::io;
use std::time::Duration;
use tokio::time::Instant;

async fn with(rules: Vec<ScriptRule>) -> MockClient {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.mock.script(rules).expect("a good script");
    client
}

async fn first_submit(action: FaultAction) -> (MockClient, io::Result<crate::wire::HttpReply>) {
    let client = with(vec![ScriptRule::nth(RulePlace::Submit, 1, action)]).await;
    let reply = client.submit(TURNSTILE).await;
    (client, reply)
}

#[tokio::test]
async fn a_lost_reply_is_paid_for_and_a_lost_request_is_not() {
    let (client, reply) = first_submit(FaultAction::ReplyLost).await;
    assert!(reply.is_err());
    let task = &client.mock.ledger().tasks[0];
    assert!(task.charged && !task.reply_delivered);
    assert_eq!(client.fault("reply_lost"), 1);

    let (client, reply) = first_submit(FaultAction::RequestLost).await;
    assert!(reply.is_err());
    assert_eq!((client.mock.totals().accepted, client.fault("request_lost")), (0, 1));
    client.task(TURNSTILE).await;
}

#[tokio::test]
async fn connections_end_both_by_a_reset_and_by_a_close() {
    let client = with(vec![ScriptRule::always(RulePlace::Submit, FaultAction::ReplyLost)]).await;
    let (mut reset, mut closed) = (0, 0);
    for _ in 0..40 {
        match client.submit(TURNSTILE).await.expect_err("no answer").kind() {
            io::ErrorKind::ConnectionReset => reset += 1,
            io::ErrorKind::UnexpectedEof => closed += 1,
            other => panic!("{other}"),
        }
    }
    assert!(reset > 0 && closed > 0, "{reset} resets, {closed} closes");
}

#[tokio::test]
async fn a_5xx_says_nothing_about_whether_the_task_was_taken() {
    for (taken, accepted) in [(true, 1), (false, 0)] {
        let (client, reply) = first_submit(FaultAction::Status { status: 502, taken }).await;
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, 502);
        assert!(reply.text().starts_with("<html>"));
        assert_eq!(client.mock.totals().accepted, accepted);
    }
    let (client, reply) = first_submit(FaultAction::Status { status: 429, taken: false }).await;
    assert_eq!((reply.expect("an answer").status, client.fault("429")), (429, 1));
}

#[tokio::test]
async fn pages_noise_and_halves_come_instead_of_answers() {
    let (client, reply) = first_submit(FaultAction::Html { taken: true }).await;
    let reply = reply.expect("an answer");
    assert!(reply.status == 200 && reply.text().contains("<html>"));
    assert!(!client.mock.ledger().tasks[0].reply_delivered);

    let (client, reply) = first_submit(FaultAction::Truncated { taken: true }).await;
    assert_eq!(reply.expect_err("half an answer").kind(), io::ErrorKind::UnexpectedEof);
    assert!(!client.mock.ledger().tasks[0].reply_delivered);

    let (client, reply) = first_submit(FaultAction::Garbage { taken: true }).await;
    assert!(reply.is_err() || reply.is_ok_and(|reply| !reply.body.starts_with(b"OK|")));
    assert_eq!(client.mock.totals().accepted, 1);
}

#[tokio::test]
async fn any_code_can_be_returned() {
    let (client, reply) = first_submit(FaultAction::Code("ERROR_BLUE_MOON".to_owned())).await;
    assert_eq!(reply.expect("an answer").text(), "ERROR_BLUE_MOON");
    assert_eq!(client.mock.totals().accepted, 0);
}

#[tokio::test]
async fn an_answer_can_be_late_or_never_come() {
    let start = Instant::now();
    let (client, reply) = first_submit(FaultAction::Delay { ms: 60 }).await;
    assert!(
        reply.expect("an answer").text().starts_with("OK|") && start.elapsed() >= Duration::from_millis(60)
    );
    assert!(client.mock.ledger().tasks[0].reply_delivered);

    let start = Instant::now();
    let (client, reply) = first_submit(FaultAction::Hang { ms: 60, taken: true }).await;
    assert!(reply.is_err() && start.elapsed() >= Duration::from_millis(60));
    assert!(!client.mock.ledger().tasks[0].reply_delivered);
}

#[tokio::test]
async fn a_client_that_hangs_up_got_no_answer() {
    let client = with(vec![ScriptRule::nth(RulePlace::Submit, 1, FaultAction::Delay { ms: 1_000 })]).await;
    tokio::select! {
        reply = client.submit(TURNSTILE) => panic!("{reply:?} came too soon"),
        () = client.until(|task| task.answer.is_some()) => {}
    }
    client.submit(&v2("later")).await.expect("an answer");
    let is_past = |ledger: &Ledger| ledger.now_ms > ledger.tasks[0].accepted_at_ms + 1_100;
    assert!(client.mock.until(LIMIT, is_past).await);
    let ledger = client.mock.ledger();
    assert_eq!(ledger.tasks.iter().map(|task| task.reply_delivered).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn an_answer_whose_poll_was_lost_was_not_delivered() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let id = client.finished(TURNSTILE).await;
    let poll = format!("action=get&id={id}");
    for (nth, action) in [
        FaultAction::ReplyLost,
        FaultAction::Status { status: 500, taken: true },
        FaultAction::Html { taken: true },
        FaultAction::Truncated { taken: true },
    ]
    .into_iter()
    .enumerate()
    {
        client.mock.script(vec![ScriptRule::nth(RulePlace::Poll, 1, action)]).expect("a good script");
        _ = client.poll(&poll).await;
        let entry = client.entry(&id);
        assert_eq!((entry.polls, entry.reads, entry.delivered), (nth as u64 + 1, 0, false));
    }
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Poll, 1, FaultAction::Code("ERROR_SERVER_ERROR".to_owned()))])
        .expect("a good script");
    assert_eq!(client.tells(&poll).await, "ERROR_SERVER_ERROR");
    assert!(client.tells(&poll).await.starts_with("OK|"));
    assert!(client.entry(&id).delivered);
    assert_eq!(client.mock.totals().delivered, 1);
}

#[tokio::test]
async fn a_batched_poll_can_have_fewer_parts_than_ids() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let mut ids = Vec::new();
    for page in ["a", "b", "c", "d"] {
        ids.push(client.finished(&v2(page)).await);
    }
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Poll, 1, FaultAction::FewerParts)])
        .expect("a good script");
    let poll = format!("action=get&ids={}", ids.join(","));
    assert_eq!(client.tells(&poll).await.split('|').count(), 2);
    assert_eq!(client.mock.totals().delivered, 2);
    assert_eq!(client.tells(&poll).await.split('|').count(), 4);
    assert_eq!(client.mock.totals().delivered, 4);
}

#[tokio::test]
async fn a_rule_can_mean_one_page_also_when_its_task_is_polled() {
    let mut rule =
        ScriptRule::always(RulePlace::Poll, FaultAction::Code("ERROR_PROXY_CONNECTION_FAILED".to_owned()));
    rule.matches.insert("pageurl".to_owned(), "https://b*".to_owned());
    let client = with(vec![rule]).await;
    let (a, b) = (client.finished(&v2("a")).await, client.finished(&v2("b")).await);
    assert!(client.tells(&format!("action=get&id={a}")).await.starts_with("OK|"));
    assert_eq!(client.tells(&format!("action=get&id={b}")).await, "ERROR_PROXY_CONNECTION_FAILED");
}

#[tokio::test]
async fn what_the_script_wants_the_answer_to_be_it_is() {
    let client =
        with(vec![ScriptRule::always(RulePlace::Submit, FaultAction::Answer("a|b".to_owned()))]).await;
    let id = client.finished(TURNSTILE).await;
    assert_eq!(client.tells(&format!("action=get2&id={id}")).await, "OK|a|b|0.00299");
}

#[tokio::test]
async fn in_an_outage_connections_are_closed_or_refused_and_afterwards_all_is_as_before() {
    for refuses in [false, true] {
        let client = quick(MockClassicDialect::TwoCaptcha).await;
        let id = client.finished(TURNSTILE).await;
        client.mock.outage(Duration::from_millis(300), refuses);
        assert!(client.mock.state().outage_until_ms.is_some());
        let mut kinds = Vec::new();
        let reply = loop {
            match client.poll(&format!("action=get&id={id}")).await {
                Ok(reply) => break reply,
                Err(why) => kinds.push(why.kind()),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(reply.text().starts_with("OK|"));
        assert_eq!(kinds.contains(&io::ErrorKind::ConnectionRefused), refuses, "{kinds:?}");
        assert!(!kinds.is_empty());
    }
}

#[tokio::test]
async fn connections_can_be_refused_at_a_rate() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.mock.set_faults(Faults { refused: 1.0, ..Faults::default() });
    assert!(client.submit(TURNSTILE).await.is_err());
    assert_eq!((client.mock.totals().accepted, client.fault("refused")), (0, 1));
    client.mock.set_faults(Faults::default());
    client.task(TURNSTILE).await;
}

/// A summary of what a client sees in one day.
async fn day(seed: u64, faults: Faults, pages: &[String]) -> Vec<String> {
    let client = open(Settings { seed, faults, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    let mut history = Vec::new();
    for page in pages {
        let submitted = client.submit(&v2(page)).await;
        let json_reply =
            submitted.map(|reply| format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)));
        let json_reply = json_reply.unwrap_or_else(|why| why.kind().to_string());
        let ledger = client.mock.ledger();
        let fate = ledger
            .tasks
            .iter()
            .rev()
            .find(|task| format!("{:?}", task.params).contains(&format!("//{page}.")));
        let polled = match fate {
            Some(task) => {
                client
                    .until(|other| other.id == task.id && (other.answer.is_some() || other.code.is_some()))
                    .await;
                let polled = client.poll(&format!("action=get&id={}", task.id)).await;
                polled.map_or_else(|why| why.kind().to_string(), |reply| reply.status.to_string())
            }
            None => "not taken".to_owned(),
        };
        let json_reply = if json_reply.starts_with("200 OK|") { "taken" } else { &json_reply };
        history.push(format!("{page}: {json_reply} / {polled}"));
    }
    history
}

fn rates() -> Faults {
    let wire = WireFaults {
        reply_lost: 0.2,
        request_lost: 0.1,
        status_before: 0.1,
        status_after: 0.1,
        code: 0.1,
        html: 0.1,
        ..WireFaults::default()
    };
    Faults { submit: wire.clone(), poll: wire, unsolvable: 0.1, ..Faults::default() }
}

#[tokio::test]
async fn a_seed_repeats_its_faults_and_another_seed_has_others() {
    let pages: Vec<String> = (0..30).map(|page| format!("p{page}")).collect();
    let one = day(1, rates(), &pages).await;
    assert_eq!(one, day(1, rates(), &pages).await);
    assert_ne!(one, day(2, rates(), &pages).await);
    assert!(
        one.iter().any(|history| history.contains("taken /"))
            && one.iter().any(|history| history.contains("502") || history.contains("50"))
    );
}

#[tokio::test]
async fn what_befalls_a_request_does_not_depend_on_its_neighbours() {
    let pages: Vec<String> = (0..20).map(|page| format!("p{page}")).collect();
    let mut forward = day(5, rates(), &pages).await;
    let reversed: Vec<String> = pages.into_iter().rev().collect();
    let mut backward = day(5, rates(), &reversed).await;
    forward.sort();
    backward.sort();
    assert_eq!(forward, backward);
}

#[tokio::test]
async fn after_a_storm_the_usage_still_add_up() {
    let mut faults = Faults::storm();
    (faults.slow_ms.from, faults.slow_ms.to, faults.hang_ms) = (1, 10, 20);
    let mut settings = Settings { seed: 9, faults, ..Settings::quick(MockClassicDialect::TwoCaptcha) };
    settings.accounts[0].balance_micros = 1_000_000_000;
    let client = open(settings).await;
    let mut callback = 0;
    for page in 0..200 {
        let reply = client.submit(&v2(&format!("p{page}"))).await;
        callback += u64::from(reply.is_ok_and(|reply| reply.body.starts_with(b"OK|")));
    }
    assert!(client.mock.until(LIMIT, |ledger| ledger.totals.open == 0).await);
    let mut read = 0;
    for task in client.mock.ledger().tasks {
        for _ in 0..3 {
            let reply = client.poll(&format!("action=get&id={}", task.id)).await;
            read += u64::from(reply.is_ok_and(|reply| reply.body.starts_with(b"OK|")));
        }
    }
    let ledger = client.mock.ledger();
    let totals = &ledger.totals;
    assert_eq!(totals.accepted, ledger.tasks.len() as u64);
    assert_eq!(totals.accepted, totals.solved + totals.failed);
    assert_eq!(ledger.tasks.iter().filter(|task| task.reply_delivered).count() as u64, callback);
    assert_eq!(ledger.tasks.iter().map(|task| task.reads).sum::<u64>(), read);
    assert_eq!(ledger.tasks.iter().filter(|task| task.delivered).count() as u64, totals.delivered);
    assert_eq!(totals.paid_micros, totals.accepted * 2_990);
    assert_eq!(totals.refunded_micros, totals.failed * 2_990);
    assert!(totals.accepted > callback, "some replies were lost");
    let balance = client.mock.state().accounts[0].balance_micros;
    assert_eq!(balance, 1_000_000_000 - totals.paid_micros + totals.refunded_micros);
    for name in ["reply_lost", "request_lost", "status", "refused", "code", "delay_ms"] {
        assert!(client.fault(name) > 0, "no {name} in {:?}", totals.faults);
    }
}

#[tokio::test]
async fn a_connection_that_stays_open_is_served_again_and_again() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let mut stream = tokio::net::TcpStream::connect(client.mock.address()).await.expect("it listens");
    for _ in 0..3 {
        let raw = format!("GET /res.php?key={DEMO_KEY}&action=getbalance HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(raw.as_bytes()).await.expect("it is open");
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n\r\n10.00") {
            assert_ne!(stream.read_buf(&mut reply).await.expect("an answer"), 0);
        }
    }
    client.mock.outage(Duration::from_millis(1), true);
    assert_eq!(stream.read(&mut [0; 8]).await.expect("an end"), 0, "an idle connection ends with the server");
    assert_eq!(client.mock.totals().connections, 1);
}

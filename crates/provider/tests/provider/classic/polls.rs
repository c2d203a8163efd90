//! Tests of polling tasks, alone and together. The reply for several tasks is a hint; a task only gets what its own
//! reply says.

use crate::classic::server::{ClassicRequest, ClassicServer, http, ok};
use crate::classic::{accepted, hasty, provider};
use crate::fixture::{settings, submit};
use quittance_lifecycle::{Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer};
use quittance_ports::Provider;
use quittance_protocol::classic::ClassicDialect;
use quittance_protocol::classic::dialect::PollQuota;
use quittance_provider::Settings;
use quittance_provider::classic::ClassicProvider;
use std::collections::BTreeMap;

const PENDING: &str = "CAPCHA_NOT_READY";

fn answered(text: &str, micros: impl Into<Option<u64>>) -> PollOutcome {
    PollOutcome::Answered(ProviderAnswer {
        payload: Payload::text(text),
        took_at_least: None,
        cost: micros.into().map(Money),
    })
}

fn tasks(count: usize) -> Vec<String> {
    (1..=count).map(|n| n.to_string()).collect()
}

/// What the server replies for each task.
type TaskTruth = BTreeMap<String, String>;

fn alone(truth: &TaskTruth, request: &ClassicRequest) -> String {
    let outcome_of = &truth[request.text("id")];
    let is_answer = outcome_of != PENDING && !outcome_of.starts_with("ERROR");
    ok(&format!(r#"{{"status":{},"request":"{outcome_of}","price":"0.001"}}"#, u8::from(is_answer)))
}

fn outcome(outcome_of: &str) -> PollOutcome {
    match outcome_of {
        PENDING => PollOutcome::Pending,
        "ERROR_CAPTCHA_UNSOLVABLE" => {
            let whole = format!(r#"{{"status":0,"request":"{outcome_of}","price":"0.001"}}"#);
            PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, outcome_of).with_text(&whole))
        }
        text => answered(text, 1000),
    }
}

/// Polls tasks whose true replies are `truth`, from a server that replies `together` for all. Returns the outcomes
/// and the number of calls.
async fn ask(truth: &[&str], together: &str) -> (Vec<PollOutcome>, usize) {
    let ids = tasks(truth.len());
    let known: TaskTruth =
        ids.iter().cloned().zip(truth.iter().map(|outcome_of| (*outcome_of).to_owned())).collect();
    let together = together.to_owned();
    let server = ClassicServer::answering(move |request| match request.text("ids") {
        "" => alone(&known, request),
        _ => ok(&format!(r#"{{"status":1,"request":"{together}"}}"#)),
    });
    let outcome_of = provider(ClassicDialect::TwoCaptcha, &server.url()).poll(&ids).await;
    assert!(outcome_of.iter().map(|(task, _)| task).eq(&ids));
    (outcome_of.into_iter().map(|(_, outcome)| outcome).collect(), server.received().len())
}

#[track_caller]
fn is_truth(outcome_of: &[PollOutcome], truth: &[&str]) {
    let expected: Vec<_> = truth.iter().map(|outcome_of| outcome(outcome_of)).collect();
    assert_eq!(outcome_of, expected, "{truth:?}");
}

#[tokio::test]
async fn one_task_is_polled_with_its_price_where_there_is_one() {
    for (dialect, action, body, cost) in [
        (ClassicDialect::TwoCaptcha, "get2", r#"{"status":1,"request":"a|b","price":"0.00299"}"#, Some(2990)),
        (ClassicDialect::TwoCaptcha, "get2", "OK|a|b|0.00299", Some(2990)),
        (ClassicDialect::CaptchaAi, "get", r#"{"status":1,"request":"a|b"}"#, None),
        (ClassicDialect::CaptchaAi, "get", "OK|a|b", None),
    ] {
        let server = ClassicServer::answering(move |_| ok(body));
        let outcome_of = provider(dialect, &server.url()).poll(&tasks(1)).await;
        assert_eq!(outcome_of, [("1".to_owned(), answered("a|b", cost))], "{body}");
        let request = &server.received()[0];
        assert_eq!((request.text("action"), request.text("id"), request.text("json")), (action, "1", "1"));
        assert_eq!(request.line(), "POST /res.php HTTP/1.1");
    }
}

#[tokio::test]
async fn many_that_wait_cost_one_call() {
    let truth = [PENDING; 10];
    let (outcome_of, calls) = ask(&truth, &truth.join("|")).await;
    is_truth(&outcome_of, &truth);
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_task_that_changed_is_polled_alone_and_confirms_the_rest() {
    let truth = [PENDING, "a", PENDING, "ERROR_CAPTCHA_UNSOLVABLE", PENDING];
    let (outcome_of, calls) = ask(&truth, &truth.join("|")).await;
    is_truth(&outcome_of, &truth);
    assert_eq!(calls, 1 + 2);
}

#[tokio::test]
async fn a_batched_poll_whose_answer_has_fewer_parts_than_ids_gives_every_task_its_own() {
    let truth = ["a", PENDING, "c", "d", PENDING];
    for together in ["a|c|d", "a", "CAPCHA_NOT_READY|CAPCHA_NOT_READY", "", "a|CAPCHA_NOT_READY|c|d"] {
        let (outcome_of, calls) = ask(&truth, together).await;
        is_truth(&outcome_of, &truth);
        assert_eq!(calls, 1 + 5, "{together}");
    }
}

#[tokio::test]
async fn marks_inside_answers_that_make_up_for_missing_parts_are_noticed() {
    // The second is missing, and the third makes two.
    let truth = ["a", PENDING, "x|y"];
    is_truth(&ask(&truth, "a|x|y").await.0, &truth);
    // The first is missing, so that a part that says pending stands in its place.
    let truth = ["a", PENDING, "x|y"];
    is_truth(&ask(&truth, "CAPCHA_NOT_READY|x|y").await.0, &truth);
    let truth = ["ERROR_CAPTCHA_UNSOLVABLE", PENDING, PENDING, "x|y"];
    is_truth(&ask(&truth, "CAPCHA_NOT_READY|CAPCHA_NOT_READY|x|y").await.0, &truth);
}

/// CaptchaAI does not document `ids`. A reply that does not fit ends its use, and costs no task its answer.
#[tokio::test]
async fn a_service_that_may_not_know_batches_is_tried_once() {
    for (together, is_known) in [
        ("a|CAPCHA_NOT_READY", true),
        ("ERROR_WRONG_CAPTCHA_ID", false),
        ("ERROR_WRONG_ID_FORMAT", false),
        ("ERROR_EMPTY_ACTION", false),
        ("CAPCHA_NOT_READY", false),
        ("b|CAPCHA_NOT_READY", false),
    ] {
        let known: TaskTruth =
            [("1".to_owned(), "a".to_owned()), ("2".to_owned(), PENDING.to_owned())].into();
        let server = ClassicServer::answering(move |request| match request.text("ids") {
            "" => alone(&known, request),
            _ if together.starts_with("ERROR") => ok(&format!(r#"{{"status":0,"request":"{together}"}}"#)),
            _ => ok(&format!(r#"{{"status":1,"request":"{together}"}}"#)),
        });
        let provider = provider(ClassicDialect::CaptchaAi, &server.url());
        assert_eq!(provider.poll_batch_max(), 20);
        for _ in 0..2 {
            let outcomes: Vec<_> =
                provider.poll(&tasks(2)).await.into_iter().map(|(_, outcome)| outcome).collect();
            assert_eq!(outcomes, [answered("a", 1000), PollOutcome::Pending], "{together}");
        }
        assert_eq!(provider.poll_batch_max() > 1, is_known, "{together}");
        let batches = server.received().iter().filter(|request| !request.text("ids").is_empty()).count();
        assert_eq!(batches, if is_known { 2 } else { 1 }, "{together}");
    }
}

/// Servers lose or reorder parts, and answers contain separators. Still no task gets the result of another.
#[tokio::test]
async fn no_task_ever_gets_the_result_of_another() {
    let mut seed = 7_u64;
    let mut dice = move |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % sides
    };
    for _ in 0..150 {
        let count = 2 + dice(4);
        let mut truth = Vec::new();
        for n in 0..count {
            truth.push(match dice(5) {
                0 | 1 => PENDING.to_owned(),
                2 => format!("t{n}|u{n}"),
                3 => "ERROR_CAPTCHA_UNSOLVABLE".to_owned(),
                _ => format!("t{n}"),
            });
        }
        let mut parts = truth.clone();
        parts.retain(|_| dice(4) > 0);
        if parts.len() > 1 && dice(4) == 0 {
            let (one, other) = (dice(parts.len()), dice(parts.len()));
            parts.swap(one, other);
        }
        let truth: Vec<&str> = truth.iter().map(String::as_str).collect();
        let (outcome_of, _) = ask(&truth, &parts.join("|")).await;
        is_truth(&outcome_of, &truth);
    }
}

#[tokio::test]
async fn a_code_for_the_whole_batch_goes_to_every_task_and_causes_no_other_call() {
    for (code, class) in
        [("ERROR: 1005", FaultClass::Busy), ("ERROR_KEY_DOES_NOT_EXIST", FaultClass::AccountBlocked)]
    {
        let server = ClassicServer::answering(move |_| ok(&format!(r#"{{"status":0,"request":"{code}"}}"#)));
        let outcome_of = provider(ClassicDialect::TwoCaptcha, &server.url()).poll(&tasks(5)).await;
        assert!(
            outcome_of
                .iter()
                .all(|(_, outcome_of)| *outcome_of == PollOutcome::Faulted(Fault::new(class, code))),
            "{outcome_of:?}"
        );
        assert_eq!((outcome_of.len(), server.received().len()), (5, 1));
    }
}

#[tokio::test]
async fn a_transport_error_settles_nothing_and_costs_one_call() {
    let answers = [
        ok("<html>sorry</html>"),
        ok(""),
        http("502 Bad Gateway", "OK|a"),
        http("404 No", PENDING),
        "junk\r\n\r\n".to_owned(),
    ];
    for answer in answers {
        for count in [1, 5] {
            let answer = answer.clone();
            let server = ClassicServer::answering(move |_| answer.clone());
            let outcome_of = provider(ClassicDialect::TwoCaptcha, &server.url()).poll(&tasks(count)).await;
            assert_eq!(outcome_of.len(), count);
            assert!(
                outcome_of.iter().all(|(_, outcome_of)| *outcome_of == PollOutcome::NoReply),
                "{outcome_of:?}"
            );
            assert_eq!(server.received().len(), 1);
        }
    }
    let outcome_of = hasty("http://127.0.0.1:1").poll(&tasks(2)).await;
    assert!(outcome_of.iter().all(|(_, outcome_of)| *outcome_of == PollOutcome::NoReply), "{outcome_of:?}");
    assert!(provider(ClassicDialect::TwoCaptcha, "http://127.0.0.1:1").poll(&[]).await.is_empty());
}

#[tokio::test]
async fn one_malformed_answer_or_hanging_poll_harms_no_other_task() {
    let truth = ["a", "hangs", "malformed", PENDING, "e"];
    let known: TaskTruth = tasks(5).into_iter().zip(truth.map(str::to_owned)).collect();
    let server = ClassicServer::start(move |_, mut guest| {
        while let Some(request) = guest.read_request() {
            match request.text("id") {
                "" => guest.write(&ok("a|b")),
                "2" => return guest.hold(),
                "3" => guest.write(&ok("{\"status\":1,\"request\":")),
                _ => guest.write(&alone(&known, &request)),
            }
        }
    });
    let outcome_of = hasty(&server.url()).poll(&tasks(5)).await;
    let outcome_of: Vec<_> = outcome_of.into_iter().map(|(_, outcome)| outcome).collect();
    use PollOutcome::{NoReply, Pending};
    assert_eq!(outcome_of, [answered("a", 1000), NoReply, NoReply, Pending, answered("e", 1000)]);
}

#[tokio::test]
async fn an_error_code_is_never_an_answer() {
    for code in ["ERROR_CAPTCHA_UNSOLVABLE", "ERROR_NEVER_SEEN", "ERROR: 1005", "IP_BANNED"] {
        for body in [code.to_owned(), format!("OK|{code}"), format!(r#"{{"status":1,"request":"{code}"}}"#)] {
            let server = ClassicServer::answering(move |_| ok(&body));
            let outcome_of = provider(ClassicDialect::TwoCaptcha, &server.url()).poll(&tasks(1)).await;
            assert!(
                matches!(&outcome_of[0].1, PollOutcome::Faulted(fault) if fault.code == code),
                "{outcome_of:?}"
            );
        }
    }
}

#[tokio::test]
async fn providers_without_batch_polls_get_single_polls() {
    let server = ClassicServer::answering(|_| ok(PENDING));
    let settings = Settings { poll_batch_max: Some(1), ..settings(&server.url()) };
    let provider = ClassicProvider::new(ClassicDialect::CaptchaAi, settings).unwrap();
    assert_eq!(provider.poll_batch_max(), 1);
    let outcome_of = provider.poll(&tasks(3)).await;
    assert!(
        outcome_of.len() == 3 && outcome_of.iter().all(|(_, outcome_of)| *outcome_of == PollOutcome::Pending)
    );
    assert!(server.received().iter().all(|request| request.text("ids").is_empty()));
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn odd_task_names_are_never_put_in_a_list() {
    let server = ClassicServer::answering(|request| ok(&format!("OK|{}|0.1", request.text("id"))));
    let odd = ["1,2".to_owned(), "3".to_owned()];
    let outcome_of = provider(ClassicDialect::TwoCaptcha, &server.url()).poll(&odd).await;
    assert_eq!(outcome_of[0].1, answered("1,2", 100_000));
    assert_eq!(outcome_of[1].1, answered("3", 100_000));
}

#[tokio::test]
async fn polls_stay_within_what_the_provider_allows() {
    let server = ClassicServer::answering(|request| {
        ok(if request.line().contains("in.php") { "OK|1" } else { PENDING })
    });
    let mut settings = settings(&server.url());
    settings.poll_quota = Some(PollQuota { per_task: 2, slack: 1 });
    let provider = ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap();
    let mut outcome_of = Vec::new();
    assert_eq!(submit(&provider).await, accepted("1"));
    for _ in 0..4 {
        outcome_of.extend(provider.poll(&tasks(1)).await.into_iter().map(|(_, outcome_of)| outcome_of));
    }
    use PollOutcome::{NoReply, Pending};
    assert_eq!(outcome_of, [Pending, Pending, Pending, NoReply]);
    assert_eq!(server.received().len(), 1 + 3);
}

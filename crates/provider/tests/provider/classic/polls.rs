//! Asking for tasks, alone and together. The reply to several is a hint; what a task is told is only what it was told
//! itself.

use crate::classic::server::{Seen, Server, http, ok};
use crate::classic::{accepted, hasty, provider, settings, submit};
use quittance_lifecycle::{Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer};
use quittance_ports::Provider;
use quittance_protocol::classic::Profile;
use quittance_protocol::classic::profile::PollQuota;
use quittance_provider::classic::ClassicProvider;
use std::collections::BTreeMap;

const PENDING: &str = "CAPCHA_NOT_READY";

fn answered(text: &str, micros: impl Into<Option<u64>>) -> PollOutcome {
    PollOutcome::Answered(ProviderAnswer {
        payload: Payload::text(text),
        solved_at: None,
        cost: micros.into().map(Money),
    })
}

fn tasks(count: usize) -> Vec<String> {
    (1..=count).map(|n| n.to_string()).collect()
}

/// What the server knows of each task, and how it answers for one.
type Truth = BTreeMap<String, String>;

fn alone(truth: &Truth, seen: &Seen) -> String {
    let said = &truth[seen.text("id")];
    let is_answer = said != PENDING && !said.starts_with("ERROR");
    ok(&format!(r#"{{"status":{},"request":"{said}","price":"0.001"}}"#, u8::from(is_answer)))
}

fn outcome(said: &str) -> PollOutcome {
    match said {
        PENDING => PollOutcome::Pending,
        "ERROR_CAPTCHA_UNSOLVABLE" => {
            let whole = format!(r#"{{"status":0,"request":"{said}","price":"0.001"}}"#);
            PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, said).saying(&whole))
        }
        text => answered(text, 1000),
    }
}

/// Asks for tasks that are in truth as `truth` says, of a server that answers `together` for all; gives the outcomes and
/// how many calls it took.
async fn ask(truth: &[&str], together: &str) -> (Vec<PollOutcome>, usize) {
    let ids = tasks(truth.len());
    let known: Truth = ids.iter().cloned().zip(truth.iter().map(|said| (*said).to_owned())).collect();
    let together = together.to_owned();
    let server = Server::answering(move |seen| match seen.text("ids") {
        "" => alone(&known, seen),
        _ => ok(&format!(r#"{{"status":1,"request":"{together}"}}"#)),
    });
    let said = provider(Profile::TwoCaptcha, &server.url()).poll(&ids).await;
    assert!(said.iter().map(|(task, _)| task).eq(&ids));
    (said.into_iter().map(|(_, outcome)| outcome).collect(), server.seen().len())
}

#[track_caller]
fn is_truth(said: &[PollOutcome], truth: &[&str]) {
    let expected: Vec<_> = truth.iter().map(|said| outcome(said)).collect();
    assert_eq!(said, expected, "{truth:?}");
}

#[tokio::test]
async fn one_task_is_asked_for_with_its_price_where_there_is_one() {
    for (profile, action, body, cost) in [
        (Profile::TwoCaptcha, "get2", r#"{"status":1,"request":"a|b","price":"0.00299"}"#, Some(2990)),
        (Profile::TwoCaptcha, "get2", "OK|a|b|0.00299", Some(2990)),
        (Profile::CaptchaAi, "get", r#"{"status":1,"request":"a|b"}"#, None),
        (Profile::CaptchaAi, "get", "OK|a|b", None),
    ] {
        let server = Server::answering(move |_| ok(body));
        let said = provider(profile, &server.url()).poll(&tasks(1)).await;
        assert_eq!(said, [("1".to_owned(), answered("a|b", cost))], "{body}");
        let seen = &server.seen()[0];
        assert_eq!((seen.text("action"), seen.text("id"), seen.text("json")), (action, "1", "1"));
        assert_eq!(seen.line(), "POST /res.php HTTP/1.1");
    }
}

#[tokio::test]
async fn many_that_wait_cost_one_call() {
    let truth = [PENDING; 10];
    let (said, calls) = ask(&truth, &truth.join("|")).await;
    is_truth(&said, &truth);
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn who_speaks_is_asked_alone_and_confirms_the_rest() {
    let truth = [PENDING, "a", PENDING, "ERROR_CAPTCHA_UNSOLVABLE", PENDING];
    let (said, calls) = ask(&truth, &truth.join("|")).await;
    is_truth(&said, &truth);
    assert_eq!(calls, 1 + 2);
}

#[tokio::test]
async fn a_batched_poll_whose_answer_has_fewer_parts_than_ids_gives_every_task_its_own() {
    let truth = ["a", PENDING, "c", "d", PENDING];
    for together in ["a|c|d", "a", "CAPCHA_NOT_READY|CAPCHA_NOT_READY", "", "a|CAPCHA_NOT_READY|c|d"] {
        let (said, calls) = ask(&truth, together).await;
        is_truth(&said, &truth);
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

/// Servers that lose parts, turn them around, and answers full of marks: whatever comes, nobody is told what is not true
/// of him.
#[tokio::test]
async fn no_task_is_ever_told_what_is_true_of_another() {
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
        let (said, _) = ask(&truth, &parts.join("|")).await;
        is_truth(&said, &truth);
    }
}

#[tokio::test]
async fn a_code_for_all_is_told_to_all_and_asks_nobody_again() {
    for (code, class) in
        [("ERROR: 1005", FaultClass::Busy), ("ERROR_KEY_DOES_NOT_EXIST", FaultClass::AccountBlocked)]
    {
        let server = Server::answering(move |_| ok(&format!(r#"{{"status":0,"request":"{code}"}}"#)));
        let said = provider(Profile::TwoCaptcha, &server.url()).poll(&tasks(5)).await;
        assert!(
            said.iter().all(|(_, said)| *said == PollOutcome::Faulted(Fault::new(class, code))),
            "{said:?}"
        );
        assert_eq!((said.len(), server.seen().len()), (5, 1));
    }
}

#[tokio::test]
async fn trouble_on_the_way_is_no_word_and_costs_one_call() {
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
            let server = Server::answering(move |_| answer.clone());
            let said = provider(Profile::TwoCaptcha, &server.url()).poll(&tasks(count)).await;
            assert_eq!(said.len(), count);
            assert!(said.iter().all(|(_, said)| *said == PollOutcome::NoReply), "{said:?}");
            assert_eq!(server.seen().len(), 1);
        }
    }
    let said = hasty("http://127.0.0.1:1").poll(&tasks(2)).await;
    assert!(said.iter().all(|(_, said)| *said == PollOutcome::NoReply), "{said:?}");
    assert!(provider(Profile::TwoCaptcha, "http://127.0.0.1:1").poll(&[]).await.is_empty());
}

#[tokio::test]
async fn one_malformed_answer_or_hanging_poll_hurts_nobody_else() {
    let truth = ["a", "hangs", "malformed", PENDING, "e"];
    let known: Truth = tasks(5).into_iter().zip(truth.map(str::to_owned)).collect();
    let server = Server::start(move |_, mut guest| {
        while let Some(seen) = guest.read_request() {
            match seen.text("id") {
                "" => guest.write(&ok("a|b")),
                "2" => return guest.hold(),
                "3" => guest.write(&ok("{\"status\":1,\"request\":")),
                _ => guest.write(&alone(&known, &seen)),
            }
        }
    });
    let said = hasty(&server.url()).poll(&tasks(5)).await;
    let said: Vec<_> = said.into_iter().map(|(_, outcome)| outcome).collect();
    use PollOutcome::{NoReply, Pending};
    assert_eq!(said, [answered("a", 1000), NoReply, NoReply, Pending, answered("e", 1000)]);
}

#[tokio::test]
async fn an_error_code_is_never_an_answer() {
    for code in ["ERROR_CAPTCHA_UNSOLVABLE", "ERROR_NEVER_SEEN", "ERROR: 1005", "IP_BANNED"] {
        for body in [code.to_owned(), format!("OK|{code}"), format!(r#"{{"status":1,"request":"{code}"}}"#)] {
            let server = Server::answering(move |_| ok(&body));
            let said = provider(Profile::TwoCaptcha, &server.url()).poll(&tasks(1)).await;
            assert!(matches!(&said[0].1, PollOutcome::Faulted(fault) if fault.code == code), "{said:?}");
        }
    }
}

#[tokio::test]
async fn where_several_cannot_be_asked_for_together_they_are_not() {
    let server = Server::answering(|_| ok(PENDING));
    let provider = provider(Profile::CaptchaAi, &server.url());
    assert_eq!(provider.poll_batch_max(), 1);
    let said = provider.poll(&tasks(3)).await;
    assert!(said.len() == 3 && said.iter().all(|(_, said)| *said == PollOutcome::Pending));
    assert!(server.seen().iter().all(|seen| seen.text("ids").is_empty()));
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn odd_task_names_are_never_put_in_a_list() {
    let server = Server::answering(|seen| ok(&format!("OK|{}|0.1", seen.text("id"))));
    let odd = ["1,2".to_owned(), "3".to_owned()];
    let said = provider(Profile::TwoCaptcha, &server.url()).poll(&odd).await;
    assert_eq!(said[0].1, answered("1,2", 100_000));
    assert_eq!(said[1].1, answered("3", 100_000));
}

#[tokio::test]
async fn polls_stay_within_what_the_provider_allows() {
    let server = Server::answering(|seen| ok(if seen.line().contains("in.php") { "OK|1" } else { PENDING }));
    let mut settings = settings(Profile::TwoCaptcha, &server.url());
    settings.pace.poll_quota = Some(PollQuota { per_task: 2, slack: 1 });
    let provider = ClassicProvider::new(settings).unwrap();
    let mut said = Vec::new();
    assert_eq!(submit(&provider).await, accepted("1"));
    for _ in 0..4 {
        said.extend(provider.poll(&tasks(1)).await.into_iter().map(|(_, said)| said));
    }
    use PollOutcome::{NoReply, Pending};
    assert_eq!(said, [Pending, Pending, Pending, NoReply]);
    assert_eq!(server.seen().len(), 1 + 3);
}

//! Many dead letters: replayed in bulk by processes that are killed in the middle, moved to another store, and
//! handled beside a daemon that uses the store alone.

use crate::binary::{ChildProcess, run_within};
use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line, page};
use crate::serve::until_ready;
use crate::wait::{LONG, until, until_within};
use serde_json::{Value, json};
use std::env;
use std::io::BufReader;
use std::process::Stdio;
use std::time::Duration;

/// The variable with the number of dead letters; a larger number makes a longer test.
const SIZE: &str = "QUITTANCE_E2E_LETTERS";

fn size() -> usize {
    env::var(SIZE).ok().and_then(|typed| typed.parse().ok()).unwrap_or(300)
}

/// The timeout for work on every dead letter.
fn timeout(size: usize) -> Duration {
    LONG + Duration::from_millis(20 * size as u64)
}

/// A sandbox in which an unsolvable order becomes a dead letter at once.
fn sandbox_of(sim: &Sim) -> Sandbox {
    Sandbox::of(sim).set("retry.limits.unsolvable=0").set("timing.deadline=10m")
}

/// Makes this many dead letters, and a provider that works again.
fn move_to_dead_letters(sim: &Sim, sandbox: &Sandbox, size: usize) {
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } }]));
    let lines: Vec<String> = (0..size).map(|n| line(n as u64, &format!("n{n}")).to_string()).collect();
    for some in lines.chunks(1000) {
        let ran = sandbox.run_lines(some);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
    }
    assert_eq!(sim.ledger().accepted(), 0);
    sim.calm();
}

fn keys(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.run(&["dead", "list", "--json", "--limit", "1000000"]);
    let listed = listed.must_succeed().json();
    let entries = listed.as_array().expect("an array");
    entries.iter().map(|entry| entry["key"].as_str().expect("it has a name").to_owned()).collect()
}

/// A daemon on this sandbox's store.
struct DeadLetterDaemon {
    child: ChildProcess,
    url: String,
}

impl DeadLetterDaemon {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(&["serve"]);
        let mut child =
            ChildProcess::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let output = until_ready(&mut out).expect("it gets ready");
        let url = output.lines().find_map(|line| line.strip_prefix("listening on ")).expect("it says where");
        Self { child, url: url.to_owned() }
    }

    fn read(&self, path: &str) -> Value {
        let (status, output) = call("GET", &format!("{}{path}", self.url), "");
        assert_eq!(status, 200, "{path}: {output}");
        serde_json::from_str(&output).expect("it answers in JSON")
    }

    /// Checks that each of these was replayed and bought once, except those in doubt when a process was killed.
    fn each_was_replayed_once(&self, keys: &[String], sim: &Sim) {
        let mut doubles = 0;
        for key in keys {
            let timeline = self.read(&format!("/v1/admin/orders/{key}"));
            // A replay is a new life. (The beats themselves may be left out of a timeline that has many.)
            assert_eq!(
                (&timeline["life"], &timeline["dead_letter"]),
                (&json!(2), &Value::Null),
                "{timeline}"
            );
            doubles += timeline["possible_doubles"].as_u64().expect("a number");
        }
        let ledger = sim.ledger();
        assert_eq!(ledger.by_page().len(), keys.len(), "each was bought for");
        let bought_twice = ledger.accepted() - keys.len() as u64;
        assert!(
            bought_twice <= doubles,
            "{bought_twice} were bought twice, and {doubles} are in plain sight"
        );
    }
}

#[test]
fn a_bulk_replay_that_is_killed_in_the_middle_goes_on_and_replays_each_once() {
    let sim = Sim::start();
    let sandbox = sandbox_of(&sim);
    let size = size();
    move_to_dead_letters(&sim, &sandbox, size);
    let keys = keys(&sandbox);
    assert_eq!(keys.len(), size);
    let rate = format!("{}/s", (size / 6).clamp(1, 1000));
    let all = ["dead", "replay", "--all", "--yes", "--rate", &rate];
    // Twice: once with the same command again, once with what is meant for it.
    for part in [3, 2] {
        let mut command = sandbox.command(&all);
        let mut child =
            ChildProcess::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
        until_within(timeout(size), "a part of them to be bought for", || {
            (sim.ledger().accepted() >= (size / part) as u64).then_some(())
        });
        child.kill();
    }
    assert!(sim.ledger().accepted() < size as u64, "it was killed in the middle");
    let resume = sandbox.command(&["dead", "replay", "--resume", "--json"]);
    let resumed = run_within(timeout(size), resume, b"");
    let bulk = resumed.must_succeed().json();
    assert!(resumed.err.contains("resuming"), "{resumed:?}");
    assert_eq!((&bulk["dead_again"], &bulk["was_stopped"]), (&json!(0), &json!(false)));
    assert!(sandbox.dead_letters().is_empty());
    sandbox.run(&["dead", "replay", "--resume"]).must_succeed();
    DeadLetterDaemon::start(&sandbox).each_was_replayed_once(&keys, &sim);
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_of_a_bulk_replay_resumes_it_by_itself() {
    let sim = Sim::start();
    let sandbox = sandbox_of(&sim);
    move_to_dead_letters(&sim, &sandbox, 120);
    let keys = keys(&sandbox);
    let mut daemon = DeadLetterDaemon::start(&sandbox);
    let (status, begun) =
        call("POST", &format!("{}/v1/admin/dead/bulk", daemon.url), r#"{"action":"replay","per_second":30}"#);
    assert_eq!(status, 202, "{begun}");
    until("a part of them to be bought for", || (sim.ledger().accepted() >= 30).then_some(()));
    daemon.child.kill();
    assert!(sim.ledger().accepted() < 120, "it was killed in the middle");
    let daemon = DeadLetterDaemon::start(&sandbox);
    until("the rest", || {
        let bulk = daemon.read("/v1/admin/dead/bulk/1");
        let is_open = |key: &String| daemon.read(&format!("/v1/admin/orders/{key}"))["status"] == "pending";
        (!bulk["ended_at"].is_null() && !keys.iter().any(is_open)).then_some(())
    });
    daemon.each_was_replayed_once(&keys, &sim);
}

#[test]
fn a_great_many_are_not_replayed_before_the_operator_has_confirmed() {
    let sim = Sim::start();
    // Only a poll gets the price of an answer.
    let sandbox = Sandbox::polling(&sim).set("retry.limits.unsolvable=0");
    move_to_dead_letters(&sim, &sandbox, 3);
    for command in ["replay", "drop"] {
        sandbox.run(&["dead", command, "--all"]).must_fail(2, &["--yes", "--dry-run"]);
        sandbox.run(&["dead", command, "--site", "n1.example.com"]).must_fail(2, &["--yes"]);
    }
    let reply = sandbox.run(&["dead", "replay", "--all", "--dry-run"]);
    assert!(reply.must_succeed().out.contains("3 dead letters would be replayed"), "{reply:?}");
    let reply = sandbox
        .run(&["dead", "drop", "--site", "n1.example.com", "--dry-run", "--json"])
        .must_succeed()
        .json();
    assert_eq!((&reply["dead_letters"], &reply["would_pay"]), (&json!(1), &json!(0)));
    assert_eq!((sandbox.dead_letters().len(), sim.ledger().accepted()), (3, 0), "nothing was touched");
    for odd in [["--rate", "0"], ["--rate", "50/min"], ["--cause", "bad"], ["--older-than", "long"]] {
        sandbox.run(&[&["dead", "replay", "--all", "--dry-run"], &odd[..]].concat()).must_fail(2, &[odd[0]]);
    }
    // What was bought tells what an answer costs.
    sandbox.run(&["dead", "replay", "--site", "n0.example.com", "--yes"]).must_succeed();
    let reply = sandbox.run(&["dead", "replay", "--all", "--dry-run", "--json"]).must_succeed().json();
    assert_eq!((&reply["dead_letters"], &reply["would_pay"]), (&json!(2), &json!(2)));
    assert!(reply["cost_micros"].as_u64().is_some_and(|cost| cost > 0), "{reply}");
    assert_eq!(sim.ledger().by_page().keys().collect::<Vec<_>>(), [&page("n0")]);
    let dropped = sandbox.run(&["dead", "drop", "--newer-than", "1h", "--yes"]);
    assert!(dropped.must_succeed().out.contains("2 dead letters dropped"), "{dropped:?}");
    assert_eq!((sandbox.dead_letters().len(), sim.ledger().accepted()), (0, 1));
}

#[test]
fn what_dies_again_is_reported_and_left() {
    let sim = Sim::start();
    let sandbox = sandbox_of(&sim);
    move_to_dead_letters(&sim, &sandbox, 5);
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } }]));
    let ran = sandbox.run(&["dead", "replay", "--all", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.contains("5 dead letters replayed") && ran.out.contains("5 are dead letters again"),
        "{ran:?}"
    );
    assert_eq!((sandbox.dead_letters().len(), sim.ledger().requests("in.php")), (5, 10));
}

#[test]
fn a_refusal_is_reported_and_no_success_here_and_beside_a_daemon() {
    let sim = Sim::start();
    for has_daemon in [false, true] {
        let sandbox = sandbox_of(&sim);
        move_to_dead_letters(&sim, &sandbox, 3);
        let _daemon = has_daemon.then(|| DeadLetterDaemon::start(&sandbox));
        sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_WRONG_GOOGLEKEY" } }]));
        let ran = sandbox.run(&["dead", "replay", "--all", "--yes"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains("3 dead letters replayed; 0 were answered; 3 failed"), "{ran:?}");
        let again = sandbox.run(&["dead", "replay", "--resume"]);
        assert!(again.must_succeed().err.contains("no bulk action is in progress"), "{again:?}");
        let stopped = sandbox.run(&["dead", "stop"]);
        assert!(stopped.must_succeed().err.contains("no bulk action is in progress"), "{stopped:?}");
    }
}

#[test]
fn a_replay_stops_at_a_rejected_account_and_resumes_once_it_is_accepted() {
    let sim = Sim::start();
    let sandbox = sandbox_of(&sim);
    move_to_dead_letters(&sim, &sandbox, 3);
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_KEY_DOES_NOT_EXIST" } }]));
    sandbox.run(&["dead", "replay", "--all", "--yes", "--rate", "1/s"]).must_fail(6, &["does not accept"]);
    sim.calm();
    let resumed = sandbox.run(&["dead", "replay", "--resume"]);
    assert!(resumed.must_succeed().out.contains("3 were answered"), "{resumed:?}");
}

#[test]
fn everything_can_be_done_beside_a_daemon_that_has_the_store_to_itself() {
    let sim = Sim::start();
    let sandbox = sandbox_of(&sim);
    move_to_dead_letters(&sim, &sandbox, 4);
    let keys = keys(&sandbox);
    let daemon = DeadLetterDaemon::start(&sandbox);
    assert_eq!(sandbox.dead_letters().len(), 4);
    sandbox.run(&["dead", "note", &keys[0][..12], "asked the provider"]).must_succeed();
    let view = sandbox.run(&["dead", "show", &keys[0][..12]]);
    for word in ["asked the provider", "ERROR_CAPTCHA_UNSOLVABLE", "reply: ", "replay", "timeline"] {
        assert!(view.must_succeed().out.contains(word), "{word}: {}", view.out);
    }
    assert!(sandbox.run(&["dead", "list"]).must_succeed().out.contains("[asked the provider]"));
    let replayed = sandbox.run(&["dead", "replay", &keys[0]]);
    assert!(replayed.must_succeed().out.contains("answered"), "{replayed:?}");
    sandbox.run(&["dead", "drop", &keys[1]]).must_succeed();
    let file = sandbox.path("letters.jsonl").display().to_string();
    let exported = sandbox.run(&["dead", "export", "--out", &file]);
    assert!(exported.must_succeed().err.contains("2 dead letters exported"), "{exported:?}");
    sandbox
        .run(&["dead", "export", "--out", &file])
        .must_fail(3, &["letters.jsonl", "is there already", "--out"]);
    let ran = sandbox.run(&["dead", "replay", "--all", "--yes"]);
    assert!(ran.must_succeed().out.contains("2 dead letters replayed"), "{ran:?}");
    assert!(daemon.read("/v1/admin/dead")["orders"].as_array().is_some_and(Vec::is_empty));
    // What was exported comes to life elsewhere, once, and not where it is known.
    let imported = sandbox.run(&["dead", "import", &file]);
    assert!(
        imported.must_succeed().out.starts_with("0 dead letters imported, 2 were here already"),
        "{imported:?}"
    );
    let other = sandbox_of(&sim);
    for (imported, there_already) in [(2, 0), (0, 2)] {
        let reply = other.run(&["dead", "import", &file, "--json"]).must_succeed().json();
        assert_eq!(reply, json!({ "imported": imported, "there_already": there_already, "refused": 0 }));
    }
    assert_eq!(other.dead_letters().len(), 2);
    other.run(&["dead", "replay", "--all", "--yes"]).must_succeed();
    let junk = sandbox.path("junk");
    std::fs::write(&junk, "no JSON\n\n{\"key\":\"a\"}\n").expect("the folder can be written");
    let ran = other.run(&["dead", "import", &junk.display().to_string()]);
    ran.must_fail(1, &["line 1: ", "line 3: "]);
}

#[test]
fn what_may_not_be_automated_any_more_is_not_replayed() {
    let sim = Sim::start();
    let mut sandbox = sandbox_of(&sim).set("targets.allow=shop.example.org");
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } }]));
    let mut order = line(1, "n1");
    order["params"]["pageurl"] = json!("https://shop.example.org/");
    sandbox.run_lines(&[order.to_string()]);
    sim.calm();
    let [key] = &keys(&sandbox)[..] else { panic!("one dead letter") };
    sandbox.override_setting("targets.allow", "other.example.net");
    let view = sandbox.run(&["dead", "show", key]);
    let why = "is refused: `shop.example.org` is not a host that may be automated";
    assert!(view.must_succeed().out.contains(why), "{}", view.out);
    let reply = sandbox.run(&["dead", "replay", "--all", "--dry-run", "--json"]).must_succeed().json();
    assert_eq!((&reply["would_pay"], &reply["not_allowed"]), (&json!(0), &json!(1)));
    sandbox.run(&["dead", "replay", key]).must_fail(1, &["shop.example.org", "targets.allow"]);
    let ran = sandbox.run(&["dead", "replay", "--all", "--yes"]);
    assert!(ran.out.contains("0 dead letters replayed, 1 skipped"), "{ran:?}");
    assert_eq!((sandbox.dead_letters().len(), sim.ledger().accepted()), (1, 0));
}

/// Hostile text: markup, a terminal escape, line breaks, a change of writing direction, and a spreadsheet formula.
const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[2J\u{9b}31m\r\n\u{202e}=1+1";

#[test]
fn hostile_text_is_text_in_every_form_and_comes_through_an_export_unchanged() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": format!("ERROR_{HOSTILE}") } }]));
    let sandbox = sandbox_of(&sim).set("retry.limits.unlisted_code=0").set("retry.limits.in_doubt=0");
    let mut order = line(1, "n1");
    order["params"]["pageurl"] = json!("https://n1.example.com/<script>alert(1)</script>=1+1");
    order["params"]["data-s"] = json!(HOSTILE);
    order["params"]["cookies"] = json!("sid=hunter2");
    sandbox.run_lines(&[order.to_string()]);
    let entries = sandbox.dead_letters();
    let key = entries[0]["key"].as_str().expect("it has a name");
    sandbox.run(&["dead", "note", key, HOSTILE]).must_succeed();
    let is_odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for args in [
        &["dead", "list"][..],
        &["dead", "list", "--json"],
        &["dead", "show", key],
        &["dead", "show", key, "--json"],
        &["dead", "export"],
    ] {
        let ran = sandbox.run(args);
        assert!(!ran.must_succeed().out.contains(is_odd) && !ran.err.contains(is_odd), "{ran:?}");
        assert!(args.contains(&"export") || !ran.out.contains("hunter2"), "{ran:?}");
    }
    let list = sandbox.run(&["dead", "list"]).out;
    assert_eq!(list.lines().count(), 2, "no line was forged: {list}");
    let timeline = sandbox.run(&["dead", "show", key, "--json"]).json();
    assert_eq!(timeline["params"]["data-s"], HOSTILE, "a program reads what was sent");
    assert_eq!(sandbox.dead_letters()[0]["note"], HOSTILE.trim());
    let exported = sandbox.run(&["dead", "export"]).out;
    assert_eq!(exported.lines().count(), 1);
    let file = sandbox.path("hostile.jsonl");
    std::fs::write(&file, &exported).expect("the folder can be written");
    let other = sandbox_of(&sim);
    other.run(&["dead", "import", &file.display().to_string()]).must_succeed();
    let there = other.run(&["dead", "show", key, "--json"]).json();
    assert_eq!((&there["params"], &there["timeline"]), (&timeline["params"], &timeline["timeline"]));
}

//! The built binary, as a shell sees it: what it prints where, and what it exits with.

use serde_json::Value;
use std::io::Read;
use std::process::{Command, Output, Stdio};

fn quittance(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quittance"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    quittance(args).output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it speaks UTF-8")
}

fn json(seed: &str) -> Value {
    let output = run(&["demo", "--json", "--seed", seed]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

#[test]
fn the_same_seed_gives_the_same_output() {
    for args in [&["demo", "--seed", "11"][..], &["demo", "--seed", "11", "--json"]] {
        let (first, second) = (run(args), run(args));
        assert!(!first.stdout.is_empty());
        assert_eq!(text(&first.stdout), text(&second.stdout));
    }
    assert_ne!(run(&["demo", "--seed", "12"]).stdout, run(&["demo", "--seed", "11"]).stdout);
}

#[test]
fn a_storm_ends_with_every_promise_held_and_exit_code_0() {
    let output = run(&["demo", "--seed", "1"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("Verdict: every promise held."), "{said}");
    assert!(said.contains("demo --seed 1\n"), "{said}");
    for word in ["asked", "paid", "joined", "doubts", "possible double payments", "dead", "lost"] {
        assert!(said.lines().any(|line| line.trim_start().starts_with(word)), "{word} is missing:\n{said}");
    }
}

#[test]
fn a_drawn_seed_is_printed_and_replays_the_same_storm() {
    let drawn = run(&["demo"]);
    let said = text(&drawn.stdout);
    let seed =
        said.lines().next().and_then(|line| line.rsplit(' ').next()).expect("the first line ends with it");
    assert_eq!(text(&run(&["demo", "--seed", seed]).stdout), said);
}

#[test]
fn the_books_are_consistent() {
    for seed in ["1", "2", "3"] {
        let report = json(seed);
        let books = |line: &str| report["books"][line].as_u64().unwrap_or_else(|| panic!("no line {line}"));
        let ledger = |line: &str| report["ledger"][line].as_u64().unwrap_or_else(|| panic!("no line {line}"));
        assert_eq!(report["seed"].to_string(), seed);
        assert_eq!(report["verdict"], "held");
        assert_eq!(report["lost"], 0);

        let served = books("joined") + books("cached") + books("from_stock") + books("refused");
        assert_eq!(report["new_lives"].as_u64(), books("asked").checked_sub(served));
        assert!(books("asked") >= 1_500, "it is a large storm: {report:#}");
        assert!(books("joined") > 0 && books("doubts") > 0, "and one worth seeing: {report:#}");

        // Whatever the provider was paid for is in the books, or stands there as a doubt.
        assert!(books("paid") <= ledger("payments"), "{report:#}");
        assert_eq!(ledger("payments") - books("paid"), ledger("unknown_to_the_books"));
        assert!(ledger("unknown_to_the_books") <= ledger("doubts_open"), "{report:#}");

        assert!(books("paid") <= books("attempts"), "{report:#}");
        assert!(books("solved") <= books("paid"), "{report:#}");
        assert!(books("recovered_from_doubt") <= books("doubts"), "{report:#}");
        assert!(books("possible_doubles") <= books("doubts"), "{report:#}");
        assert_eq!(report["dead_letters"].as_u64(), books("dead").checked_sub(books("revived")));
        assert_eq!(report["storm"]["forged_believed"], 0);
        assert!(books("cost_micros") <= report["money"]["spent_micros"].as_u64().unwrap_or(0), "{report:#}");
    }
}

#[test]
fn a_pipe_gets_no_colours_and_no_moving_line() {
    let output = run(&["demo", "--seed", "1"]);
    for said in [text(&output.stdout), text(&output.stderr)] {
        assert!(!said.contains('\x1b') && !said.contains('\r'), "{said}");
    }
    let told: Vec<&str> = text(&output.stderr).lines().collect();
    let [start, took] = told[..] else { panic!("one line at the start, one at the end: {told:?}") };
    assert!(start.contains("seed 1"), "{start}");
    assert!(took.contains("virtual time"), "{took}");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let mut child = quittance(&["demo", "--seed", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it speaks UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_exits_with_3() {
    let full = std::fs::File::create("/dev/full").expect("Linux has one");
    let output =
        quittance(&["demo", "--seed", "1"]).stdout(full).output().expect("it was built for this test");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("could not be written"));
}

#[test]
fn what_is_not_understood_exits_with_2() {
    let wrong: [&[&str]; 5] =
        [&[], &["storm"], &["demo", "--seed"], &["demo", "--seed", "-1"], &["demo", "--sed", "1"]];
    for args in wrong {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(text(&output.stderr).contains("Usage: quittance") || args.len() > 1, "{args:?}");
    }
}

#[test]
fn help_has_examples_and_exit_codes_and_fits_80_columns() {
    for args in [&["help", "demo"], &["demo", "--help"]] {
        let output = run(args);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0));
        for part in ["Examples:", "Exit codes:", "--seed", "--json", "every promise held"] {
            assert!(said.contains(part), "{part} is missing:\n{said}");
        }
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    }
}

#[test]
fn only_commands_that_exist_are_shown() {
    let output = run(&["--help"]);
    let said = text(&output.stdout);
    let commands = said.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next());
    let names: Vec<&str> =
        commands.unwrap_or_default().lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["demo", "help"], "{said}");
}

#[test]
fn the_version_is_the_crate_s() {
    let output = run(&["--version"]);
    assert_eq!(text(&output.stdout), concat!("quittance ", env!("CARGO_PKG_VERSION"), "\n"));
}

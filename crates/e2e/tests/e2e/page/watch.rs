//! Watching the page: the login with a key, a storm of orders, and an alert that is raised and cleared.

use super::play::Play;
use super::{daemon, params, place};
use crate::provider::Sim;
use crate::serve::Serve;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::thread;

#[test]
fn a_wrong_key_is_refused_and_the_right_one_is_kept_in_the_tab_only() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    Play::run("login", &serve);
    serve.end_in_peace();
}

#[test]
fn more_tabs_than_a_browser_has_connections_share_one_line() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    Play::run("tabs", &serve);
    serve.end_in_peace();
}

/// The number of placements in the storm.
const STORM: usize = 240;
/// How many of the placements repeat an earlier one.
const REPEATED: usize = 40;

fn signal(serve: &Serve, signal: Signal) {
    let pid =
        i32::try_from(serve.pid()).ok().and_then(Pid::from_raw).expect("a running process has a number");
    kill_process(pid, signal).expect("our own child can be signalled");
}

#[test]
fn a_storm_is_shown_as_it_happens_and_a_broken_connection_is_reported() {
    // Solves of one to six seconds: the page reads the phases every two.
    let sim = Sim::start_with("2captcha", &["--speed", "10"]);
    let serve = daemon(&sim, &[]);
    let mut play = Play::start("storm", &serve);
    play.reaches("watching");
    // Before the storm, so that the page looks while it lasts, also on a busy machine.
    play.goes_on();
    thread::scope(|scope| {
        for caller in 0..8 {
            let serve = &serve;
            scope.spawn(move || {
                for n in (caller..STORM).step_by(8) {
                    place(serve, &params(&format!("storm-{}", n % (STORM - REPEATED))));
                }
            });
        }
    });
    play.reaches("seen");
    play.goes_on();
    // A daemon that hangs keeps its connections, and says nothing on them.
    play.reaches("counted");
    signal(&serve, Signal::STOP);
    play.goes_on();
    play.reaches("lost");
    signal(&serve, Signal::CONT);
    play.goes_on();
    play.ends();
    assert_eq!(sim.ledger().accepted(), (STORM - REPEATED) as u64, "each was paid for once");
    serve.end_in_peace();
}

#[test]
fn views_that_could_not_be_loaded_are_loaded_when_the_line_is_back() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    let mut play = Play::start("outage", &serve);
    play.reaches("watching");
    let sandbox = serve.killed();
    play.goes_on();
    play.reaches("lost");
    let serve = Serve::start(sandbox);
    play.goes_on();
    play.ends();
    serve.end_in_peace();
}

#[test]
fn a_provider_is_paused_drained_and_resumed_with_the_keyboard() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    Play::run("providers", &serve);
    serve.end_in_peace();
}

#[test]
fn a_changed_file_is_shown_and_applied_and_a_wrong_one_is_refused() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    let path = serve.sandbox.path("quittance.toml");
    let text = std::fs::read_to_string(&path).expect("the sandbox has a configuration");
    let write = |days: &str| {
        std::fs::write(&path, format!("{text}\n[usage]\ndetail_days = {days}\n")).expect("it can be written");
    };
    let mut play = Play::start("reload", &serve);
    play.reaches("changed");
    write("5");
    play.goes_on();
    play.reaches("wrong");
    write("\"many\"");
    play.goes_on();
    play.ends();
    serve.end_in_peace();
}

#[test]
fn an_alert_is_raised_acknowledged_and_cleared() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    let mut play = Play::start("alert", &serve);
    play.reaches("watching");
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_ZERO_BALANCE" } }]));
    place(&serve, &params("broke"));
    play.goes_on();
    play.reaches("risen");
    sim.calm();
    play.goes_on();
    play.ends();
    serve.end_in_peace();
}

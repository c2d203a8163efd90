//! Tests that no process and no directory stays behind.

use crate::until;
use quittance_servers::{Pooler, Postgres, Redis};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

const IS_STARTER: &str = "SERVERS_TEST_IS_STARTER";

fn dir_of(pid: u32) -> PathBuf {
    let dir = fs::read_link(format!("/proc/{pid}/cwd")).expect("it runs");
    // PostgreSQL goes one deeper.
    if dir.ends_with("base") { dir.parent().expect("it has one").to_owned() } else { dir }
}

fn is_gone(pid: u32, dir: &Path) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists() && !dir.exists()
}

#[test]
fn a_server_that_is_dropped_is_gone_and_its_directory_with_it() {
    let redis = Redis::start(&[]);
    let postgres = Postgres::start(&[]);
    let pooler = Pooler::start(&postgres);
    let known = [redis.pid(), postgres.pid(), pooler.pid()].map(|pid| (pid, dir_of(pid)));
    assert!(known.iter().all(|(_, dir)| dir.to_string_lossy().contains("quittance-servers-")), "{known:?}");
    drop((pooler, postgres, redis));
    for (pid, dir) in known {
        assert!(is_gone(pid, &dir), "{pid} or {} is still there", dir.display());
    }
}

/// Starts servers, prints which, and waits until the process is killed.
fn start_and_wait() {
    let (postgres, paused, redis) = (Postgres::start(&[]), Postgres::start(&[]), Redis::start(&[]));
    paused.pause();
    redis.pause();
    let pids = format!("\npids {} {} {}\n", redis.pid(), postgres.pid(), paused.pid());
    io::stdout().write_all(pids.as_bytes()).expect("the parent reads it");
    thread::park();
}

#[test]
fn the_servers_of_a_process_that_was_killed_are_gone_and_their_directories_with_them() {
    // The process that is killed is this test once more.
    if env::var_os(IS_STARTER).is_some() {
        return start_and_wait();
    }
    let name =
        "left_behind::the_servers_of_a_process_that_was_killed_are_gone_and_their_directories_with_them";
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(IS_STARTER, "1");
    let mut starter = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(starter.stdout.take().unwrap()).lines();
    let pids = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("pids ").map(str::to_owned));
    let pids = pids.expect("it says what it started");
    let known: Vec<(u32, PathBuf)> =
        pids.split(' ').map(|pid| pid.parse().unwrap()).map(|pid| (pid, dir_of(pid))).collect();
    assert_eq!(known.len(), 3);
    starter.kill().unwrap();
    starter.wait().unwrap();
    for (pid, dir) in known {
        until("nothing of it is left", || is_gone(pid, &dir).then_some(()));
    }
}

//! Information about processes that are not our children: whether they live, and their children.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;

#[derive(Debug)]
struct ProcessEntry {
    state: String,
    parent: u32,
    threads: u32,
}

/// The state of a process, or `None` if it is gone.
fn entry(pid: u32) -> Option<ProcessEntry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
    Some(ProcessEntry { state, parent, threads: fields.nth(15)?.parse().ok()? })
}

/// Whether a process lives. A zombie counts as gone, unless one of its threads still holds open files.
pub(crate) fn is_alive(pid: u32) -> bool {
    entry(pid).is_some_and(|entry| !matches!(entry.state.as_str(), "Z" | "X") || entry.threads > 1)
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("servers are only started where there is a /proc");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|child| entry(*child).is_some_and(|entry| entry.parent == pid)).collect()
}

/// Sends a signal. A process that is gone is ignored.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("the system gave this number");
    _ = kill_process(pid, signal);
}

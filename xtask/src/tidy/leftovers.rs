//! The rule against code that is unfinished, switched off, or sleeps.

use super::TidyFinding;
use crate::source::{SourceView, numbered, stands_in};
use crate::tree::Tree;

/// The words of leftovers. Only code counts, so this file does not report itself.
const LEFTOVERS: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore", "thread::sleep"];

/// The test functions that may sleep, in three groups. Any other sleep only hopes that something has happened by
/// then.
const MAY_SLEEP: &[(&str, &str)] = &[
    // They look for a condition again and again.
    ("crates/gateway/tests/gateway/eventually.rs", "eventually"),
    ("crates/quittance/tests/budgets/main.rs", "eventually"),
    ("crates/quittance/tests/library/fixture.rs", "eventually"),
    ("crates/store-postgres/tests/store/main.rs", "until"),
    ("crates/store-redis/tests/store/main.rs", "eventually"),
    ("crates/e2e/tests/e2e/crowd.rs", "connect"),
    ("crates/e2e/tests/e2e/crowd.rs", "polls"),
    (
        "crates/mock-provider/tests/stories/faults.rs",
        "in_an_outage_connections_are_closed_or_refused_and_afterwards_all_is_as_before",
    ),
    // They are a clock.
    ("crates/gateway/tests/gateway/still_clock.rs", "sleep_until"),
    ("crates/gateway/tests/gateway/v1/fixture.rs", "sleep_until"),
    ("crates/gateway/tests/gateway/webhooks/fixture.rs", "sleep_until"),
    // Time is what they test: how long a socket may be idle or not accepted, and that nothing happens
    // meanwhile.
    (
        "crates/gateway/tests/gateway/server/limits.rs",
        "a_connection_that_takes_too_long_over_its_head_is_closed",
    ),
    (
        "crates/gateway/tests/gateway/server/limits.rs",
        "a_connection_is_kept_between_requests_for_longer_than_a_head_may_take_and_not_for_ever",
    ),
    (
        "crates/gateway/tests/gateway/server/limits.rs",
        "a_live_stream_is_not_idle_however_little_there_is_to_tell",
    ),
    (
        "crates/gateway/tests/gateway/callbacks/calls.rs",
        "a_callback_that_arrives_slowly_counts_from_its_beginning",
    ),
    (
        "crates/gateway/tests/gateway/callbacks/calls.rs",
        "a_callback_that_breaks_off_is_an_outage_from_its_beginning",
    ),
    (
        "crates/gateway/tests/gateway/v1/shares.rs",
        "a_time_without_a_free_connection_is_an_outage_for_callbacks",
    ),
    ("crates/admin/tests/admin/live.rs", "many_who_watch_cost_no_more_than_one_who_does"),
    ("crates/quittance/tests/library/hosts/world.rs", "settle"),
    ("crates/quittance/tests/library/hosts/world.rs", "pool"),
];

pub(super) fn no_test_sleeps_for_luck(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for file in tree.rust().filter(|file| file.path.contains("/tests/")) {
        let mut function = String::new();
        for (number, line) in numbered(&SourceView::read(&file.text).code) {
            if let Some((_, rest)) = line.split_once("fn ") {
                function = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            }
            if !stands_in(line, "time::sleep") {
                continue;
            }
            match MAY_SLEEP.iter().find(|(path, name)| *path == file.path && *name == function) {
                Some(allowed) => used.push(allowed),
                None => {
                    findings.push(TidyFinding::breach(&file.path, number, format!("`{function}` sleeps")));
                }
            }
        }
    }
    for unused in MAY_SLEEP.iter().filter(|allowed| tree.has(allowed.0) && !used.contains(allowed)) {
        findings.push(TidyFinding::breach(unused.0, 1, format!("`{}` may sleep, and does not", unused.1)));
    }
    findings
}

pub(super) fn nothing_is_left_over(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in numbered(&SourceView::read(&file.text).code) {
            for leftover in LEFTOVERS.iter().filter(|leftover| stands_in(line, leftover)) {
                findings.push(TidyFinding::breach(&file.path, number, format!("`{leftover}` is left over")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        nothing_is_left_over(&Tree::of(&[("crates/a/tests/b.rs", text)])).len()
    }

    #[test]
    fn each_leftover_is_found() {
        let texts =
            ["todo!()", "std::unimplemented!()", "dbg!(a)", "#[ignore = \"slow\"]", "std::thread::sleep(a)"];
        for text in texts {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(count("//! a\nfn a() { todo!() }\nfn b() { dbg!(c) }"), 2);
    }

    #[test]
    fn a_test_that_sleeps_is_found_unless_it_is_listed() {
        let text = "async fn hopes() {\n    tokio::time::sleep(a).await;\n}\n";
        let matches = |path| no_test_sleeps_for_luck(&Tree::of(&[(path, text)])).len();
        assert_eq!((matches("crates/a/tests/b.rs"), matches("crates/a/src/b.rs")), (1, 0));
        let (path, name) = MAY_SLEEP[0];
        let listed = text.replace("hopes", name);
        let findings = no_test_sleeps_for_luck(&Tree::of(&[(path, &listed)]));
        assert!(findings.iter().all(|finding| !finding.what.contains(&format!("`{name}` sleeps"))));
    }

    #[test]
    fn prose_and_longer_words_are_not() {
        assert_eq!(count("// todo!\nlet a = \"thread::sleep\";\nmy_todo!();\nfn ignore() {}"), 0);
    }
}

//! `quittance usage` and `quittance audit`, as an operator runs them: on a store, and beside a daemon that uses it.

use crate::nodes::fleet::FleetNode;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::usage::{usage_equals_ledger, usage_equals_ledger_to_the_cent};
use serde_json::json;
use std::fs;

/// Two captchas, one of them ordered twice.
fn a_calm_day(sim: &Sim) -> Sandbox {
    let sandbox = Sandbox::of(sim);
    let lines: Vec<String> =
        [(1, "one"), (2, "two"), (3, "two")].map(|(id, mark)| line(id, mark).to_string()).into();
    sandbox.run_lines(&lines).must_succeed();
    sandbox
}

#[test]
fn the_usage_of_a_calm_day_is_the_ledger_to_the_cent_with_and_without_known_prices() {
    for dialect in ["2captcha", "captchaai"] {
        let sim = Sim::start_with(dialect, &[]);
        let sandbox = a_calm_day(&sim);
        usage_equals_ledger_to_the_cent(&sandbox, &sim);
        let report = sandbox.run(&["usage", "--json"]).json();
        let all = &report["all"];
        assert_eq!((&all["asked"], &all["paid"], &all["spent"]), (&json!(3), &json!(2), &json!("0.00598")));
        assert_eq!(all["saved"], "0.00299", "{report}");
    }
}

#[test]
fn the_report_is_a_table_bars_or_values_and_says_if_there_is_nothing() {
    let sandbox = a_calm_day(&Sim::start());
    let table = sandbox.run(&["usage", "7d", "--by", "site,kind"]);
    table.must_succeed();
    for words in ["SITE", "SETTLED", "one.example.com", "recaptcha_v2", "total", "0.00598"] {
        assert!(table.out.contains(words), "{words}: {}", table.out);
    }
    let csv = sandbox.run(&["usage", "--by", "tenant", "--csv"]);
    let lines: Vec<&str> = csv.out.lines().collect();
    assert!(
        lines[0].starts_with("tenant,asked,joined,cached,") && lines[2].starts_with("total,3,"),
        "{lines:?}"
    );
    let before = sandbox.run(&["usage", "2001-01-01..2001-01-31", "--by", "day"]);
    before.must_succeed();
    assert!(before.out.contains("No orders were placed."), "{before:?}");
    sandbox.run(&["usage", "2001-02-30"]).must_fail(2, &["2026-11-16"]);
    sandbox.run(&["usage", "--by", "colour"]).must_fail(2, &["tenant"]);
    sandbox.run(&["usage", "2001-01-01..2026-01-01"]).must_fail(2, &["days"]);
}

#[test]
fn the_audit_names_each_payment_and_each_unexplained_one() {
    let sim = Sim::start();
    let sandbox = a_calm_day(&sim);
    let audit = sandbox.run(&["audit"]);
    audit.must_succeed();
    let paid: Vec<&str> = audit.out.lines().filter(|line| line.contains("the first of the order")).collect();
    assert_eq!(paid.len(), 2, "{audit:?}");
    assert!(
        paid.iter().all(|line| line.contains("0.00299") && line.contains("and any placements that joined")),
        "{paid:?}"
    );
    assert!(audit.out.contains("balance    ") && audit.out.contains(": the same"), "{}", audit.out);

    let mut ledger = sim.ledger().0;
    let stranger = json!({ "id": "=cmd\u{1b}[2J", "price_micros": 2990, "charged": true });
    ledger["tasks"].as_array_mut().expect("it lists tasks").push(stranger);
    let path = sandbox.path("their.json");
    fs::write(&path, ledger.to_string()).expect("the sandbox can be written");
    let path = path.display().to_string();
    let entry = sandbox.run(&["audit", "--ledger", &path]);
    assert_eq!(entry.code, Some(1), "{entry:?}");
    assert!(entry.out.contains("only in the ledger, and nothing explains it"), "{entry:?}");
    assert!(!entry.out.contains('\u{1b}'), "{entry:?}");
    sandbox.run(&["audit", "--ledger", "not-there"]).must_fail(2, &["not-there"]);
}

#[test]
fn a_payment_without_a_reply_is_explained_by_its_doubt() {
    let sim = Sim::start();
    // Taken, and neither its reply nor a callback nor anything else tells so.
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "reply_lost": {} } }]));
    let sandbox = Sandbox::polling(&sim);
    sandbox.run_lines(&[line(1, "doubtful").to_string()]).must_succeed();
    let agreement = usage_equals_ledger(&sandbox, &sim);
    assert_eq!(
        (agreement.paid, agreement.in_doubt, agreement.in_doubt_micros),
        (1, 1, 2990),
        "{agreement:?}"
    );
    assert_eq!(agreement.cost_micros, 2990);
    let audit = sandbox.run(&["audit", "--csv"]);
    assert!(audit.out.contains("in_doubt") && audit.out.contains("after a doubt"), "{audit:?}");
}

#[test]
fn usage_comes_from_the_daemon_that_holds_the_store() {
    let sim = Sim::start();
    let sandbox = a_calm_day(&sim);
    let node = FleetNode::new(sandbox).started();
    usage_equals_ledger_to_the_cent(&node.sandbox, &sim);
    let audit = node.sandbox.run(&["audit", "--json"]);
    audit.must_succeed();
    assert_eq!(audit.out.lines().count(), 3, "{audit:?}");
    node.rest_in_peace();
}

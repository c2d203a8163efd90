//! `quittance solve`: only the answer on standard output, whatever it contains.

use crate::provider::Sim;
use crate::sandbox::Sandbox;
use serde_json::json;
use std::fs;

#[test]
fn it_prints_exactly_the_answer() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    for (nth, answer) in
        ["W9H5K", "Straße 日本", "a|b", "OK", "a=b&c%20+d", "\"quoted\"", "{not json"].into_iter().enumerate()
    {
        sim.script(&json!([{ "on": "in.php", "do": { "answer": answer } }]));
        let mark = format!("exact-{nth}");
        let ran = sandbox.solve(&mark, &[]);
        assert_eq!((ran.must_succeed().out.as_str(), ran.err.as_str()), (format!("{answer}\n").as_str(), ""));
        let object = sandbox.solve(&mark, &["--json"]).must_succeed().json();
        assert_eq!((&object["answer"], &object["origin"]), (&json!(answer), &json!("cached")));
    }
}

#[test]
fn as_json_it_says_where_the_answer_came_from_and_how_long_it_lives() {
    let sim = Sim::start();
    let sandbox = Sandbox::polling(&sim);
    let object = sandbox.solve("object", &["--json"]).must_succeed().json();
    let ledger = sim.ledger();
    let task = &ledger.tasks()[0];
    assert_eq!(object["answer"], task["answer"]);
    assert_eq!((&object["origin"], &object["attempt"]), (&json!("api"), &json!(1)));
    assert_eq!(object["cost_micros"], task["price_micros"]);
    let born = task["accepted_at_ms"].as_u64().expect("a moment");
    let expires = object["expires_ms"].as_u64().expect("a moment");
    assert!(
        expires > born && expires <= task["solved_at_ms"].as_u64().expect("a moment") + 120_000,
        "{object}"
    );
    let left = object["expires_in_ms"].as_u64().expect("a duration");
    assert!((60_000..120_000).contains(&left), "{object}");
    assert_eq!(object["order"].as_str().map(str::len), Some(64));
}

#[test]
fn a_picture_is_read_from_a_file_and_lives_for_ever() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim)
        .set("kinds.image.p50=100ms")
        .set("kinds.image.p95=200ms")
        .set("kinds.image.p99=500ms");
    let picture = b"GIF89a\x40\x00\x20\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00\x40\x00\x20\x00\x00\x02";
    fs::write(sandbox.path("captcha.gif"), [&picture[..], &[7; 300], b"\x00\x3b"].concat())
        .expect("it can be written");
    let file = format!("body={}", sandbox.path("captcha.gif").display());
    let first = sandbox.run(&["solve", "image", "-f", &file, "--json"]).must_succeed().json();
    assert!(first["expires_ms"].is_null() && first["expires_in_ms"].is_null(), "{first}");
    assert_eq!(sandbox.run(&["solve", "image", "-f", &file]).must_succeed().out.trim_end(), first["answer"]);
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn whose_order_it_is_keeps_orders_apart() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let ours = sandbox.solve("tenants", &["--tenant", "team-a"]);
    let theirs = sandbox.solve("tenants", &["--tenant", "team-b"]);
    assert_ne!(ours.must_succeed().out, theirs.must_succeed().out);
    assert_eq!(sim.ledger().accepted(), 2);
    let own = sandbox.solve("tenants", &["--tenant", "team-a", "--exclusive"]);
    assert_ne!(own.must_succeed().out, ours.out);
    assert_eq!(sim.ledger().accepted(), 3);
}

/// Regression: only the gateway knew what a tenant may order, and a command without a daemon bought everything.
#[test]
fn a_command_without_a_daemon_keeps_to_the_hosts_and_kinds_of_a_tenant() {
    let sim = Sim::start();
    let unlimited = || {
        Sandbox::polling(&sim)
            .set(&format!("tenant.alice.key_sha256={}", "ab".repeat(32)))
            .set("targets.allow=*.example.org")
    };
    let page = "pageurl=https://other.example.org/";
    let order = ["solve", "--tenant", "alice", "turnstile", "-p", "sitekey=0x4A", "-p", page, "--shared"];
    for (limit, words) in [
        ("tenant.alice.hosts=shop.example.org", "other.example.org"),
        ("tenant.alice.kinds=image", "turnstile"),
    ] {
        unlimited().set(limit).run(&order).must_fail(2, &[words]);
        assert_eq!(sim.ledger().accepted(), 0);

        sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } }]));
        let sandbox = unlimited().set("retry.limits.unsolvable=0");
        sandbox.run(&order).must_fail(1, &["dead letter"]);
        sim.calm();
        let sandbox = sandbox.set(limit);
        sandbox.run(&["dead", "replay", "--all", "--yes"]);
        assert_eq!(sandbox.dead_letters().len(), 1, "it is not replayed");
        assert_eq!(sim.ledger().accepted(), 0);
    }
}

#[test]
fn an_order_that_takes_too_long_is_kept_and_reported() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 4_000 } }]));
    let sandbox = Sandbox::polling(&sim);
    let ran = sandbox.solve("slow", &["--deadline", "1s", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.json()["error"]["code"].is_string(), "{ran:?}");
    let ran = sandbox.solve("slow", &["--deadline", "30s"]);
    ran.must_succeed();
    assert_eq!(sim.ledger().accepted(), 1, "the task that was paid for was waited for");
}

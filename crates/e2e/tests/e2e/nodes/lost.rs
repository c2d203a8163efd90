//! The folder of the embedded store is moved or removed under the running daemon, or its log is damaged after a kill.
//! After a restart nothing is bought again, each order is answered, and no genuine callback counts as forged.

use crate::nodes::caller::{CallerOutcome, NodeCaller, NodeReply, native};
use crate::nodes::fleet::FleetNode;
use crate::nodes::forgets::{alert, forged, listed};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::wait::until;
use serde_json::json;
use std::fs;
use std::path::Path;

const ORDERS: u64 = 40;

/// Places an order under its key.
fn ask(caller: &mut NodeCaller, n: u64, wait: u32) -> NodeReply {
    let order = line(n, &format!("lost-{n}"));
    let order = json!({ "kind": order["kind"], "params": order["params"] });
    let headers = format!("Idempotency-Key: job-{n}\r\nPrefer: wait={wait}\r\n");
    caller.post("/v1/orders", &headers, &order).expect("a node answers")
}

/// Places orders, and waits until the provider has the task of each.
fn place(sim: &Sim, caller: &mut NodeCaller, count: u64) {
    for n in 0..count {
        let reply = ask(caller, n, 0);
        assert!(matches!(native(&reply), CallerOutcome::Accepted(_)), "{reply:?}");
    }
    until("every task is taken", || (sim.ledger().accepted() == count).then_some(()));
}

/// Checks that every order, placed again, is answered in the end, and that nothing was bought for it.
fn all_are_answered(sim: &Sim, caller: &mut NodeCaller, count: u64) {
    for n in 0..count {
        until("the job is answered", || {
            matches!(native(&ask(caller, n, 2)), CallerOutcome::Answer(_)).then_some(())
        });
    }
    assert_eq!(sim.ledger().accepted(), count, "each job is paid for once");
    assert_eq!(forged(std::slice::from_mut(caller)), 0, "no true callback is called forged");
}

fn the_folder_is_gone(lose: impl FnOnce(&Path)) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 8_000 } }]));
    let sandbox = Sandbox::of(&sim).set("timing.deadline=100s").set("timing.callback_wait=30s");
    let mut node = FleetNode::new(sandbox).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&sim, &mut caller, ORDERS);
    let store = node.sandbox.path("store");
    lose(&store);
    until("it says that it is not ready, and why", || {
        let ready = caller.get("/readyz").expect("a node answers");
        (ready.status == 503 && ready.body.contains("deleted, moved or replaced")).then_some(())
    });
    alert(&mut caller);
    let doctor = node.sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("is not ready") && doctor.out.contains("orders.rescued.db"), "{doctor:?}");
    for file in ["orders.rescued.db", "orders.trail", "callback-secret"] {
        until(file, || store.join(file).exists().then_some(()));
    }
    until("a callback is kept", || {
        fs::metadata(store.join("spill")).is_ok_and(|spill_file| spill_file.len() > 0).then_some(())
    });
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("was deleted, moved or replaced"), "{node_log}");
    let doctor = node.sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("orders.rescued.db") && doctor.out.contains("quittance serve"), "{doctor:?}");
    node.sandbox.run(&["dead", "list"]).must_fail(5, &["orders.rescued.db", "Nothing was created"]);

    node.start();
    let mut caller = NodeCaller::of(&node.url);
    alert(&mut caller);
    listed(&mut caller, usize::try_from(ORDERS).expect("it is small"));
    all_are_answered(&sim, &mut caller, ORDERS);
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("continues with orders.rescued.db"), "{node_log}");
}

#[test]
fn a_folder_that_is_moved_under_the_daemon_is_made_again_and_nothing_is_bought_again() {
    the_folder_is_gone(|store| fs::rename(store, store.with_extension("moved")).expect("it can be moved"));
}

#[test]
fn a_folder_that_is_removed_under_the_daemon_is_made_again_and_nothing_is_bought_again() {
    the_folder_is_gone(|store| {
        // The removal of a folder that is written to may have to be tried again.
        until("it is removed", || fs::remove_dir_all(store).ok());
    });
}

/// Empties or overwrites a file of the store in place: it keeps its name, and SQLite continues to use it.
fn a_file_is_overwritten(file: &str, overwrite: impl FnOnce(&Path)) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 8_000 } }]));
    let sandbox = Sandbox::of(&sim).set("timing.deadline=100s").set("timing.callback_wait=30s");
    let mut node = FleetNode::new(sandbox).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&sim, &mut caller, ORDERS);
    let store = node.sandbox.path("store");
    overwrite(&store.join(file));
    let refused = ask(&mut caller, ORDERS, 0);
    assert_eq!(refused.status, 503, "nothing more is accepted: {refused:?}");
    until("it says that it is not ready, and why", || {
        let ready = caller.get("/readyz").expect("a node answers");
        (ready.status == 503 && ready.body.contains("emptied, cut or overwritten")).then_some(())
    });
    alert(&mut caller);
    let doctor = node.sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("is not ready") && doctor.out.contains("orders.rescued.db"), "{doctor:?}");
    until("the copy", || store.join("orders.rescued.db").exists().then_some(()));
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("was emptied, cut or overwritten"), "{node_log}");

    node.start();
    let mut caller = NodeCaller::of(&node.url);
    alert(&mut caller);
    listed(&mut caller, usize::try_from(ORDERS).expect("it is small"));
    all_are_answered(&sim, &mut caller, ORDERS);
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("continues with orders.rescued.db"), "{node_log}");
}

fn empty(file: &Path) {
    fs::OpenOptions::new().write(true).truncate(true).open(file).expect("it can be emptied");
}

#[test]
fn a_database_that_is_emptied_under_the_daemon_is_reported_and_nothing_is_bought_again() {
    a_file_is_overwritten("orders.db", empty);
}

#[test]
fn a_log_that_is_emptied_under_the_daemon_is_reported_and_nothing_is_bought_again() {
    a_file_is_overwritten("orders.db-wal", empty);
}

#[test]
fn a_database_that_is_overwritten_under_the_daemon_is_reported_and_nothing_is_bought_again() {
    a_file_is_overwritten("orders.db", |file| {
        fs::write(file, vec![b'x'; 300_000]).expect("it can be written");
    });
}

#[test]
fn a_trail_that_is_deleted_under_the_daemon_or_before_its_start_is_reported() {
    const NOTE: &str = "orders.trail was missing or emptied";
    let sim = Sim::start();
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&sim, &mut caller, 2);
    let trail = node.sandbox.path("store").join("orders.trail");
    fs::remove_file(&trail).expect("it is there");
    until("doctor says it", || node.sandbox.run(&["doctor"]).out.contains(NOTE).then_some(()));
    assert_eq!(caller.get("/readyz").expect("a node answers").status, 200, "nothing is known to be lost");
    assert!(fs::read_to_string(&trail).is_ok_and(|lines| lines.contains("kind")), "it is written again");
    node.end();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains(NOTE), "{node_log}");

    fs::remove_file(&trail).expect("it is there");
    // A look comes first, and does not hide it.
    let status = node.sandbox.run(&["store", "status"]);
    assert!(status.out.contains(NOTE), "{status:?}");
    node.start();
    node.end();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("could not be noticed"), "{node_log}");
}

/// Damages the log; `damage` gets its length.
fn the_log_is_damaged(damage: impl FnOnce(&Path)) {
    const JOBS: u64 = 10;
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 10_000 } }]));
    let sandbox = Sandbox::of(&sim).set("timing.deadline=100s").set("timing.callback_wait=30s");
    let mut node = FleetNode::new(sandbox).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&sim, &mut caller, JOBS);
    node.kill();
    damage(&node.sandbox.path("store").join("orders.db-wal"));
    node.start();
    let mut caller = NodeCaller::of(&node.url);
    alert(&mut caller);
    let listed = caller.get("/v1/admin/dead?limit=100").expect("a node answers").json();
    assert!(listed["orders"].as_array().is_some_and(|orders| !orders.is_empty()), "{listed}");
    all_are_answered(&sim, &mut caller, JOBS);
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("lost the end of its log"), "{node_log}");
}

#[test]
fn callbacks_for_orders_that_were_lost_with_the_whole_log_are_kept_and_answer_them() {
    the_log_is_damaged(|log| fs::remove_file(log).expect("the log is there after a kill"));
}

#[test]
fn callbacks_for_orders_that_were_lost_with_a_flipped_bit_are_kept_and_answer_them() {
    the_log_is_damaged(|log| {
        let mut bytes = fs::read(log).expect("the log is there after a kill");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(log, bytes).expect("it can be written");
    });
}

#[test]
fn callbacks_for_orders_that_were_lost_with_the_end_of_the_log_are_kept_and_answer_them() {
    the_log_is_damaged(|log| {
        let bytes = fs::read(log).expect("the log is there after a kill");
        fs::write(log, &bytes[..bytes.len() / 3]).expect("it can be written");
    });
}

/// Changes the file of the secret under the daemon. Within seconds it must be written again and reported, and a
/// repeat must be recognised.
fn the_secret_is_changed(what: &str, change: impl FnOnce(&Path)) {
    let sim = Sim::start();
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&sim, &mut caller, 2);
    let secret = node.sandbox.path("store").join("callback-secret");
    let before = fs::read(&secret).expect("it is there");
    change(&secret);
    until("it is written again", || fs::read(&secret).is_ok_and(|found| found == before).then_some(()));
    alert(&mut caller);
    node.kill();
    let log = node.log_after_exit();
    assert!(log.contains("WARN") && log.contains(&format!("callback-secret was {what} while")), "{log}");
    node.start();
    all_are_answered(&sim, &mut NodeCaller::of(&node.url), 2);
    node.kill();
}

#[test]
fn a_secret_that_is_deleted_under_the_daemon_is_written_again() {
    the_secret_is_changed("deleted", |secret| fs::remove_file(secret).expect("it is there"));
}

#[test]
fn a_secret_that_is_replaced_under_the_daemon_is_put_back() {
    the_secret_is_changed("replaced", |secret| fs::write(secret, [b'x'; 32]).expect("it can be written"));
}

#[test]
fn a_secret_that_the_orders_were_not_made_with_is_an_error_at_the_start() {
    let sim = Sim::start();
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    place(&sim, &mut NodeCaller::of(&node.url), 2);
    node.end();
    let secret = node.sandbox.path("store").join("callback-secret");
    let before = fs::read(&secret).expect("it is there");
    fs::write(&secret, [b'x'; 32]).expect("it can be written");
    node.sandbox
        .run(&["serve"])
        .must_fail(5, &["callback-secret", "delete it", "writes the right one again"]);
    fs::remove_file(&secret).expect("it is there");
    node.start();
    assert_eq!(fs::read(&secret).expect("it is there again"), before);
    all_are_answered(&sim, &mut NodeCaller::of(&node.url), 2);
    node.kill();
}

/// Trap: the file of the secret was missing at the start. Every genuine callback counted as forged, and every repeat
/// was bought again.
#[test]
fn a_secret_that_is_deleted_while_no_node_runs_is_written_again_from_the_database() {
    let sim = Sim::start();
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    place(&sim, &mut NodeCaller::of(&node.url), 2);
    let secret = node.sandbox.path("store").join("callback-secret");
    let before = fs::read(&secret).expect("it is there");
    for is_killed in [false, true] {
        if is_killed {
            node.kill();
        } else {
            node.end();
        }
        fs::remove_file(&secret).expect("it is there");
        node.start();
        assert_eq!(fs::read(&secret).expect("it is there again"), before);
        alert(&mut NodeCaller::of(&node.url));
    }
    all_are_answered(&sim, &mut NodeCaller::of(&node.url), 2);
    node.kill();
    let log = node.log_after_exit();
    assert!(log.contains("WARN") && log.contains("was written again from the database"), "{log}");
}

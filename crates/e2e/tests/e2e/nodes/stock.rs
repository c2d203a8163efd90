//! Three nodes keep a pool together on a real store, while callers take answers at all nodes and nodes are killed. No
//! answer goes to two callers, the pool is never larger than its settings, and it is full again at the end.

use super::{on_both_stores, tell};
use crate::death::KillDice;
use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::deaths::QUICK;
use crate::nodes::fleet::NodeFleet;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::page;
use crate::usage::usage_equals_ledger;
use crate::wait::{pass, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const SIZE: u64 = 6;
const CALLERS: usize = 4;
const ORDERS: u64 = 120;
const KILLS: u64 = 8;
const SITE_KEY: &str = "0x4AAAAAAAB";

fn pool(fleet: &NodeFleet) -> Value {
    let ran = fleet.nodes[0].sandbox.run(&["pool", "show", "login", "--json"]);
    serde_json::from_str(&ran.out).unwrap_or_else(|why| panic!("{why}: {ran:?}"))
}

/// Tries until there is an answer. A node that dies in the middle gives none, and another node is tried for another
/// answer.
fn answered(urls: &[String], dice: &mut KillDice) -> (String, bool) {
    let order = json!({ "kind": "turnstile", "reuse": "exclusive",
        "params": { "sitekey": SITE_KEY, "pageurl": page("stock") } });
    until("an answer", || {
        let url = &urls[usize::try_from(dice.below(urls.len() as u64)).unwrap_or(0)];
        let reply = NodeCaller::of(url).post("/v1/orders", "Prefer: wait=20\r\n", &order).ok()?;
        match native(&reply) {
            CallerOutcome::Answer(text) => Some((text, reply.json()["origin"] == "stock")),
            CallerOutcome::Accepted(_) | CallerOutcome::NotReady | CallerOutcome::Again => None,
            other => panic!("{other:?}: {reply:?}"),
        }
    })
}

fn a_pool_that_three_nodes_keep_gives_each_answer_once_although_they_are_killed(which: ServerKind) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &QUICK);
    let size = SIZE.to_string();
    let page = format!("pageurl={}", page("stock"));
    let key = format!("sitekey={SITE_KEY}");
    let set =
        ["pool", "set", "login", "--kind", "turnstile", "-p", &key, "-p", &page, "--size", &size, "--json"];
    let ran = fleet.nodes[0].sandbox.run(&set);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let is_full = |fleet: &NodeFleet| {
        let level = &pool(fleet)["level"];
        (level["fresh"] == json!(SIZE) && level["on_their_way"] == json!(0)).then_some(())
    };
    until("a full stock", || (sim.ledger().accepted() == SIZE).then_some(()));

    let (urls, left) = (fleet.urls(), AtomicU64::new(ORDERS));
    let (answers, from_stock) = (Mutex::new(BTreeMap::<String, u64>::new()), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS as u64)
            .map(|seed| {
                let (urls, left, answers, from_stock) = (&urls, &left, &answers, &from_stock);
                scope.spawn(move || {
                    let mut dice = KillDice(seed);
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        pass(Duration::from_millis(dice.below(1_500)));
                        let (text, is_stock) = answered(urls, &mut dice);
                        *answers.lock().expect("no thread panics with it").entry(text).or_default() += 1;
                        from_stock.fetch_add(u64::from(is_stock), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let nodes = &mut fleet.nodes;
        let is_over = &is_over;
        scope.spawn(move || {
            let mut dice = KillDice(9);
            for _ in 0..KILLS {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let node = &mut nodes[usize::try_from(dice.below(3)).unwrap_or(0)];
                node.kill();
                pass(Duration::from_millis(dice.below(500)));
                node.start();
                pass(Duration::from_millis(dice.below(1_500)));
            }
        });
        callers.into_iter().for_each(|caller| caller.join().expect("a caller is answered"));
        is_over.store(true, Ordering::Relaxed);
    });
    let answers = answers.into_inner().expect("no thread panicked with it");
    let from_stock = from_stock.into_inner();
    let twice: Vec<_> = answers.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(answers.values().sum::<u64>(), ORDERS);
    until("a full stock again", || is_full(&fleet));
    let bought = sim.ledger().accepted();
    tell!("a pool on {which:?}: {ORDERS} orders, {from_stock} from the stock, {bought} bought");
    assert!(from_stock >= 2 * SIZE, "{from_stock} of {ORDERS} from the stock: it was never refilled");
    // What was bought was given, stands in the stock, or belonged to a caller whose node died before it replied.
    assert!((ORDERS + SIZE..=ORDERS + SIZE + 10 * KILLS).contains(&bought), "{bought} bought");
    usage_equals_ledger(&fleet.nodes[0].sandbox, &sim);
    fleet.rest_in_peace();
}

on_both_stores!(a_pool_that_three_nodes_keep_gives_each_answer_once_although_they_are_killed);

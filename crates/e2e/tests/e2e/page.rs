//! The page in a real Chromium, with the real daemon and the mock provider: what an operator does there and must see.
//! The provider's ledger shows what was really paid for. `scripts/browser` installs the browser.

mod dead_letters;
mod looks;
mod play;
mod watch;

use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use serde_json::{Value, json};

/// The key that the operator types.
const KEY: &str = "0be7a70c0be7a70c0be7a70c0be7a70c";
const KEY_SHA256: &str = "e9436abeb989d96bb3187cf28f803c8923686c77b80361a5f3e19954c3d1b826";

/// A daemon with an operator's key; callers need no key.
fn daemon(sim: &Sim, settings: &[&str]) -> Serve {
    let sandbox = Sandbox::of(sim).set(&format!("admin.key_sha256={KEY_SHA256}"));
    Serve::start(settings.iter().fold(sandbox, |sandbox, setting| sandbox.set(setting)))
}

/// Places an order, and does not wait for it.
fn place(serve: &Serve, params: &Value) {
    let order = json!({ "kind": "recaptcha_v2", "params": params });
    let (status, output) = call("POST", &format!("{}/v1/orders", serve.http), &order.to_string());
    assert!(matches!(status, 200..=202), "{status}: {output}");
}

fn params(mark: &str) -> Value {
    json!({ "googlekey": format!("6Le-{mark}-0123456789abcdefghijklmnop"), "pageurl": crate::sandbox::page(mark) })
}

/// This many dead letters: orders for which the provider has no slot, until their retries are spent.
fn graveyard(sim: &Sim, entries: u64) -> Serve {
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let serve = daemon(sim, &["retry.limits.busy=1"]);
    (0..entries).for_each(|n| place(&serve, &params(&format!("grave-{n}"))));
    crate::wait::until("each was tried twice", || {
        (sim.ledger().requests("in.php") >= 2 * entries).then_some(())
    });
    sim.calm();
    serve
}

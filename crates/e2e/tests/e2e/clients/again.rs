//! A client dies between its submit and its poll, and starts again without memory. The gateway remembers the order:
//! it has its old id, and is paid for once.

use super::judge::{sold, was_served};
use super::visit::ClientVisit;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use serde_json::json;
use std::thread;

#[test]
fn a_client_that_is_killed_and_comes_back_has_the_same_id_and_one_payment() {
    let sim = Sim::start();
    // Long enough that the first life never sees the answer, and the second has to ask for it, too.
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 15_000 } }]));
    let gateway = Serve::start(Sandbox::of(&sim));
    let clients = [
        ("run_captchaai.py", "sync", "recaptcha_v3"),
        ("run_captchaai.py", "async", "turnstile"),
        ("run_2captcha_python.py", "sync", "recaptcha_v2"),
        ("run_2captcha_python.py", "async", "turnstile"),
        ("run_rucaptcha.py", "sync", "recaptcha_v2"),
        ("run_unicaps.py", "sync", "geetest"),
        ("run_captcha_solver.js", "sync", "recaptcha_v2"),
        ("run_2captcha.js", "sync", "hcaptcha"),
        ("run_anticaptcha.py", "sync", "recaptcha_v2"),
        ("run_capsolver.py", "sync", "turnstile"),
        ("run_capmonster.js", "sync", "recaptcha_v2"),
    ];
    let visits = clients.map(|(script, how, what)| ClientVisit {
        script,
        how,
        what,
        base: gateway.https.clone(),
        ca: Some(gateway.ca.clone()),
        report: None,
    });
    let results: Vec<_> = thread::scope(|scope| {
        let lives = visits.map(|visit| {
            scope.spawn(move || {
                let first = visit.start().kill_after_submit();
                (first, visit.run())
            })
        });
        lives.into_iter().map(|life| life.join().expect("no client fails like this")).collect()
    });
    let ledger = sim.ledger();
    for (first, result) in results {
        was_served(&result, &ledger);
        assert_eq!(first, result.id(), "{result:?}");
        let payments = sold(&ledger, result.visit.what, &result.visit.mark()).count();
        assert_eq!(payments, 1, "{result:?}");
    }
    gateway.end_in_peace();
}

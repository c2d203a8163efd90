//! Faults at the provider: it is away for a while, then loses requests and replies, and sends 502 pages. Clients
//! cannot handle this and need not: the gateway makes them wait, and they get their answers.

use super::judge::was_served;
use super::visit::{ClientVisit, all};
use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use crate::usage::usage_equals_ledger;
use serde_json::json;

/// How long the provider is away.
const AWAY_MS: u64 = 5_000;

/// Settings without limits on retries during this time.
const PATIENT: [&str; 6] = [
    "retry.limits.busy=100",
    "retry.limits.unreachable=100",
    "retry.limits.in_doubt=20",
    "retry.limits.unsolvable=8",
    "retry.limits.unlisted_code=20",
    "timing.deadline=90s",
];

fn with_faults(sim: &Sim) -> Serve {
    let gateway = Serve::start(PATIENT.into_iter().fold(Sandbox::of(sim), Sandbox::set));
    sim.script(&json!([
        { "on": "in.php", "every": 3, "do": { "reply_lost": {} } },
        { "on": "in.php", "every": 4, "do": { "status": 502, "taken": false } },
        { "on": "in.php", "every": 5, "do": { "request_lost": {} } },
        { "on": "res.php", "every": 3, "do": { "status": 502 } },
        { "on": "res.php", "every": 4, "do": { "reply_lost": {} } },
        { "on": "pingback", "every": 3, "do": { "lost": {} } },
    ]));
    let away = json!({ "ms": AWAY_MS, "refuse": true }).to_string();
    let (status, result) = call("POST", &format!("{}/mock/outage", sim.url), &away);
    assert_eq!(status, 200, "{result}");
    gateway
}

fn all_are_served(clients: &[(&'static str, &'static str, [&'static str; 2])], sim: &Sim) {
    let gateway = with_faults(sim);
    let each = clients.iter().flat_map(|(script, how, whats)| whats.map(|what| (*script, *how, what)));
    let visits: Vec<ClientVisit> = each
        .map(|(script, how, what)| {
            // 2captcha-python knows https only.
            let is_tls = script.contains("2captcha_python") || how == "async";
            let base = if is_tls { &gateway.https } else { &gateway.http };
            let below = if script.contains("capsolver") { "/capsolver" } else { "" };
            let base = format!("{base}{below}");
            ClientVisit { script, how, what, base, ca: is_tls.then(|| gateway.ca.clone()), report: None }
        })
        .collect();
    let results = all(&visits);
    let ledger = sim.ledger();
    results.iter().for_each(|result| was_served(result, &ledger));
    let faults = &ledger.0["totals"]["faults"];
    assert!(faults.as_object().is_some_and(|faults| faults.len() >= 3), "there were no faults: {faults}");
    usage_equals_ledger(&gateway.sandbox, sim);
    gateway.end_in_peace();
}

#[test]
fn the_clients_of_captchaai_never_notice_faults_of_the_provider() {
    all_are_served(
        &[
            ("run_captchaai.py", "sync", ["recaptcha_v3", "image"]),
            ("run_captchaai.py", "async", ["turnstile", "image"]),
            ("run_rucaptcha.py", "sync", ["recaptcha_v2", "image"]),
            ("run_rucaptcha.py", "async", ["turnstile", "image"]),
        ],
        &Sim::start_with("captchaai", &["--threads", "200"]),
    );
}

#[test]
fn no_other_client_notices_either() {
    all_are_served(
        &[
            ("run_2captcha_python.py", "sync", ["recaptcha_v2", "image"]),
            ("run_2captcha_python.py", "async", ["turnstile", "image"]),
            ("run_unicaps.py", "sync", ["recaptcha_v2", "image"]),
            ("run_captcha_solver.js", "sync", ["turnstile", "image"]),
            ("run_2captcha.js", "sync", ["hcaptcha", "image"]),
            ("run_anticaptcha.py", "sync", ["recaptcha_v2", "image"]),
            ("run_anticaptcha.py", "async", ["recaptcha_v3", "image"]),
            ("run_capsolver.py", "sync", ["turnstile", "image"]),
            ("run_capmonster.js", "sync", ["recaptcha_v2", "image"]),
        ],
        &Sim::start(),
    );
}

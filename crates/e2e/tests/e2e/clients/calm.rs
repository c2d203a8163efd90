//! Calm: every client requests every kind that it supports, over http and https, and gets what the provider sold.

use super::judge::was_served;
use super::visit::{ClientVisit, all};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use crate::usage::usage_equals_ledger_to_the_cent;
use crate::wait::until;
use std::collections::BTreeSet;

/// A client, a variant of it, and its task.
type ClientRow = (&'static str, &'static str, &'static [&'static str]);

fn visits(rows: &[ClientRow], base: &str, gateway: &Serve) -> Vec<ClientVisit> {
    let each =
        rows.iter().flat_map(|(script, how, whats)| whats.iter().map(move |what| (*script, *how, *what)));
    each.map(|(script, how, what)| ClientVisit {
        script,
        how,
        what,
        base: base.to_owned(),
        ca: base.starts_with("https:").then(|| gateway.ca.clone()),
        report: None,
    })
    .collect()
}

fn with_report(mut visits: Vec<ClientVisit>, report: &'static str) -> Vec<ClientVisit> {
    visits.iter_mut().for_each(|visit| visit.report = Some(report));
    visits
}

/// Runs all visits. Each must be served, and no answer may go to two clients.
fn are_served(visits: &[ClientVisit], sim: &Sim, gateway: Serve) {
    let results = all(visits);
    let ledger = sim.ledger();
    results.iter().for_each(|result| was_served(result, &ledger));
    // Every request here is for something else.
    let bought = |result: &&super::visit::VisitResult| !matches!(result.visit.what, "balance" | "threads");
    let orders: BTreeSet<String> = results.iter().filter(bought).map(|result| result.visit.mark()).collect();
    assert_eq!(ledger.accepted(), orders.len() as u64, "one payment for each order");
    usage_equals_ledger_to_the_cent(&gateway.sandbox, sim);
    gateway.end_in_peace();
}

fn gateway_of(sim: &Sim) -> Serve {
    Serve::start(Sandbox::of(sim).set("reuse.default=by_kind"))
}

#[test]
fn the_clients_of_captchaai_get_every_kind() {
    const HTTP: &[ClientRow] = &[
        (
            "run_captchaai.py",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_invisible",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "recaptcha_v3_enterprise",
                "turnstile",
                "cloudflare_challenge",
                "geetest",
                "captchafox",
                "friendly_captcha",
                "lemin",
                "image",
                "image_text",
                "grid",
                "bls",
                "threads",
            ],
        ),
        ("run_captchaai.py", "async", &["recaptcha_v2", "cloudflare_challenge", "image", "threads"]),
        (
            "run_rucaptcha.py",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "turnstile",
                "cloudflare_challenge",
                "geetest",
                "image",
                "image_text",
                "image_at_once",
                "grid",
                "balance",
                "threads",
            ],
        ),
        ("run_rucaptcha.py", "async", &["recaptcha_v2", "image", "balance"]),
    ];
    const HTTPS: &[ClientRow] = &[
        ("run_captchaai.py", "sync", &["recaptcha_v3", "image"]),
        ("run_captchaai.py", "async", &["recaptcha_v2_enterprise", "image"]),
        ("run_rucaptcha.py", "sync", &["turnstile", "image"]),
        ("run_rucaptcha.py", "async", &["recaptcha_v3", "image"]),
    ];
    let sim = Sim::start_with("captchaai", &["--threads", "200"]);
    let gateway = gateway_of(&sim);
    let mut requests = visits(HTTP, &gateway.http, &gateway);
    requests.extend(visits(HTTPS, &gateway.https, &gateway));
    are_served(&requests, &sim, gateway);
}

#[test]
fn the_clients_of_2captcha_get_every_kind() {
    const TLS_ONLY: &[ClientRow] = &[
        (
            "run_2captcha_python.py",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_enterprise",
                "recaptcha_v2_proxy",
                "recaptcha_v3",
                "hcaptcha",
                "turnstile",
                "geetest",
                "geetest_v4",
                "funcaptcha",
                "friendly_captcha",
                "datadome",
                "image",
                "image_text",
                "text",
                "grid",
                "coordinates",
                "rotate",
                "balance",
            ],
        ),
        ("run_2captcha_python.py", "extended", &["recaptcha_v2", "geetest_v4", "image"]),
        ("run_unicaps.py", "async", &["recaptcha_v2", "image"]),
        ("run_captcha_solver.js", "sync", &["recaptcha_v2", "image"]),
        ("run_2captcha.js", "sync", &["recaptcha_v2", "image"]),
    ];
    const TLS_BY_NAME: &[ClientRow] =
        &[("run_2captcha_python.py", "async", &["recaptcha_v2", "turnstile", "geetest", "image", "balance"])];
    const HTTP: &[ClientRow] = &[
        (
            "run_unicaps.py",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "hcaptcha",
                "geetest",
                "geetest_v4",
                "funcaptcha",
                "image",
                "text",
                "balance",
            ],
        ),
        (
            "run_captcha_solver.js",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "hcaptcha",
                "turnstile",
                "geetest",
                "geetest_v4",
                "funcaptcha",
                "friendly_captcha",
                "image",
                "text",
                "grid",
                "balance",
            ],
        ),
        (
            "run_2captcha.js",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "hcaptcha",
                "turnstile",
                "geetest",
                "funcaptcha",
                "image",
                "balance",
            ],
        ),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    let mut requests = visits(TLS_ONLY, &gateway.https, &gateway);
    requests.extend(visits(TLS_BY_NAME, &gateway.named(), &gateway));
    requests.extend(visits(HTTP, &gateway.http, &gateway));
    are_served(&requests, &sim, gateway);
}

/// python-anticaptcha and the client of CapMonster drop any path of their address, so they can only be served at the
/// root.
#[test]
fn the_clients_that_speak_json_get_every_kind() {
    const AT_THE_ROOT: &[ClientRow] = &[
        (
            "run_anticaptcha.py",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_proxy",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "hcaptcha",
                "geetest",
                "funcaptcha",
                "image",
                "balance",
            ],
        ),
        (
            "run_capmonster.js",
            "sync",
            &[
                "recaptcha_v2",
                "recaptcha_v2_proxy",
                "recaptcha_v2_enterprise",
                "recaptcha_v3",
                "hcaptcha",
                "turnstile",
                "geetest",
                "funcaptcha",
                "image",
                "balance",
            ],
        ),
    ];
    const CAPSOLVER: &[ClientRow] = &[(
        "run_capsolver.py",
        "sync",
        &[
            "recaptcha_v2",
            "recaptcha_v2_proxy",
            "recaptcha_v2_enterprise",
            "recaptcha_v3",
            "hcaptcha",
            "turnstile",
            "geetest",
            "image",
            "balance",
        ],
    )];
    const TLS: &[ClientRow] = &[
        ("run_anticaptcha.py", "sync", &["recaptcha_v3", "image"]),
        ("run_anticaptcha.py", "async", &["recaptcha_v2", "image", "balance"]),
        ("run_capmonster.js", "sync", &["turnstile", "image"]),
        // Its spelling says whose client it is; a picture is spelled alike by all.
        ("run_capsolver.py", "sync", &["recaptcha_v2", "turnstile"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    let mut requests = visits(AT_THE_ROOT, &gateway.http, &gateway);
    requests.extend(visits(CAPSOLVER, &format!("{}/capsolver", gateway.http), &gateway));
    requests.extend(visits(TLS, &gateway.https, &gateway));
    are_served(&requests, &sim, gateway);
}

/// The provider returns another JSON shape, and the client of the other service is still served.
#[test]
fn a_client_need_not_know_whose_answer_it_gets() {
    const THEIRS: &[ClientRow] = &[
        ("run_captchaai.py", "sync", &["recaptcha_v2_enterprise", "recaptcha_v3", "image"]),
        ("run_rucaptcha.py", "sync", &["recaptcha_v2_enterprise", "turnstile", "image"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    are_served(&visits(THEIRS, &gateway.http, &gateway), &sim, gateway);
    const OURS: &[ClientRow] = &[
        ("run_2captcha_python.py", "sync", &["recaptcha_v2_enterprise", "turnstile", "image"]),
        ("run_captcha_solver.js", "sync", &["recaptcha_v2_enterprise", "turnstile", "image"]),
        ("run_anticaptcha.py", "sync", &["recaptcha_v2_enterprise", "image"]),
    ];
    let sim = Sim::start_with("captchaai", &[]);
    let gateway = gateway_of(&sim);
    are_served(&visits(OURS, &gateway.https, &gateway), &sim, gateway);
}

#[test]
fn what_clients_report_reaches_the_provider() {
    const GOOD: &[ClientRow] = &[
        ("run_2captcha_python.py", "sync", &["recaptcha_v2"]),
        ("run_captcha_solver.js", "sync", &["recaptcha_v2"]),
        ("run_unicaps.py", "sync", &["recaptcha_v2"]),
    ];
    const BAD: &[ClientRow] = &[
        ("run_2captcha_python.py", "async", &["image"]),
        ("run_2captcha.js", "sync", &["recaptcha_v3"]),
        ("run_unicaps.py", "async", &["recaptcha_v3"]),
        ("run_anticaptcha.py", "sync", &["recaptcha_v3"]),
        ("run_anticaptcha.py", "async", &["image"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    let mut requests = with_report(visits(GOOD, &gateway.https, &gateway), "good");
    requests.extend(with_report(visits(BAD, &gateway.https, &gateway), "bad"));
    let results = all(&requests);
    let ledger = sim.ledger();
    results.iter().for_each(|result| was_served(result, &ledger));
    // The gateway passes them on when it can.
    until("the reports", || {
        let ledger = sim.ledger();
        (ledger.total("reported_good") == 3 && ledger.total("reported_bad") == 5).then_some(())
    });
    gateway.end_in_peace();
}

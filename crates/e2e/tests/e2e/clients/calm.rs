//! Calm weather: every client asks for everything that it can, over http and https, and gets what the provider sold.

use super::judge::was_served;
use super::visit::{Visit, all};
use crate::provider::Sim;
use crate::room::Room;
use crate::serve::Serve;
use crate::usage::usage_equals_ledger_to_the_cent;
use crate::wait::until;
use std::collections::BTreeSet;

/// A client, a variant of it, and what it is asked for.
type Row = (&'static str, &'static str, &'static [&'static str]);

fn visits(rows: &[Row], base: &str, gateway: &Serve) -> Vec<Visit> {
    let each =
        rows.iter().flat_map(|(script, how, whats)| whats.iter().map(move |what| (*script, *how, *what)));
    each.map(|(script, how, what)| Visit {
        script,
        how,
        what,
        base: base.to_owned(),
        ca: base.starts_with("https:").then(|| gateway.ca.clone()),
        report: None,
    })
    .collect()
}

fn with_report(mut visits: Vec<Visit>, report: &'static str) -> Vec<Visit> {
    visits.iter_mut().for_each(|visit| visit.report = Some(report));
    visits
}

/// Runs them all; each is served, and what was bought for one is given to no other.
fn are_served(visits: &[Visit], sim: &Sim, gateway: Serve) {
    let told = all(visits);
    let ledger = sim.ledger();
    told.iter().for_each(|said| was_served(said, &ledger));
    // Everything asked for here is something else.
    let bought = |said: &&super::visit::Said| !matches!(said.visit.what, "balance" | "threads");
    let orders: BTreeSet<String> = told.iter().filter(bought).map(|said| said.visit.mark()).collect();
    assert_eq!(ledger.accepted(), orders.len() as u64, "one payment for each order");
    usage_equals_ledger_to_the_cent(&gateway.room, sim);
    gateway.end_in_peace();
}

fn gateway_of(sim: &Sim) -> Serve {
    Serve::start(Room::of(sim).set("reuse.default=by_kind"))
}

#[test]
fn the_clients_of_captchaai_get_every_kind() {
    const HTTP: &[Row] = &[
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
    const HTTPS: &[Row] = &[
        ("run_captchaai.py", "sync", &["recaptcha_v3", "image"]),
        ("run_captchaai.py", "async", &["recaptcha_v2_enterprise", "image"]),
        ("run_rucaptcha.py", "sync", &["turnstile", "image"]),
        ("run_rucaptcha.py", "async", &["recaptcha_v3", "image"]),
    ];
    let sim = Sim::start_with("captchaai", &["--threads", "200"]);
    let gateway = gateway_of(&sim);
    let mut asked = visits(HTTP, &gateway.http, &gateway);
    asked.extend(visits(HTTPS, &gateway.https, &gateway));
    are_served(&asked, &sim, gateway);
}

#[test]
fn the_clients_of_2captcha_get_every_kind() {
    const TLS_ONLY: &[Row] = &[
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
    const TLS_BY_NAME: &[Row] =
        &[("run_2captcha_python.py", "async", &["recaptcha_v2", "turnstile", "geetest", "image", "balance"])];
    const HTTP: &[Row] = &[
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
    let mut asked = visits(TLS_ONLY, &gateway.https, &gateway);
    asked.extend(visits(TLS_BY_NAME, &gateway.named(), &gateway));
    asked.extend(visits(HTTP, &gateway.http, &gateway));
    are_served(&asked, &sim, gateway);
}

/// python-anticaptcha and the client of CapMonster drop any path of their address: they can only be served at the root.
#[test]
fn the_clients_that_speak_json_get_every_kind() {
    const AT_THE_ROOT: &[Row] = &[
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
    const CAPSOLVER: &[Row] = &[(
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
    const TLS: &[Row] = &[
        ("run_anticaptcha.py", "sync", &["recaptcha_v3", "image"]),
        ("run_anticaptcha.py", "async", &["recaptcha_v2", "image", "balance"]),
        ("run_capmonster.js", "sync", &["turnstile", "image"]),
        // Its spelling says whose client it is; a picture is spelled alike by all.
        ("run_capsolver.py", "sync", &["recaptcha_v2", "turnstile"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    let mut asked = visits(AT_THE_ROOT, &gateway.http, &gateway);
    asked.extend(visits(CAPSOLVER, &format!("{}/capsolver", gateway.http), &gateway));
    asked.extend(visits(TLS, &gateway.https, &gateway));
    are_served(&asked, &sim, gateway);
}

/// The provider has it in another shape; the client of the other is served all the same.
#[test]
fn a_client_need_not_know_whose_answer_it_gets() {
    const THEIRS: &[Row] = &[
        ("run_captchaai.py", "sync", &["recaptcha_v2_enterprise", "recaptcha_v3", "image"]),
        ("run_rucaptcha.py", "sync", &["recaptcha_v2_enterprise", "turnstile", "image"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    are_served(&visits(THEIRS, &gateway.http, &gateway), &sim, gateway);
    const OURS: &[Row] = &[
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
    const GOOD: &[Row] = &[
        ("run_2captcha_python.py", "sync", &["recaptcha_v2"]),
        ("run_captcha_solver.js", "sync", &["recaptcha_v2"]),
        ("run_unicaps.py", "sync", &["recaptcha_v2"]),
    ];
    const BAD: &[Row] = &[
        ("run_2captcha_python.py", "async", &["image"]),
        ("run_2captcha.js", "sync", &["recaptcha_v3"]),
        ("run_unicaps.py", "async", &["recaptcha_v3"]),
        ("run_anticaptcha.py", "sync", &["recaptcha_v3"]),
        ("run_anticaptcha.py", "async", &["image"]),
    ];
    let sim = Sim::start();
    let gateway = gateway_of(&sim);
    let mut asked = with_report(visits(GOOD, &gateway.https, &gateway), "good");
    asked.extend(with_report(visits(BAD, &gateway.https, &gateway), "bad"));
    let told = all(&asked);
    let ledger = sim.ledger();
    told.iter().for_each(|said| was_served(said, &ledger));
    // The gateway passes them on when it can.
    until("the reports", || {
        let ledger = sim.ledger();
        (ledger.total("reported_good") == 3 && ledger.total("reported_bad") == 5).then_some(())
    });
    gateway.end_in_peace();
}

//! Unknown is not zero: a budget holds if answers come by callback, which contains no price, and stops if no price is
//! known.

use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use crate::wait::{pass, until};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough for a pool, which checks every second, to buy too much.
const A_WHILE: Duration = Duration::from_secs(6);

/// A daemon whose answers come by callback, and for which no price is set: only the shipped list counts.
fn served(sim: &Sim, more: &str) -> Serve {
    Serve::start(Sandbox::with_defaults(sim, more))
}

fn quick() -> Sim {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 200 } }]));
    sim
}

fn hour(sim: &Sim) -> u64 {
    sim.ledger().0["now_ms"].as_u64().expect("the ledger has a clock") / 3_600_000
}

fn get(serve: &Serve, path: &str) -> Value {
    let (status, body) = call("GET", &format!("{}{path}", serve.http), "");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|why| panic!("{path}: {why}: {body}"))
}

const SITE: [&str; 4] = ["-p", "sitekey=0x4A", "-p", "pageurl=https://example.com/login"];

/// Regression: a budget for two answers bought 41, because an unknown price counted as 0.
#[test]
fn a_budget_for_two_answers_buys_two_where_callbacks_bring_them() {
    let sim = quick();
    let serve = served(&sim, "");
    let before = hour(&sim);
    let set = ["pool", "set", "warm", "--kind", "turnstile", "--size", "9", "--budget-per-hour", "0.006"];
    serve.sandbox.run(&[&set[..], &SITE].concat()).must_succeed();
    let view = until("its budget is spent", || {
        let view = get(&serve, "/v1/pools/warm");
        view["level"]["why"].as_str()?.contains("the pool's budget for this hour is spent").then_some(view)
    });
    assert_eq!((&view["price"], &view["currency"]), (&json!("0.00299"), &json!("USD")));
    pass(A_WHILE);
    let (bought, hours) = (sim.ledger().accepted(), hour(&sim) - before + 1);
    assert!(
        (1..=2 * hours).contains(&bought),
        "{bought} bought in {hours} hours with a budget for 2 an hour"
    );
    assert_eq!(sim.ledger().polls(), 0, "they came by callback");
    let text = serve.sandbox.run(&["pool", "show", "warm"]).out;
    assert!(text.contains("0.006 USD an hour; planned in this hour: 0.00598 USD"), "{text}");
    serve.end_in_peace();
}

#[test]
fn a_budget_that_meets_an_unknown_price_stops_and_says_why_everywhere() {
    let sim = quick();
    let serve = served(&sim, "");
    let set = ["pool", "set", "cold", "--kind", "hcaptcha", "--size", "9", "--budget-per-hour", "1"];
    let made = serve.sandbox.run(&[&set[..], &SITE].concat());
    made.must_succeed();
    let why = "the price of `hcaptcha` is not known";
    assert!(made.err.contains(why) && made.err.contains("`prices.hcaptcha`"), "{made:?}");
    until("it has been sized", || {
        get(&serve, "/v1/pools/cold")["level"]["why"].as_str()?.contains(why).then_some(())
    });
    pass(A_WHILE);
    assert_eq!(sim.ledger().accepted(), 0);
    let view = get(&serve, "/v1/pools/cold");
    assert!(
        view["price"].is_null() && view["stopped"].as_str().is_some_and(|output| output.contains(why)),
        "{view}"
    );
    let text = serve.sandbox.run(&["pool", "show", "cold"]).out;
    assert!(text.contains(why) && text.contains("price      not known"), "{text}");
    let alert = until("the alert is raised", || {
        let alerts = get(&serve, "/v1/admin/now")["alerts"].clone();
        alerts.as_array()?.iter().find(|alert| alert.to_string().contains("budget")).cloned()
    });
    assert!(alert.to_string().contains("not known"), "{alert}");
    serve.end_in_peace();
}

#[test]
fn an_answer_without_a_price_has_no_cost_in_any_place() {
    let sim = quick();
    let serve = served(&sim, "");
    let order =
        json!({ "kind": "hcaptcha", "params": { "sitekey": "0x4A", "pageurl": "https://example.com/" } });
    let (_, body) = call("POST", &format!("{}/v1/orders", serve.http), &order.to_string());
    let id =
        serde_json::from_str::<Value>(&body).expect("an order")["id"].as_str().expect("an id").to_owned();
    let solved = until("it is solved", || {
        let order = get(&serve, &format!("/v1/orders/{id}"));
        (order["status"] == "solved").then_some(order)
    });
    assert!(solved["cost"].is_null() && solved["cost_micros"].is_null(), "{solved}");
    assert_eq!(solved["currency"], "USD");
    let usage = get(&serve, "/v1/admin/usage");
    let all = &usage["all"];
    assert!(all["spent"].is_null() && all["cost_micros"].is_null() && all["unpriced"] == 1, "{usage}");
    assert_eq!(usage["currency"], "USD");
    let audit = get(&serve, "/v1/admin/audit");
    assert!(audit["entries"][0]["cost"].is_null() && audit["currency"] == "USD", "{audit}");
    let res = |query: &str| {
        call(
            "GET",
            &format!("{}/res.php?key=0123456789abcdef0123456789abcdef&id={id}&{query}", serve.http),
            "",
        )
        .1
    };
    let in_json: Value = serde_json::from_str(&res("action=get2&json=1")).expect("JSON");
    assert!(in_json["status"] == 1 && in_json.get("price").is_none(), "{in_json}");
    assert_eq!(res("action=get2"), res("action=get"), "no price stands behind the answer");
    for (command, words) in [("usage", "not known"), ("audit", "price not known")] {
        let ran = serve.sandbox.run(&[command]);
        ran.must_succeed();
        assert!(ran.out.contains(words) && ran.out.contains("money in USD"), "{ran:?}");
    }
    serve.end_in_peace();
}

/// The budget is reported before anything happens: by the check of the configuration, the doctor and the log at
/// start.
#[test]
fn a_budget_without_a_price_is_reported_before_it_is_met() {
    let sim = quick();
    let pool = "[pools.cold]\nkind = \"hcaptcha\"\nsize = 2\nbudget_per_hour = 1\n[pools.cold.params]\nsitekey = \"x\"\n\
                pageurl = \"https://example.com/\"\n";
    let serve = served(&sim, pool);
    let why = "the price of `hcaptcha` is not known";
    for command in [&["config", "check"][..], &["doctor"]] {
        let ran = serve.sandbox.run(command);
        assert!(ran.out.contains(why) && ran.out.contains("cold"), "{command:?}: {ran:?}");
    }
    let log = serve.log();
    assert!(log.contains(why), "{log}");
}

#[test]
fn a_budget_below_the_price_of_one_answer_is_reported_before_the_pool_is_filled() {
    let sim = quick();
    let pool = "[pools.tiny]\nkind = \"turnstile\"\nsize = 2\nbudget_per_hour = 0.0001\n[pools.tiny.params]\nsitekey = \"x\"\n\
                pageurl = \"https://example.com/\"\n";
    let serve = served(&sim, pool);
    let ran = serve.sandbox.run(&["config", "check"]);
    let words = ["tiny", "0.0001 ", "smaller than the price of one answer"];
    assert!(words.iter().all(|words| ran.out.contains(words)), "{ran:?}");
    let log = serve.log();
    assert!(log.contains("smaller than the price of one answer"), "{log}");
}

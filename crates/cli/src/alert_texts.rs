//! Tests that the commands in the texts of alerts exist.

use crate::Cli;
use clap::Parser;
use quittance_lifecycle::{Counters, Money, Timestamp};
use quittance_ports::Spent;
use quittance_telemetry::alert::{
    AlertEngine, Balance, BudgetReading, DeadLetterReading, FailingEndpoint, Health, Node, Pool, Readings,
    Rule, Thresholds,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Readings with everything wrong at once, and a provider in this state.
fn all_wrong(second: u64, health: Health) -> Readings {
    let pool = Pool {
        name: "warm".into(),
        is_on: true,
        budget: Some(Money(1000)),
        spent: Spent { money: Money(1000), refills: 1, ..Spent::default() },
        stopped: None,
        price: None,
        level: 4,
        fresh: 0,
        missed: second,
    };
    let counts = Counters {
        dead: second,
        attempts: second,
        in_doubt: second,
        webhooks_failed: second,
        solved: second,
        recovered_by_poll: second,
        cost_micros: second * 1000,
        unpriced: 0,
        ..Counters::default()
    };
    // One budget is nearly used up, and one allows nothing.
    let budget = |name: &str, stopped: Option<&str>| BudgetReading {
        name: name.into(),
        currency: "USD".into(),
        period: "day",
        limit: Money(1000),
        used: Money(990),
        stopped: stopped.map(str::to_owned),
        left: Duration::from_secs(7200),
    };
    let balance = Balance { provider: "main".into(), currency: "USD".into(), money: Some(Money(1000)) };
    Readings {
        at: Timestamp::from_millis(1_794_800_000_000 + second * 1000),
        store_is_up: false,
        forgot: Some("the store was flushed".into()),
        unreadable: Some(2),
        here: "here".into(),
        dead: Some(DeadLetterReading { count: 3, oldest: Some(Timestamp::ZERO) }),
        counts: Some(counts),
        providers: Some(vec![("main".into(), health)]),
        balances: vec![balance],
        currency: "USD".into(),
        budgets: Some(vec![budget("low", None), budget("spent", Some("the limit is reached"))]),
        pools: Some(vec![pool]),
        endpoints: Some(vec![FailingEndpoint {
            tenant: "archive".into(),
            host: "hooks.example.org".into(),
            is_off: true,
            why: "HTTP 500".into(),
        }]),
        nodes: Some(vec![Node { name: "there".into(), is_silent: true, has_spilled: true }]),
    }
}

/// An example of the text of each alert, by rule.
fn words() -> BTreeMap<&'static str, String> {
    let mut words = BTreeMap::new();
    for health in [Health::Broken, Health::Paused { code: "ERROR_ZERO_BALANCE".into() }] {
        let mut alert_engine = AlertEngine::new(Thresholds::default(), Rule::ALL.iter().copied());
        for second in (0..=1200).step_by(30) {
            alert_engine.evaluate(&Default::default(), &all_wrong(second, health.clone()));
        }
        let texts = alert_engine.words(&all_wrong(1200, health)).into_iter();
        words.extend(texts.map(|((rule, _), words)| (rule.name(), words)));
    }
    assert_eq!(words.len(), Rule::ALL.len(), "each rule is to say something: {words:?}");
    words
}

#[test]
fn every_command_setting_and_address_that_an_alert_names_is_there() {
    let (known, api) = (quittance_config::setting_names(), quittance_admin::openapi());
    let known: Vec<&str> = known.collect();
    for (rule, words) in words() {
        for quoted in words.split('`').skip(1).step_by(2) {
            match quoted.split_once(' ') {
                Some(("quittance", _)) => {
                    if let Err(wrong) = Cli::try_parse_from(quoted.split(' ')) {
                        panic!("{rule}: {quoted}: {wrong}");
                    }
                }
                Some(("POST", path)) => assert!(api.contains(&format!("\"{path}\"")), "{rule}: {quoted}"),
                _ => assert!(known.contains(&quoted), "{rule}: {quoted}"),
            }
        }
    }
}

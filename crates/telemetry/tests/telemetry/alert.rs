//! Tests of when an alert is raised and cleared, and that neither happens more often than the durations allow.

use quittance_lifecycle::{Counters, Money, Timestamp};
use quittance_ports::Spent;
use quittance_telemetry::alert::{
    AlertChange, AlertEngine, Balance, BudgetReading, DeadLetterReading, FailingEndpoint, Health, Named,
    Node, Pool, Readings, Rule, Thresholds,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const START: u64 = 1_794_800_000;

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis((START + seconds) * 1000)
}

/// An alert engine and the active alerts.
struct Post {
    alert_engine: AlertEngine,
    standing: BTreeSet<Named>,
    words: BTreeMap<Named, String>,
}

impl Post {
    fn new(bars: Thresholds) -> Self {
        let alert_engine = AlertEngine::new(bars, Rule::ALL.iter().copied());
        Self { alert_engine, standing: BTreeSet::new(), words: BTreeMap::new() }
    }

    fn hear(&mut self, readings: &Readings) -> Vec<AlertChange> {
        let changes = self.alert_engine.evaluate(&self.standing, readings);
        for change in &changes {
            match change {
                AlertChange::Raised { rule, subject, words } => {
                    assert!(self.standing.insert((*rule, subject.clone())), "raised twice");
                    self.words.insert((*rule, subject.clone()), words.clone());
                }
                AlertChange::Cleared { rule, subject } => {
                    assert!(self.standing.remove(&(*rule, subject.clone())), "cleared twice");
                }
            }
        }
        changes
    }

    /// Evaluates the rules every five seconds. Returns which alerts were raised and cleared, and when.
    fn watch(
        &mut self,
        seconds: std::ops::Range<u64>,
        seen: impl Fn(u64) -> Readings,
    ) -> Vec<(u64, bool, Rule)> {
        let mut heard = Vec::new();
        for second in seconds.step_by(5) {
            let readings = Readings { at: at(second), ..seen(second) };
            heard.extend(self.hear(&readings).into_iter().map(|change| match change {
                AlertChange::Raised { rule, .. } => (second, true, rule),
                AlertChange::Cleared { rule, .. } => (second, false, rule),
            }));
        }
        heard
    }
}

fn balance(provider: &str, currency: &str, micros: Option<u64>) -> Balance {
    Balance { provider: provider.into(), currency: currency.into(), money: micros.map(Money) }
}

fn balances(micros: u64) -> Vec<Balance> {
    vec![balance("main", "USD", Some(micros))]
}

fn well() -> Readings {
    Readings {
        store_is_up: true,
        here: "here".into(),
        dead: Some(DeadLetterReading::default()),
        counts: Some(Counters::default()),
        providers: Some(vec![("main".into(), Health::Well)]),
        balances: balances(100_000_000),
        currency: "USD".into(),
        pools: Some(Vec::new()),
        nodes: Some(Vec::new()),
        ..Readings::default()
    }
}

#[test]
fn where_all_is_well_no_alert_is_raised() {
    assert_eq!(Post::new(Thresholds::default()).watch(0..8000, |_| well()), []);
}

#[test]
fn dead_letters_that_grow_are_reported_once_and_cleared_when_the_hour_has_half_as_many() {
    let mut post = Post::new(Thresholds::default());
    let dead =
        |count: u64| Readings { counts: Some(Counters { dead: count, ..Counters::default() }), ..well() };
    // One each minute for twenty minutes, then none.
    let heard = post.watch(0..8000, |second| dead((second / 60).min(20)));
    let grow = Rule::DeadLettersGrow;
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[0], (670, true, grow), "the eleventh came at 660, and that was no single look");
    let (second, is_raised, rule) = heard[1];
    assert_eq!((is_raised, rule), (false, grow));
    assert!((4500..4700).contains(&second), "{second}: fifteen of them are older than an hour");
    assert!(post.words[&(grow, String::new())].contains("quittance dead list"));
}

#[test]
fn a_node_that_takes_over_does_not_clear_what_it_has_not_watched_for_long_enough() {
    let mut post = Post::new(Thresholds::default());
    post.standing.insert((Rule::DeadLettersGrow, String::new()));
    post.standing.insert((Rule::InDoubtRate, String::new()));
    let heard = post.watch(0..590, |_| well());
    assert_eq!(heard, [], "nor is it raised again");
    let heard = post.watch(590..4000, |_| well());
    assert_eq!(heard, [(660, false, Rule::InDoubtRate), (3660, false, Rule::DeadLettersGrow)]);
}

#[test]
fn a_node_that_starts_again_counts_the_hour_before_its_start() {
    let mut post = Post::new(Thresholds::default());
    let dead = |count: u64| Counters { dead: count, ..Counters::default() };
    // 100 of yesterday, nine of the last hour; and what stood there long ago is no part of that.
    post.alert_engine.recall(at(7000), [(at(0), dead(0)), (at(4000), dead(100)), (at(6000), dead(109))]);
    let now = |count: u64| move |_| Readings { counts: Some(dead(count)), ..well() };
    assert_eq!(post.watch(7000..7100, now(109)), [], "nine are not more than ten");
    assert_eq!(post.watch(7100..7200, now(118)), [(7110, true, Rule::DeadLettersGrow)]);
    assert!(post.words[&(Rule::DeadLettersGrow, String::new())].starts_with("18 orders"));
}

#[test]
fn a_dead_letter_that_waits_too_long_is_reported_until_a_person_has_seen_to_it() {
    let mut post = Post::new(Thresholds::default());
    let old = |_| Readings { dead: Some(DeadLetterReading { count: 3, oldest: Some(at(0)) }), ..well() };
    assert_eq!(post.watch(86_000..86_405, old), [(86_400, true, Rule::DeadLettersOld)]);
    let words = &post.words[&(Rule::DeadLettersOld, String::new())];
    assert!(words.contains("for 24 hours: "), "{words}");
    assert_eq!(post.watch(86_405..86_500, |_| well()), [(86_465, false, Rule::DeadLettersOld)]);
}

#[test]
fn a_provider_that_is_paused_is_reported_at_once_and_one_that_is_broken_after_a_minute() {
    let mut post = Post::new(Thresholds::default());
    let provider = |health: Health| Readings { providers: Some(vec![("main".into(), health)]), ..well() };
    let code = "ERROR\u{1b}[2J<b>".to_owned() + &"x".repeat(500);
    assert_eq!(
        post.watch(0..10, |_| provider(Health::Paused { code: code.clone() })),
        [(0, true, Rule::ProviderPaused)]
    );
    let words = &post.words[&(Rule::ProviderPaused, "main".into())];
    assert!(!words.contains('\u{1b}') && words.chars().count() < 300, "{words}");
    let mut elsewhere = Post::new(Thresholds::default());
    elsewhere.watch(0..5, |_| provider(Health::Paused { code: String::new() }));
    let words = &elsewhere.words[&(Rule::ProviderPaused, "main".into())];
    assert!(words.contains("main, which does not accept the account, as another node reports: "), "{words}");
    assert_eq!(post.watch(10..60, |_| provider(Health::Broken)), []);
    assert_eq!(
        post.watch(60..100, |_| provider(Health::Broken)),
        [(70, false, Rule::ProviderPaused), (70, true, Rule::ProviderBroken)]
    );
    let comes_and_goes = |second| provider(if second % 55 < 50 { Health::Broken } else { Health::Well });
    assert_eq!(post.watch(100..1000, comes_and_goes), [], "a moment of peace is none");
}

#[test]
fn a_balance_is_reported_when_it_is_low_and_when_it_will_not_last() {
    let mut post = Post::new(Thresholds::default());
    // One unit an hour.
    let spends = |balance: u64| {
        move |second: u64| Readings {
            balances: balances(balance),
            counts: Some(Counters { cost_micros: second * 1_000_000 / 3600, ..Counters::default() }),
            ..well()
        }
    };
    assert_eq!(post.watch(0..3000, spends(30_000_000)), []);
    assert_eq!(post.watch(3000..3600, spends(20_000_000)), [(3010, true, Rule::BalanceEnds)]);
    assert_eq!(post.watch(3600..4000, spends(25_000_000)), [], "just above the bar is not well");
    assert_eq!(post.watch(4000..4100, spends(30_000_000)), [(4060, false, Rule::BalanceEnds)]);
    let heard = post.watch(4100..4200, spends(500_000));
    assert_eq!(heard, [(4110, true, Rule::BalanceLow), (4110, true, Rule::BalanceEnds)]);
    assert!(post.words[&(Rule::BalanceLow, "main".to_owned())].contains("0.5"));
}

#[test]
fn each_provider_has_a_balance_of_its_own_and_in_its_own_currency() {
    let mut post = Post::new(Thresholds::default());
    let spends = |main: Option<u64>| {
        move |second: u64| Readings {
            balances: vec![
                balance("main", "USD", main),
                balance("spare", "USD", Some(500_000)),
                balance("third", "RUB", Some(900_000)),
            ],
            counts: Some(Counters { cost_micros: second * 1_000_000 / 3600, ..Counters::default() }),
            ..well()
        }
    };
    // Main alone lasts: the sum counts, and roubles are not in it.
    let raised = post.watch(0..3000, spends(Some(30_000_000)));
    assert_eq!(raised, [(10, true, Rule::BalanceLow), (10, true, Rule::BalanceLow)]);
    let words = |provider: &str| post.words[&(Rule::BalanceLow, provider.to_owned())].clone();
    assert!(words("spare").starts_with("the balance at spare is 0.5 USD"), "{}", words("spare"));
    assert!(words("third").starts_with("the balance at third is 0.9 RUB"), "{}", words("third"));
    assert_eq!(post.watch(3000..4000, spends(None)), [], "what is not known is neither low nor ending");
    assert_eq!(post.watch(4000..4100, spends(Some(20_000_000))), [(4010, true, Rule::BalanceEnds)]);
}

#[test]
fn answers_without_a_price_do_not_say_that_the_balance_lasts() {
    let mut post = Post::new(Thresholds::default());
    let spends = |spent: u64, unpriced: u64| Readings {
        balances: balances(20_000_000),
        counts: Some(Counters { cost_micros: spent, unpriced, ..Counters::default() }),
        ..well()
    };
    let raised = post.watch(0..1000, |second| spends(second * 1_000_000 / 3600, 0));
    assert_eq!(raised, [(610, true, Rule::BalanceEnds)]);
    // From here on no price is known: after an hour of that nothing is known of the pace.
    let unpriced = |second: u64| spends(277_777, second);
    assert_eq!(post.watch(1000..9000, unpriced), [], "what is not known takes no alert back");
    let mut post = Post::new(Thresholds::default());
    let mixed = post.watch(0..1000, |second| spends(second * 1_000_000 / 3600, second));
    assert_eq!(mixed, [(610, true, Rule::BalanceEnds)], "what is known is enough");
    let words = &post.words[&(Rule::BalanceEnds, String::new())];
    assert!(words.contains("is spent in at most"), "{words}");
}

#[test]
fn a_refill_without_a_price_counts_against_its_budget_at_what_it_was_expected_to_cost() {
    let mut post = Post::new(Thresholds::default());
    let pool = Pool {
        name: "warm".into(),
        is_on: true,
        budget: Some(Money(20_000)),
        price: Some(Money(2_990)),
        spent: Spent {
            money: Money(5_980),
            refills: 6,
            unpriced: 4,
            expected: Money(4 * 2_990),
            ..Spent::default()
        },
        ..Pool::default()
    };
    let heard = post.watch(0..100, |_| Readings { pools: Some(vec![pool.clone()]), ..well() });
    assert_eq!(heard, [(10, true, Rule::BudgetEnds)]);
    let words = &post.words[&(Rule::BudgetEnds, "warm".into())];
    assert!(words.contains("has spent about 0.01794 of the 0.02 USD"), "{words}");
}

#[test]
fn an_in_doubt_rate_needs_enough_attempts_to_be_one() {
    let mut post = Post::new(Thresholds::default());
    let counts = |attempts: u64, in_doubt: u64| Readings {
        counts: Some(Counters { attempts, in_doubt, ..Counters::default() }),
        ..well()
    };
    assert_eq!(post.watch(0..300, |second| counts(second / 20, second / 20)), [], "15 attempts");
    let heard = post.watch(300..900, |second| counts(second / 20, second / 20));
    assert_eq!(heard, [(410, true, Rule::InDoubtRate)]);
    let calm = post.watch(900..2000, |second| counts(second / 20 + second - 900, 45));
    assert!(matches!(calm[..], [(_, false, Rule::InDoubtRate)]), "{calm:?}");
}

#[test]
fn callers_that_are_not_reached_and_callbacks_that_do_not_come_are_reported() {
    let mut post = Post::new(Thresholds::default());
    let counts = |second: u64| Readings {
        counts: Some(Counters {
            webhooks_failed: second / 20,
            solved: second / 10,
            recovered_by_poll: second / 12,
            ..Counters::default()
        }),
        ..well()
    };
    let heard = post.watch(0..600, counts);
    assert_eq!(heard, [(210, true, Rule::CallbacksMissing), (230, true, Rule::CallersNotReached)]);
}

#[test]
fn a_pool_starves_only_while_callers_ask_for_what_it_does_not_have() {
    let mut post = Post::new(Thresholds::default());
    let pool = |fresh: u32, missed: u64, spent: u64| {
        let pool = Pool {
            name: "warm".into(),
            is_on: true,
            budget: Some(Money(1_000)),
            spent: Spent { money: Money(spent), ..Spent::default() },
            stopped: None,
            price: Some(Money(1)),
            level: 4,
            fresh,
            missed,
        };
        Readings { pools: Some(vec![pool]), ..well() }
    };
    assert_eq!(post.watch(0..600, |_| pool(0, 7, 0)), [], "no demand");
    assert_eq!(post.watch(600..700, |second| pool(0, second, 0)), [(660, true, Rule::PoolStarves)]);
    assert_eq!(post.watch(700..800, |_| pool(2, 700, 0)), [(760, false, Rule::PoolStarves)]);
    assert_eq!(post.watch(800..900, |_| pool(2, 700, 950)), [(810, true, Rule::BudgetEnds)]);
    assert_eq!(post.watch(900..1000, |_| well()), [(960, false, Rule::BudgetEnds)], "the pool is gone");
}

/// An unknown price is not zero: it stops a pool that has a budget, and the alert says so.
#[test]
fn a_pool_that_is_stopped_is_reported_at_once_with_the_reason() {
    let mut post = Post::new(Thresholds::default());
    let pool = |stopped: Option<&str>| {
        let (budget, price) = (Some(Money(20_000)), stopped.is_none().then_some(Money(2_990)));
        let stopped = stopped.map(str::to_owned);
        let pool = Pool { name: "warm".into(), is_on: true, budget, price, stopped, ..Pool::default() };
        Readings { pools: Some(vec![pool]), ..well() }
    };
    assert_eq!(post.watch(0..100, |_| pool(Some("the price is not known"))), [(10, true, Rule::BudgetEnds)]);
    let words = &post.words[&(Rule::BudgetEnds, "warm".into())];
    assert_eq!(words, "pool warm has a budget of 0.02 USD an hour: the price is not known");
    assert_eq!(post.watch(100..300, |_| pool(None)), [(160, false, Rule::BudgetEnds)]);
}

#[test]
fn a_budget_that_does_not_pay_for_another_answer_is_at_its_end_wherever_the_bar_stands() {
    let mut post = Post::new(Thresholds::default());
    let pool = |spent: u64| {
        let (budget, price) = (Some(Money(20_000)), Some(Money(2_990)));
        let spent = Spent { money: Money(spent), ..Spent::default() };
        let pool = Pool { name: "warm".into(), is_on: true, budget, price, spent, ..Pool::default() };
        Readings { pools: Some(vec![pool]), ..well() }
    };
    assert_eq!(post.watch(0..100, |_| pool(14_950)), [], "it buys one more");
    assert_eq!(post.watch(100..200, |_| pool(17_940)), [(110, true, Rule::BudgetEnds)], "89.7 %");
    let words = &post.words[&(Rule::BudgetEnds, "warm".into())];
    assert!(words.contains("0.01794 of the 0.02 USD") && words.contains("0.00299 USD of another"), "{words}");
    assert_eq!(post.watch(200..300, |_| pool(0)), [(260, false, Rule::BudgetEnds)], "a new hour");
}

#[test]
fn records_that_cannot_be_read_raise_an_alert_until_they_are_dropped() {
    let mut post = Post::new(Thresholds::default());
    let unreadable = |count| Readings { unreadable: count, ..well() };
    assert_eq!(post.watch(0..10, |_| unreadable(Some(0))), []);
    assert_eq!(post.watch(10..100, |_| unreadable(Some(3))), [(10, true, Rule::RecordsUnreadable)]);
    let words = &post.words[&(Rule::RecordsUnreadable, String::new())];
    assert!(words.contains("3 records") && words.contains("--cause unreadable"), "{words}");
    assert_eq!(post.watch(100..300, |_| unreadable(None)), [], "what is not known clears nothing");
    assert_eq!(post.watch(300..500, |_| unreadable(Some(0))), [(360, false, Rule::RecordsUnreadable)]);
}

#[test]
fn a_store_that_is_away_clears_nothing_because_no_node_can_look() {
    let mut post = Post::new(Thresholds::default());
    let silent = Node { name: "b".into(), is_silent: true, has_spilled: true };
    let nodes = |_| Readings { nodes: Some(vec![silent.clone()]), ..well() };
    let heard = post.watch(0..100, nodes);
    assert_eq!(heard, [(15, true, Rule::NodeSilent), (60, true, Rule::SpillNotEmpty)]);
    let away = |_| Readings { here: "here".into(), ..Readings::default() };
    assert_eq!(post.watch(100..500, away), [(110, true, Rule::StoreAway)]);
    let back = Node { is_silent: false, has_spilled: false, ..silent.clone() };
    let both = |_| Readings { nodes: Some(vec![silent.clone(), back.clone()]), ..well() };
    let cleared: BTreeSet<_> =
        post.watch(500..600, both).into_iter().map(|(_, is_raised, rule)| (is_raised, rule)).collect();
    let all = [Rule::StoreAway, Rule::SpillNotEmpty, Rule::NodeSilent].map(|rule| (false, rule));
    assert_eq!(cleared, BTreeSet::from(all), "one that was started again is not silent");
}

fn budget(used: u64, stopped: Option<&str>) -> Readings {
    let budget = BudgetReading {
        name: "team-a".into(),
        currency: "USD".into(),
        period: "day",
        limit: Money(25_000_000),
        used: Money(used),
        stopped: stopped.map(str::to_owned),
        left: Duration::from_secs(3 * 3600),
    };
    Readings { budgets: Some(vec![budget]), ..well() }
}

#[test]
fn a_budget_that_is_nearly_used_up_is_reported_and_cleared_when_a_period_begins() {
    let mut post = Post::new(Thresholds::default());
    assert_eq!(post.watch(0..100, |_| budget(22_500_000, None)), [], "a tenth is left");
    assert_eq!(post.watch(100..200, |_| budget(22_500_001, None)), [(110, true, Rule::BudgetLow)]);
    let words = &post.words[&(Rule::BudgetLow, "team-a".into())];
    assert!(
        words.starts_with("2.499999 USD is left of the 25 USD that the budget team-a allows in this day"),
        "{words}"
    );
    assert!(words.contains("which ends in 3 hours: see who spends"), "{words}");
    assert_eq!(post.watch(200..300, |_| budget(22_000_000, None)), [], "a little more is not enough");
    assert_eq!(post.watch(300..400, |_| budget(0, None)), [(360, false, Rule::BudgetLow)]);
}

#[test]
fn a_budget_that_allows_no_purchase_is_reported_with_the_reason_whatever_is_left() {
    let mut post = Post::new(Thresholds::default());
    let unpriced = Some("the cost of 2 attempts is not known");
    assert_eq!(post.watch(0..100, |_| budget(0, unpriced)), [(10, true, Rule::BudgetSpent)]);
    let words = &post.words[&(Rule::BudgetSpent, "team-a".into())];
    assert!(words.contains("begins again in 3 hours: the cost of 2 attempts is not known."), "{words}");
    assert!(words.contains("`quittance budget show team-a`"), "{words}");
    assert_eq!(post.watch(100..200, |_| budget(0, None)), [(160, false, Rule::BudgetSpent)]);
    assert!(Rule::BudgetSpent.is_grave() && !Rule::BudgetLow.is_grave());
    assert_eq!(post.watch(200..300, |_| budget(25_000_000, None)), [(210, true, Rule::BudgetLow)]);
    let gone = |_| Readings { budgets: Some(Vec::new()), ..well() };
    assert_eq!(post.watch(300..400, gone), [(360, false, Rule::BudgetLow)], "the budget is gone");
}

#[test]
fn a_rule_that_is_switched_off_is_silent_and_clears_what_it_has_raised() {
    let off = Thresholds {
        dead_new: 0,
        dead_age: Duration::ZERO,
        provider_paused: false,
        provider_broken_for: Duration::ZERO,
        balance_low: Money(0),
        balance_lasts: Duration::ZERO,
        budget_used_permille: 0,
        budget_low_permille: 0,
        budget_spent: false,
        in_doubt_permille: 0,
        webhooks_failed: 0,
        endpoint_off: false,
        polled_permille: 0,
        pool_starves_for: Duration::ZERO,
        store_away_for: Duration::ZERO,
        records_unreadable: false,
        spill_for: Duration::ZERO,
        node_silent_for: Duration::ZERO,
        ..Thresholds::default()
    };
    // What a store has lost is always reported.
    let can_be_off = |rule: &&Rule| **rule != Rule::StoreForgot;
    assert!(Rule::ALL.iter().filter(can_be_off).all(|rule| !off.is_on(*rule)));
    assert!(Rule::ALL.iter().all(|rule| Thresholds::default().is_on(*rule)));
    let mut post = Post::new(off);
    post.standing.insert((Rule::ProviderPaused, "main".into()));
    let paused = |_| Readings {
        providers: Some(vec![("main".into(), Health::Paused { code: "X".into() })]),
        ..well()
    };
    assert_eq!(post.watch(0..100, paused), [(60, false, Rule::ProviderPaused)]);
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    assert!(Rule::ALL.iter().all(|rule| Rule::named(rule.name()) == Some(*rule)));
    assert_eq!(Rule::named("no_rule"), None);
}

/// A random generator (SplitMix64).
struct Rng(u64);

impl Rng {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.roll(8) > 0).then_some(value)
    }
}

fn anything(rng: &mut Rng, now: Timestamp, counts: &mut Counters) -> Readings {
    for count in [&mut counts.dead, &mut counts.webhooks_failed, &mut counts.in_doubt, &mut counts.attempts] {
        *count += rng.roll(3);
    }
    counts.solved += rng.roll(4);
    counts.recovered_by_poll += rng.roll(4);
    counts.cost_micros += rng.roll(100_000);
    let health = match rng.roll(3) {
        0 => Health::Well,
        1 => Health::Broken,
        _ => Health::Paused { code: "X".into() },
    };
    let pools = (0..rng.roll(3)).map(|n| Pool {
        name: format!("pool{n}"),
        is_on: rng.roll(4) > 0,
        budget: Some(Money(1000)),
        spent: Spent {
            money: Money(rng.roll(1200)),
            unpriced: rng.roll(3),
            expected: Money(rng.roll(900)),
            ..Spent::default()
        },
        stopped: (rng.roll(8) == 0).then(|| "the store forgot".into()),
        price: Some(Money(rng.roll(300))),
        level: u32::try_from(rng.roll(3)).unwrap_or(0),
        fresh: u32::try_from(rng.roll(2)).unwrap_or(0),
        missed: rng.roll(1000),
    });
    let pools: Vec<_> = pools.collect();
    let nodes = (0..rng.roll(4)).map(|n| Node {
        name: format!("node{}", n % 2),
        is_silent: rng.roll(2) > 0,
        has_spilled: rng.roll(2) > 0,
    });
    let nodes: Vec<_> = nodes.collect();
    let budget = BudgetReading {
        name: "day".into(),
        limit: Money(1000),
        used: Money(rng.roll(1200)),
        stopped: (rng.roll(8) == 0).then(|| "the limit is reached".into()),
        ..BudgetReading::default()
    };
    Readings {
        budgets: rng.maybe(vec![budget]),
        endpoints: Some(Vec::new()),
        at: now,
        store_is_up: rng.roll(2) > 0,
        forgot: Some("the store was flushed: look".into()),
        here: "here".into(),
        dead: rng.maybe(DeadLetterReading { count: 1, oldest: None }),
        unreadable: rng.roll(8).checked_sub(5),
        counts: rng.maybe(*counts),
        providers: rng.maybe(vec![("main".into(), health)]),
        balances: balances(rng.roll(3_000_000)),
        currency: "USD".into(),
        pools: rng.maybe(pools),
        nodes: rng.maybe(nodes),
    }
}

/// A raised alert stays for at least the time to clear one, and a cleared alert stays away for at least the time to
/// raise one.
#[test]
fn nothing_flaps_whatever_is_seen() {
    let mut changes = 0;
    for seed in 0..60 {
        let mut rng = Rng(seed);
        let bars =
            Thresholds { clear_after: Duration::from_secs(20 + rng.roll(60)), ..Thresholds::default() };
        let mut post = Post::new(bars.clone());
        let (mut counts, mut second) = (Counters::default(), 0);
        let mut last: BTreeMap<Named, (bool, Timestamp)> = BTreeMap::new();
        let mut held = anything(&mut rng, at(0), &mut counts);
        for _ in 0..2000 {
            second += 1 + rng.roll(9);
            // Now and then the world holds still for a while, or nothing would ever be raised.
            if rng.roll(12) == 0 {
                held = anything(&mut rng, at(second), &mut counts);
            }
            let readings = Readings { at: at(second), ..held.clone() };
            for change in post.hear(&readings) {
                let (named, is_raised) = match change {
                    AlertChange::Raised { rule, subject, words } => {
                        assert!(words.contains(':'), "it says what to do: {words}");
                        ((rule, subject), true)
                    }
                    AlertChange::Cleared { rule, subject } => ((rule, subject), false),
                };
                let span = if is_raised { bars.raised_after(named.0) } else { bars.cleared_after(named.0) };
                if let Some((was_raised, before)) = last.insert(named.clone(), (is_raised, at(second))) {
                    assert_ne!(was_raised, is_raised, "{named:?} by turns");
                    assert!(at(second).since(before) >= span, "{named:?} flaps in seed {seed}");
                }
                changes += 1;
            }
        }
    }
    assert!(changes > 1000, "{changes}: the dice must raise something");
}

#[test]
fn an_endpoint_that_is_switched_off_is_reported_until_it_is_on_again() {
    let endpoint = |is_off| {
        let (tenant, host) = ("archive".to_owned(), "hooks.example.org".to_owned());
        let endpoint = FailingEndpoint { tenant, host, is_off, why: "HTTP 500".into() };
        move |_| Readings { endpoints: Some(vec![endpoint.clone()]), ..well() }
    };
    let mut post = Post::new(Thresholds::default());
    assert_eq!(post.watch(0..100, endpoint(false)), [], "it fails, and is still called");
    assert_eq!(post.watch(100..200, endpoint(true)), [(100, true, Rule::EndpointOff)]);
    let words = &post.words[&(Rule::EndpointOff, "archive hooks.example.org".into())];
    assert!(words.contains("hooks.example.org") && words.contains("HTTP 500"), "{words}");
    let none = |_| Readings { endpoints: Some(Vec::new()), ..well() };
    assert_eq!(post.watch(200..400, none), [(260, false, Rule::EndpointOff)]);
}

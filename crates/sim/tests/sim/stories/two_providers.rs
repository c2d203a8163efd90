//! Two providers: what orders do when the first one fails them, and what nodes learn from each other.

use crate::stories::world::{
    StoryNode, StoryOrder, StoryWorld, recaptcha, since_start, turnstile, world_with,
};
use async_trait::async_trait;
use quittance_engine::{ProviderRules, ProviderState, Rules};
use quittance_lifecycle::{
    Evidence, Fault, FaultClass, Money, Order, Payload, Phase, Policy, PollOutcome, ProviderAnswer,
    ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, MemorySpill, Params, Penalty, Provider, ProviderMode,
    Submission,
};
use quittance_sim::executor::Executor;
use quittance_sim::{ROUTING_PLANTS, asked_again_in_doubt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long a task takes.
pub(crate) const SOLVE_MS: u64 = 8_000;

/// How long a task of a slow provider takes.
const SLOW_MS: u64 = 150_000;

/// How a provider behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// No connection.
    Gone,
    /// It takes every second task, and its replies are lost.
    Silent,
    Blocked,
    Broke,
    /// It takes tasks and cannot solve them.
    GivesUp,
    /// Its tasks take long.
    Slow,
    /// It has lost all tasks, and takes new ones.
    Forgetful,
    /// It does not sell this kind.
    SellsNo(&'static str),
}

#[derive(Default)]
pub(crate) struct ServiceNotes {
    mood: Option<Mood>,
    balance: u64,
    /// When each submit came, and whether it was taken.
    submits: Vec<(u64, bool)>,
    /// How many polls met a blocked key.
    refused_polls: usize,
    /// How many polls were about a task that the service does not have.
    pub(crate) foreign_polls: usize,
    /// When each task is solved; `None` if it cannot be solved.
    pub(crate) tasks: BTreeMap<String, Option<u64>>,
}

/// A provider that changes its mood when the story says so.
#[derive(Clone)]
pub(super) struct Service {
    name: &'static str,
    executor: Executor,
    notes: Arc<Mutex<ServiceNotes>>,
}

impl Service {
    pub(super) fn new(name: &'static str, executor: &Executor) -> Self {
        Self { name, executor: executor.clone(), notes: Arc::default() }
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, ServiceNotes> {
        self.notes.lock().expect("nothing panics while it holds the notes")
    }

    pub(super) fn is(&self, mood: Mood) {
        self.notes().mood = Some(mood);
    }

    pub(super) fn submits_since(&self, ms: u64) -> usize {
        self.notes().submits.iter().filter(|(at, _)| *at >= ms).count()
    }

    /// How many tasks it took and replied so.
    pub(super) fn accepted(&self) -> u64 {
        self.notes().tasks.len() as u64
    }

    pub(crate) fn taken_since(&self, ms: u64) -> usize {
        self.notes().submits.iter().filter(|(at, taken)| *at >= ms && *taken).count()
    }
}

#[async_trait]
impl Provider for Service {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let at = since_start(self.executor.now());
        let mood = self.notes().mood.unwrap_or(Mood::Well);
        let reject = |class, code| SubmitOutcome::Rejected(Fault::new(class, code));
        let is_taken = {
            let mut notes = self.notes();
            let is_taken = match mood {
                Mood::Well | Mood::GivesUp | Mood::Forgetful | Mood::Slow => true,
                Mood::Silent => notes.submits.len().is_multiple_of(2),
                Mood::SellsNo(kind) => submission.terms.kind != kind,
                Mood::Gone | Mood::Blocked | Mood::Broke => false,
            };
            notes.submits.push((at, is_taken));
            is_taken
        };
        match mood {
            Mood::Well | Mood::GivesUp | Mood::Forgetful | Mood::Slow | Mood::SellsNo(_) if is_taken => {
                let task = format!("{}-{}-{}", self.name, submission.key.short(), submission.attempt);
                let solved_at = (mood != Mood::GivesUp)
                    .then_some(at + if mood == Mood::Slow { SLOW_MS } else { SOLVE_MS });
                self.notes().tasks.insert(task.clone(), solved_at);
                SubmitOutcome::Accepted { task }
            }
            Mood::Gone => reject(FaultClass::Unreachable, "connection refused"),
            Mood::Blocked => reject(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"),
            Mood::Broke => reject(FaultClass::NoFunds, "ERROR_ZERO_BALANCE"),
            Mood::Silent => {
                self.executor.sleep(1_000).await;
                SubmitOutcome::InDoubt(Evidence::new("no reply"))
            }
            Mood::Well | Mood::GivesUp | Mood::Forgetful | Mood::Slow | Mood::SellsNo(_) => {
                reject(FaultClass::NotSold, "ERROR_METHOD_CALL")
            }
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let (now, mut notes) = (since_start(self.executor.now()), self.notes());
        let mut state = |task: &String| match notes.tasks.get(task) {
            _ if notes.mood == Some(Mood::Gone) => PollOutcome::NoReply,
            _ if notes.mood == Some(Mood::Blocked) => {
                notes.refused_polls += 1;
                PollOutcome::Faulted(Fault::new(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"))
            }
            Some(None) => PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_UNSOLVABLE")),
            Some(Some(at)) if now >= *at => PollOutcome::Answered(ProviderAnswer {
                payload: Payload::text(task.clone()),
                took_at_least: None,
                cost: Some(Money(2_990)),
            }),
            Some(_) => PollOutcome::Pending,
            None => {
                notes.foreign_polls += 1;
                PollOutcome::NoSuchTask(Fault::new(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID"))
            }
        };
        tasks.iter().map(|task| (task.clone(), state(task))).collect()
    }

    fn poll_batch_max(&self) -> usize {
        100
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn penalty(&self, _: &Fault) -> Option<Penalty> {
        None
    }

    fn read_callback(&self, _: &Callback<'_>) -> Option<CallbackMessage> {
        None
    }

    async fn report(&self, _: &str, _: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        let notes = self.notes();
        let is_there = notes.mood != Some(Mood::Gone);
        is_there.then(|| Account { balance: Some(Money(notes.balance)), threads: None })
    }
}

/// Two providers, and nodes that share a store.
pub(super) struct Scene {
    pub(super) world: StoryWorld,
    pub(super) a: Service,
    pub(super) b: Service,
}

impl Scene {
    /// Without callbacks, so answers are polled.
    pub(super) fn new() -> Self {
        Self::with(Policy::DEFAULT, 1)
    }

    pub(super) fn with(policy: Policy, seed: u64) -> Self {
        let world = world_with(policy, seed);
        let (a, b) = (Service::new("a", &world.executor), Service::new("b", &world.executor));
        Self { world, a, b }
    }

    pub(super) fn node(&self) -> StoryNode {
        self.node_with(|_| {})
    }

    pub(super) fn node_with(&self, sow: fn(&mut Rules)) -> StoryNode {
        let services = [&self.a, &self.b].map(|service| Arc::new(service.clone()) as Arc<dyn Provider>);
        self.world.node_at(Arc::new(MemorySpill::default()), services.to_vec(), |settings| {
            settings.providers = ["a", "b"]
                .map(|name| ProviderRules { name: name.into(), ..ProviderRules::default() })
                .to_vec();
            settings.in_hand_max = 10_000;
            sow(&mut settings.rules);
        })
    }
}

pub(crate) fn accounts(order: &Order) -> Vec<&str> {
    order.attempts.iter().map(|attempt| order.account_of(attempt)).collect()
}

/// Checks that no attempt was made elsewhere while an earlier one was in doubt: its doubt was settled or waited out.
pub(crate) fn check_doubts(order: &Order) {
    assert!(asked_again_in_doubt(order).is_none(), "{:?}", order.timeline);
}

pub(crate) fn says_why(order: &Order, words: &str) -> bool {
    order.timeline.entries.iter().any(|entry| entry.to_string().contains(words))
}

/// Promise: an order goes to another provider when the first one is gone, and it is never paid for there while the
/// first one may have taken it.
#[test]
fn a_provider_that_dies_in_the_middle_loses_its_orders_to_the_other_and_none_is_paid_twice_in_doubt() {
    for seed in 0..8 {
        let scene = Scene::with(Policy { callbacks: true, ..Policy::DEFAULT }, seed);
        let node = scene.node();
        let callers: Vec<_> = (0..1_000)
            .map(|number| {
                if number == 300 {
                    scene.a.is(Mood::Silent);
                }
                if number == 400 {
                    scene.a.is(Mood::Gone);
                }
                scene.world.after_ms(20);
                node.begins(turnstile(&format!("site-{seed}-{number}")))
            })
            .collect();
        scene.world.after(290);
        let answered = callers.iter().filter(|caller| caller.token().is_some()).count();
        assert_eq!(answered, 1_000, "seed {seed}");
        let orders = scene.world.orders();
        let of_b = orders.iter().filter(|order| accounts(order).last() == Some(&"b USD")).collect::<Vec<_>>();
        assert!(of_b.len() >= 600, "seed {seed}: {}", of_b.len());
        orders.iter().for_each(|order| check_doubts(order));
        for order in of_b {
            assert!(says_why(order, "goes to b, because a"), "{:?}", order.timeline);
        }
        let back = scene.world.now();
        scene.a.is(Mood::Well);
        scene.world.after(70);
        let later: Vec<_> =
            (0..50).map(|number| node.asks(turnstile(&format!("later-{seed}-{number}")))).collect();
        scene.world.after(60);
        assert!(later.iter().all(|caller| caller.token().is_some()));
        assert!(scene.a.taken_since(back) >= 45, "seed {seed}: {}", scene.a.taken_since(back));
    }
}

/// Promise: what one node learns about an account, all nodes know within a second.
#[test]
fn a_blocked_key_stops_all_nodes_within_a_second_and_a_person_starts_all() {
    let scene = Scene::new();
    let nodes = [scene.node(), scene.node(), scene.node()];
    scene.world.after(2);
    scene.a.is(Mood::Blocked);
    let first = nodes[0].asks(turnstile("first"));
    let learned = scene.world.now();
    let place = |round: u64| -> Vec<_> {
        (0..30).map(|n| nodes[n % 3].asks(turnstile(&format!("{round}-{n}")))).collect()
    };
    scene.world.after_ms(1_000);
    let callers = place(1);
    scene.world.after(20);
    assert_eq!(scene.a.submits_since(learned + 1), 0, "no other node has tried it");
    assert!(
        first.token().is_some() && callers.iter().all(|caller| caller.token().is_some()),
        "b has answered"
    );
    for node in &nodes {
        let states = node.engine.provider_states();
        assert!(matches!(&states[0], (_, ProviderState::Paused { fault: Some(_) })), "{states:?}");
    }
    scene.a.is(Mood::Well);
    let engine = Arc::clone(&nodes[1].engine);
    let resumed = nodes[1].does(async move { engine.set_provider_mode("a", ProviderMode::Active).await });
    assert!(resumed.is_ok_and(|view| view.is_some_and(|(view, _)| view.pause.is_none())));
    let resumed_at = scene.world.now();
    scene.world.after_ms(1_000);
    let callers = place(2);
    scene.world.after(20);
    assert!(callers.iter().all(|caller| caller.token().is_some()));
    assert_eq!(scene.a.taken_since(resumed_at), 30, "all nodes use it again");
}

/// Promise: a balance that has risen ends the pause by itself.
#[test]
fn an_account_without_money_is_used_again_when_there_is_money() {
    let scene = Scene::new();
    let nodes = [scene.node(), scene.node()];
    scene.world.after(2);
    scene.a.is(Mood::Broke);
    let first = nodes[0].asks(turnstile("first"));
    scene.world.after(20);
    assert!(first.token().is_some());
    assert!(says_why(&scene.world.orders()[0], "goes to b, because a has no money of ours left"));
    scene.a.notes().balance = 5_000_000;
    scene.a.is(Mood::Well);
    scene.world.after(40);
    for (n, node) in nodes.iter().enumerate() {
        assert_eq!(node.engine.provider_states()[0].1, ProviderState::Ok, "node {n}");
    }
    let before = scene.world.now();
    let later = nodes[1].asks(turnstile("later"));
    scene.world.after(20);
    assert!(later.token().is_some() && scene.a.taken_since(before) == 1);
}

/// Promise: a key that is blocked while tasks are at the provider costs their orders time, and nothing else. They go to
/// the other provider when the answers should long have come, and the blocked key is hardly asked.
#[test]
fn tasks_at_a_provider_that_blocks_the_key_are_bought_at_the_other_one_in_time() {
    for callbacks in [false, true] {
        let scene = Scene::with(Policy { callbacks, ..Policy::DEFAULT }, 1);
        let node = scene.node();
        let callers: Vec<_> = (0..20).map(|n| node.begins(turnstile(&format!("site-{n}")))).collect();
        scene.world.after(3);
        assert!(scene.a.accepted() >= 8, "{}", scene.a.accepted());
        scene.a.is(Mood::Blocked);
        scene.world.after(240);
        let answered = callers.iter().filter(|caller| caller.token().is_some()).count();
        assert_eq!(answered, 20, "callbacks: {callbacks}");
        let refused = scene.a.notes().refused_polls;
        assert!(refused <= 60, "{refused} polls with a blocked key for 20 orders");
        for order in scene.world.orders() {
            check_doubts(&order);
        }
    }
}

/// With one provider, orders wait for the money instead of going elsewhere.
#[test]
fn orders_that_wait_for_money_continue_when_there_is_some() {
    let scene = Scene::new();
    scene.b.is(Mood::Broke);
    let node = scene.node();
    scene.a.is(Mood::Broke);
    let callers: Vec<_> = (0..5).map(|n| node.asks(turnstile(&format!("site-{n}")))).collect();
    scene.world.after(35);
    assert!(callers.iter().all(|caller| caller.token().is_none()));
    scene.a.notes().balance = 5_000_000;
    scene.a.is(Mood::Well);
    scene.world.after(60);
    assert!(callers.iter().all(|caller| caller.token().is_some()));
}

/// Promise: a provider that rejects one kind keeps its other orders, and gets no more of that kind.
#[test]
fn a_kind_that_a_provider_does_not_sell_goes_to_the_other_and_the_rest_stays() {
    let scene = Scene::new();
    let node = scene.node();
    scene.a.is(Mood::SellsNo("turnstile"));
    let callers: Vec<_> = (0..100).map(|n| node.asks(turnstile(&format!("site-{n}")))).collect();
    scene.world.after(30);
    assert!(callers.iter().all(|caller| caller.token().is_some()));
    assert!(scene.a.submits_since(0) <= 2, "{} submits found out", scene.a.submits_since(0));
    let orders = scene.world.orders();
    assert!(orders.iter().all(|order| matches!(order.phase, Phase::Solved { .. })));
    assert!(orders.iter().any(|order| says_why(order, "a does not sell this kind")));
}

#[test]
fn a_drained_provider_finishes_its_tasks_and_gets_no_more() {
    let scene = Scene::new();
    let node = scene.node();
    let before: Vec<_> = (0..10).map(|n| node.asks(turnstile(&format!("before-{n}")))).collect();
    scene.world.after_ms(1);
    let engine = Arc::clone(&node.engine);
    let drained = node.does(async move { engine.set_provider_mode("a", ProviderMode::Drained).await });
    assert!(drained.is_ok_and(|view| view.is_some_and(|(view, _)| view.state == ProviderState::Drained)));
    let since = scene.world.now();
    let after: Vec<_> = (0..10).map(|n| node.asks(turnstile(&format!("after-{n}")))).collect();
    scene.world.after(30);
    assert!(before.iter().chain(&after).all(|caller| caller.token().is_some()));
    assert_eq!((scene.a.taken_since(0), scene.a.submits_since(since)), (10, 0));
}

/// Every promise about two providers in one story. An error names the one that is broken.
fn orders_move_on(sow: fn(&mut Rules)) -> Result<(), String> {
    let scene = Scene::with(Policy { callbacks: true, ..Policy::DEFAULT }, 1);
    let node = scene.node_with(sow);
    let mut callers = Vec::new();
    let mut place = |part: &str, kind: fn(&str) -> StoryOrder| {
        callers.extend((0..20).map(|n| node.asks(kind(&format!("{part}-{n}")))));
    };
    place("well", turnstile);
    scene.world.after(60);
    let is = |what: bool, words: &str| if what { Ok(()) } else { Err(words.to_owned()) };
    is(scene.a.taken_since(0) == 20 && scene.b.taken_since(0) == 0, "the first provider gets the orders")?;
    scene.a.is(Mood::GivesUp);
    place("hard", turnstile);
    scene.world.after(200);
    is(scene.b.taken_since(0) == 20, "used-up retries lead to the other provider, once")?;
    scene.a.is(Mood::Well);
    place("lost", turnstile);
    scene.world.after(1);
    scene.a.is(Mood::SellsNo("recaptcha_v2"));
    let before = scene.a.submits_since(0);
    place("unsold", recaptcha);
    is(scene.a.submits_since(0) <= before + 2, "a provider gets no more of a kind that it does not sell")?;
    scene.a.is(Mood::Silent);
    place("doubt", turnstile);
    scene.world.after(2);
    scene.a.is(Mood::Blocked);
    place("blocked", turnstile);
    scene.world.after(1);
    scene.a.is(Mood::Gone);
    scene.world.after(295);
    let answered = callers.iter().filter(|caller| caller.token().is_some()).count();
    is(answered == callers.len(), &format!("{answered} of {} are answered", callers.len()))?;
    for order in scene.world.orders() {
        is(
            asked_again_in_doubt(&order).is_none(),
            "a doubt is waited out before another provider gets the order",
        )?;
    }
    let usage = scene.world.usage_by_account();
    for (account, service) in [("a USD", &scene.a), ("b USD", &scene.b)] {
        let (counted, answered) =
            (usage.get(account).map_or(0, |counters| counters.paid), service.accepted());
        is(counted == answered, &format!("{account}: {counted} paid by the usage, {answered} taken"))?;
    }
    Ok(())
}

#[test]
fn every_planted_bug_of_routing_is_caught() {
    orders_move_on(|_| {}).expect("without a bug, every promise holds");
    for plant in ROUTING_PLANTS {
        let caught = orders_move_on(plant.sow).expect_err(plant.name);
        println!("{}: {caught}", plant.name);
    }
}

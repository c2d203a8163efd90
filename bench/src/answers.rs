//! How many joined and cached answers one core gives in a second, in the library. A placement of an existing order is
//! answered from memory, so this is the cost of a herd.

use crate::provider::{Free, TaskBehaviour};
use crate::scene::{self, KIND, WORKS};
use crate::stopwatch::{LeastCost, time};
use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use quittance::{Order, Quittance};
use quittance_engine::{Engine, Outcome};
use quittance_lifecycle::{Counters, Draft, KeySettings, Origin, place};
use quittance_ports::{Commit, MemoryStore, Store, Version};
use quittance_store_embedded::EmbeddedStore;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

const SECTION: &str = "answers";
const AIM_PER_SECOND: f64 = 1_000_000.0;
/// The number of different orders, which are placed in turn.
const HOT: u64 = 1000;
/// The size of a batch. Drafts are made before the clock starts, and no more than the core's own cache can hold.
const BATCH: u64 = 250;
/// The measurement to which the parts belong.
const WHOLE: &str = "joined, engine, embedded";

/// An operation on a batch of orders, and the least that it has cost.
struct Subject<'a> {
    what: String,
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
    best: LeastCost,
}

/// Makes a subject. `run` gets a batch that `make` has made before the clock starts.
fn subject<'a, T>(
    what: impl Into<String>,
    make: impl Fn(u64) -> T + 'a,
    mut run: impl FnMut(Vec<T>) + 'a,
) -> Subject<'a> {
    let run = move |first| {
        let batch = (first..first + BATCH).map(&make).collect();
        time(|| run(batch)).0
    };
    Subject { what: what.into(), run: Box::new(run), best: LeastCost::NONE }
}

/// Measures the subjects in turn, so that other work of the machine disturbs all of them alike.
fn measure(subjects: &mut [Subject<'_>], scale: &Scale) {
    for _ in 0..scale.of(40, 10) {
        for subject in &mut *subjects {
            let mut span = Duration::ZERO;
            let batches = scale.of(40, 20);
            for batch in 0..batches {
                span += (subject.run)(batch * BATCH % HOT);
            }
            subject.best.note(span, batches * BATCH);
        }
    }
}

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let runtime = scene::runtime();
    let dir = scale.fresh_dir();
    say("answers: stores with orders in flight and solved");
    let memory = two_engines(&runtime, || Arc::new(MemoryStore::default()));
    let embedded = two_engines(&runtime, {
        let mut names = ["a", "b"].into_iter();
        let dir = dir.path().to_owned();
        move || {
            let name = names.next().expect("there are two of them");
            Arc::new(EmbeddedStore::open(&dir.join(name)).expect(WORKS))
        }
    });
    let nodes = [false, true].map(|durable| {
        let at = |name: &str| durable.then(|| dir.path().join(name));
        [TaskBehaviour::NeverEnding, TaskBehaviour::AtOnce].map(|response_format| {
            runtime.block_on(node(at(&format!("{response_format:?}")), response_format))
        })
    });
    let mut subjects = Vec::new();
    for (name, [joined, cached]) in [("memory", &memory), ("embedded", &embedded)] {
        let what = |how| format!("{how}, engine, {name}");
        subjects.push(subject(what("joined"), scene::draft, |drafts| join_engine(joined, drafts)));
        subjects.push(subject(what("cached"), scene::draft, |drafts| wait_engine(cached, drafts)));
    }
    for (name, [joined, cached]) in ["memory", "embedded"].iter().zip(&nodes) {
        let what = |how| format!("{how}, Quittance on tokio, {name}");
        subjects.push(subject(what("joined"), order, |orders| runtime.block_on(join_node(joined, orders))));
        subjects.push(subject(what("cached"), order, |orders| runtime.block_on(wait_node(cached, orders))));
    }
    let answers = subjects.len();
    subjects.extend(parts(&embedded[0]));
    say("answers: measuring");
    measure(&mut subjects, scale);
    let whole =
        subjects.iter().find(|subject| subject.what == WHOLE).expect("it is one of them").best.nanos();
    let mut rows: Vec<BenchRow> = subjects[..answers]
        .iter()
        .map(|subject| {
            BenchRow::new(SECTION, &subject.what, subject.best.per_second(), BenchUnit::PerSecond)
                .against(AIM_PER_SECOND, "aimed at")
                .aim(Aim::AtLeast(1.0))
        })
        .collect();
    rows.extend(subjects[answers..].iter().map(|subject| {
        BenchRow::new(SECTION, &subject.what, subject.best.nanos(), BenchUnit::Nanos).against(whole, WHOLE)
    }));
    drop(subjects);
    for node in nodes.iter().flatten() {
        runtime.block_on(node.stop());
    }
    rows
}

type AnswerSeat = (Arc<Engine>, Arc<dyn Store>);

/// Two engines: all orders of one are in flight, and all orders of the other are solved.
fn two_engines(runtime: &Runtime, mut store: impl FnMut() -> Arc<dyn Store>) -> [AnswerSeat; 2] {
    let at = scene::now();
    let (open, solved) = (store(), store());
    runtime.block_on(async {
        scene::write(&*open, (0..HOT).map(|n| scene::in_flight(n, at))).await;
        scene::write(&*solved, (0..HOT).map(|n| scene::at_rest(n, at))).await;
    });
    [open, solved].map(|store| (scene::engine(Arc::clone(&store), TaskBehaviour::NeverEnding), store))
}

async fn node(dir: Option<std::path::PathBuf>, response_format: TaskBehaviour) -> Quittance {
    let builder = Quittance::builder().provider(Free(response_format)).settings(|settings| {
        settings.kinds = Arc::new(scene::kind);
        settings.policy = scene::policy();
        // No caller asks while it is measured.
        settings.policy.first_poll = Some(Duration::from_secs(3600));
    });
    let builder = match dir {
        Some(dir) => builder.embedded(dir),
        None => builder,
    };
    let node = builder.start().await.expect(WORKS);
    for n in 0..HOT {
        let ticket = node.place(order(n)).await.expect(WORKS);
        if response_format == TaskBehaviour::AtOnce {
            ticket.wait().await.expect(WORKS);
        }
    }
    node
}

/// An order, written as users of the library write it.
fn order(n: u64) -> Order {
    let Draft { tenant, params, .. } = scene::draft(n);
    params.into_iter().fold(Order::of(KIND).tenant(tenant), |order, (name, value)| order.with(&name, value))
}

fn join_engine(engine: &AnswerSeat, drafts: Vec<Draft>) {
    for draft in drafts {
        let placed = scene::at_once(engine.0.place(KIND, draft)).expect(WORKS);
        assert_eq!(placed.origin, Origin::Joined);
    }
}

fn wait_engine(engine: &AnswerSeat, drafts: Vec<Draft>) {
    for draft in drafts {
        let placed = scene::at_once(engine.0.place(KIND, draft)).expect(WORKS);
        let outcome = scene::at_once(engine.0.wait(&placed));
        assert!(placed.origin == Origin::Cached && matches!(outcome, Outcome::Answered(_)));
    }
}

async fn join_node(node: &Quittance, orders: Vec<Order>) {
    for order in orders {
        let ticket = node.place(order).await.expect(WORKS);
        assert_eq!(ticket.placed.origin, Origin::Joined);
    }
    // The node's own worker lives on the same core.
    tokio::task::yield_now().await;
}

async fn wait_node(node: &Quittance, orders: Vec<Order>) {
    for order in orders {
        let solved = node.solve(order).await.expect(WORKS);
        assert_eq!(solved.origin, Origin::Cached);
    }
    tokio::task::yield_now().await;
}

fn repeat<'a>(what: &str, mut once: impl FnMut() + 'a) -> Subject<'a> {
    subject(format!("  of it: {what}"), drop, move |batch| batch.iter().for_each(|()| once()))
}

/// The parts of a join that can be called by themselves.
fn parts(seat: &AnswerSeat) -> Vec<Subject<'_>> {
    let (engine, store) = seat;
    let kind = scene::kind(KIND).expect("the catalogue has it");
    let policy = scene::policy();
    let at = scene::now();
    let (key, terms) = scene::checked(0, at);
    let found = scene::at_once(engine.read(&key)).expect(WORKS).expect("it is there");
    let (next, target, shared_terms) = (scene::in_flight(0, at), terms.target, Arc::clone(&terms));
    vec![
        repeat("the time, once", || _ = black_box(scene::now())),
        repeat("find the kind", || drop(black_box(scene::kind(black_box(KIND))))),
        subject("  of it: drop the draft", scene::draft, drop),
        subject("  of it: check the draft (three digests), and drop it", scene::draft, move |drafts| {
            for draft in drafts {
                drop(black_box(draft.check(&kind, KeySettings::default(), &policy, at, 1)));
            }
        }),
        repeat("one digest of the three (Key::shared)", move || {
            _ = black_box(quittance::Key::shared(black_box(&target), Duration::ZERO, None, at));
        }),
        repeat("a new life that is not needed", move || {
            drop(black_box(place(None, None, key, &terms, at, &policy)));
        }),
        repeat("a commit that loses", move || {
            let commit = scene::at_once(store.commit(Version::ABSENT, &next, &Counters::default(), at));
            assert!(matches!(commit, Ok(Commit::Conflict(_))));
        }),
        repeat("the rule for an order that is there", move || {
            drop(black_box(place(Some(&found), None, key, &shared_terms, at, &policy)));
        }),
    ]
}

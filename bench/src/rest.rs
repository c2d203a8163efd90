//! The cost of a large store: to open it after a crash, and to call each of its methods, with many orders at rest
//! compared with few.

use crate::accepts::{accept, crowded, fraction};
use crate::child::{IN_FLIGHT, fill_and_kill};
use crate::provider::TaskBehaviour;
use crate::scene::{self, KIND, WORKS};
use crate::stopwatch::{LeastCost, time};
use crate::table::{Aim, BenchRow, BenchUnit, thousands};
use crate::{Scale, say};
use quittance_engine::{Engine, Outcome};
use quittance_lifecycle::{Origin, Timestamp};
use quittance_ports::Store;
use quittance_store_embedded::EmbeddedStore;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const AIM_SECONDS: f64 = 5.0;
const FEW: u64 = 1000;
/// The largest ratio for a thousand times as many orders: growth with the logarithm is flat enough.
const FLAT: f64 = 2.0;
const AT_ONCE: usize = 256;
const HOUR: Duration = Duration::from_secs(3600);

/// A store after a crash. A large one takes a while to fill, so all measurements share it.
#[derive(Default)]
pub(crate) struct CrashedStore(OnceCell<(TempDir, Timestamp)>);

impl CrashedStore {
    fn dir(&self, scale: &Scale) -> (&Path, Timestamp) {
        let (dir, at) = self.0.get_or_init(|| {
            say(&format!(
                "rest: filling a store with {} orders, and killing the process that does it",
                many(scale)
            ));
            let (dir, at) = (scale.fresh_dir(), scene::now());
            fill_and_kill(&dir.path().join("store"), many(scale), at);
            (dir, at)
        });
        (dir.path(), *at)
    }
}

const fn many(scale: &Scale) -> u64 {
    scale.of(1_000_000, 100_000)
}

pub(crate) fn reopen(scale: &Scale) -> Vec<BenchRow> {
    let (dir, at) = scale.crashed.dir(scale);
    say("reopen: opening what the crash has left");
    let (span, store) = time(|| EmbeddedStore::open(&dir.join("store")).expect(WORKS));
    let runtime = scene::runtime();
    for n in [0, many(scale) - 1, many(scale) + IN_FLIGHT - 1] {
        let found = runtime.block_on(store.load(&scene::checked(n, at).0)).expect(WORKS);
        assert!(found.is_some(), "order {n} was acknowledged");
    }
    assert_eq!(store.unreadable().len(), 0);
    let (again, _) = time(|| {
        drop(store);
        EmbeddedStore::open(&dir.join("store")).expect(WORKS)
    });
    let row = |what, span: Duration| BenchRow::new("reopen", what, span.as_secs_f64(), BenchUnit::Seconds);
    vec![
        row(format!("{} orders, after kill -9", thousands(fraction(many(scale), 1))), span)
            .against(AIM_SECONDS, "allowed")
            .aim(Aim::AtMost(1.0)),
        row("  closed in good order, and opened again".to_owned(), again),
    ]
}

/// An open store, with everything that a measurement needs.
struct RestSeat {
    store: EmbeddedStore,
    engine: Arc<Engine>,
    orders: u64,
    filled_at: Timestamp,
    /// How many orders the calls have used up that need a fresh one each time.
    loaded: u64,
    accepted: u64,
    hours: u32,
    best: LeastCost,
}

impl RestSeat {
    fn open(dir: &Path, orders: u64, filled_at: Timestamp) -> Self {
        let store = EmbeddedStore::open(&dir.join("store")).expect(WORKS);
        let engine = scene::engine(Arc::new(store.clone()), TaskBehaviour::NeverEnding);
        Self { store, engine, orders, filled_at, loaded: 0, accepted: 0, hours: 1, best: LeastCost::NONE }
    }

    /// Reads orders that were not read since the store was opened, far apart.
    fn load_miss(&mut self, runtime: &Runtime) -> (Duration, u64) {
        let keys: Vec<_> = (self.loaded..self.loaded + 100)
            .map(|n| scene::checked(n * (self.orders / FEW), self.filled_at).0)
            .collect();
        self.loaded += 100;
        let load = async {
            for key in &keys {
                assert!(self.store.load(key).await.expect(WORKS).is_some());
            }
        };
        (time(|| runtime.block_on(load)).0, 100)
    }

    fn join(&mut self, runtime: &Runtime) -> (Duration, u64) {
        let drafts: Vec<_> = (self.orders..self.orders + 1000).map(scene::draft).collect();
        let join = async {
            for draft in drafts {
                let placed = self.engine.place(KIND, draft).await.expect(WORKS);
                assert_eq!(placed.origin, Origin::Joined);
            }
        };
        (time(|| runtime.block_on(join)).0, 1000)
    }

    fn cached(&mut self, runtime: &Runtime) -> (Duration, u64) {
        let drafts: Vec<_> = (0..1000).map(scene::draft).collect();
        let wait = async {
            for draft in drafts {
                let placed = self.engine.place(KIND, draft).await.expect(WORKS);
                assert!(matches!(self.engine.wait(&placed).await, Outcome::Answered(_)));
            }
        };
        (time(|| runtime.block_on(wait)).0, 1000)
    }

    fn accept(&mut self, runtime: &Runtime) -> (Duration, u64) {
        // Beyond all that was there when the filling was killed.
        let first = 1_000_000_000 + self.accepted;
        self.accepted += 6400;
        let engine = Arc::clone(&self.engine);
        let span = crowded(runtime, 64, (first..first + 6400).map(scene::draft), move |draft| {
            accept(Arc::clone(&engine), draft)
        });
        (span, 6400)
    }

    fn claim(&mut self, runtime: &Runtime) -> (Duration, u64) {
        // By then the last claims have lapsed, and all is due once more.
        self.hours += 2;
        let now = self.filled_at + HOUR * self.hours;
        let claim = async {
            for _ in 0..8 {
                let due = self.store.claim_due(now, now + HOUR, AT_ONCE).await.expect(WORKS);
                assert_eq!(due.orders.len(), AT_ONCE);
            }
        };
        (time(|| runtime.block_on(claim)).0, 8)
    }

    fn purge(&mut self, runtime: &Runtime) -> (Duration, u64) {
        let then = self.filled_at + HOUR * 24 * 365;
        let (span, purged) = time(|| runtime.block_on(self.store.purge(then, AT_ONCE)).expect(WORKS));
        assert_eq!(purged, AT_ONCE);
        (span, 1)
    }
}

type RestCost = fn(&mut RestSeat, &Runtime) -> (Duration, u64);

/// What is measured and how often, in this order: methods that remove orders come last.
const COSTS: [(&str, RestCost, u64); 6] = [
    ("load of one that memory does not have", RestSeat::load_miss, 9),
    ("join", RestSeat::join, 15),
    ("cached, and handed out", RestSeat::cached, 15),
    ("accept, 64 callers", RestSeat::accept, 5),
    ("claim_due of 256", RestSeat::claim, 9),
    ("purge of 256", RestSeat::purge, 3),
];

pub(crate) fn flat(scale: &Scale) -> Vec<BenchRow> {
    let runtime = scene::runtime();
    let (few_dir, few_at) = (scale.fresh_dir(), scene::now());
    fill_and_kill(&few_dir.path().join("store"), FEW, few_at);
    let (many_dir, many_at) = scale.crashed.dir(scale);
    say(&format!("flat: each cost with {FEW} and with {} orders at rest", many(scale)));
    let mut seats =
        [RestSeat::open(few_dir.path(), FEW, few_at), RestSeat::open(many_dir, many(scale), many_at)];
    COSTS
        .iter()
        .map(|(what, cost, rounds)| {
            for seat in &mut seats {
                seat.best = LeastCost::NONE;
            }
            for _ in 0..*rounds {
                for seat in &mut seats {
                    let (span, count) = cost(seat, &runtime);
                    seat.best.note(span, count);
                }
            }
            let [few, many] = [0, 1].map(|n| seats[n].best.nanos() / 1e3);
            BenchRow::new("flat", *what, many, BenchUnit::Micros)
                .against(few, "with 1,000")
                .aim(Aim::AtMost(FLAT))
        })
        .collect()
}

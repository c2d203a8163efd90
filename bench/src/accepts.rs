//! How many orders are accepted durably in a second, compared with a bare log of equal bytes with as many callers.
//! Also how many disk syncs an order costs, only accepted and over a whole life.

use crate::bare::BareLog;
use crate::provider::TaskBehaviour;
use crate::scene::{self, KIND, WORKS};
use crate::stopwatch::{LeastCost, time};
use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use quittance_engine::{Engine, Outcome};
use quittance_lifecycle::Draft;
use quittance_ports::Store;
use quittance_record::{encode_order, encode_terms};
use quittance_store_embedded::EmbeddedStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Callers, orders in a round, and the wanted ratio to the bare log.
const CROWDS: [(u64, u64, f64); 3] = [(1, 1000, 0.5), (64, 20_000, 0.5), (1024, 60_000, 1.0 / 6.0)];

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let runtime = scene::runtime();
    CROWDS
        .iter()
        .flat_map(|&(callers, orders, share)| crowd(&runtime, scale, callers, orders, share))
        .collect()
}

fn crowd(runtime: &Runtime, scale: &Scale, callers: u64, orders: u64, share: f64) -> [BenchRow; 2] {
    say(&format!("accepts: {callers} callers"));
    let dir = scale.fresh_dir();
    let store = EmbeddedStore::open(&dir.path().join("store")).expect(WORKS);
    let engine = scene::engine(Arc::new(store.clone()), TaskBehaviour::NeverEnding);
    let log = Arc::new(BareLog::open(&dir.path().join("log")));
    let sample = scene::in_flight(1_000_000, scene::now());
    // What both write is as long; that SQLite also writes an index and whole pages is its own affair.
    let record =
        vec![b'r'; encode_order(&sample).len() + encode_terms(&sample.terms).len() + sample.key.0.len()];
    let orders = scale.of(orders, orders / 4).next_multiple_of(callers);
    let mut rounds: Vec<(f64, f64)> = Vec::new();
    let mut accepted = 0;
    let before = store.transactions();
    for _ in 0..scale.of(11, 5) {
        let durable = crowded(runtime, callers, (accepted..accepted + orders).map(scene::draft), {
            let engine = Arc::clone(&engine);
            move |draft| accept(Arc::clone(&engine), draft)
        });
        accepted += orders;
        let bare = crowded(runtime, callers, (0..orders).map(|_| record.clone()), {
            let log = Arc::clone(&log);
            move |record| append(Arc::clone(&log), record)
        });
        let pace = |span: Duration| fraction(orders, 1) / span.as_secs_f64();
        rounds.push((pace(durable), pace(bare)));
    }
    // A disk has moods that last for seconds, and the best of each would come from two of them: the two halves of a
    // round share one, so the round whose ratio is the middle one speaks for all.
    rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (durable, bare) = rounds[rounds.len() / 2];
    let fsyncs = fraction(store.transactions() - before, accepted);
    let who = if callers == 1 { "1 caller".into() } else { format!("{callers} callers") };
    [
        BenchRow::new("accepts", &who, durable, BenchUnit::PerSecond)
            .against(bare, "bare log")
            .aim(Aim::AtLeast(share)),
        BenchRow::new("accepts", format!("  fsyncs per order, {who}"), fsyncs, BenchUnit::Count),
    ]
}

pub(crate) async fn accept(engine: Arc<Engine>, draft: Draft) {
    engine.place(KIND, draft).await.expect(WORKS);
}

async fn append(log: Arc<BareLog>, record: Vec<u8>) {
    log.append(record).await;
}

/// Gives the work to this many callers. Each waits for one piece before it begins the next.
pub(crate) fn crowded<T, F>(
    runtime: &Runtime,
    callers: u64,
    work: impl Iterator<Item = T>,
    act: impl Fn(T) -> F + Clone + Send + 'static,
) -> Duration
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let mut hands: Vec<Vec<T>> = (0..callers).map(|_| Vec::new()).collect();
    let count = hands.len();
    for (n, piece) in work.enumerate() {
        hands[n % count].push(piece);
    }
    let all_callers = async {
        let tasks: Vec<_> = hands
            .into_iter()
            .map(|hand| {
                let act = act.clone();
                tokio::spawn(async move {
                    for piece in hand {
                        act(piece).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect(WORKS);
        }
    };
    time(|| runtime.block_on(all_callers)).0
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
pub(crate) fn fraction(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Whole lives: placed, submitted, taken, polled, answered, handed out.
pub(crate) fn lives(scale: &Scale) -> Vec<BenchRow> {
    let runtime = scene::runtime();
    [(1, 40), (64, 4000), (1024, 20_000)]
        .into_iter()
        .flat_map(|(callers, lives)| {
            say(&format!("lives: {callers} callers"));
            let dir = scale.fresh_dir();
            let store = EmbeddedStore::open(&dir.path().join("store")).expect(WORKS);
            let engine = scene::engine(Arc::new(store.clone()) as Arc<dyn Store>, TaskBehaviour::WhenAsked);
            let worker = runtime.spawn({
                let engine = Arc::clone(&engine);
                async move { engine.work().await }
            });
            let lives = scale.of(lives, lives / 4).next_multiple_of(callers);
            let before = store.transactions();
            let span = crowded(&runtime, callers, (0..lives).map(scene::draft), {
                let engine = Arc::clone(&engine);
                move |draft| live(Arc::clone(&engine), draft)
            });
            let fsyncs = fraction(store.transactions() - before, lives);
            engine.stop();
            runtime.block_on(worker).expect(WORKS);
            let mut pace = LeastCost::NONE;
            pace.note(span, lives);
            [
                BenchRow::new(
                    "lives",
                    format!("whole lives, {callers} at a time"),
                    pace.per_second(),
                    BenchUnit::PerSecond,
                ),
                BenchRow::new(
                    "lives",
                    format!("  fsyncs per life, {callers} at a time"),
                    fsyncs,
                    BenchUnit::Count,
                ),
            ]
        })
        .collect()
}

async fn live(engine: Arc<Engine>, draft: Draft) {
    let placed = engine.place(KIND, draft).await.expect(WORKS);
    let outcome = engine.wait(&placed).await;
    assert!(matches!(outcome, Outcome::Answered(_)), "{outcome:?}");
}

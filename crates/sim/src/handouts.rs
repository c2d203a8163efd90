//! Hand-outs by the hundred thousand, on any store: three nodes whose clocks jump and who are restarted in the middle of it
//! serve a crowd from a few stocks. Time is virtual; the store is whatever it is. Of every answer that anybody was given it
//! is checked that nobody else was, that it had as much life left as was promised, and that whoever asks again, at any
//! node, is given the same.

use crate::executor::locked;
use crate::judge::Breach;
use crate::rng::Rng;
use async_trait::async_trait;
use futures_util::future::{Either, join_all, select};
use quittance_engine::{Engine, Outcome, Placed, Settings, World};
use quittance_lifecycle::{
    Counters, Decision, Draft, Event, Evidence, Gate, Money, Order, Origin, Payload, Placement, Policy,
    ProviderAnswer, Reuse, Slot, SubmitOutcome, Timestamp, place, transition,
};
use quittance_ports::{
    Clock, Commit, FixedProvider, MemoryMembership, MemorySpill, MemoryWebhooks, Store, StoreError, Version,
};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// A moment in 2027; any would do.
const START: u64 = 1_800_000_000_000;
const LIFE: u64 = 120_000;
const MARGIN: u64 = 40_000;
/// How far a node's clock may be off: less than what is promised to do no harm.
const JUMP_MAX: i64 = 1_500;
/// How long a record of what was handed out is kept, so that a million of them need not stand there at once.
const KEEP: Duration = Duration::from_secs(30);

/// How large a drill is.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub seed: u64,
    pub handouts: u64,
    pub stocks: usize,
    /// How many ask at the same instant.
    pub crowd: usize,
}

/// How it went.
#[derive(Debug, Default)]
pub struct Drilled {
    pub handed_out: u64,
    /// Asked, and found the stock empty.
    pub found_none: u64,
    /// Hung up, or lost their node, before they were told.
    pub gone: u64,
    pub asked_again: u64,
    pub restarts: u64,
    pub jumps: u64,
    /// The least life that an answer had left, in milliseconds, by the true clock.
    pub least_left: u64,
    pub breaches: Vec<Breach>,
}

/// The true time, and a node's idea of it.
struct DrillClock {
    now: Arc<AtomicU64>,
    off_by: Arc<AtomicI64>,
}

#[async_trait]
impl Clock for DrillClock {
    fn now(&self) -> Timestamp {
        let off_by = self.off_by.load(Ordering::Relaxed);
        Timestamp::from_millis(self.now.load(Ordering::Relaxed).saturating_add_signed(off_by))
    }

    /// Time stands still while somebody is served, so whoever would sleep only lets the others go first.
    async fn sleep_until(&self, _moment: Timestamp) {
        yields(20).await;
    }
}

/// Lets everybody else go first so many times.
async fn yields(mut count: usize) {
    std::future::poll_fn(move |cx| {
        if count == 0 {
            return Poll::Ready(());
        }
        count -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct Node {
    engine: Arc<Engine>,
    off_by: Arc<AtomicI64>,
}

struct Field {
    drill: Drill,
    now: Arc<AtomicU64>,
    stores: Vec<Arc<dyn Store>>,
    nodes: Vec<Node>,
    rng: Rng,
    stocked: u64,
    /// Every answer that is out, with its true expiry.
    expiries: BTreeMap<String, u64>,
    given: BTreeMap<String, u64>,
    seen: Drilled,
}

/// One handle of the same store for each node. Ends at the first call that the store refuses.
pub async fn drill(
    drill: Drill,
    stores: Vec<Arc<dyn Store>>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Drilled, StoreError> {
    let mut field = Field {
        drill,
        now: Arc::new(AtomicU64::new(START)),
        nodes: Vec::new(),
        rng: Rng::new(drill.seed, "handouts"),
        stocked: 0,
        expiries: BTreeMap::new(),
        given: BTreeMap::new(),
        seen: Drilled { least_left: u64::MAX, ..Drilled::default() },
        stores,
    };
    for number in 0..field.stores.len() {
        let node = field.start(number);
        field.nodes.push(node);
    }
    while field.seen.handed_out < drill.handouts && field.seen.breaches.len() < 10 {
        field.time_passes();
        field.stock_up().await?;
        field.serve().await;
        field.tidy().await?;
        progress(field.seen.handed_out);
    }
    Ok(field.seen)
}

impl Field {
    fn start(&mut self, number: usize) -> Node {
        let off_by = Arc::new(AtomicI64::new(0));
        let world = World {
            store: Arc::clone(&self.stores[number]),
            // Nothing is bought here.
            provider: Arc::new(FixedProvider::new(SubmitOutcome::InDoubt(Evidence::default()))),
            clock: Arc::new(DrillClock { now: Arc::clone(&self.now), off_by: Arc::clone(&off_by) }),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let mut settings = Settings::new(self.rng.roll(), quittance_protocol::kinds::kind);
        settings.policy = policy();
        Node { engine: Arc::new(Engine::new(world, settings)), off_by }
    }

    fn time_passes(&mut self) {
        self.now.fetch_add(self.rng.in_range(1..3_000), Ordering::Relaxed);
        for number in 0..self.nodes.len() {
            if self.rng.chance(100) {
                let jump =
                    i64::try_from(self.rng.in_range(0..2 * JUMP_MAX.unsigned_abs())).unwrap_or(0) - JUMP_MAX;
                self.nodes[number].off_by.store(jump, Ordering::Relaxed);
                self.seen.jumps += 1;
            }
            if self.rng.chance(20) {
                self.nodes[number] = self.start(number);
                self.seen.restarts += 1;
            }
        }
    }

    fn page(stock: usize) -> Draft {
        Draft::new("ada")
            .with("googlekey", &*format!("site-{stock}"))
            .with("pageurl", "https://example.com/drill")
    }

    /// About as many answers as are asked for, of every age: some with their whole life before them, some at its end.
    async fn stock_up(&mut self) -> Result<(), StoreError> {
        let now = self.now.load(Ordering::Relaxed);
        let count = self.rng.in_range(0..2 * self.drill.crowd as u64);
        let mut orders = Vec::new();
        for _ in 0..count {
            let stock = self.rng.index(self.drill.stocks);
            let solved = now - self.rng.in_range(0..LIFE - MARGIN + 5_000);
            self.stocked += 1;
            let token = format!("token-{}", self.stocked);
            self.expiries.insert(token.clone(), solved + LIFE);
            orders.push(Arc::new(stocked(Self::page(stock), token, self.stocked, solved)));
        }
        let store = &self.stores[0];
        let counters = Counters::default();
        let commits = orders.iter().map(|order| store.commit(Version::ABSENT, order, &counters, order.born));
        for committed in join_all(commits).await {
            match committed? {
                Commit::Done(_) => {}
                Commit::Conflict(_) => self.find("one answer has one place on the stock", String::new()),
            }
        }
        Ok(())
    }

    /// A crowd asks at once, at all nodes; some hang up in the middle.
    async fn serve(&mut self) {
        let mut served = Vec::new();
        for _ in 0..self.drill.crowd {
            let (stock, node) = (self.rng.index(self.drill.stocks), self.rng.index(self.nodes.len()));
            let needs = if self.rng.chance(200) { self.rng.in_range(5_000..MARGIN + 30_000) } else { MARGIN };
            let timeout = if self.rng.chance(20) { self.rng.index(8) } else { usize::MAX };
            served.push(ask(Arc::clone(&self.nodes[node].engine), stock, needs, timeout));
        }
        let told = Mutex::new(Vec::new());
        join_all(served.into_iter().map(|asked| async {
            let word = asked.await;
            locked(&told).push(word);
        }))
        .await;
        let told = told.into_inner().unwrap_or_default();
        for word in told {
            match word {
                Word::Gone => self.seen.gone += 1,
                Word::None => self.seen.found_none += 1,
                Word::Given { placed, token, needs } => self.judge(placed, token, needs).await,
            }
        }
    }

    async fn judge(&mut self, placed: Box<Placed>, token: String, needs: u64) {
        self.seen.handed_out += 1;
        let now = self.now.load(Ordering::Relaxed);
        let times = self.given.entry(token.clone()).or_default();
        *times += 1;
        if *times > 1 {
            self.find("an exclusive answer goes to one order", format!("{token} was given twice"));
        }
        match self.expiries.get(&token) {
            None => self.find("no answer is made up", token.clone()),
            Some(expires) => {
                let left = expires.saturating_sub(now);
                self.seen.least_left = self.seen.least_left.min(left);
                if left + JUMP_MAX.unsigned_abs() < needs {
                    self.find("never stale", format!("{token} had {left} ms of {needs}"));
                }
            }
        }
        if self.rng.chance(60) {
            self.seen.asked_again += 1;
            let node = self.rng.index(self.nodes.len());
            let again = Placed { order: None, ..*placed };
            match self.nodes[node].engine.peek(&again).await {
                Ok(Some(Outcome::Answered(answer))) if answer.payload.text == token => {}
                // By another node's clock it may just have become too old.
                Ok(Some(Outcome::Expired)) | Err(_) => {}
                other => self.find("who asks again is given the same", format!("{token}: {other:?}")),
            }
        }
    }

    /// What has had its time is forgotten, here and in the store.
    async fn tidy(&mut self) -> Result<(), StoreError> {
        let now = self.now.load(Ordering::Relaxed);
        // What nobody took is woken, as a worker would: it expires.
        let at = Timestamp::from_millis(now);
        let store = &self.stores[0];
        let due = store.claim_due(at, at, 4 * self.drill.crowd).await?;
        let expired = due.orders.iter().map(|found| async {
            let woken = Event::Woken { stamp: 1, gate: Gate::Pass };
            match transition(&found.order, woken, at, &policy()) {
                Decision::Advance(advance) => store
                    .commit(found.version, &Arc::new(advance.next), &advance.counters, at)
                    .await
                    .map(drop),
                Decision::Act(_) | Decision::Ignore(_) => Ok(()),
            }
        });
        for done in join_all(expired).await {
            done?;
        }
        while store.purge(at, 1024).await? == 1024 {}
        let gone = |expires: &u64| expires + 600_000 < now;
        let old: Vec<String> = self
            .expiries
            .iter()
            .filter(|(_, expires)| gone(expires))
            .map(|(token, _)| token.clone())
            .collect();
        for token in old {
            self.expiries.remove(&token);
            self.given.remove(&token);
        }
        Ok(())
    }

    fn find(&mut self, promise: &'static str, detail: String) {
        self.seen.breaches.push(Breach { promise, detail });
    }
}

enum Word {
    Given { placed: Box<Placed>, token: String, needs: u64 },
    None,
    Gone,
}

async fn ask(engine: Arc<Engine>, stock: usize, needs: u64, timeout: usize) -> Word {
    let mut draft = Field::page(stock);
    draft.reuse = Some(Reuse::Exclusive);
    draft.min_life = Some(Duration::from_millis(needs));
    let asked = pin!(async { engine.take_only("recaptcha_v2", draft).await });
    let placed = match timeout {
        usize::MAX => asked.await,
        few => match select(asked, pin!(yields(few))).await {
            Either::Left((placed, _)) => placed,
            Either::Right(_) => return Word::Gone,
        },
    };
    let Ok(Some(placed)) = placed else { return Word::None };
    match engine.peek(&placed).await {
        Ok(Some(Outcome::Answered(answer))) if placed.origin == Origin::Stock => {
            Word::Given { token: answer.payload.text, placed: Box::new(placed), needs }
        }
        _ => Word::None,
    }
}

fn policy() -> Policy {
    Policy { keep: KEEP, ..Policy::DEFAULT }
}

/// An answer that stands on a stock: the order of a place in a pool, solved at this moment.
fn stocked(page: Draft, token: String, generation: u64, solved: u64) -> Order {
    let at = Timestamp::from_millis(solved);
    let slot = Slot { pool: "drill".into(), number: 0, generation };
    let kind = quittance_protocol::kinds::kind("recaptcha_v2").expect("it is in the catalogue");
    let draft = Draft { slot: Some(slot), ..page };
    let (key, terms) = draft
        .check(&kind, quittance_lifecycle::KeySettings::default(), &policy(), at, 0)
        .expect("nothing wrong is asked for");
    let Placement::Commit { advance, .. } = place(None, None, key, &Arc::new(terms), at, &policy()) else {
        unreachable!("nothing stands there")
    };
    let steps = [
        Event::Woken { stamp: 1, gate: Gate::Pass },
        Event::Submitted {
            attempt: 1,
            outcome: SubmitOutcome::Answered(ProviderAnswer {
                payload: Payload::text(token),
                solved_at: Some(at),
                cost: Some(Money(1_000)),
            }),
        },
    ];
    steps.into_iter().fold(advance.next, |order, event| match transition(&order, event, at, &policy()) {
        Decision::Advance(advance) => advance.next,
        other => unreachable!("it goes straight to the stock: {other:?}"),
    })
}

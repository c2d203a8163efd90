//! A drill that hands out several hundred thousand answers, on any store. Three nodes, with clocks that jump and with
//! restarts, serve many callers from a few stocks. Time is virtual, but the store may be real. For every answer, the
//! drill checks that no other caller got it and that it had the promised life left. It also checks that a repeat at
//! any node gets the same answer.

use crate::executor::locked;
use crate::judge::Breach;
use crate::rng::Rng;
use async_trait::async_trait;
use futures_util::future::{Either, join_all, select};
use quittance_engine::{Engine, Outcome, PlacedOrder, Settings, World};
use quittance_lifecycle::{
    Counters, Decision, Draft, Event, Evidence, Money, Offer, Order, Origin, Payload, Placement, Policy,
    ProviderAnswer, Reuse, Slot, SubmitOutcome, SubmitRoute, Timestamp, place, transition,
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

/// A moment in 2027. Any moment would do.
const START: u64 = 1_800_000_000_000;
const LIFE: u64 = 120_000;
const MARGIN: u64 = 40_000;
/// The most by which a node's clock is wrong: less than the promised tolerance.
const JUMP_MAX: i64 = 1_500;
/// How long a record of a hand-out is kept, so that not all of a million exist at once.
const KEEP: Duration = Duration::from_secs(30);

/// The size of a drill.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub seed: u64,
    pub handouts: u64,
    pub stocks: usize,
    /// How many callers come at the same instant.
    pub crowd: usize,
}

/// The result of a drill.
#[derive(Debug, Default)]
pub struct HandoutReport {
    pub handed_out: u64,
    /// Callers that found the stock empty.
    pub found_none: u64,
    /// Callers that disconnected, or whose node died, before they got an outcome.
    pub gone: u64,
    pub repeats: u64,
    pub restarts: u64,
    pub jumps: u64,
    /// The least life that an answer had left, in milliseconds, by the true clock.
    pub least_left: u64,
    pub breaches: Vec<Breach>,
}

/// The true time, and a node's own time.
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

    /// Lets other tasks run: time does not pass while a caller is served.
    async fn sleep_until(&self, _moment: Timestamp) {
        yields(20).await;
    }
}

/// Lets all other tasks run this many times.
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

struct HandoutNode {
    engine: Arc<Engine>,
    off_by: Arc<AtomicI64>,
}

struct HandoutField {
    drill: Drill,
    now: Arc<AtomicU64>,
    stores: Vec<Arc<dyn Store>>,
    nodes: Vec<HandoutNode>,
    rng: Rng,
    stocked: u64,
    /// Every answer that was handed out, with its true expiry.
    expiries: BTreeMap<String, u64>,
    times_given: BTreeMap<String, u64>,
    drilled: HandoutReport,
}

/// Runs a drill with one handle of the same store for each node. Ends at the first call that the store refuses.
pub async fn drill(
    drill: Drill,
    stores: Vec<Arc<dyn Store>>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<HandoutReport, StoreError> {
    let mut field = HandoutField {
        drill,
        now: Arc::new(AtomicU64::new(START)),
        nodes: Vec::new(),
        rng: Rng::new(drill.seed, "handouts"),
        stocked: 0,
        expiries: BTreeMap::new(),
        times_given: BTreeMap::new(),
        drilled: HandoutReport { least_left: u64::MAX, ..HandoutReport::default() },
        stores,
    };
    for number in 0..field.stores.len() {
        let node = field.start(number);
        field.nodes.push(node);
    }
    while field.drilled.handed_out < drill.handouts && field.drilled.breaches.len() < 10 {
        field.time_passes();
        field.stock_up().await?;
        field.serve().await;
        field.tidy().await?;
        progress(field.drilled.handed_out);
    }
    Ok(field.drilled)
}

impl HandoutField {
    fn start(&mut self, number: usize) -> HandoutNode {
        let off_by = Arc::new(AtomicI64::new(0));
        let world = World {
            store: Arc::clone(&self.stores[number]),
            // Nothing is bought here.
            providers: vec![Arc::new(FixedProvider::new(SubmitOutcome::InDoubt(Evidence::default())))],
            clock: Arc::new(DrillClock { now: Arc::clone(&self.now), off_by: Arc::clone(&off_by) }),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let mut settings = Settings::new(self.rng.roll(), quittance_protocol::kinds::kind);
        settings.policy = policy();
        HandoutNode { engine: Arc::new(Engine::new(world, settings)), off_by }
    }

    fn time_passes(&mut self) {
        self.now.fetch_add(self.rng.in_range(1..3_000), Ordering::Relaxed);
        for number in 0..self.nodes.len() {
            if self.rng.chance(100) {
                let jump =
                    i64::try_from(self.rng.in_range(0..2 * JUMP_MAX.unsigned_abs())).unwrap_or(0) - JUMP_MAX;
                self.nodes[number].off_by.store(jump, Ordering::Relaxed);
                self.drilled.jumps += 1;
            }
            if self.rng.chance(20) {
                self.nodes[number] = self.start(number);
                self.drilled.restarts += 1;
            }
        }
    }

    fn page(stock: usize) -> Draft {
        Draft::new("ada")
            .with("googlekey", &*format!("site-{stock}"))
            .with("pageurl", "https://example.com/drill")
    }

    /// Stocks about as many answers as are needed, of every age from new to nearly expired.
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

    /// Lets a crowd of callers come at once, at all nodes. Some of them disconnect early.
    async fn serve(&mut self) {
        let mut served = Vec::new();
        for _ in 0..self.drill.crowd {
            let (stock, node) = (self.rng.index(self.drill.stocks), self.rng.index(self.nodes.len()));
            let needs = if self.rng.chance(200) { self.rng.in_range(5_000..MARGIN + 30_000) } else { MARGIN };
            let timeout = if self.rng.chance(20) { self.rng.index(8) } else { usize::MAX };
            served.push(ask(Arc::clone(&self.nodes[node].engine), stock, needs, timeout));
        }
        let results = Mutex::new(Vec::new());
        join_all(served.into_iter().map(|request| async {
            let word = request.await;
            locked(&results).push(word);
        }))
        .await;
        let results = results.into_inner().unwrap_or_default();
        for word in results {
            match word {
                HandoutNews::Gone => self.drilled.gone += 1,
                HandoutNews::None => self.drilled.found_none += 1,
                HandoutNews::Given { placed, token, needs } => self.judge(placed, token, needs).await,
            }
        }
    }

    async fn judge(&mut self, placed: Box<PlacedOrder>, token: String, needs: u64) {
        self.drilled.handed_out += 1;
        let now = self.now.load(Ordering::Relaxed);
        let times = self.times_given.entry(token.clone()).or_default();
        *times += 1;
        if *times > 1 {
            self.find("an exclusive answer goes to one order", format!("{token} was given twice"));
        }
        match self.expiries.get(&token) {
            None => self.find("no answer is made up", token.clone()),
            Some(expires) => {
                let left = expires.saturating_sub(now);
                self.drilled.least_left = self.drilled.least_left.min(left);
                if left + JUMP_MAX.unsigned_abs() < needs {
                    self.find("never stale", format!("{token} had {left} ms of {needs}"));
                }
            }
        }
        if self.rng.chance(60) {
            self.drilled.repeats += 1;
            let node = self.rng.index(self.nodes.len());
            let again = PlacedOrder { order: None, ..*placed };
            match self.nodes[node].engine.peek(&again).await {
                Ok(Some(Outcome::Answered(answer))) if answer.payload.text == token => {}
                // By another node's clock it may just have become too old.
                Ok(Some(Outcome::Expired)) | Err(_) => {}
                other => self.find("who asks again is given the same", format!("{token}: {other:?}")),
            }
        }
    }

    /// Removes old answers, here and in the store.
    async fn tidy(&mut self) -> Result<(), StoreError> {
        let now = self.now.load(Ordering::Relaxed);
        // What was not taken is woken, as a worker would: it expires.
        let at = Timestamp::from_millis(now);
        let store = &self.stores[0];
        let due = store.claim_due(at, at, 4 * self.drill.crowd).await?;
        let expired = due.orders.iter().map(|stock_answer| async {
            let woken = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };
            match transition(&stock_answer.order, woken, at, &policy()) {
                Decision::Advance(advance) => store
                    .commit(stock_answer.version, &Arc::new(advance.next), &advance.counters, at)
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
            self.times_given.remove(&token);
        }
        Ok(())
    }

    fn find(&mut self, promise: &'static str, detail: String) {
        self.drilled.breaches.push(Breach { promise, detail });
    }
}

enum HandoutNews {
    Given { placed: Box<PlacedOrder>, token: String, needs: u64 },
    None,
    Gone,
}

async fn ask(engine: Arc<Engine>, stock: usize, needs: u64, timeout: usize) -> HandoutNews {
    let mut draft = HandoutField::page(stock);
    draft.reuse = Some(Reuse::Exclusive);
    draft.min_life = Some(Duration::from_millis(needs));
    let request = pin!(async { engine.take_only("recaptcha_v2", draft).await });
    let placed = match timeout {
        usize::MAX => request.await,
        few => match select(request, pin!(yields(few))).await {
            Either::Left((placed, _)) => placed,
            Either::Right(_) => return HandoutNews::Gone,
        },
    };
    let Ok(Some(placed)) = placed else { return HandoutNews::None };
    match engine.peek(&placed).await {
        Ok(Some(Outcome::Answered(answer))) if placed.origin == Origin::Stock => {
            HandoutNews::Given { token: answer.payload.text, placed: Box::new(placed), needs }
        }
        _ => HandoutNews::None,
    }
}

fn policy() -> Policy {
    Policy { keep: KEEP, ..Policy::DEFAULT }
}

/// An answer in stock: the order of a place in a pool, solved at this moment.
fn stocked(page: Draft, token: String, generation: u64, solved: u64) -> Order {
    let at = Timestamp::from_millis(solved);
    let slot = Slot { pool: "drill".into(), number: 0, generation };
    let kind = quittance_protocol::kinds::kind("recaptcha_v2").expect("it is in the catalogue");
    let draft = Draft { slot: Some(slot), ..page };
    let (key, terms) = draft
        .check(&kind, quittance_lifecycle::KeySettings::default(), &policy(), at, 0)
        .expect("the request is valid");
    let Placement::Commit { advance, .. } = place(None, None, key, &Arc::new(terms), at, &policy()) else {
        unreachable!("nothing stands there")
    };
    let steps = [
        Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) },
        Event::Submitted {
            attempt: 1,
            outcome: SubmitOutcome::Answered(ProviderAnswer {
                payload: Payload::text(token),
                took_at_least: None,
                cost: Some(Money(1_000)),
            }),
        },
    ];
    steps.into_iter().fold(advance.next, |order, event| match transition(&order, event, at, &policy()) {
        Decision::Advance(advance) => advance.next,
        other => unreachable!("it goes straight to the stock: {other:?}"),
    })
}

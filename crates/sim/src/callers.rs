//! The simulated callers. They request the same things at the same time, give up, come back, try again after their
//! node died, cancel, and record their outcomes.

use crate::executor::{Executor, ReplySlot, WORLD, locked};
use crate::fleet::Fleet;
use crate::rng::Rng;
use crate::truth::{CallerResult, SimOrder, Truth, Visit};
use crate::weather::Weather;
use futures_util::future::{Either, select};
use quittance_engine::{Engine, Outcome, PlaceError, PlacedOrder};
use quittance_lifecycle::{Draft, FailCause, Key, Origin, Priority, Refusal, Reuse};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct Crowd {
    pub executor: Executor,
    pub fleet: Arc<Fleet>,
    pub truth: Arc<Mutex<Truth>>,
    pub weather: Arc<Weather>,
    pub rng: Mutex<Rng>,
    pub sim_orders: Vec<SimOrder>,
    pub skewed: bool,
    pub cancels_per_mille: u64,
    /// How many callers are still active.
    pub busy: Mutex<usize>,
    pub visits_done: Mutex<usize>,
}

/// How long a caller waits for any reply from a node.
const CALLER_WAIT: u64 = 400_000;

/// How long a caller may take to fetch an answer that is ready.
const COLLECTED_IN: u64 = 15_000;
/// How long a caller continues to look for its answer.
const LOOKS_FOR: u64 = 300_000;

enum PlacementNews {
    Accepted(Key, Origin),
    Ended(u64, CallerResult),
    /// The connection broke, because the node died.
    HungUp,
}

impl Crowd {
    /// Starts one caller, which comes `visits` times.
    pub(crate) fn send(self: &Arc<Self>, visits: usize, pause_ms: u64) {
        *locked(&self.busy) += 1;
        let crowd = Arc::clone(self);
        self.executor.spawn(WORLD, async move {
            for _ in 0..visits {
                let (pause, request_spec) = {
                    let mut rng = locked(&crowd.rng);
                    let request_spec = crowd.choose(&mut rng);
                    (rng.in_range(0..pause_ms + 1), request_spec)
                };
                crowd.executor.sleep(pause).await;
                crowd.come(crowd.sim_orders[request_spec].clone()).await;
                *locked(&crowd.visits_done) += 1;
            }
            *locked(&crowd.busy) -= 1;
        });
    }

    fn choose(&self, rng: &mut Rng) -> usize {
        let many = self.sim_orders.len();
        let throw = rng.index(many);
        // A few things are wanted by many, and most by few.
        if self.skewed { throw * rng.index(many) / many * rng.index(many) / many } else { throw }
    }

    /// Places an order, and places it again if the node dies, as a client that retries does.
    async fn come(self: &Arc<Self>, request_spec: SimOrder) {
        // Exclusive requests without a key are a new order each time they are placed.
        for _ in 0..4 {
            let number = locked(&self.truth).visits.len();
            let who = match (&request_spec.idempotency_key, request_spec.reuse) {
                (Some(key), _) => format!("keyed {} {key}", request_spec.tenant),
                // Who asks for another life asks for another order.
                (None, Reuse::Shared) => match request_spec.min_life {
                    Some(life) => {
                        format!("shared {} with {} s left", request_spec.identity(), life.as_secs())
                    }
                    None => format!("shared {}", request_spec.identity()),
                },
                (None, Reuse::Exclusive) => format!("exclusive {number}"),
            };
            locked(&self.truth).visits.push(Visit {
                who: who.clone(),
                request_spec: request_spec.clone(),
                begun_at: self.executor.now(),
                accepted: None,
                key: None,
                origin: None,
                result_at: None,
                in_calm: self.weather.is_calm(),
            });
            let Some((engine, group)) = self.fleet.pick() else {
                self.executor.sleep(1_000).await;
                continue;
            };
            self.executor.note(|| format!("visit {number} asks node {group} for {who}"));
            let (slot, word) = (ReplySlot::default(), ReplySlot::default());
            let (draft, kind) = (draft(&request_spec, &who), (request_spec.kind, request_spec.looks_every));
            self.executor.spawn(
                group,
                serve(self.executor.clone(), engine.clone(), (kind, draft), slot.clone(), word.clone()),
            );
            if self.listen(number, &slot).await
                && (!self.maybe_cancel(&engine, group, number).await)
                && self.listen(number, &word).await
            {
                self.maybe_complain(&engine, group, number);
                return;
            }
            if locked(&self.truth).visits[number].result_at.is_some() {
                return;
            }
        }
    }

    /// Reports an exclusive answer as refused by its site, now and then.
    fn maybe_complain(&self, engine: &Arc<Engine>, group: u64, number: usize) {
        let visit = locked(&self.truth).visits[number].clone();
        let is_own = visit.who.starts_with("exclusive")
            && matches!(visit.result_at, Some((_, CallerResult::Answer { .. })));
        if let Some(key) = visit.key.filter(|_| is_own && locked(&self.rng).chance(100)) {
            let engine = Arc::clone(engine);
            // Whether the report arrives does not matter to the caller.
            self.executor.spawn(group, async move { drop(engine.report(&key, false).await) });
        }
    }

    /// Waits for a reply of the node, and records it. Returns false if none comes.
    async fn listen(&self, number: usize, slot: &ReplySlot<PlacementNews>) -> bool {
        let late = self.executor.sleep(CALLER_WAIT);
        let Either::Left((word, _)) = select(pin!(slot.filled()), late).await else { return false };
        let now = self.executor.now();
        let visit = &mut locked(&self.truth).visits[number];
        match word {
            PlacementNews::Accepted(key, origin) => {
                visit.accepted = Some(now);
                (visit.key, visit.origin) = (Some(key), Some(origin));
                true
            }
            PlacementNews::Ended(at, result) => {
                self.executor.note(|| format!("visit {number} gets {result:?}"));
                visit.result_at = Some((at, result));
                true
            }
            PlacementNews::HungUp => false,
        }
    }

    async fn maybe_cancel(&self, engine: &Arc<Engine>, group: u64, number: usize) -> bool {
        let (chance, wait) = {
            let mut rng = locked(&self.rng);
            (rng.chance(self.cancels_per_mille), rng.in_range(0..20_000))
        };
        let (key, who, result) = {
            let visit = &locked(&self.truth).visits[number];
            (visit.key, visit.who.clone(), visit.result_at.is_some())
        };
        let Some(key) = key.filter(|_| chance && !result && !self.weather.is_calm()) else { return result };
        self.executor.sleep(wait).await;
        let done = ReplySlot::default();
        let (engine, ack) = (Arc::clone(engine), done.clone());
        self.executor.spawn(group, async move { ack.fill(engine.cancel(&key).await.is_ok()) });
        let late = self.executor.sleep(30_000);
        if let Either::Left((true, _)) = select(pin!(done.filled()), late).await {
            let now = self.executor.now();
            locked(&self.truth).cancelled.push((who, now));
        }
        false
    }
}

pub(crate) fn draft(request_spec: &SimOrder, who: &str) -> Draft {
    let mut draft = Draft::new(&*request_spec.tenant).with("soft_id", who);
    draft = match request_spec.kind {
        // The picture is its name, padded to a size that providers take.
        "image" => draft.with("body", format!("{:.<200}", request_spec.site).into_bytes()),
        "turnstile" => draft.with("sitekey", &*request_spec.site).with("pageurl", &*request_spec.page),
        _ => draft.with("googlekey", &*request_spec.site).with("pageurl", &*request_spec.page),
    };
    if !request_spec.action.is_empty() {
        draft = draft.with("action", &*request_spec.action);
    }
    draft.idempotency_key.clone_from(&request_spec.idempotency_key);
    draft.reuse = Some(request_spec.reuse);
    draft.min_life = request_spec.min_life;
    // A caller that waits is in a hurry.
    draft.priority = request_spec.looks_every.is_none().then_some(Priority::Interactive);
    draft.timeout = Some(Duration::from_secs(240));
    draft.collected_in =
        Duration::from_millis(if request_spec.looks_every.is_some() { COLLECTED_IN } else { 0 });
    draft
}

/// A connection that breaks when the node dies, which the caller notices at once.
struct CallerConnection(Option<[ReplySlot<PlacementNews>; 2]>);

impl Drop for CallerConnection {
    fn drop(&mut self) {
        for slot in self.0.iter().flatten() {
            slot.fill_if_empty(PlacementNews::HungUp);
        }
    }
}

/// Serves one caller on one node: places the order, and waits for its outcome.
async fn serve(
    executor: Executor,
    engine: Arc<Engine>,
    ((kind, looks_every), draft): ((&'static str, Option<u64>), Draft),
    accepted: ReplySlot<PlacementNews>,
    ended: ReplySlot<PlacementNews>,
) {
    let mut connection = CallerConnection(Some([accepted.clone(), ended.clone()]));
    let placed: PlacedOrder = match engine.place(kind, draft).await {
        Ok(placed) => placed,
        Err(error) => {
            connection.0 = None;
            return accepted.fill(PlacementNews::Ended(executor.now(), refused(&error)));
        }
    };
    accepted.fill(PlacementNews::Accepted(placed.key, placed.origin));
    let outcome = match looks_every {
        Some(pause) => look(&executor, &engine, &placed, pause).await,
        None => engine.wait(&placed).await,
    };
    let result = match outcome {
        Outcome::Answered(answer) => CallerResult::Answer { token: answer.payload.text },
        Outcome::Expired => CallerResult::Expired,
        Outcome::TakenByAnother => CallerResult::TakenByAnother,
        Outcome::Failed(cause) => CallerResult::Failed { cancelled: cause == FailCause::Cancelled },
        Outcome::Dead(_) => CallerResult::Dead,
        Outcome::NotYet => CallerResult::NotYet,
        Outcome::Forgotten => CallerResult::Forgotten,
    };
    connection.0 = None;
    ended.fill(PlacementNews::Ended(executor.now(), result));
}

/// Waits as a caller with an id does: it looks now and then, like clients of the older protocols.
async fn look(executor: &Executor, engine: &Engine, placed: &PlacedOrder, pause: u64) -> Outcome {
    let until = executor.now() + LOOKS_FOR;
    while executor.now() < until {
        // The first look comes soon if there is an answer already: in time for what was promised.
        let is_there = matches!(placed.origin, Origin::Cached | Origin::Stock | Origin::Replayed);
        executor.sleep(if is_there { pause.min(COLLECTED_IN) / 2 } else { pause }).await;
        if let Ok(Some(outcome)) = engine.peek(placed).await {
            return outcome;
        }
    }
    Outcome::NotYet
}

fn refused(error: &PlaceError) -> CallerResult {
    match error {
        PlaceError::Refused(refusal) => CallerResult::Refused {
            held_back: matches!(refusal, Refusal::HeldBack { .. }),
            expired: *refusal == Refusal::Expired,
            needs_a_person: *refusal == Refusal::NeedsAPerson,
        },
        PlaceError::Store(_)
        | PlaceError::UnknownKind { .. }
        | PlaceError::BadRequest(_)
        | PlaceError::NotAllowed(_) => CallerResult::NotAccepted,
    }
}

//! The crowd: callers who ask for the same things at the same time, give up, come back, ask again after their
//! node died, cancel, and write down what they were told.

use crate::executor::{Executor, Slot, WORLD, locked};
use crate::fleet::Fleet;
use crate::rng::Rng;
use crate::truth::{CallerResult, SimOrder, Truth, Visit};
use crate::weather::Weather;
use futures_util::future::{Either, select};
use quittance_engine::{Engine, Outcome, PlaceError, Placed};
use quittance_lifecycle::{Draft, FailCause, Key, Origin, Refusal, Reuse};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct Crowd {
    pub executor: Executor,
    pub fleet: Arc<Fleet>,
    pub truth: Arc<Mutex<Truth>>,
    pub weather: Arc<Weather>,
    pub rng: Mutex<Rng>,
    pub wishes: Vec<SimOrder>,
    pub skewed: bool,
    pub cancels_per_mille: u64,
    /// How many callers are still at it.
    pub busy: Mutex<usize>,
    pub visits_done: Mutex<usize>,
}

/// How long a caller waits for any word at all from a node.
const CALLER_WAIT: u64 = 400_000;

/// How long a caller has to come for an answer that is there already.
const COLLECTED_IN: u64 = 15_000;
/// How long a caller goes on looking.
const LOOKS_FOR: u64 = 300_000;

enum Word {
    Accepted(Key, Origin),
    Ended(u64, CallerResult),
    /// The connection broke: the node is gone.
    HungUp,
}

impl Crowd {
    /// One caller who comes `visits` times.
    pub(crate) fn send(self: &Arc<Self>, visits: usize, pause_ms: u64) {
        *locked(&self.busy) += 1;
        let crowd = Arc::clone(self);
        self.executor.spawn(WORLD, async move {
            for _ in 0..visits {
                let (pause, wish) = {
                    let mut rng = locked(&crowd.rng);
                    let wish = crowd.choose(&mut rng);
                    (rng.in_range(0..pause_ms + 1), wish)
                };
                crowd.executor.sleep(pause).await;
                crowd.come(crowd.wishes[wish].clone()).await;
                *locked(&crowd.visits_done) += 1;
            }
            *locked(&crowd.busy) -= 1;
        });
    }

    fn choose(&self, rng: &mut Rng) -> usize {
        let many = self.wishes.len();
        let throw = rng.index(many);
        // A few things are wanted by many, and most by few.
        if self.skewed { throw * rng.index(many) / many * rng.index(many) / many } else { throw }
    }

    /// Comes with a wish, and again if the node dies, as a client that retries would.
    async fn come(self: &Arc<Self>, wish: SimOrder) {
        // Exclusive wishes without a key are a new order each time they are placed.
        for _ in 0..4 {
            let number = locked(&self.truth).visits.len();
            let who = match (&wish.idempotency_key, wish.reuse) {
                (Some(key), _) => format!("keyed {} {key}", wish.tenant),
                // Who asks for another life asks for another order.
                (None, Reuse::Shared) => match wish.min_life {
                    Some(life) => format!("shared {} with {} s left", wish.identity(), life.as_secs()),
                    None => format!("shared {}", wish.identity()),
                },
                (None, Reuse::Exclusive) => format!("exclusive {number}"),
            };
            locked(&self.truth).visits.push(Visit {
                who: who.clone(),
                wish: wish.clone(),
                begun_at: self.executor.now(),
                accepted: None,
                key: None,
                origin: None,
                told: None,
                in_calm: self.weather.is_calm(),
            });
            let Some((engine, group)) = self.fleet.pick() else {
                self.executor.sleep(1_000).await;
                continue;
            };
            self.executor.note(|| format!("visit {number} asks node {group} for {who}"));
            let (slot, word) = (Slot::default(), Slot::default());
            let (draft, kind) = (draft(&wish, &who), (wish.kind, wish.looks_every));
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
            if locked(&self.truth).visits[number].told.is_some() {
                return;
            }
        }
    }

    /// Now and then an answer that was somebody's own is refused by its site.
    fn maybe_complain(&self, engine: &Arc<Engine>, group: u64, number: usize) {
        let visit = locked(&self.truth).visits[number].clone();
        let is_his_own = visit.who.starts_with("exclusive")
            && matches!(visit.told, Some((_, CallerResult::Answer { .. })));
        if let Some(key) = visit.key.filter(|_| is_his_own && locked(&self.rng).chance(100)) {
            let engine = Arc::clone(engine);
            // Whether it is heard is nothing to him.
            self.executor.spawn(group, async move { drop(engine.report(&key, false).await) });
        }
    }

    /// Waits for a word from the node, and writes it down. False if it never comes.
    async fn listen(&self, number: usize, slot: &Slot<Word>) -> bool {
        let late = self.executor.sleep(CALLER_WAIT);
        let Either::Left((word, _)) = select(pin!(slot.filled()), late).await else { return false };
        let now = self.executor.now();
        let visit = &mut locked(&self.truth).visits[number];
        match word {
            Word::Accepted(key, origin) => {
                visit.accepted = Some(now);
                (visit.key, visit.origin) = (Some(key), Some(origin));
                true
            }
            Word::Ended(at, told) => {
                self.executor.note(|| format!("visit {number} is told {told:?}"));
                visit.told = Some((at, told));
                true
            }
            Word::HungUp => false,
        }
    }

    async fn maybe_cancel(&self, engine: &Arc<Engine>, group: u64, number: usize) -> bool {
        let (chance, wait) = {
            let mut rng = locked(&self.rng);
            (rng.chance(self.cancels_per_mille), rng.in_range(0..20_000))
        };
        let (key, who, told) = {
            let visit = &locked(&self.truth).visits[number];
            (visit.key, visit.who.clone(), visit.told.is_some())
        };
        let Some(key) = key.filter(|_| chance && !told && !self.weather.is_calm()) else { return told };
        self.executor.sleep(wait).await;
        let done = Slot::default();
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

pub(crate) fn draft(wish: &SimOrder, who: &str) -> Draft {
    let mut draft = Draft::new(&*wish.tenant).with("soft_id", who);
    draft = match wish.kind {
        // The picture is its name, padded to a size that providers take.
        "image" => draft.with("body", format!("{:.<200}", wish.site).into_bytes()),
        "turnstile" => draft.with("sitekey", &*wish.site).with("pageurl", &*wish.page),
        _ => draft.with("googlekey", &*wish.site).with("pageurl", &*wish.page),
    };
    if !wish.action.is_empty() {
        draft = draft.with("action", &*wish.action);
    }
    draft.idempotency_key.clone_from(&wish.idempotency_key);
    draft.reuse = Some(wish.reuse);
    draft.min_life = wish.min_life;
    draft.timeout = Some(Duration::from_secs(240));
    draft.collected_in = Duration::from_millis(if wish.looks_every.is_some() { COLLECTED_IN } else { 0 });
    draft
}

/// A connection that breaks when the node dies: the caller notices at once.
struct Connection(Option<[Slot<Word>; 2]>);

impl Drop for Connection {
    fn drop(&mut self) {
        for slot in self.0.iter().flatten() {
            slot.fill_if_empty(Word::HungUp);
        }
    }
}

/// What a node does for one caller.
async fn serve(
    executor: Executor,
    engine: Arc<Engine>,
    ((kind, looks_every), draft): ((&'static str, Option<u64>), Draft),
    accepted: Slot<Word>,
    ended: Slot<Word>,
) {
    let mut connection = Connection(Some([accepted.clone(), ended.clone()]));
    let placed: Placed = match engine.place(kind, draft).await {
        Ok(placed) => placed,
        Err(error) => {
            connection.0 = None;
            return accepted.fill(Word::Ended(executor.now(), refused(&error)));
        }
    };
    accepted.fill(Word::Accepted(placed.key, placed.origin));
    let outcome = match looks_every {
        Some(pause) => look(&executor, &engine, &placed, pause).await,
        None => engine.wait(&placed).await,
    };
    let told = match outcome {
        Outcome::Answered(answer) => CallerResult::Answer { token: answer.payload.text },
        Outcome::Expired => CallerResult::Expired,
        Outcome::TakenByAnother => CallerResult::TakenByAnother,
        Outcome::Failed(cause) => CallerResult::Failed { cancelled: cause == FailCause::Cancelled },
        Outcome::Dead(_) => CallerResult::Dead,
        Outcome::NotYet => CallerResult::NotYet,
        Outcome::Forgotten => CallerResult::Forgotten,
    };
    connection.0 = None;
    ended.fill(Word::Ended(executor.now(), told));
}

/// A caller that was given an id and looks now and then, as clients of the older protocols do.
async fn look(executor: &Executor, engine: &Engine, placed: &Placed, pause: u64) -> Outcome {
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

//! Waiting for an answer. The store's notice of a commit wakes a waiter, so it never polls. A waiter gets no answer
//! that has too little life left, or that belongs to another order.

use crate::{ApplyOutcome, Engine, PlacedOrder};
use futures_util::future::{Either, select};
use quittance_lifecycle::{
    Answer, DeadCause, Event, FailCause, HandOut, Key, Order, Phase, Timestamp, WhyIgnored,
    is_in_another_currency,
};
use quittance_ports::{StoreError, Versioned, Watch};
use std::pin::pin;
use std::time::Duration;

/// How long a waiter waits before it asks an unavailable store again.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// How long a waiter gives other nodes to put back an order that the store has forgotten.
const PUT_BACK_WAIT: Duration = Duration::from_secs(5);

/// How waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered(Answer),
    /// There is an answer, but it has less life left than this caller needs.
    Expired,
    TakenByAnother,
    Failed(FailCause),
    /// The order is a dead letter now.
    Dead(DeadCause),
    /// The caller's time is up. The order continues without it.
    NotYet,
    /// The order is no longer on record.
    Forgotten,
}

/// What an order has for a waiting caller.
enum OutcomeNow {
    Outcome(Outcome),
    NotYet,
    /// The caller must claim it first.
    Claim,
}

impl OutcomeNow {
    fn of(hand_out: &HandOut<'_>, copy: impl FnOnce(&Answer) -> Answer) -> Self {
        Self::Outcome(match *hand_out {
            HandOut::NotYet => return Self::NotYet,
            HandOut::Claim => return Self::Claim,
            HandOut::Answer(answer) => Outcome::Answered(copy(answer)),
            HandOut::Expired => Outcome::Expired,
            HandOut::TakenByAnother => Outcome::TakenByAnother,
            HandOut::Failed(cause) => Outcome::Failed(cause.clone()),
            HandOut::Dead(cause) => Outcome::Dead(cause.clone()),
        })
    }
}

impl Outcome {
    /// How long the answer still lives at `now`; `None` if there is none, or if it lives for ever.
    #[must_use]
    pub fn remaining_life(&self, now: Timestamp) -> Option<Duration> {
        match self {
            Self::Answered(answer) => answer.remaining_life(now),
            _ => None,
        }
    }

    /// What an order has for its webhooks. A delivery collects the answer, so no claim is needed.
    #[must_use]
    pub fn for_webhooks(order: &Order, now: Timestamp) -> Self {
        let by = match &order.phase {
            Phase::Claimed { by, .. } => *by,
            _ => order.key,
        };
        match OutcomeNow::of(&order.hand_out(by, order.terms.min_life, now), Answer::clone) {
            OutcomeNow::Outcome(outcome) => outcome,
            OutcomeNow::NotYet => Self::NotYet,
            OutcomeNow::Claim => match &order.phase {
                Phase::Claimed { answer, .. } => Self::Answered(answer.clone()),
                Phase::Solved { answer, .. } if !order.must_be_claimed() => Self::Answered(answer.clone()),
                // It stands in the stock: another caller will have it.
                _ => Self::TakenByAnother,
            },
        }
    }
}

/// Whether the answer goes to only one caller, and no caller has claimed it yet.
fn is_to_be_won(order: &Order) -> bool {
    order.must_be_claimed() && matches!(order.phase, Phase::Solved { .. })
}

impl Engine {
    /// Waits until the order has an outcome, or until the caller's time is up.
    pub async fn wait(&self, placed: &PlacedOrder) -> Outcome {
        if let Some(outcome) = self.outcome_at_once(placed) {
            return outcome;
        }
        let clock = &self.world.clock;
        let time_is_up = pin!(clock.sleep_until(placed.until));
        let outcome_now = pin!(self.wait_for_outcome(placed));
        match select(outcome_now, time_is_up).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Outcome::NotYet,
        }
    }

    /// Watches an order, for a caller that must know, from all nodes, when the order is no longer awaited.
    pub async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.world.store.watch(key).await
    }

    /// The outcome for this caller at the time of placement, if it is final. Reads nothing.
    #[must_use]
    pub fn outcome_at_once(&self, placed: &PlacedOrder) -> Option<Outcome> {
        let order = placed.order.as_ref()?;
        match self.outcome_now(order, placed) {
            OutcomeNow::Outcome(outcome @ Outcome::Answered(_)) => Some(outcome),
            // It is the caller's already, or others may have it, too: that it left can be written down afterwards.
            OutcomeNow::Claim if !is_to_be_won(order) && self.collect_later(placed) => {
                self.answer_of(order).map(Outcome::Answered)
            }
            OutcomeNow::Outcome(_) | OutcomeNow::NotYet | OutcomeNow::Claim => None,
        }
    }

    /// The outcome for this caller now, without waiting; `None` if there is none yet.
    pub async fn peek(&self, placed: &PlacedOrder) -> Result<Option<Outcome>, StoreError> {
        match self.load(&placed.key).await? {
            Some(record) => self.look(placed, record).await,
            None => Ok(Some(Outcome::Forgotten)),
        }
    }

    /// The outcome for this placement, for a caller that has just read the order.
    pub async fn peek_at(&self, placed: &PlacedOrder, order: &Order) -> Result<Option<Outcome>, StoreError> {
        match self.outcome_now(order, placed) {
            OutcomeNow::Claim if !is_to_be_won(order) && self.collect_later(placed) => {
                Ok(self.answer_of(order).map(Outcome::Answered))
            }
            OutcomeNow::Claim => self.peek(placed).await,
            OutcomeNow::NotYet => Ok(None),
            OutcomeNow::Outcome(outcome) => Ok(Some(outcome)),
        }
    }

    /// The outcome that [`peek_at`](Self::peek_at) would return, without any effect: nothing is claimed or collected.
    #[must_use]
    pub fn glance(&self, placed: &PlacedOrder, order: &Order) -> Option<Outcome> {
        match self.outcome_now(order, placed) {
            OutcomeNow::Claim => self.answer_of(order).map(Outcome::Answered),
            OutcomeNow::NotYet => None,
            OutcomeNow::Outcome(outcome) => Some(outcome),
        }
    }

    /// Writes that an answer has reached its caller.
    pub(crate) async fn collect(&self, placed: &PlacedOrder) {
        let claim = Event::Claimed { by: placed.claimant, min_life: Duration::ZERO };
        if let Err(error) = self.apply(&placed.key, None, &claim).await {
            self.note_error(&error);
        }
    }

    fn hand_out<'a>(&self, order: &'a Order, placed: &PlacedOrder) -> HandOut<'a> {
        (self.settings().rules.hand_out)(order, placed.claimant, placed.min_life, self.now())
    }

    fn outcome_now(&self, order: &Order, placed: &PlacedOrder) -> OutcomeNow {
        OutcomeNow::of(&self.hand_out(order, placed), |answer| self.handed_out(order, answer))
    }

    fn answer_of(&self, order: &Order) -> Option<Answer> {
        match &order.phase {
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => {
                Some(self.handed_out(order, answer))
            }
            _ => None,
        }
    }

    /// The answer as the caller gets it. Most protocols send no currency with a cost, so a cost in another currency
    /// than the node's is left out.
    fn handed_out(&self, order: &Order, answer: &Answer) -> Answer {
        let is_known = !is_in_another_currency(order.account(), self.currency());
        Answer { cost: answer.cost.filter(|_| is_known), ..answer.clone() }
    }

    async fn wait_for_outcome(&self, placed: &PlacedOrder) -> Outcome {
        loop {
            match self.watch_for_outcome(placed).await {
                Ok(outcome) => return outcome,
                Err(error) => {
                    self.note_error(&error);
                    self.world.clock.sleep_until(self.now() + STORE_PAUSE).await;
                }
            }
        }
    }

    async fn watch_for_outcome(&self, placed: &PlacedOrder) -> Result<Outcome, StoreError> {
        // Watch first, then look: whatever is written in between is not missed.
        let mut watch: Watch = self.world.store.watch(&placed.key).await?;
        loop {
            let Some(record) = self.load_patiently(&placed.key).await? else {
                return Ok(Outcome::Forgotten);
            };
            match self.look(placed, record).await? {
                Some(outcome) => return Ok(outcome),
                None => watch.changed().await,
            }
        }
    }

    /// Reads an order, and waits if it is missing: another node may be about to put back what a shared store has
    /// forgotten.
    async fn load_patiently(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let until = self.now() + PUT_BACK_WAIT;
        loop {
            let record = self.load(key).await?;
            if record.is_some() || self.settings().in_hand_max == 0 || self.now() >= until {
                return Ok(record);
            }
            self.pause_before_looking().await;
        }
    }

    /// What the order has for this caller now.
    async fn look(&self, placed: &PlacedOrder, mut record: Versioned) -> Result<Option<Outcome>, StoreError> {
        loop {
            let PlacedOrder { claimant, min_life, .. } = *placed;
            return Ok(Some(match self.outcome_now(&record.order, placed) {
                OutcomeNow::NotYet => return Ok(None),
                OutcomeNow::Outcome(outcome) => outcome,
                OutcomeNow::Claim => {
                    let claim = Event::Claimed { by: claimant, min_life };
                    // Others may have it, too: a store that cannot be written must not keep it from this caller.
                    let at_any_rate =
                        if is_to_be_won(&record.order) { None } else { self.answer_of(&record.order) };
                    let applied = match (self.apply(&placed.key, Some(record), &claim).await, at_any_rate) {
                        (Err(error), Some(answer)) => {
                            self.note_error(&error);
                            return Ok(Some(Outcome::Answered(answer)));
                        }
                        (applied, _) => applied?,
                    };
                    match applied {
                        ApplyOutcome::Ignored { why: WhyIgnored::TooOld, .. } => Outcome::Expired,
                        ApplyOutcome::Ignored { why: WhyIgnored::TakenByAnother, .. } => {
                            Outcome::TakenByAnother
                        }
                        ApplyOutcome::Missing => Outcome::Forgotten,
                        ApplyOutcome::Advanced { now, .. }
                        | ApplyOutcome::Act { now, .. }
                        | ApplyOutcome::Ignored { now, .. } => {
                            record = now;
                            continue;
                        }
                    }
                }
            }));
        }
    }
}

//! What is still to be said when an order has come to something: reports to the provider, word to listeners. They wait
//! in a line of their own, so that a listener who hangs holds up nobody's answer.

use crate::vitals::Counters;
use crate::{Applied, Engine};
use futures_util::future::{Either, FutureExt, select};
use quittance_lifecycle::afterwards::ERRAND_WAIT;
use quittance_lifecycle::{Effect, Event, Key, Order, ReportOutcome, TellOutcome};
use quittance_ports::{StoreError, Versioned};
use std::panic::AssertUnwindSafe;
use std::pin::pin;

impl Engine {
    /// A caller says whether an answer was any good. When this returns, it is on record, and is passed on.
    pub async fn report(&self, key: &Key, is_good: bool) -> Result<Applied, StoreError> {
        let applied = self.apply_and_run(key, &Event::Reported { is_good }).await?;
        if let Applied::Advanced { now, .. } = &applied {
            self.learn_trust(&now.order, is_good).await;
        }
        Ok(applied)
    }

    /// Somebody wants to be called, in this dialect, when the order has come to something.
    pub async fn listen_for(
        &self,
        key: &Key,
        url: impl Into<String>,
        dialect: impl Into<String>,
    ) -> Result<Applied, StoreError> {
        let event = Event::ListenedFor { url: url.into(), dialect: dialect.into() };
        self.apply_and_run(key, &event).await
    }

    async fn apply_and_run(&self, key: &Key, event: &Event) -> Result<Applied, StoreError> {
        let applied = self.apply(key, None, event).await.inspect_err(|error| self.note_error(error))?;
        if let Applied::Advanced { now, effect: Some(effect) } = &applied {
            self.perform_later(now.clone(), effect.clone());
        }
        Ok(applied)
    }

    pub(crate) async fn run_errand(&self, now: Versioned, effect: Effect) {
        let key = now.order.key;
        let done = match effect {
            Effect::Report { attempt, task, is_good } => {
                let outcome = self.pass_on(&task, is_good).await;
                self.apply(&key, None, &Event::ReportPassed { attempt, outcome }).await
            }
            Effect::Tell { listener } => {
                let outcome = self.tell(&now.order, listener).await;
                self.apply(&key, None, &Event::Told { listener, outcome }).await
            }
            _ => return,
        };
        // What could not be written is tried again when its alarm rings.
        if let Err(error) = done {
            self.note_error(&error);
        }
    }

    async fn pass_on(&self, task: &str, is_good: bool) -> ReportOutcome {
        let until = self.now() + ERRAND_WAIT;
        let call = pin!(AssertUnwindSafe(self.world.provider.report(task, is_good)).catch_unwind());
        match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                Counters::add(&self.counters.panics, 1);
                ReportOutcome::NoWord
            }
            Either::Right(_) => ReportOutcome::NoWord,
        }
    }

    async fn tell(&self, order: &Order, number: u32) -> TellOutcome {
        let Some(listener) = order.listeners.iter().find(|listener| listener.number == number) else {
            return TellOutcome::Taken;
        };
        let until = self.now() + ERRAND_WAIT;
        let call = pin!(AssertUnwindSafe(self.world.courier.tell(order, listener)).catch_unwind());
        match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                Counters::add(&self.counters.panics, 1);
                TellOutcome::NotTaken { why: "a bug of ours: see the log".into() }
            }
            Either::Right(_) => TellOutcome::NotTaken { why: "no answer in time".into() },
        }
    }
}

//! Planted bugs outside the rules: stores that accept a lost write, adapters that report more than they know, a spill
//! that is never emptied, and a table without a field.

use crate::executor::{Executor, Group};
use async_trait::async_trait;
use quittance_lifecycle::{
    Counters, Fault, FaultClass, Field, Key, Kind, Order, Payload, Phase, PollOutcome, PollRules,
    ProviderAnswer, SubmitOutcome, Target, Timestamp,
};
use quittance_ports::{
    Callback, CallbackMessage, Commit, Day, Due, Guard, IncomingEvent, OrderCounts, Params, Provider, Spill,
    SpillError, Store, StoreError, Submission, Unreadable, UsageRow, Version, Versioned, Watch, Watchers,
    Which,
};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq)]
enum Idea {
    EffectsFirst,
    LastWriteWins,
    LoserPerforms,
    NoWaiterIsWoken,
}

struct WrongStore {
    store: Arc<dyn Store>,
    executor: Executor,
    group: Group,
    idea: Idea,
}

fn wrong(store: Arc<dyn Store>, executor: &Executor, group: Group, idea: Idea) -> Arc<dyn Store> {
    Arc::new(WrongStore { store, executor: executor.clone(), group, idea })
}

pub(super) fn effects_before_commit(
    store: Arc<dyn Store>,
    executor: &Executor,
    group: Group,
) -> Arc<dyn Store> {
    wrong(store, executor, group, Idea::EffectsFirst)
}

pub(super) fn last_write_wins(store: Arc<dyn Store>, executor: &Executor, group: Group) -> Arc<dyn Store> {
    wrong(store, executor, group, Idea::LastWriteWins)
}

pub(super) fn a_lost_race_still_performs(
    store: Arc<dyn Store>,
    executor: &Executor,
    group: Group,
) -> Arc<dyn Store> {
    wrong(store, executor, group, Idea::LoserPerforms)
}

pub(super) fn no_waiter_is_woken(store: Arc<dyn Store>, executor: &Executor, group: Group) -> Arc<dyn Store> {
    wrong(store, executor, group, Idea::NoWaiterIsWoken)
}

#[async_trait]
impl Store for WrongStore {
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let is_submit = matches!(next.phase, Phase::Submitting { .. });
        if self.idea == Idea::EffectsFirst && is_submit {
            // The write follows in its own time, if the node lives to see it.
            let (store, executor) = (Arc::clone(&self.store), self.executor.clone());
            let (next, counters) = (next.clone(), *counters);
            self.executor.spawn(self.group, async move {
                executor.sleep(500).await;
                _ = store.commit(expected, &next, &counters, at).await;
            });
            return Ok(Commit::Done(expected));
        }
        let mut done = self.store.commit(expected, next, counters, at).await?;
        while let Commit::Conflict(Some(winner)) = &done {
            match self.idea {
                Idea::LastWriteWins => done = self.store.commit(winner.version, next, counters, at).await?,
                Idea::LoserPerforms if is_submit => return Ok(Commit::Done(winner.version)),
                _ => break,
            }
        }
        Ok(done)
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        match self.idea {
            Idea::NoWaiterIsWoken => Ok(Watchers::default().watch(key)),
            _ => self.store.watch(key).await,
        }
    }

    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store.load(key).await
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.store.claim_due(now, until, limit).await
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.store.take(target, good_until, by, at, counters).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.store.list_stock(target, now, limit).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.store.list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.store.discard(key).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.store.count(line, counters).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.store.usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.store.compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.store.order_counts().await
    }
}

type Replies = Vec<(String, PollOutcome)>;

struct WrongProvider {
    provider: Arc<dyn Provider>,
    submitted: fn(SubmitOutcome) -> SubmitOutcome,
    polled: fn(&[String], Replies) -> Replies,
}

fn mishearing(provider: Arc<dyn Provider>) -> WrongProvider {
    WrongProvider { provider, submitted: |outcome| outcome, polled: |_, replies| replies }
}

pub(super) fn silence_means_no(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    let submitted = |outcome| match outcome {
        SubmitOutcome::InDoubt(_) => SubmitOutcome::Rejected(Fault::new(FaultClass::Unreachable, "timeout")),
        outcome => outcome,
    };
    Arc::new(WrongProvider { submitted, ..mishearing(provider) })
}

pub(super) fn a_code_is_a_token(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    let polled = |_: &[String], replies: Replies| {
        let taken_literally = |outcome| match outcome {
            PollOutcome::Faulted(fault) | PollOutcome::NoSuchTask(fault) => {
                PollOutcome::Answered(ProviderAnswer {
                    payload: Payload::text(fault.code),
                    took_at_least: None,
                    cost: None,
                })
            }
            outcome => outcome,
        };
        replies.into_iter().map(|(task, outcome)| (task, taken_literally(outcome))).collect()
    };
    Arc::new(WrongProvider { polled, ..mishearing(provider) })
}

pub(super) fn an_account_is_busy(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    let submitted = |outcome| match outcome {
        SubmitOutcome::Rejected(fault)
            if matches!(fault.class, FaultClass::AccountBlocked | FaultClass::NoFunds) =>
        {
            SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, fault.code))
        }
        outcome => outcome,
    };
    Arc::new(WrongProvider { submitted, ..mishearing(provider) })
}

pub(super) fn a_missing_part_is_a_fault(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    let polled = |asked: &[String], mut replies: Replies| {
        for task in asked {
            if !replies.iter().any(|(named, _)| named == task) {
                let fault = Fault::new(FaultClass::Unsolvable, "");
                replies.push((task.clone(), PollOutcome::Faulted(fault)));
            }
        }
        replies
    };
    Arc::new(WrongProvider { polled, ..mishearing(provider) })
}

#[async_trait]
impl Provider for WrongProvider {
    async fn report(&self, task: &str, is_good: bool) -> quittance_lifecycle::ReportOutcome {
        self.provider.report(task, is_good).await
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        self.provider.account().await
    }

    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String> {
        self.provider.preview(kind, params, guard)
    }

    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        (self.submitted)(self.provider.submit(submission).await)
    }

    async fn poll(&self, tasks: &[String]) -> Replies {
        (self.polled)(tasks, self.provider.poll(tasks).await)
    }

    fn poll_batch_max(&self) -> usize {
        self.provider.poll_batch_max()
    }

    fn poll_rules(&self, kind: &str) -> Option<PollRules> {
        self.provider.poll_rules(kind)
    }

    fn penalty(&self, fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        self.provider.penalty(fault)
    }

    fn submit_interval(&self) -> std::time::Duration {
        self.provider.submit_interval()
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        self.provider.read_callback(callback)
    }
}

struct ForgetfulSpill(Arc<dyn Spill>);

pub(super) fn nothing_is_replayed(spill: Arc<dyn Spill>) -> Arc<dyn Spill> {
    Arc::new(ForgetfulSpill(spill))
}

impl Spill for ForgetfulSpill {
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError> {
        self.0.keep(arrival)
    }

    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError> {
        Ok(Vec::new())
    }

    fn forget(&self, count: usize) -> Result<(), SpillError> {
        self.0.forget(count)
    }
}

/// A kind whose page address and action do not identify the answer.
pub(super) fn a_key_without_a_field(name: &str) -> Option<Kind> {
    let mut kind = quittance_protocol::kinds::kind(name)?;
    let dull = |field: &Field| Field { identifies: field.identifies && field.name != "action", ..*field };
    // Leaked once per look-up, in a build that exists to be wrong.
    kind.fields = Vec::leak(kind.fields.iter().map(dull).collect());
    Some(kind)
}

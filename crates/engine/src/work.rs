//! The worker: finds orders whose timer has fired, wakes them, and performs the effects, all within limits.
//!
//! No step delays another. Every step is a future of its own, with a limit on how many run at once; submits and polls
//! have separate limits. A step that hangs or panics affects its own order only.

use crate::callback::Addressee;
use crate::inspect::Step;
use crate::node_stats::NodeCounters;
use crate::place::check_complete;
use crate::run_queue::{Delivery, PollItem, RunQueue, SubmitItem};
use crate::{ApplyOutcome, Engine, PlacedOrder, lock};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quittance_lifecycle::{
    Attempt, Counters, Decision, Effect, Event, Evidence, Fault, FaultClass, Gate, Order, Phase, PollOutcome,
    Progress, Reaction, SubmitOutcome, Terms, Timestamp, surplus_as_order,
};
use quittance_ports::{IncomingEvent, Penalty, StoreError, Submission, TaskField, Version, Versioned};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the worker does its chores: it replays the spill, removes old records, and more.
pub(crate) const CHORES_SPAN: Duration = Duration::from_secs(1);
/// How many reports to the provider may be under way at once.
const REPORTS_MAX: usize = 16;

enum Job {
    Submit(SubmitItem),
    Step(Versioned),
    Perform(Versioned, Effect),
    Deliver(Delivery),
    Report(Versioned, Effect),
    Poll(Vec<PollItem>),
    Collect(PlacedOrder),
    Sweep,
    Chores,
    Counts,
}

/// A submit that was started and has not reached the gate yet.
struct BeforeGate<'a>(&'a Engine);

impl Drop for BeforeGate<'_> {
    fn drop(&mut self) {
        lock(&self.0.run_queue).before_gate -= 1;
        self.0.wakeup.ring();
    }
}

/// The seat of a submit among the seats of its tenant.
struct SubmitSeat<'a>(&'a Engine, String);

impl Drop for SubmitSeat<'_> {
    fn drop(&mut self) {
        lock(&self.0.run_queue).submitting.give_back(&self.1);
    }
}

/// The seats of a webhook delivery: one at its tenant and one at its host.
struct DeliverySeat<'a> {
    engine: &'a Engine,
    tenant: String,
    host: String,
}

impl Drop for DeliverySeat<'_> {
    fn drop(&mut self) {
        lock(&self.engine.run_queue).end_delivery(&self.tenant, &self.host);
    }
}

impl Engine {
    /// Carries orders out until [`stop`](Engine::stop) is called. This future may be dropped at any moment: every
    /// order that it had in hand has a timer in the store.
    pub async fn work(&self) {
        {
            let mut run_queue = lock(&self.run_queue);
            (run_queue.has_spilled, run_queue.is_working) = (true, true);
        }
        let mut running: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            self.beat();
            while let Some(job) = self.next_job() {
                running.push(self.run(job).boxed());
            }
            if self.is_stopping() && running.is_empty() {
                // Not needed after a crash, which loses a second of joins from the usage; but free here.
                return self.write_counts().await;
            }
            let timer = self.next_look();
            let finished = async {
                if running.next().await.is_none() {
                    std::future::pending::<()>().await;
                }
            };
            let rung = pin!(self.wakeup.rung());
            let timer = pin!(self.world.clock.sleep_until(timer));
            select(pin!(finished), select(rung, timer)).await;
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn next_job(&self) -> Option<Job> {
        let settings = &self.settings;
        let now = self.now();
        let mut run_queue = lock(&self.run_queue);
        let run_queue = &mut *run_queue;
        if run_queue.stepping < settings.steps_max {
            if let Some((now, effect)) = run_queue.performs.pop_front() {
                run_queue.stepping += 1;
                return Some(Job::Perform(now, effect));
            }
            if let Some(placed) = run_queue.collected.pop_front() {
                run_queue.stepping += 1;
                return Some(Job::Collect(placed));
            }
            if let Some(order) = run_queue.steps.pop_front() {
                run_queue.stepping += 1;
                return Some(Job::Step(order));
            }
        }
        if self.is_stopping() {
            return None;
        }
        if let Some(delivery) = run_queue.pop_delivery() {
            return Some(Job::Deliver(delivery));
        }
        if run_queue.reporting < REPORTS_MAX
            && let Some((now, effect)) = run_queue.reports.pop()
        {
            run_queue.reporting += 1;
            return Some(Job::Report(now, effect));
        }
        if self.submit_at(run_queue, now) <= now
            && let Some(due) = run_queue.pop_submit()
        {
            run_queue.before_gate += 1;
            return Some(Job::Submit(due));
        }
        if run_queue.polling < settings.polls_max && run_queue.polls.len() > 0 {
            run_queue.polling += 1;
            let batch = self.world.provider.poll_batch_max().max(1);
            return Some(Job::Poll(std::iter::from_fn(|| run_queue.polls.pop()).take(batch).collect()));
        }
        if self.sweep_at(run_queue, now) <= now {
            run_queue.is_sweeping = true;
            run_queue.swept_at = now;
            return Some(Job::Sweep);
        }
        if self.counts_at(run_queue, now) <= now {
            run_queue.is_counting = true;
            run_queue.counts_at = None;
            return Some(Job::Counts);
        }
        if self.chores_at(run_queue, now) <= now {
            run_queue.is_at_chores = true;
            run_queue.chores_done_at = now;
            return Some(Job::Chores);
        }
        None
    }

    async fn run(&self, job: Job) {
        let (work, done): (BoxFuture<'_, ()>, fn(&mut RunQueue)) = match job {
            Job::Submit(due) => {
                let (before, seat) = (BeforeGate(self), SubmitSeat(self, due.tenant.clone()));
                let work = async move {
                    self.wake_due(due, before).await;
                    drop(seat);
                };
                (work.boxed(), |_| {})
            }
            Job::Step(order) => (self.wake(order, None).boxed(), |run_queue| run_queue.stepping -= 1),
            Job::Perform(now, effect) => {
                (self.perform(now, effect).boxed(), |run_queue| run_queue.stepping -= 1)
            }
            Job::Deliver(delivery) => (self.deliver(delivery).boxed(), |_| {}),
            Job::Report(now, effect) => {
                (self.run_follow_up(now, effect).boxed(), |run_queue| run_queue.reporting -= 1)
            }
            Job::Collect(placed) => {
                (async move { self.collect(&placed).await }.boxed(), |run_queue| run_queue.stepping -= 1)
            }
            Job::Poll(batch) => (self.poll(batch).boxed(), |run_queue| run_queue.polling -= 1),
            Job::Sweep => (self.sweep().boxed(), |run_queue| run_queue.is_sweeping = false),
            Job::Chores => (self.do_chores().boxed(), |run_queue| run_queue.is_at_chores = false),
            Job::Counts => (self.write_counts().boxed(), |run_queue| run_queue.is_counting = false),
        };
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            NodeCounters::add(&self.node_counters.panics, 1);
        }
        done(&mut lock(&self.run_queue));
    }

    // ---- what is new ---------------------------------------------------------------------------------------

    /// Sets the worker's timer to `due` if that is sooner than its timer, for an order that was just written.
    pub(crate) fn expect_timer(&self, due: Timestamp) {
        let mut run_queue = lock(&self.run_queue);
        if due < run_queue.timer {
            run_queue.timer = due;
            drop(run_queue);
            self.wakeup.ring();
        }
    }

    /// Plans the write of the counters that no commit of an order writes.
    pub(crate) fn expect_counts(&self) {
        let at = self.now() + self.settings.count_interval;
        lock(&self.run_queue).counts_at.get_or_insert(at);
        self.wakeup.ring();
    }

    /// Queues the write that says that an answer has reached its caller. False if the queue is full or no
    /// worker runs: then that write must be done before the answer leaves.
    pub(crate) fn collect_later(&self, placed: &PlacedOrder) -> bool {
        let mut run_queue = lock(&self.run_queue);
        let has_room = run_queue.is_working && run_queue.collected.len() < self.settings.backlog_max;
        if has_room {
            run_queue.collected.push_back(PlacedOrder { order: None, ..placed.clone() });
            drop(run_queue);
            self.wakeup.ring();
        }
        has_room
    }

    /// Plans a replay of the spill.
    pub(crate) fn expect_spill(&self) {
        lock(&self.run_queue).has_spilled = true;
    }

    /// Queues an order that this node has just written, so that no sweep of the store is needed to find it.
    pub(crate) fn attend_soon(&self, order: Versioned) {
        self.hold(&order);
        let due = order.order.due();
        if due.is_some_and(|due| due <= self.now()) && self.enqueue_if_free(order) {
            NodeCounters::add(&self.node_counters.attended, 1);
            self.wakeup.ring();
        } else if let Some(due) = due {
            self.expect_timer(due);
        }
    }

    /// Queues an effect that may be performed any number of times.
    pub(crate) fn perform_later(&self, now: Versioned, effect: Effect) {
        let mut run_queue = lock(&self.run_queue);
        // If there is no room the order's timer brings the effect back.
        if run_queue.performs.len() < self.settings.backlog_max {
            run_queue.performs.push_back((now, effect));
            drop(run_queue);
            self.wakeup.ring();
        }
    }

    /// Queues a delivery or a report. These wait in queues of their own.
    fn run_later(&self, now: Versioned, effect: Effect) {
        lock(&self.run_queue).push_owed(now, effect, self.settings.backlog_max);
        self.wakeup.ring();
    }

    fn enqueue_if_free(&self, order: Versioned) -> bool {
        let now = self.now();
        lock(&self.run_queue).push_due(order, now, self.settings.backlog_max)
    }

    async fn deliver(&self, delivery: Delivery) {
        let Delivery { now, effect, host } = delivery;
        let seat = DeliverySeat { engine: self, tenant: now.order.terms.tenant.clone(), host };
        self.run_follow_up(now, effect).await;
        drop(seat);
    }

    // ---- looking for due orders ----------------------------------------------------------------------------

    async fn sweep(&self) {
        let now = self.now();
        let (room, until) = {
            let mut run_queue = lock(&self.run_queue);
            run_queue.timer = Timestamp::MAX;
            (self.claimable(&run_queue), now + self.sweep_pace(&run_queue).1)
        };
        let due = match self.world.store.claim_due(now, until, room).await {
            Ok(due) => due,
            Err(error) => {
                self.note_error(&error);
                // The timers are still in the store; the next look, a sweep span from now, finds them.
                return;
            }
        };
        {
            // What was claimed here and then not finished comes up again when its claim lapses.
            let lapse = if due.orders.is_empty() { Timestamp::MAX } else { until };
            let mut run_queue = lock(&self.run_queue);
            run_queue.timer = run_queue.timer.min(due.next.unwrap_or(Timestamp::MAX)).min(lapse);
        }
        NodeCounters::add(&self.node_counters.unreadable, due.unreadable.len() as u64);
        NodeCounters::add(&self.node_counters.attended, due.orders.len() as u64);
        for record in due.orders {
            if lock(&self.run_queue).is_delivery_waiting(&record.order, now) {
                continue;
            }
            // Orders that only need a poll are gathered here, so that one call can poll many.
            let woken = Event::Woken { stamp: 0, gate: Gate::ShutUntil(until) };
            let policy = self.policy(&record.order);
            match (self.settings.rules.transition)(&record.order, woken, self.now(), &policy) {
                Decision::Act(Effect::Poll { attempt, task }) => self.ask(&record.order, attempt, task),
                // What finds no room comes up again when its claim lapses.
                _ => _ = self.enqueue_if_free(record),
            }
        }
        self.wakeup.ring();
    }

    /// Queues a poll of this task. If the queue is full, the order comes up again when its claim lapses.
    pub(crate) fn ask(&self, order: &Order, attempt: u32, task: String) {
        if self.awaits_spilled_callback(order, attempt) {
            return;
        }
        lock(&self.run_queue).push_poll(order, attempt, task, self.settings.backlog_max);
    }

    // ---- waking one order ----------------------------------------------------------------------------------

    async fn wake_due(&self, due: SubmitItem, before_gate: BeforeGate<'_>) {
        let record = match due.order {
            Some(record) => record,
            None => match self.world.store.load(&due.key).await {
                // Another node may have changed the order while it waited here.
                Ok(record) => {
                    match record.filter(|record| record.order.due().is_some_and(|due| due <= self.now())) {
                        Some(record) => record,
                        None => return,
                    }
                }
                Err(error) => return self.note_error(&error),
            },
        };
        self.wake(record, Some(before_gate)).await;
    }

    async fn wake(&self, record: Versioned, before_gate: Option<BeforeGate<'_>>) {
        let record = match self.supply(record).await {
            Ok(Ok(())) => return,
            Ok(Err(record)) => record,
            // It is looked at again when its claim lapses; what the stock gave stays with this claimant, and is given
            // again.
            Err(error) => return self.note_error(&error),
        };
        let key = record.order.key;
        let may_bring_word =
            |attempt: &Attempt| matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. });
        let is_in_doubt = record.order.attempts.iter().any(may_bring_word);
        let gate = match record.order.phase {
            // If this node could not write for a while, other nodes could not either, and one of them may
            // have spilled the callback that settles this order's doubt. That callback must be written first.
            Phase::Queued { held: false, .. } | Phase::InDoubt { .. }
                if is_in_doubt && self.store_was_away(self.settings.others_first) =>
            {
                Gate::ShutUntil(self.now() + self.settings.others_first)
            }
            // The store has forgotten something. Another node may hold this order with a paid attempt, and
            // must have the time to put it back.
            Phase::Queued { held: false, .. } | Phase::InDoubt { .. } if self.recovering().is_some() => {
                Gate::ShutUntil(self.recovering().unwrap_or_else(|| self.now()))
            }
            Phase::Queued { held: false, .. } | Phase::InDoubt { .. } => {
                let is_retry =
                    record.order.attempts.last().is_some_and(|attempt| attempt.sent >= record.order.placed);
                lock(&self.gate).pass(&record.order.terms.tenant, self.now(), is_retry)
            }
            _ => Gate::Pass,
        };
        drop(before_gate);
        let stamp = self.stamp();
        match self.apply(&key, Some(record), &Event::Woken { stamp, gate }).await {
            Ok(ApplyOutcome::Advanced { now, effect: Some(effect) } | ApplyOutcome::Act { now, effect }) => {
                if matches!(effect, Effect::Submit { .. }) {
                    self.note_missed(&now.order);
                }
                self.perform(now, effect).await;
            }
            Ok(ApplyOutcome::Advanced { .. } | ApplyOutcome::Ignored { .. } | ApplyOutcome::Missing) => {}
            Err(error) => self.note_error(&error),
        }
    }

    async fn perform(&self, now: Versioned, effect: Effect) {
        match effect {
            Effect::Submit { attempt } => self.submit(&now.order, attempt).await,
            Effect::Poll { attempt, task } => {
                self.ask(&now.order, attempt, task);
                self.wakeup.ring();
            }
            Effect::Report { .. } | Effect::DeliverWebhook { .. } => self.run_later(now, effect),
            Effect::Stock { attempt } => {
                if let Err(error) = self.stock(&now.order, attempt).await {
                    self.note_error(&error);
                }
            }
        }
    }

    // ---- effects -------------------------------------------------------------------------------------------

    async fn submit(&self, order: &Order, attempt: u32) {
        let Phase::Submitting { until, .. } = order.phase else { return };
        // A node that was frozen between the commit and here must not send what other nodes already hold to be in
        // doubt.
        if self.now() >= until {
            return;
        }
        let to = Addressee::of(order, attempt);
        let callback = self.settings.callback.as_ref().map(|address| address.of(&to));
        let guard = |fields: &[TaskField<'_>]| self.may_leave(&order.terms, fields);
        let submission = Submission {
            key: order.key,
            attempt,
            terms: &order.terms,
            callback: callback.as_deref(),
            guard: &guard,
        };
        NodeCounters::add(&self.node_counters.submitted, 1);
        let sent = self.now();
        let call = pin!(AssertUnwindSafe(self.world.provider.submit(submission)).catch_unwind());
        let outcome = match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                NodeCounters::add(&self.node_counters.panics, 1);
                SubmitOutcome::InDoubt(Evidence::new("the adapter panicked"))
            }
            Either::Right(_) => SubmitOutcome::InDoubt(Evidence::new("no reply in time")),
        };
        let wants_a_person = self.wants_a_person(&outcome);
        let is_news =
            !(wants_a_person && self.was_let_go_since(sent)) && self.is_about_provider(order, &outcome);
        if is_news {
            lock(&self.gate).learn(&outcome, &order.terms.tenant, self.now(), order.key.grain());
        }
        if let SubmitOutcome::Rejected(fault) = &outcome {
            self.obey_penalty(fault, false);
        }
        let event = Event::Submitted { attempt, outcome };
        self.arrive_somehow(IncomingEvent { key: order.key, born: order.born, target: None, event }).await;
        // It was rejected by an account that an operator has released since, and will not release again.
        if wants_a_person
            && self.was_let_go_since(sent)
            && let Err(error) = self.apply(&order.key, None, &Event::Released).await
        {
            self.note_error(&error);
        }
    }

    fn obey_penalty(&self, fault: &Fault, is_about_polls: bool) {
        if let Some(Penalty { pause, holds_polls }) = self.world.provider.penalty(fault) {
            let penalty = Penalty { pause, holds_polls: holds_polls || is_about_polls };
            lock(&self.gate).obey(penalty, self.now());
        }
    }

    /// Whether the outcome of this submit says something about the provider as a whole. An unlisted code says
    /// something about this order and its method only, until orders of other methods get it, too.
    fn is_about_provider(&self, order: &Order, outcome: &SubmitOutcome) -> bool {
        match outcome {
            SubmitOutcome::Rejected(fault) if fault.class == FaultClass::UnlistedCode => {
                lock(&self.unlisted).note(order, &fault.code, self.now(), self.settings.is_shared)
            }
            _ => true,
        }
    }

    /// The last check of a task before it is sent. A task that this refuses never goes to the provider.
    fn may_leave(&self, terms: &Terms, fields: &[TaskField<'_>]) -> Result<(), String> {
        let Some(kind) = self.kind(&terms.kind) else {
            return Err(format!(
                "this node has no kind {0}: add `[kinds.{0}]` with `new = true`",
                terms.kind
            ));
        };
        self.check_words(terms).map_err(|why| format!("not sent: {why}"))?;
        check_complete(&kind, terms).map_err(|why| format!("not sent: {why}"))?;
        let checked = self.check_order(Step::Send, &kind, &terms.tenant, fields);
        checked.map_err(|why| format!("not sent: {why}"))
    }

    fn wants_a_person(&self, outcome: &SubmitOutcome) -> bool {
        let rule = |fault: &Fault| self.settings.policy.faults.rule(fault.class);
        matches!(outcome, SubmitOutcome::Rejected(fault) if rule(fault).provider == Reaction::Pause)
    }

    fn was_let_go_since(&self, sent: Timestamp) -> bool {
        Timestamp::from_millis(self.let_go_at.load(Ordering::Relaxed)) >= sent
    }

    /// Polls these tasks. The result is empty while the provider wants no polls. Each task has a timer that polls it
    /// again.
    async fn ask_for(
        &self,
        tasks: &[String],
        asked: Timestamp,
        until: Timestamp,
    ) -> Vec<(String, PollOutcome)> {
        if !lock(&self.gate).may_poll(asked) {
            return Vec::new();
        }
        NodeCounters::add(&self.node_counters.polled, tasks.len() as u64);
        let call = pin!(AssertUnwindSafe(self.world.provider.poll(tasks)).catch_unwind());
        let replies = match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(replies), _)) => replies,
            Either::Left((Err(_), _)) => {
                NodeCounters::add(&self.node_counters.panics, 1);
                Vec::new()
            }
            Either::Right(_) => Vec::new(),
        };
        for (_, outcome) in &replies {
            if let PollOutcome::Faulted(fault) = outcome {
                self.obey_penalty(fault, true);
            }
        }
        replies
    }

    async fn poll(&self, batch: Vec<PollItem>) {
        let asked = self.now();
        let tasks: Vec<String> = batch.iter().map(|ask| ask.task.clone()).collect();
        let until = asked + self.settings.poll_wait;
        let mut replies = self.ask_for(&tasks, asked, until).await;
        // The reply may have fewer parts than tasks were polled, or others: each task takes its own, by id.
        for PollItem { key, born, attempt, task } in batch {
            let reply = replies.iter().position(|(named, _)| *named == task);
            let outcome = reply.map_or(PollOutcome::NoReply, |at| replies.swap_remove(at).1);
            let is_news = !matches!(outcome, PollOutcome::Pending | PollOutcome::NoReply);
            let arrival =
                IncomingEvent { key, born, target: None, event: Event::Polled { attempt, asked, outcome } };
            if is_news {
                self.arrive_somehow(arrival).await;
            } else if let Err(error) = self.apply_incoming(&arrival).await {
                // Nothing is lost: the timer still stands, and the task is polled again.
                self.note_error(&error);
            }
        }
    }

    /// Writes a provider's reply to a submit or a poll. The provider does not send it again, so the write is
    /// tried until it succeeds.
    async fn arrive_somehow(&self, arrival: IncomingEvent) {
        while self.arrive(arrival.clone()).await.is_err() {
            self.world.clock.sleep_until(self.now() + CHORES_SPAN).await;
        }
    }

    /// Puts a surplus answer into the stock, as an order of its own. Its key follows from the attempt, so a
    /// repeat changes nothing.
    async fn stock(&self, order: &Order, attempt: u32) -> Result<(), StoreError> {
        let at = self.now();
        let Some(surplus) = surplus_as_order(order, attempt, at).map(Arc::new) else { return Ok(()) };
        let _either_way_it_is_there =
            self.world.store.commit(Version::ABSENT, &surplus, &Counters::default(), at).await?;
        self.note_commit(&surplus);
        if let Some(due) = surplus.due() {
            self.expect_timer(due);
        }
        self.apply(&order.key, None, &Event::Stocked { attempt }).await?;
        Ok(())
    }
}

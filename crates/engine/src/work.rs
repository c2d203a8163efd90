//! The worker: finds orders whose timer has fired, wakes them, and performs the effects, all within limits.
//!
//! No step delays another. Every step is a future of its own, with a limit on how many run at once; submits and polls
//! have separate limits. A step that hangs or panics affects its own order only.

use crate::at_the_gate::{AskOutcome, ProviderSeat};
use crate::callback::Addressee;
use crate::inspect::Step;
use crate::node_stats::NodeCounters;
use crate::place::check_complete;
use crate::poll_queue::PollItem;
use crate::providers::ProviderAccount;
use crate::run_queue::{Delivery, RunQueue, SubmitItem};
use crate::{ApplyOutcome, Engine, PlacedOrder, lock};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quittance_lifecycle::{
    Counters, Decision, Effect, Event, Evidence, Fault, FaultClass, Key, Order, Phase, PollOutcome, Reaction,
    SubmitOutcome, SubmitRoute, Terms, Timestamp, surplus_as_order,
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
    Poll(Arc<ProviderAccount>, Vec<PollItem>),
    Collect(PlacedOrder),
    WithoutProvider(Key, u32),
    Sweep,
    Chores,
    Counts,
    Gates,
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

/// Tasks that are being polled.
struct PolledTasks<'a>(&'a Engine, String, Vec<(Key, u32)>);

impl Drop for PolledTasks<'_> {
    fn drop(&mut self) {
        let mut run_queue = lock(&self.0.run_queue);
        let polls = run_queue.polls_of(&self.1);
        self.2.iter().for_each(|(key, attempt)| polls.replied(*key, *attempt));
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
            run_queue.polls_started_at = self.now();
        }
        let mut running: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            self.beat();
            while let Some(job) = self.next_job() {
                running.push(self.run(job).boxed());
            }
            if self.is_stopping() && running.is_empty() {
                // Not needed after a crash, which loses a second of joins from the usage; but free here.
                self.give_back_budgets().await;
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
        let settings = self.settings();
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
            if let Some((key, attempt)) = run_queue.without_provider.pop_front() {
                run_queue.stepping += 1;
                return Some(Job::WithoutProvider(key, attempt));
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
        if let Some(due) = self.pop_submit(run_queue, now) {
            return Some(Job::Submit(due));
        }
        run_queue.ripen_polls(now, settings.backlog_max);
        if let Some(provider) = self.poll_now(run_queue, now) {
            run_queue.polling += 1;
            let (batch_max, may_join) = (provider.poll_batch_max(), self.may_poll_early());
            let batch = run_queue.polls_of(&provider.rules.name).take(now, batch_max, may_join);
            return Some(Job::Poll(provider, batch));
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
        if self.gates_at(run_queue, now) <= now {
            (run_queue.is_sharing_gates, run_queue.gates_shared_at) = (true, now);
            return Some(Job::Gates);
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
            Job::WithoutProvider(key, attempt) => {
                (self.miss_poll(key, attempt).boxed(), |run_queue| run_queue.stepping -= 1)
            }
            Job::Poll(provider, batch) => {
                (self.poll(provider, batch).boxed(), |run_queue| run_queue.polling -= 1)
            }
            Job::Sweep => (self.sweep().boxed(), |run_queue| run_queue.is_sweeping = false),
            Job::Chores => (self.do_chores().boxed(), |run_queue| run_queue.is_at_chores = false),
            Job::Gates => (self.share_gates().boxed(), |run_queue| run_queue.is_sharing_gates = false),
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
        let at = self.now() + self.settings().count_interval;
        lock(&self.run_queue).counts_at.get_or_insert(at);
        self.wakeup.ring();
    }

    /// Queues the write that says that an answer has reached its caller. False if the queue is full or no
    /// worker runs: then that write must be done before the answer leaves.
    pub(crate) fn collect_later(&self, placed: &PlacedOrder) -> bool {
        let mut run_queue = lock(&self.run_queue);
        let has_room = run_queue.is_working && run_queue.collected.len() < self.settings().backlog_max;
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
        if run_queue.performs.len() < self.settings().backlog_max {
            run_queue.performs.push_back((now, effect));
            drop(run_queue);
            self.wakeup.ring();
        }
    }

    /// Queues a delivery or a report. These wait in queues of their own.
    fn run_later(&self, now: Versioned, effect: Effect) {
        lock(&self.run_queue).push_owed(now, effect, self.settings().backlog_max);
        self.wakeup.ring();
    }

    fn enqueue_if_free(&self, order: Versioned) -> bool {
        let now = self.now();
        lock(&self.run_queue).push_due(order, now, self.settings().backlog_max)
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
            let woken = Event::Woken { stamp: 0, route: SubmitRoute::ShutUntil(until) };
            let policy = self.policy(&record.order);
            match (self.settings().rules.transition)(&record.order, woken, self.now(), &policy) {
                Decision::Act(Effect::Poll { attempt, task }) => self.ask(&record.order, attempt, task),
                // What finds no room comes up again when its claim lapses.
                _ => _ = self.enqueue_if_free(record),
            }
        }
        self.wakeup.ring();
    }

    /// Queues a poll of this task. If the queue is full, the order comes up again when its claim lapses.
    fn ask(&self, order: &Order, attempt: u32, task: String) {
        let turn = lock(&self.run_queue).poll_turn(order, self.now());
        self.ask_at(turn, order, attempt, task);
    }

    /// Queues a poll of this task for this moment.
    pub(crate) fn ask_at(&self, turn: Timestamp, order: &Order, attempt: u32, task: String) {
        if self.awaits_spilled_callback(order, attempt) {
            return;
        }
        let now = self.now();
        let Some(provider) = self.provider_to_ask(order, Some(attempt)) else {
            return self.cannot_ask(order, attempt, now);
        };
        let mut run_queue = lock(&self.run_queue);
        run_queue.polls_of(&provider.rules.name).push(
            order,
            (attempt, task),
            (turn, now),
            self.settings().backlog_max,
        );
    }

    /// This node does not have the provider of this attempt. Another node may have it, and polls the task when the claim
    /// of this one lapses. If there is no other node, or none has polled it for long, the poll counts as one without a
    /// reply, so that the order can go to another provider.
    fn cannot_ask(&self, order: &Order, attempt: u32, now: Timestamp) {
        let sent = order.attempt(attempt).map_or(now, |attempt| attempt.sent);
        let seen = order.attempt(attempt).map_or(now, |attempt| attempt.unsolved_at);
        let is_left = now >= sent.max(seen) + self.settings().policy.in_doubt_wait;
        let mut run_queue = lock(&self.run_queue);
        let has_room = run_queue.without_provider.len() < self.settings().backlog_max;
        if (is_left || self.other_nodes.load(Ordering::Relaxed) == 0) && has_room {
            run_queue.without_provider.push_back((order.key, attempt));
        }
    }

    async fn miss_poll(&self, key: Key, attempt: u32) {
        let event = Event::Polled { attempt, asked: self.now(), outcome: PollOutcome::NoReply };
        if let Err(error) = self.apply(&key, None, &event).await {
            self.note_error(&error);
        }
    }

    /// Remembers from when the task of this order may join a poll of other tasks.
    pub(crate) fn expect_poll(&self, order: &Order) {
        let Some(provider) = self.provider_to_ask(order, order.current()) else { return };
        if provider.poll_batch_max() > 1 {
            let policy = matches!(order.phase, Phase::Solving { .. }).then(|| self.policy(order));
            let early = policy.and_then(|policy| order.early_poll(&policy));
            lock(&self.run_queue).polls_of(&provider.rules.name).expect(order, early);
        }
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
        let funding = self.fund(&record.order).await;
        let (route, seat) = match self.ask_the_gates(&record.order) {
            AskOutcome::Decided(route) => (route, None),
            AskOutcome::Pass(seat, offer) => (SubmitRoute::To(offer), Some(seat)),
            AskOutcome::Wait => {
                self.enqueue_if_free(record);
                return;
            }
        };
        drop((before_gate, funding));
        let drawn = match &route {
            SubmitRoute::To(offer) => offer.drawn.clone(),
            SubmitRoute::ShutUntil(_) | SubmitRoute::NoBudget(_) => None,
        };
        let (stamp, asked) = (self.stamp(), self.now());
        match self.apply(&key, Some(record), &Event::Woken { stamp, route }).await {
            Ok(ApplyOutcome::Advanced { now, effect: Some(effect) } | ApplyOutcome::Act { now, effect }) => {
                match (effect, seat) {
                    (Effect::Submit { attempt }, Some(seat)) => {
                        self.note_missed(&now.order);
                        self.submit(&now.order, attempt, seat).await;
                    }
                    (effect, _) => {
                        self.give_back_unless_made(drawn, &now.order, asked);
                        self.perform(now, effect).await;
                    }
                }
            }
            Ok(ApplyOutcome::Advanced { now, .. } | ApplyOutcome::Ignored { now, .. }) => {
                self.give_back_unless_made(drawn, &now.order, asked);
            }
            Ok(ApplyOutcome::Missing) => self.give_back(drawn),
            // What was drawn may have been written with the attempt: it stays drawn.
            Err(error) => self.note_error(&error),
        }
    }

    async fn perform(&self, now: Versioned, effect: Effect) {
        match effect {
            // Only an order that was woken with a seat at the gate is submitted.
            Effect::Submit { .. } => {}
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

    async fn submit(&self, order: &Order, attempt: u32, mut seat: ProviderSeat<'_>) {
        let Phase::Submitting { until, .. } = order.phase else { return };
        // A node that was frozen between the commit and here must not send what other nodes already hold to be in
        // doubt.
        if self.now() >= until {
            return;
        }
        let to = Addressee::of(order, attempt);
        let callback = self.callback.as_ref().map(|address| address.of(&to));
        let guard = |fields: &[TaskField<'_>]| self.may_leave(&order.terms, fields);
        let submission = Submission {
            key: order.key,
            attempt,
            terms: &order.terms,
            callback: callback.as_deref(),
            guard: &guard,
        };
        let provider = self.provider_of(order, Some(attempt));
        NodeCounters::add(&self.node_counters.submitted, 1);
        let sent = self.now();
        seat.begins(order, attempt);
        let call = pin!(AssertUnwindSafe(provider.adapter.submit(submission)).catch_unwind());
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
            seat.ends(&outcome, order.key.grain());
        } else {
            drop(seat);
        }
        if let SubmitOutcome::Rejected(fault) = &outcome {
            self.obey_penalty(&provider, fault, false);
            if fault.class == FaultClass::NotSold {
                provider.note_not_sold(&order.terms.kind, self.now());
            }
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

    fn obey_penalty(&self, provider: &ProviderAccount, fault: &Fault, is_about_polls: bool) {
        if let Some(Penalty { pause, holds_polls }) = provider.adapter.penalty(fault) {
            let penalty = Penalty { pause, holds_polls: holds_polls || is_about_polls };
            lock(&provider.gate).obey(penalty, self.now());
        }
    }

    /// Whether the outcome of this submit says something about the provider as a whole. An unlisted code says
    /// something about this order and its method only, until orders of other methods get it, too.
    fn is_about_provider(&self, order: &Order, outcome: &SubmitOutcome) -> bool {
        match outcome {
            SubmitOutcome::Rejected(fault) if fault.class == FaultClass::UnlistedCode => {
                lock(&self.unlisted).note(order, &fault.code, self.now(), self.settings().is_shared)
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
        let rule = |fault: &Fault| self.settings().policy.faults.rule(fault.class);
        matches!(outcome, SubmitOutcome::Rejected(fault) if rule(fault).provider == Reaction::Pause)
    }

    fn was_let_go_since(&self, sent: Timestamp) -> bool {
        Timestamp::from_millis(self.let_go_at.load(Ordering::Relaxed)) >= sent
    }

    /// Polls these tasks. The result is empty while the provider wants no polls. Each task has a timer that polls it
    /// again.
    async fn ask_for(
        &self,
        provider: &ProviderAccount,
        tasks: &[String],
        asked: Timestamp,
        until: Timestamp,
    ) -> Vec<(String, PollOutcome)> {
        if !lock(&provider.gate).may_poll(asked) {
            return Vec::new();
        }
        NodeCounters::add(&self.node_counters.polled, tasks.len() as u64);
        let call = pin!(AssertUnwindSafe(provider.adapter.poll(tasks)).catch_unwind());
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
                self.obey_penalty(provider, fault, true);
            }
        }
        replies
    }

    async fn poll(&self, provider: Arc<ProviderAccount>, batch: Vec<PollItem>) {
        let polled = batch.iter().map(|item| (item.key, item.attempt)).collect();
        let _asked = PolledTasks(self, provider.rules.name.clone(), polled);
        let asked = self.now();
        let tasks: Vec<String> = batch.iter().map(|ask| ask.task.clone()).collect();
        let until = asked + self.settings().poll_wait;
        let mut replies = self.ask_for(&provider, &tasks, asked, until).await;
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

//! The worker: looks for orders whose alarm has rung, wakes them, and performs the effects, all within bounds.
//!
//! Nothing here waits in the way of anything else: every step is a future of its own with a limit on how many
//! run at once, submits and polls apart, and one that hangs or panics hurts its own order only.

use crate::callback::Addressee;
use crate::vitals::Counters;
use crate::{Applied, Engine, lock};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quittance_lifecycle::{
    Attempt, Decision, Effect, Event, Fault, Gate, Key, Order, Phase, PollOutcome, Progress, Reaction,
    SubmitOutcome, Tally, Timestamp, spare_as_order,
};
use quittance_ports::{Arrival, StoreError, Submission, Version, Versioned};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the worker puts its house in order: the spill replayed, old records forgotten.
const CHORES_SPAN: Duration = Duration::from_secs(1);

/// One task to be asked for.
struct Ask {
    key: Key,
    born: Timestamp,
    attempt: u32,
    task: String,
}

/// What there is to do, in memory. All of it can be lost: the alarms in the store bring it back.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Orders whose next step may be a submit, and all others.
    submits: VecDeque<Versioned>,
    steps: VecDeque<Versioned>,
    performs: VecDeque<(Versioned, Effect)>,
    errands: VecDeque<(Versioned, Effect)>,
    polls: VecDeque<Ask>,
    submitting: usize,
    stepping: usize,
    running_errands: usize,
    polling: usize,
    is_sweeping: bool,
    is_at_chores: bool,
    is_counting: bool,
    /// When the next order is due, as far as this node knows.
    alarm: Timestamp,
    swept_at: Timestamp,
    /// When what was counted is to be written down, if there is anything.
    counts_at: Option<Timestamp>,
    chores_done_at: Timestamp,
    pub(crate) has_spilled: bool,
    /// When to try again what the spill holds for a record that could not be read.
    pub(crate) unreadable_at: Option<Timestamp>,
}

impl Agenda {
    /// How many orders wait here for their turn, or have it.
    pub(crate) fn in_hand(&self) -> usize {
        let waiting = self.submits.len() + self.steps.len() + self.performs.len() + self.polls.len();
        waiting + self.errands.len() + self.submitting + self.stepping + self.running_errands + self.polling
    }

    fn queue_for(&mut self, order: &Order) -> &mut VecDeque<Versioned> {
        let may_submit = matches!(order.phase, Phase::Queued { .. } | Phase::Unsure { .. });
        if may_submit { &mut self.submits } else { &mut self.steps }
    }
}

enum Job {
    Submit(Versioned),
    Step(Versioned),
    Perform(Versioned, Effect),
    Errand(Versioned, Effect),
    Poll(Vec<Ask>),
    Sweep,
    Chores,
    Counts,
}

impl Engine {
    /// Carries orders out until [`stop`](Engine::stop) is called. If this future is dropped, at any moment, nothing
    /// is lost: every order that it had in hand has an alarm in the store.
    pub async fn work(&self) {
        lock(&self.agenda).has_spilled = true;
        let mut running: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            while let Some(job) = self.next_job() {
                running.push(self.run(job).boxed());
            }
            if self.is_stopping() && running.is_empty() {
                // Not needed after a crash, which loses a second of joins from the books; but free here.
                return self.write_counts().await;
            }
            let alarm = self.next_look();
            let finished = async {
                if running.next().await.is_none() {
                    std::future::pending::<()>().await;
                }
            };
            let rung = pin!(self.bell.rung());
            let alarm = pin!(self.world.clock.sleep_until(alarm));
            select(pin!(finished), select(rung, alarm)).await;
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// When to look again if nothing happens before.
    fn next_look(&self) -> Timestamp {
        let now = self.now();
        let agenda = lock(&self.agenda);
        self.sweep_at(&agenda, now).min(self.chores_at(&agenda, now)).min(self.counts_at(&agenda, now))
    }

    /// When to look for due orders; never, if something else must happen first that wakes the worker anyway.
    fn sweep_at(&self, agenda: &Agenda, now: Timestamp) -> Timestamp {
        let settings = &self.settings;
        if self.is_stopping() || agenda.is_sweeping || self.claimable(agenda) == 0 {
            return Timestamp::MAX;
        }
        // A clock that was set back must not put the worker to sleep until it has caught up.
        if agenda.swept_at > now {
            return now;
        }
        agenda.alarm.max(agenda.swept_at + settings.sweep_pause).min(agenda.swept_at + settings.sweep_span)
    }

    /// How many due orders may be claimed now: what is claimed and finds no room here would be hidden from everybody until its
    /// claim lapses.
    fn claimable(&self, agenda: &Agenda) -> usize {
        let waiting = agenda.submits.len().max(agenda.steps.len()).max(agenda.polls.len());
        self.settings.backlog_max.saturating_sub(waiting).min(self.settings.claim_max)
    }

    fn chores_at(&self, agenda: &Agenda, now: Timestamp) -> Timestamp {
        match agenda.chores_done_at {
            _ if self.is_stopping() || agenda.is_at_chores => Timestamp::MAX,
            then if then > now => now,
            then => then + CHORES_SPAN,
        }
    }

    fn counts_at(&self, agenda: &Agenda, now: Timestamp) -> Timestamp {
        match agenda.counts_at {
            _ if self.is_stopping() || agenda.is_counting => Timestamp::MAX,
            // A clock that was set back must not put it off.
            Some(at) => at.min(now + self.settings.count_span),
            None => Timestamp::MAX,
        }
    }

    fn next_job(&self) -> Option<Job> {
        let settings = &self.settings;
        let now = self.now();
        let mut agenda = lock(&self.agenda);
        let agenda = &mut *agenda;
        if agenda.stepping < settings.steps_max {
            if let Some((now, effect)) = agenda.performs.pop_front() {
                agenda.stepping += 1;
                return Some(Job::Perform(now, effect));
            }
            if let Some(order) = agenda.steps.pop_front() {
                agenda.stepping += 1;
                return Some(Job::Step(order));
            }
        }
        if self.is_stopping() {
            return None;
        }
        if agenda.running_errands < settings.errands_max
            && let Some((now, effect)) = agenda.errands.pop_front()
        {
            agenda.running_errands += 1;
            return Some(Job::Errand(now, effect));
        }
        if agenda.submitting < settings.submits_max
            && let Some(order) = agenda.submits.pop_front()
        {
            agenda.submitting += 1;
            return Some(Job::Submit(order));
        }
        if agenda.polling < settings.polls_max && !agenda.polls.is_empty() {
            agenda.polling += 1;
            let batch = self.world.provider.poll_batch_max().clamp(1, agenda.polls.len());
            return Some(Job::Poll(agenda.polls.drain(..batch).collect()));
        }
        if self.sweep_at(agenda, now) <= now {
            agenda.is_sweeping = true;
            agenda.swept_at = now;
            return Some(Job::Sweep);
        }
        if self.counts_at(agenda, now) <= now {
            agenda.is_counting = true;
            agenda.counts_at = None;
            return Some(Job::Counts);
        }
        if self.chores_at(agenda, now) <= now {
            agenda.is_at_chores = true;
            agenda.chores_done_at = now;
            return Some(Job::Chores);
        }
        None
    }

    async fn run(&self, job: Job) {
        let (work, done): (BoxFuture<'_, ()>, fn(&mut Agenda)) = match job {
            Job::Submit(order) => (self.wake(order).boxed(), |agenda| agenda.submitting -= 1),
            Job::Step(order) => (self.wake(order).boxed(), |agenda| agenda.stepping -= 1),
            Job::Perform(now, effect) => (self.perform(now, effect).boxed(), |agenda| agenda.stepping -= 1),
            Job::Errand(now, effect) => {
                (self.run_errand(now, effect).boxed(), |agenda| agenda.running_errands -= 1)
            }
            Job::Poll(batch) => (self.poll(batch).boxed(), |agenda| agenda.polling -= 1),
            Job::Sweep => (self.sweep().boxed(), |agenda| agenda.is_sweeping = false),
            Job::Chores => (self.do_chores().boxed(), |agenda| agenda.is_at_chores = false),
            Job::Counts => (self.write_counts().boxed(), |agenda| agenda.is_counting = false),
        };
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            Counters::add(&self.counters.panics, 1);
        }
        done(&mut lock(&self.agenda));
    }

    // ---- what is new ---------------------------------------------------------------------------------------

    /// An order was written that is due at `due`.
    pub(crate) fn expect_alarm(&self, due: Timestamp) {
        let mut agenda = lock(&self.agenda);
        if due < agenda.alarm {
            agenda.alarm = due;
            drop(agenda);
            self.bell.ring();
        }
    }

    /// Something was counted, and is to be written down soon.
    pub(crate) fn expect_counts(&self) {
        let at = self.now() + self.settings.count_span;
        lock(&self.agenda).counts_at.get_or_insert(at);
        self.bell.ring();
    }

    /// Something was spilled, and is to be replayed.
    pub(crate) fn expect_spill(&self) {
        lock(&self.agenda).has_spilled = true;
    }

    /// An order was just written, and this node has it in hand: no need to look for it in the store.
    pub(crate) fn attend_soon(&self, order: Versioned) {
        let due = order.order.due();
        if due.is_some_and(|due| due <= self.now()) && self.enqueue_if_room(order) {
            Counters::add(&self.counters.attended, 1);
            self.bell.ring();
        } else if let Some(due) = due {
            self.expect_alarm(due);
        }
    }

    /// Performs an effect that may be repeated at will, in its turn.
    pub(crate) fn perform_later(&self, now: Versioned, effect: Effect) {
        let mut agenda = lock(&self.agenda);
        // If there is no room the order's alarm brings the effect back.
        if agenda.performs.len() < self.settings.backlog_max {
            agenda.performs.push_back((now, effect));
            drop(agenda);
            self.bell.ring();
        }
    }

    /// An errand waits in its own line. If there is no room its alarm brings it back.
    fn run_later(&self, now: Versioned, effect: Effect) {
        let mut agenda = lock(&self.agenda);
        if agenda.errands.len() < self.settings.backlog_max {
            agenda.errands.push_back((now, effect));
            drop(agenda);
            self.bell.ring();
        }
    }

    fn enqueue_if_room(&self, order: Versioned) -> bool {
        let mut agenda = lock(&self.agenda);
        let queue = agenda.queue_for(&order.order);
        let has_room = queue.len() < self.settings.backlog_max;
        if has_room {
            queue.push_back(order);
        }
        has_room
    }

    // ---- looking for due orders ----------------------------------------------------------------------------

    async fn sweep(&self) {
        let now = self.now();
        let until = now + self.settings.claim_span;
        let room = {
            let mut agenda = lock(&self.agenda);
            agenda.alarm = Timestamp::MAX;
            self.claimable(&agenda)
        };
        let due = match self.world.store.claim_due(now, until, room).await {
            Ok(due) => due,
            Err(error) => {
                self.note_error(&error);
                // The alarms are still in the store; the next look, a sweep span from now, finds them.
                return;
            }
        };
        {
            // What was claimed here and then not finished comes up again when its claim lapses.
            let lapse = if due.orders.is_empty() { Timestamp::MAX } else { until };
            let mut agenda = lock(&self.agenda);
            agenda.alarm = agenda.alarm.min(due.next.unwrap_or(Timestamp::MAX)).min(lapse);
        }
        Counters::add(&self.counters.unreadable, due.unreadable.len() as u64);
        Counters::add(&self.counters.attended, due.orders.len() as u64);
        for found in due.orders {
            // Orders that only want to be asked for are gathered here, so that one call can ask for many.
            let woken = Event::Woken { stamp: 0, gate: Gate::ShutUntil(until) };
            let policy = self.policy(&found.order);
            match (self.settings.rules.transition)(&found.order, woken, self.now(), &policy) {
                Decision::Act(Effect::Poll { attempt, task }) => self.ask(&found.order, attempt, task),
                // There was room when they were claimed; who came in since takes none of it away.
                _ => lock(&self.agenda).queue_for(&found.order).push_back(found),
            }
        }
        self.bell.ring();
    }

    fn ask(&self, order: &Order, attempt: u32, task: String) {
        let ask = Ask { key: order.key, born: order.born, attempt, task };
        lock(&self.agenda).polls.push_back(ask);
    }

    // ---- waking one order ----------------------------------------------------------------------------------

    async fn wake(&self, found: Versioned) {
        let found = match self.supply(found).await {
            Ok(Ok(())) => return,
            Ok(Err(found)) => found,
            // It is looked at again when its claim lapses; what the shelf gave is his, and he is given it again.
            Err(error) => return self.note_error(&error),
        };
        let key = found.order.key;
        let may_bring_word =
            |attempt: &Attempt| matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. });
        let is_in_doubt = found.order.attempts.iter().any(may_bring_word);
        let gate = match found.order.phase {
            // If we could not write for a while, neither could others, and one of us may have kept the word that
            // settles the doubt that this order is in. It is written first.
            Phase::Queued { held: false, .. } | Phase::Unsure { .. }
                if is_in_doubt && self.store_was_away(self.settings.others_first) =>
            {
                Gate::ShutUntil(self.now() + self.settings.others_first)
            }
            Phase::Queued { held: false, .. } | Phase::Unsure { .. } => {
                let is_retry =
                    found.order.attempts.last().is_some_and(|attempt| attempt.sent >= found.order.placed);
                lock(&self.gate).pass(self.now(), is_retry)
            }
            _ => Gate::Open,
        };
        let stamp = self.stamp();
        match self.apply(&key, Some(found), &Event::Woken { stamp, gate }).await {
            Ok(Applied::Advanced { now, effect: Some(effect) } | Applied::Act { now, effect }) => {
                if matches!(effect, Effect::Submit { .. }) {
                    self.note_missed(&now.order);
                }
                self.perform(now, effect).await;
            }
            Ok(Applied::Advanced { .. } | Applied::Ignored { .. } | Applied::Missing) => {}
            Err(error) => self.note_error(&error),
        }
    }

    async fn perform(&self, now: Versioned, effect: Effect) {
        match effect {
            Effect::Submit { attempt } => self.submit(&now.order, attempt).await,
            Effect::Poll { attempt, task } => {
                self.ask(&now.order, attempt, task);
                self.bell.ring();
            }
            Effect::Report { .. } | Effect::Tell { .. } => self.run_later(now, effect),
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
        // Whoever was frozen between the commit and here must not send what others already hold to be in doubt.
        if self.now() >= until {
            return;
        }
        let to = Addressee { key: order.key, born: order.born, attempt };
        let callback = self.settings.callback.as_ref().map(|address| address.of(&to));
        let submission =
            Submission { key: order.key, attempt, terms: &order.terms, callback: callback.as_deref() };
        Counters::add(&self.counters.submitted, 1);
        let sent = self.now();
        let call = pin!(AssertUnwindSafe(self.world.provider.submit(submission)).catch_unwind());
        let outcome = match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                Counters::add(&self.counters.panics, 1);
                SubmitOutcome::Unknown
            }
            Either::Right(_) => SubmitOutcome::Unknown,
        };
        let wants_a_person = self.wants_a_person(&outcome);
        if !(wants_a_person && self.was_let_go_since(sent)) {
            lock(&self.gate).learn(&outcome, self.now(), order.key.grain());
        }
        let event = Event::Submitted { attempt, outcome };
        self.arrive_somehow(Arrival { key: order.key, born: order.born, event }).await;
        // It was refused by an account that a person has mended since, and he will not say so again.
        if wants_a_person
            && self.was_let_go_since(sent)
            && let Err(error) = self.apply(&order.key, None, &Event::Released).await
        {
            self.note_error(&error);
        }
    }

    fn wants_a_person(&self, outcome: &SubmitOutcome) -> bool {
        let rule = |fault: &Fault| self.settings.policy.faults.rule(fault.class);
        matches!(outcome, SubmitOutcome::Refused(fault) if rule(fault).provider == Reaction::Pause)
    }

    fn was_let_go_since(&self, sent: Timestamp) -> bool {
        Timestamp::from_millis(self.let_go_at.load(Ordering::Relaxed)) >= sent
    }

    async fn poll(&self, batch: Vec<Ask>) {
        let asked = self.now();
        let tasks: Vec<String> = batch.iter().map(|ask| ask.task.clone()).collect();
        let until = asked + self.settings.poll_wait;
        Counters::add(&self.counters.polled, tasks.len() as u64);
        let call = pin!(AssertUnwindSafe(self.world.provider.poll(&tasks)).catch_unwind());
        let mut replies = match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(replies), _)) => replies,
            Either::Left((Err(_), _)) => {
                Counters::add(&self.counters.panics, 1);
                Vec::new()
            }
            Either::Right(_) => Vec::new(),
        };
        // The reply may have fewer parts than tasks were asked for, or others: each task takes its own, by name.
        for Ask { key, born, attempt, task } in batch {
            let reply = replies.iter().position(|(named, _)| *named == task);
            let outcome = reply.map_or(PollOutcome::NoWord, |at| replies.swap_remove(at).1);
            let is_news = !matches!(outcome, PollOutcome::Pending | PollOutcome::NoWord);
            let arrival = Arrival { key, born, event: Event::Polled { attempt, asked, outcome } };
            if is_news {
                self.arrive_somehow(arrival).await;
            } else if let Err(error) = self.apply_arrival(&arrival).await {
                // Nothing is lost: the alarm still stands, and the task is asked for again.
                self.note_error(&error);
            }
        }
    }

    /// What a provider said in reply to us has nobody to send it again: it is tried until it is safe.
    async fn arrive_somehow(&self, arrival: Arrival) {
        while self.arrive(arrival.clone()).await.is_err() {
            self.world.clock.sleep_until(self.now() + CHORES_SPAN).await;
        }
    }

    /// Puts a spare answer on the shelf, as an order of its own under a key that is the same however often this is done.
    async fn stock(&self, order: &Order, attempt: u32) -> Result<(), StoreError> {
        let at = self.now();
        let Some(spare) = spare_as_order(order, attempt, at).map(Arc::new) else { return Ok(()) };
        let _either_way_it_is_there =
            self.world.store.commit(Version::ABSENT, &spare, &Tally::default(), at).await?;
        self.note_commit(&spare);
        if let Some(due) = spare.due() {
            self.expect_alarm(due);
        }
        self.apply(&order.key, None, &Event::Stocked { attempt }).await?;
        Ok(())
    }
}

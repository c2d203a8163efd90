//! Makes random orders, terms and events from a seed. They make no sense, but every variant occurs.

mod shared;

use super::AnyRecord;
use quittance_lifecycle::{
    Answer, Attempt, AttemptAccount, CallbackResult, DeadCause, DeliveryOutcome, DeliveryState, Event,
    Evidence, FailCause, Fault, FaultClass, HeldOff, Key, Money, Offer, Order, PassedOver, Payload, Phase,
    PollOutcome, Priority, Progress, ProviderAnswer, Report, ReportOutcome, ReportState, RetryLimits, Reuse,
    Signal, Slot, SubmitOutcome, Target, Terms, Timeline, TimelineEntry, TimelineEvent, Timestamp, Value,
    Via, Webhook,
};
use quittance_lifecycle::{Outage, Receipt, SubmitRoute, WhyPassedOver};
use quittance_ports::IncomingEvent;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A random number generator (SplitMix64): small, and equal on every machine.
pub(super) struct Any(pub(super) u64);

impl Any {
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number that may also be near the ends of its range.
    fn wide(&mut self) -> u64 {
        let ordinary = self.number() >> self.below(64);
        self.one_of(&[0, 1, u64::MAX, u64::MAX - 1, i64::MAX.unsigned_abs(), ordinary, ordinary, ordinary])
    }

    fn small(&mut self) -> u8 {
        self.wide().to_le_bytes()[0]
    }

    fn count(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.wide().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn moment(&mut self) -> Timestamp {
        Timestamp::from_millis(self.wide())
    }

    fn span(&mut self) -> Duration {
        Duration::from_millis(self.wide())
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    fn list<T>(&mut self, length_max: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(length_max + 1)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        let alphabet = [
            'a',
            'Z',
            '0',
            '_',
            ' ',
            '"',
            '\\',
            '/',
            '\0',
            '\n',
            '\u{1e}',
            '\u{7f}',
            'é',
            '日',
            '\u{2028}',
            '🗝',
            '\u{10ffff}',
        ];
        self.list(12, |any| any.one_of(&alphabet)).into_iter().collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.list(40, Self::small)
    }

    fn digest(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.small())
    }

    fn key(&mut self) -> Key {
        Key(self.digest())
    }

    fn params(&mut self) -> BTreeMap<String, Value> {
        let value = |any: &mut Self| match any.flag() {
            true => Value::Text(any.text()),
            false => Value::Bytes(any.bytes()),
        };
        self.list(5, |any| (any.text(), value(any))).into_iter().collect()
    }

    fn terms(&mut self) -> Terms {
        Terms {
            tenant: self.text(),
            kind: self.text(),
            params: self.params(),
            target: Target(self.digest()),
            fingerprint: self.digest(),
            keyed: self.flag(),
            reuse: self.one_of(&[Reuse::Shared, Reuse::Exclusive]),
            single_use: self.flag(),
            life: self.maybe(Self::span),
            min_life: self.span(),
            margin: self.span(),
            timeout: self.span(),
            retry: RetryLimits {
                max_retries: self.maybe(Self::small),
                base: self.maybe(Self::span),
                cap: self.maybe(Self::span),
            },
            keep: self.span(),
            site: self.text(),
            takes_stock: self.flag(),
            collected_in: self.span(),
            slot: self.maybe(Self::slot),
            priority: self.one_of(&Priority::ALL),
            account: self.text(),
            price: self.maybe(Self::wide).map(Money),
            trace: self.text(),
        }
    }

    fn slot(&mut self) -> Slot {
        Slot { pool: self.text(), number: self.count(), generation: self.wide() }
    }

    fn payload(&mut self) -> Payload {
        let extras: BTreeMap<_, _> = self.list(3, |any| (any.text(), any.text())).into_iter().collect();
        Payload { text: self.text(), is_json: self.flag(), extras }
    }

    fn answer(&mut self) -> Answer {
        Answer {
            payload: self.payload(),
            attempt: self.count(),
            earliest: self.moment(),
            expires: self.maybe(Self::moment),
            cost: self.maybe(Self::wide).map(Money),
        }
    }

    fn delivery(&mut self) -> ProviderAnswer {
        ProviderAnswer {
            payload: self.payload(),
            took_at_least: self.maybe(Self::wide).map(Duration::from_millis),
            cost: self.maybe(Self::wide).map(Money),
        }
    }

    fn class(&mut self) -> FaultClass {
        self.one_of(&FaultClass::ALL)
    }

    fn fault(&mut self) -> Fault {
        Fault { class: self.class(), code: self.text(), text: self.maybe(Self::text).unwrap_or_default() }
    }

    fn evidence(&mut self) -> Evidence {
        Evidence { summary: self.text(), text: self.maybe(Self::text).unwrap_or_default() }
    }

    fn dead_cause(&mut self) -> DeadCause {
        match self.below(8) {
            6 => DeadCause::NoBudget(self.shortage()),
            5 => DeadCause::TooLate { left: self.span(), needs: self.span() },
            4 => DeadCause::NotTaken(self.maybe(Self::fault)),
            0 => DeadCause::Spent(self.fault()),
            1 => DeadCause::Deadline,
            2 => DeadCause::DoubtsSpent(self.evidence()),
            3 => DeadCause::StoreForgot,
            _ => DeadCause::Doubt,
        }
    }

    fn phase(&mut self) -> Phase {
        let (attempt, until, at) = (self.count(), self.moment(), self.moment());
        match self.below(10) {
            0 => Phase::Queued { until, held: self.flag() },
            1 => Phase::Submitting { attempt, stamp: self.wide(), until },
            2 => Phase::Solving { attempt, poll_at: until, misses: self.small() },
            3 => Phase::InDoubt { attempt, until },
            4 => Phase::Solved { answer: self.answer(), at },
            5 => Phase::Claimed { answer: self.answer(), by: self.key(), at },
            6 => Phase::Expired { at },
            7 => Phase::Failed { cause: FailCause::Rejected(self.fault()), at },
            8 => Phase::Failed { cause: FailCause::Cancelled, at },
            _ => Phase::Dead { cause: self.dead_cause(), at },
        }
    }

    fn attempt(&mut self) -> Attempt {
        let progress = match self.below(7) {
            0 => Progress::Sent,
            1 => Progress::Solving { task: self.text() },
            2 => Progress::Trailing { task: self.text(), poll_at: self.moment(), counted: self.flag() },
            3 => Progress::GivenUp { counted: self.flag() },
            4 => Progress::Faulted,
            5 => Progress::Answered,
            _ => Progress::Surplus { answer: self.answer(), since: self.moment() },
        };
        Attempt {
            number: self.count(),
            sent: self.moment(),
            unsolved_at: self.moment(),
            accepted: self.flag(),
            progress,
            task: None,
            report: self.maybe(Self::report),
            made_for: self.maybe(Self::key),
            cost: self.maybe(Self::wide).map(Money),
            unpriced_since: self.maybe(Self::moment),
            former: self.maybe(|any| (any.moment(), any.count())),
            callback_address: self.maybe(Self::count),
            account: self.maybe(Self::account),
            drawn: self.maybe(Self::draw),
        }
    }

    fn report(&mut self) -> Report {
        let state = match self.below(4) {
            0 => ReportState::Owed { at: self.moment(), tries: self.small() },
            1 => ReportState::Passed,
            2 => ReportState::Refused { code: self.text() },
            _ => ReportState::Lost,
        };
        Report { is_good: self.flag(), at: self.moment(), state }
    }

    fn outage(&mut self) -> Outage {
        Outage { from: self.moment(), to: self.moment() }
    }

    fn receipt(&mut self) -> Receipt {
        Receipt { at: self.moment(), outages: self.list(3, Self::outage) }
    }

    fn webhook(&mut self) -> Webhook {
        let state = match self.flag() {
            true => DeliveryState::Owed { at: self.moment(), tries: self.small() },
            false => DeliveryState::Dead { at: self.moment(), why: self.text() },
        };
        Webhook { number: self.count(), url: self.text(), dialect: self.text(), state }
    }

    fn event(&mut self) -> TimelineEvent {
        let (attempt, until) = (self.count(), self.moment());
        match self.below(36) {
            35 => TimelineEvent::Hedged { attempt },
            33 => TimelineEvent::ReplayedAfterOutage { provider: self.text() },
            34 => TimelineEvent::Hastened { priority: self.one_of(&Priority::ALL) },
            32 => TimelineEvent::Routed {
                attempt,
                to: self.text(),
                passed_over: self.list(3, Self::passed_over),
            },
            0 => TimelineEvent::Placed { life: self.count() },
            1 => TimelineEvent::Rejoined,
            2 => TimelineEvent::Deferred { until },
            3 => TimelineEvent::Submitted { attempt },
            4 => TimelineEvent::Accepted { attempt, task: self.text() },
            5 => TimelineEvent::InDoubt { attempt, until },
            6 => TimelineEvent::GaveUp { attempt },
            7 => TimelineEvent::Faulted { attempt, fault: self.fault() },
            8 => TimelineEvent::Retried { class: self.one_of(&Signal::ALL), number: self.small(), at: until },
            28 => TimelineEvent::LeftInDoubt { attempt, evidence: self.evidence() },
            9 => TimelineEvent::Held,
            10 => TimelineEvent::Released,
            11 => {
                TimelineEvent::Solved { attempt, via: self.one_of(&[Via::Submit, Via::Callback, Via::Poll]) }
            }
            12 => TimelineEvent::CameLate { attempt },
            13 => TimelineEvent::TooOld { attempt },
            14 => TimelineEvent::Stocked { attempt },
            15 => TimelineEvent::Claimed,
            16 => TimelineEvent::Expired,
            17 => TimelineEvent::Failed,
            18 => TimelineEvent::MovedToDeadLetters { cause: self.dead_cause() },
            19 => TimelineEvent::Cancelled,
            20 => TimelineEvent::Dropped,
            21 => TimelineEvent::Reported { attempt, is_good: self.flag() },
            22 => TimelineEvent::WebhookDelivered { webhook: attempt },
            23 => TimelineEvent::WebhookFailed { webhook: attempt, why: self.text() },
            24 => TimelineEvent::ServedFromStock { from: self.key() },
            25 => TimelineEvent::Returned,
            26 => TimelineEvent::Noted { text: self.text() },
            27 => TimelineEvent::PutBack,
            29 => TimelineEvent::Recalled { attempt },
            30 => TimelineEvent::HandedOver { to: self.key() },
            _ => TimelineEvent::Replayed,
        }
    }

    fn order(&mut self) -> Order {
        let entry = |any: &mut Self| TimelineEntry { at: any.moment(), event: any.event() };
        Order {
            key: self.key(),
            priority: self.one_of(&Priority::ALL),
            terms: Arc::new(self.terms()),
            born: self.moment(),
            life: self.count(),
            placed: self.moment(),
            deadline: self.moment(),
            wanted: self.flag(),
            uncollected: self.flag(),
            phase: self.phase(),
            attempts: self.list(4, Self::attempt),
            last_attempt: self.count(),
            retries: std::array::from_fn(|_| self.small()),
            life_attempts: self.count(),
            possible_doubles: self.count(),
            webhooks: self.list(3, Self::webhook),
            last_webhook: self.count(),
            put_back: self.maybe(Self::moment),
            steps_lost: self.flag(),
            followed_by: self.maybe(Self::key),
            used_up: self.list(3, Self::text),
            held_off: self.maybe(Self::held_off),
            booked_on: self.maybe(Self::count),
            timeline: Timeline { entries: self.list(6, entry), left_out: self.count() },
        }
    }

    fn submit_outcome(&mut self) -> SubmitOutcome {
        match self.below(4) {
            0 => SubmitOutcome::Accepted { task: self.text() },
            1 => SubmitOutcome::Answered(self.delivery()),
            2 => SubmitOutcome::Rejected(self.fault()),
            _ => SubmitOutcome::InDoubt(self.evidence()),
        }
    }

    fn poll_outcome(&mut self) -> PollOutcome {
        match self.below(5) {
            0 => PollOutcome::Pending,
            1 => PollOutcome::Answered(self.delivery()),
            2 => PollOutcome::Faulted(self.fault()),
            3 => PollOutcome::NoSuchTask(self.fault()),
            _ => PollOutcome::NoReply,
        }
    }

    fn report_outcome(&mut self) -> ReportOutcome {
        match self.below(3) {
            0 => ReportOutcome::Accepted,
            1 => ReportOutcome::Refused { code: self.text() },
            _ => ReportOutcome::NoReply,
        }
    }

    fn tell_outcome(&mut self) -> DeliveryOutcome {
        match self.below(3) {
            0 => DeliveryOutcome::Delivered,
            1 => DeliveryOutcome::NotDelivered { why: self.text() },
            _ => DeliveryOutcome::SwitchedOff { why: self.text() },
        }
    }

    fn word(&mut self) -> CallbackResult {
        if self.flag() {
            CallbackResult::Answered(self.delivery())
        } else {
            CallbackResult::Faulted(self.fault())
        }
    }

    fn account(&mut self) -> AttemptAccount {
        AttemptAccount { account: self.text(), price: self.maybe(Self::wide).map(Money) }
    }

    fn passed_over(&mut self) -> PassedOver {
        let why = WhyPassedOver::ALL[self.below(WhyPassedOver::ALL.len())];
        PassedOver { account: self.text(), why }
    }

    fn route(&mut self) -> SubmitRoute {
        match self.below(4) {
            0 | 1 => return SubmitRoute::ShutUntil(self.moment()),
            2 => return SubmitRoute::NoBudget(self.shortage()),
            _ => {}
        }
        let account = self.maybe(Self::account);
        SubmitRoute::To(Offer {
            account,
            passed_over: self.list(3, Self::passed_over),
            drawn: self.maybe(Self::draw),
        })
    }

    fn held_off(&mut self) -> HeldOff {
        HeldOff { account: self.text(), until: self.moment(), is_busy: self.flag() }
    }

    pub(super) fn arrival(&mut self) -> IncomingEvent {
        let attempt = self.count();
        let event = match self.below(22) {
            0 => Event::Woken { stamp: self.wide(), route: self.route() },
            1 => Event::Submitted { attempt, outcome: self.submit_outcome() },
            2 => Event::Polled { attempt, asked: self.moment(), outcome: self.poll_outcome() },
            3 => Event::CalledBack {
                attempt,
                task: self.maybe(Self::text),
                word: self.word(),
                receipt: self.maybe(Self::receipt),
            },
            4 => Event::Stocked { attempt },
            5 => Event::Claimed { by: self.key(), min_life: self.span() },
            6 => Event::Cancelled,
            7 => Event::Replayed,
            8 => Event::Dropped,
            9 => Event::Reported { is_good: self.flag() },
            10 => Event::ReportPassed { attempt, outcome: self.report_outcome() },
            11 => Event::WebhookAdded { url: self.text(), dialect: self.text() },
            12 => Event::WebhookTried { webhook: attempt, outcome: self.tell_outcome() },
            13 => Event::ServedFromStock {
                by: self.key(),
                from: self.key(),
                answer: self.answer(),
                attempt: Box::new(self.attempt()),
            },
            14 => Event::Returned { by: self.key() },
            15 => Event::Noted { text: self.text() },
            16 => Event::PutBack { others_by: self.moment() },
            17 => Event::Lost,
            20 => Event::ReplayedAfterOutage { provider: self.text(), died_since: self.moment() },
            19 => Event::HandedOver { by: self.key(), to: self.key() },
            18 => Event::Recalled { born: self.moment(), attempts: self.list(3, Self::attempt) },
            _ => Event::Released,
        };
        IncomingEvent { key: self.key(), born: self.moment(), target: self.maybe(Self::wide), event }
    }

    pub(super) fn written(&mut self) -> AnyRecord {
        match self.below(5) {
            0 => AnyRecord::Terms(Arc::new(self.terms())),
            1 => AnyRecord::Order(Box::new(self.order())),
            2 => AnyRecord::NodeStatus(Box::new(self.node_status())),
            3 => AnyRecord::SharedDocument(Box::new(self.document())),
            _ => AnyRecord::IncomingEvent(self.arrival()),
        }
    }
}

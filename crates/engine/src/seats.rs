//! Which of this node's tasks are at the provider: submits in progress, and tasks without an answer. A seat becomes
//! free when the node sees that the attempt has ended, whichever node received the answer, and else after a time.

use crate::gate_rules::GateRules;
use crate::limit::SeatCount;
use quittance_lifecycle::{Key, Order, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A submit without a reply after this time counts as taken: a provider that is busy says so at once.
const SLOW_REPLY: Duration = Duration::from_secs(1);
/// How many seats are known at most. Beyond it, the one that would end first is forgotten.
const SEATS_MAX: usize = 65_536;
/// A clock that is set back by more than this frees all seats without a submit in progress.
const SET_BACK_MAX: Duration = Duration::from_secs(5);

/// The seat of one submit at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatId {
    key: Key,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeatState {
    /// The submit is in progress.
    Asking,
    /// The submit is in progress, and a callback has already brought its answer.
    Settled,
    /// The provider took the task, and there is no answer yet.
    Taken,
    /// The provider may have taken the task.
    InDoubt,
}

#[derive(Debug)]
struct Seat {
    tenant: String,
    /// The attempt and the birth of its record; `None` until the intent is committed.
    attempt: Option<(Timestamp, u32)>,
    sent: Timestamp,
    until: Timestamp,
    state: SeatState,
}

/// A submit that is about to go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmitAsk<'a> {
    pub(crate) key: Key,
    pub(crate) tenant: &'a str,
    pub(crate) is_retry: bool,
    /// How long the slowest answers of the kind take.
    pub(crate) p99: Duration,
    pub(crate) deadline: Timestamp,
}

/// What a record shows about an attempt of this node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) tenant: String,
    /// Whether the attempt was in doubt, or without a reply, and the provider did take it.
    pub(crate) is_settled: bool,
}

pub(crate) struct Seats {
    rules: GateRules,
    seats: BTreeMap<SeatId, Seat>,
    /// Seats without a submit in progress, by their end.
    ends: BTreeSet<(Timestamp, SeatId)>,
    /// Submits in progress that have begun within [`SLOW_REPLY`].
    asking: BTreeSet<(Timestamp, SeatId)>,
    all: SeatCount,
    of_tenant: BTreeMap<String, SeatCount>,
    last_number: u64,
    seen_at: Timestamp,
}

impl Seats {
    pub(crate) const fn new(rules: GateRules) -> Self {
        Self {
            rules,
            seats: BTreeMap::new(),
            ends: BTreeSet::new(),
            asking: BTreeSet::new(),
            all: SeatCount { held: 0, asking: 0 },
            of_tenant: BTreeMap::new(),
            last_number: 0,
            seen_at: Timestamp::ZERO,
        }
    }

    pub(crate) const fn all(&self) -> SeatCount {
        self.all
    }

    pub(crate) fn of(&self, tenant: &str) -> SeatCount {
        self.of_tenant.get(tenant).copied().unwrap_or_default()
    }

    fn count(&mut self, tenant: &str, change: impl Fn(&mut SeatCount)) {
        change(&mut self.all);
        let own = self.of_tenant.entry(tenant.to_owned()).or_default();
        change(own);
        if own.held == 0 {
            self.of_tenant.remove(tenant);
        }
    }

    /// Takes a seat for a submit that begins now.
    pub(crate) fn take(&mut self, ask: &SubmitAsk<'_>, now: Timestamp) -> SeatId {
        if self.seats.len() >= SEATS_MAX
            && let Some((_, first)) = self.ends.first().copied()
        {
            self.remove(first);
        }
        self.last_number += 1;
        let id = SeatId { key: ask.key, number: self.last_number };
        let until = (self.rules.seat_ends)(now, ask.p99, ask.deadline);
        let tenant = ask.tenant.to_owned();
        self.count(&tenant, |count| {
            count.held += 1;
            count.asking += 1;
        });
        self.asking.insert((now, id));
        self.seats.insert(id, Seat { tenant, attempt: None, sent: now, until, state: SeatState::Asking });
        id
    }

    /// Names the attempt of a seat, so that its record shows when the seat is free.
    pub(crate) fn name(&mut self, id: SeatId, born: Timestamp, attempt: u32) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.attempt = Some((born, attempt));
        }
    }

    pub(crate) fn sent(&self, id: SeatId) -> Option<Timestamp> {
        self.seats.get(&id).map(|seat| seat.sent)
    }

    /// Whether the submit of this seat has no outcome yet.
    pub(crate) fn is_asking(&self, id: SeatId) -> bool {
        let state = self.seats.get(&id).map(|seat| seat.state);
        matches!(state, Some(SeatState::Asking | SeatState::Settled))
    }

    /// Whether a callback has already brought the answer of this seat's submit.
    pub(crate) fn is_settled(&self, id: SeatId) -> bool {
        self.seats.get(&id).is_some_and(|seat| seat.state == SeatState::Settled)
    }

    /// The submit has ended, and its task is or may be at the provider.
    pub(crate) fn keep(&mut self, id: SeatId, is_in_doubt: bool) {
        self.end_asking(id);
        let Some(seat) = self.seats.get_mut(&id) else { return };
        seat.state = if is_in_doubt { SeatState::InDoubt } else { SeatState::Taken };
        self.ends.insert((seat.until, id));
    }

    /// A submit has a reply, or is slow: it no longer counts as one whose reply is about to come.
    fn end_asking(&mut self, id: SeatId) {
        let Some(seat) = self.seats.get(&id) else { return };
        if self.asking.remove(&(seat.sent, id)) {
            let tenant = seat.tenant.clone();
            self.count(&tenant, |count| count.asking -= 1);
        }
    }

    pub(crate) fn remove(&mut self, id: SeatId) {
        self.end_asking(id);
        let Some(seat) = self.seats.remove(&id) else { return };
        self.ends.remove(&(seat.until, id));
        if seat.state != SeatState::Settled {
            self.count(&seat.tenant, |count| count.held -= 1);
        }
    }

    /// Frees seats whose time is over, and counts slow submits as taken.
    pub(crate) fn look_at_the_time(&mut self, now: Timestamp) {
        let is_set_back = now + SET_BACK_MAX < self.seen_at;
        self.seen_at = now;
        while let Some((until, id)) = self.ends.first().copied()
            && (until <= now || is_set_back)
        {
            self.remove(id);
        }
        while let Some((sent, id)) = self.asking.first().copied()
            && (sent + SLOW_REPLY <= now || is_set_back)
        {
            self.end_asking(id);
        }
    }

    /// When a seat becomes free, or a submit counts as slow, if nothing else happens before.
    pub(crate) fn next_change(&self) -> Timestamp {
        let end = self.ends.first().map_or(Timestamp::MAX, |(until, _)| *until);
        let slow = self.asking.first().map_or(Timestamp::MAX, |(sent, _)| *sent + SLOW_REPLY);
        end.min(slow)
    }

    /// Frees the seats of this order whose attempts have left the provider.
    pub(crate) fn see(&mut self, order: &Order) -> Vec<Freed> {
        let of_order = SeatId { key: order.key, number: 0 }..=SeatId { key: order.key, number: u64::MAX };
        let ids: Vec<SeatId> = self.seats.range(of_order).map(|(id, _)| *id).collect();
        ids.into_iter().filter_map(|id| self.see_one(id, order)).collect()
    }

    fn see_one(&mut self, id: SeatId, order: &Order) -> Option<Freed> {
        let seat = self.seats.get(&id)?;
        let (tenant, state) = (seat.tenant.clone(), seat.state);
        let (born, number) = seat.attempt?;
        if born != order.born || state == SeatState::Settled {
            return None;
        }
        let progress = order.attempt(number).map(|attempt| &attempt.progress);
        if progress.is_some_and(|progress| !(self.rules.frees_seat)(progress)) {
            return None;
        }
        let is_settled = state != SeatState::Taken && progress.is_some_and(self.rules.settles_doubt);
        match state {
            SeatState::Asking if is_settled => {
                self.end_asking(id);
                self.count(&tenant, |count| count.held -= 1);
                self.seats.get_mut(&id)?.state = SeatState::Settled;
            }
            // Its outcome is about to come.
            SeatState::Asking | SeatState::Settled => return None,
            SeatState::Taken | SeatState::InDoubt => self.remove(id),
        }
        Some(Freed { tenant, is_settled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::{
        CallbackResult, Decision, Draft, Event, Evidence, KeySettings, Payload, Placement, Policy,
        ProviderAnswer, SubmitOutcome, place, transition,
    };
    use std::sync::Arc;

    const POLICY: Policy = Policy { callbacks: true, ..Policy::DEFAULT };

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn after(order: &Order, event: Event, now: Timestamp) -> Order {
        match transition(order, event, now, &POLICY) {
            Decision::Advance(advance) => advance.next,
            other => panic!("{other:?}"),
        }
    }

    /// An order of anna whose first attempt is under way.
    fn submitting() -> Order {
        let draft = Draft::new("anna").with("sitekey", "site").with("pageurl", "https://example.com/");
        let kind = quittance_protocol::kinds::kind("turnstile").expect("a known kind");
        let (key, terms) =
            draft.check(&kind, KeySettings::default(), &POLICY, at(0), 1).expect("a complete draft");
        match place(None, None, key, &Arc::new(terms), at(0), &POLICY) {
            Placement::Commit { advance, .. } => after(
                &advance.next,
                Event::Woken {
                    stamp: 1,
                    route: quittance_lifecycle::SubmitRoute::To(quittance_lifecycle::Offer::OF_TERMS),
                },
                at(0),
            ),
            other => panic!("{other:?}"),
        }
    }

    fn called_back(order: &Order, now: Timestamp) -> Order {
        let answer = ProviderAnswer { payload: Payload::text("token"), took_at_least: None, cost: None };
        let word = CallbackResult::Answered(answer);
        after(order, Event::CalledBack { attempt: 1, task: None, word, receipt: None }, now)
    }

    /// The seats of a node with the submit of this order in progress.
    fn with_seat_of(order: &Order) -> (Seats, SeatId) {
        let mut seats = Seats::new(GateRules::REAL);
        let p99 = Duration::from_secs(100);
        let ask = SubmitAsk { key: order.key, tenant: "anna", is_retry: false, p99, deadline: at(300) };
        let id = seats.take(&ask, at(0));
        seats.name(id, order.born, 1);
        (seats, id)
    }

    #[test]
    fn a_task_has_its_seat_until_its_answer_is_on_record() {
        let order = submitting();
        let (mut seats, id) = with_seat_of(&order);
        assert_eq!((seats.all(), seats.of("anna")), (SeatCount { held: 1, asking: 1 }, seats.all()));
        let outcome = SubmitOutcome::Accepted { task: "7".into() };
        let order = after(&order, Event::Submitted { attempt: 1, outcome }, at(1));
        seats.keep(id, false);
        assert!(seats.see(&order).is_empty());
        assert_eq!(seats.all(), SeatCount { held: 1, asking: 0 });
        let freed = seats.see(&called_back(&order, at(9)));
        assert_eq!(freed, [Freed { tenant: "anna".into(), is_settled: false }]);
        assert_eq!((seats.all(), seats.of("anna")), (SeatCount::default(), SeatCount::default()));
    }

    #[test]
    fn a_task_without_an_answer_has_its_seat_until_the_slowest_answers_would_have_come() {
        let (mut seats, id) = with_seat_of(&submitting());
        seats.keep(id, false);
        assert_eq!(seats.next_change(), at(111));
        seats.look_at_the_time(at(110));
        assert_eq!(seats.all().held, 1);
        seats.look_at_the_time(at(111));
        assert_eq!(seats.all().held, 0);
    }

    #[test]
    fn a_callback_settles_a_doubt_and_frees_the_seat() {
        let order = submitting();
        let (mut seats, id) = with_seat_of(&order);
        seats.keep(id, true);
        let outcome = SubmitOutcome::InDoubt(Evidence::default());
        let order = after(&order, Event::Submitted { attempt: 1, outcome }, at(20));
        assert!(seats.see(&order).is_empty());
        assert!(seats.see(&called_back(&order, at(25)))[0].is_settled);
        assert_eq!(seats.all(), SeatCount::default());
    }

    #[test]
    fn a_callback_that_comes_before_the_reply_to_the_submit_frees_the_seat_once() {
        let order = submitting();
        let (mut seats, id) = with_seat_of(&order);
        let order = called_back(&order, at(8));
        assert_eq!(seats.see(&order).len(), 1);
        assert!(seats.is_settled(id) && seats.see(&order).is_empty());
        seats.remove(id);
        assert_eq!(seats.all(), SeatCount::default());
    }

    #[test]
    fn a_slow_submit_counts_as_taken_and_a_clock_that_is_set_back_frees_what_has_been_taken() {
        let (mut seats, id) = with_seat_of(&submitting());
        assert_eq!(seats.next_change(), at(1));
        seats.look_at_the_time(at(1));
        assert_eq!((seats.all().taken(), seats.next_change()), (1, Timestamp::MAX));
        seats.keep(id, false);
        seats.look_at_the_time(Timestamp::from_millis(1));
        assert_eq!(seats.all().held, 0);
    }
}

//! Tests of what a node leases, uses and gives back, and of nodes that take units at the same moment. Time is an
//! argument.

use super::lease_state::{DOUBT, IDLE, LeaseRequest, LeaseState, RoundEnd};
use super::{Count, DRAWN_FOR, GIVE_BACK_PAUSE_TIGHT, LEASE_LIFE, Quotas, Taken, Unit};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::join_all;
use quittance_lifecycle::Timestamp;
use quittance_ports::{Clock, Leases, MemoryLeases, StoreError, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// A node with `waiting` requests, and its lease for them when no unit is in use.
fn leasing(limit: u64, waiting: u64, now: Instant) -> LeaseState {
    let mut state = LeaseState::new(now);
    state.waiting = waiting;
    let settled = state.settled(now);
    let LeaseRequest { more, .. } = state.want(limit, 0, 0, settled, now).unwrap();
    state.leased(Version(1), settled, more, now);
    state
}

fn draw(state: &mut LeaseState, count: usize, now: Instant) {
    for _ in 0..count {
        assert!(state.draw(now));
        state.waiting -= 1;
    }
}

#[test]
fn a_node_leases_what_its_requests_need_and_nothing_ahead_before_it_knows_how_many_come() {
    let now = Instant::now();
    let mut state = leasing(300, 60, now);
    draw(&mut state, 60, now);
    assert!(!state.draw(now), "each of them has its own");
}

#[test]
fn with_a_lot_of_room_a_node_leases_ahead_as_much_as_it_lately_used_and_near_the_limit_what_it_needs() {
    let now = Instant::now();
    let mut state = leasing(1000, 60, now);
    draw(&mut state, 60, now);
    (0..60).for_each(|_| state.used(now));
    state.waiting = 1;
    let settled = state.settled(now);
    // 60 are in use and 1 is needed, so an eighth of the others is more than were lately taken.
    assert_eq!(state.want(1000, 60, 0, settled, now), Ok(LeaseRequest { amount: 61, more: 61 }));
    assert_eq!(state.want(1000, 60, 900, settled, now), Ok(LeaseRequest { amount: 5, more: 5 }));
    assert_eq!(state.want(1000, 60, 935, settled, now), Ok(LeaseRequest { amount: 1, more: 1 }));
    assert_eq!(state.want(1000, 60, 940, settled, now), Err(RoundEnd::Contested { in_use: 60 }));
    assert_eq!(state.want(1000, 1000, 0, settled, now), Err(RoundEnd::Full { in_use: 1000 }));
    assert_eq!(state.want(1000, 60, 0, settled, now + SECOND * 3), Ok(LeaseRequest { amount: 1, more: 1 }));
}

/// A unit that was used after the count began is not in the count.
#[test]
fn a_unit_that_was_used_during_the_count_stays_leased() {
    let now = Instant::now();
    let mut state = leasing(5, 3, now);
    draw(&mut state, 3, now);
    state.used(now);
    let settled = state.settled(now);
    state.used(now);
    state.waiting = 9;
    // Of 5, 1 is in use and counted, 1 is in use and not counted, 1 is taken.
    assert_eq!(state.want(5, 1, 0, settled, now), Ok(LeaseRequest { amount: 4, more: 2 }));
}

#[test]
fn a_lease_is_drawn_on_while_it_has_time_left_for_a_use() {
    let now = Instant::now();
    let mut state = leasing(5, 2, now);
    assert!(!state.draw(now + DRAWN_FOR));
    assert!(state.draw(now + DRAWN_FOR - Duration::from_millis(1)));
    assert_eq!(state.settled(now + DRAWN_FOR), 1, "the other one is given back");
    assert!(DRAWN_FOR + super::USE_MAX < LEASE_LIFE);
}

#[test]
fn what_is_idle_is_given_back_and_what_was_not_used_can_be_taken_again() {
    let now = Instant::now();
    let mut state = leasing(5, 2, now);
    draw(&mut state, 1, now);
    state.waiting = 0;
    state.unused(now);
    state.lay_down_idle(now + IDLE / 2);
    assert_eq!(state.surplus(now), None);
    assert_eq!(state.next_give_back(now), Some(IDLE));
    state.lay_down_idle(now + IDLE);
    assert_eq!(state.surplus(now + IDLE), Some((Version(1), 0, 2)));
    state.gave_back(2);
    assert_eq!(state.next_give_back(now + IDLE), None, "nothing is left");
    assert!(!state.draw(now + IDLE));
}

/// The caller hung up or the store did not answer, so the order may be on record now or later.
#[test]
fn a_unit_that_may_be_in_use_is_kept_back_for_a_while() {
    let now = Instant::now();
    let mut state = leasing(5, 3, now);
    draw(&mut state, 2, now);
    state.in_doubt(now);
    state.in_doubt(now + SECOND / 2);
    assert!(!state.draw(now + SECOND), "what was leased before an error is not drawn on after it");
    assert_eq!(state.surplus(now + SECOND), Some((Version(1), 2, 1)));
    state.gave_back(1);
    assert_eq!(state.surplus(now + DOUBT), None);
    let later = now + DOUBT + SECOND;
    assert_eq!(state.next_give_back(later), Some(GIVE_BACK_PAUSE_TIGHT));
    assert_eq!(state.surplus(later), Some((Version(1), 0, 2)));
}

#[test]
fn what_has_ended_by_itself_need_not_be_given_back() {
    let now = Instant::now();
    let mut state = leasing(5, 1, now);
    draw(&mut state, 1, now);
    state.used(now);
    assert_eq!(state.surplus(now + LEASE_LIFE), None);
    assert_eq!(state.next_give_back(now + LEASE_LIFE), None);
}

#[test]
fn a_refusal_is_for_those_that_came_before_its_round_and_no_older_than_they_take() {
    let now = Instant::now();
    let mut state = LeaseState::new(now);
    state.rounds = 4;
    state.keep_answer(RoundEnd::Full { in_use: 5 }, now);
    assert_eq!(state.answer_since(3), Some(RoundEnd::Full { in_use: 5 }));
    assert_eq!(state.answer_since(4), None);
    assert_eq!(state.refusal_since(now, SECOND), Some(5));
    assert_eq!(state.refusal_since(now + SECOND, SECOND), None);
    assert_eq!(state.refusal_since(now, Duration::ZERO), None);
    state.keep_answer(RoundEnd::Contested { in_use: 4 }, now);
    assert_eq!(state.answer_since(3), None, "it is no end");
}

/// A clock that moves only when a test sets it.
#[derive(Default)]
struct StoreClock(AtomicU64);

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep_until(&self, _: Timestamp) {}
}

/// Three nodes, and the number of units in use.
struct Nodes {
    leases: MemoryLeases,
    clock: Arc<StoreClock>,
    nodes: Vec<Quotas>,
    in_use: AtomicU64,
}

const LIMIT: u64 = 7;

impl Nodes {
    fn new() -> Self {
        let clock = Arc::new(StoreClock::default());
        let leases = MemoryLeases::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let nodes = (1..=3).map(|node| Quotas::new(Arc::new(leases.clone()), node)).collect();
        Self { leases, clock, nodes, in_use: AtomicU64::new(0) }
    }

    async fn take(&self, node: usize) -> Option<Unit> {
        // Others may run between the look and the answer, as they may in life.
        let count = || {
            async {
                let in_use = self.in_use.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok::<_, StoreError>(in_use)
            }
            .boxed()
        };
        let count: &Count<'_> = &count;
        match self.nodes[node].of("a limit").take(LIMIT, Duration::ZERO, count).await.unwrap() {
            Taken::Unit(unit) => Some(unit),
            Taken::Full { .. } => None,
        }
    }

    /// Takes a unit and uses it.
    async fn place(&self, node: usize) -> bool {
        let Some(unit) = self.take(node).await else { return false };
        tokio::task::yield_now().await;
        self.in_use.fetch_add(1, Ordering::SeqCst);
        unit.used();
        true
    }

    async fn leased(&self) -> u64 {
        self.leases.leased("a limit", 0).await.unwrap().by_others
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_nodes_use_a_limit_up_and_never_more_and_give_all_back() {
    let nodes = Nodes::new();
    for round in 0..20 {
        let placed = join_all((0..60).map(|n| nodes.place(n % 3))).await;
        assert_eq!(placed.iter().filter(|placed| **placed).count() as u64, LIMIT, "round {round}");
        assert_eq!(nodes.in_use.swap(0, Ordering::SeqCst), LIMIT);
    }
    while nodes.leased().await > 0 {
        tokio::task::yield_now().await;
    }
}

/// Trap: one node leases the last unit for a request that then fails, and another node refuses its own request.
#[tokio::test]
async fn a_unit_that_another_node_has_leased_and_does_not_use_is_waited_for() {
    let nodes = Nodes::new();
    nodes.in_use.store(LIMIT - 1, Ordering::SeqCst);
    let held = nodes.take(0).await.unwrap();
    let (placed, ()) = tokio::join!(nodes.place(1), async {
        tokio::task::yield_now().await;
        held.unused();
    });
    assert!(placed);
    assert!(!nodes.place(0).await);
}

#[tokio::test]
async fn the_units_of_a_node_that_is_gone_are_free_when_its_lease_has_ended() {
    let nodes = Nodes::new();
    let held: Vec<Unit> = join_all((0..LIMIT).map(|_| nodes.take(0))).await.into_iter().flatten().collect();
    assert_eq!(held.len() as u64, LIMIT);
    // It is killed: nothing of it runs any more.
    held.into_iter().for_each(std::mem::forget);
    assert_eq!(nodes.leased().await, LIMIT);
    let life = u64::try_from(LEASE_LIFE.as_millis()).unwrap();
    nodes.clock.0.store(life - 1, Ordering::Relaxed);
    assert_eq!(nodes.leased().await, LIMIT);
    nodes.clock.0.store(life, Ordering::Relaxed);
    assert_eq!(nodes.leased().await, 0);
    let placed = join_all((0..20).map(|n| nodes.place(1 + n % 2))).await;
    assert_eq!(placed.iter().filter(|placed| **placed).count() as u64, LIMIT);
}

#[tokio::test]
async fn a_node_that_ends_gives_all_back_at_once() {
    let nodes = Nodes::new();
    let unit = nodes.take(0).await.unwrap();
    unit.unused();
    assert_eq!(nodes.leased().await, 1);
    nodes.nodes[0].close().await;
    assert_eq!(nodes.leased().await, 0);
}

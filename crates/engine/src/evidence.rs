//! Polls that date answers. If the callback of an open task may have got no reply, the task is polled once. A reply
//! of "not ready" proves that the task was solved later. Without this proof the answer would count from its submit,
//! and callers could be refused a fresh one.
//!
//! This is needed after an outage of this node, and when another node is lost: its address gets no callbacks any
//! more.

use crate::callback::address_mark;
use crate::poll_queue::spread_turn;
use crate::reachability::{STILL_ROUTED, successor};
use crate::work::CHORES_SPAN;
use crate::{Engine, lock};
use quittance_lifecycle::{Attempt, Key, Order, Phase, Progress, Timestamp};
use quittance_ports::membership::{HEARTBEAT_INTERVAL, SILENT_AFTER};
use quittance_ports::{Member, Members, StoreError, Which};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many open orders are read at once.
const PAGE: usize = 256;
/// How many rounds may be planned. A task in a further round is polled when its timer fires.
const ROUNDS_MAX: usize = 32;
/// A task whose timer fires within this time needs no extra poll.
const DUE_SOON: Duration = Duration::from_secs(2);
/// A node that has not read the membership for this long does not know whether other nodes have joined meanwhile.
const ROLL_LATE: Duration = Duration::from_secs(2 * HEARTBEAT_INTERVAL.as_secs());

/// Which tasks a round polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    All,
    /// Tasks whose callbacks go to an address that no node answers any more, or to the address in this variant, if
    /// there is one.
    Lost(Option<u32>),
}

/// One poll for each task that was neither sent nor polled at `asked_before` or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EvidenceRound {
    at: Timestamp,
    asked_before: Timestamp,
    whose: Whose,
    /// The last key that this round has polled, if the queue had no room for all tasks.
    after: Option<Key>,
}

/// A node or an address that was just found to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeLoss {
    /// The callback address of the node; `None` if it had none.
    address: Option<u32>,
    /// Until when callbacks may still go to the lost node instead of another node at the same address; `None` if
    /// there is no other.
    routed_until: Option<Timestamp>,
}

#[derive(Default)]
pub(crate) struct Rounds {
    planned: Vec<EvidenceRound>,
    /// The addresses that nodes answer, as of the last read of the membership; `None` while that is not known yet.
    answered: Option<BTreeSet<u32>>,
    /// The nodes that are known to be silent.
    silent: BTreeSet<u64>,
    heeded_at: Option<Timestamp>,
    /// Since when the membership has been read without a gap.
    steady_since: Timestamp,
}

impl Rounds {
    fn plan(&mut self, round: EvidenceRound) {
        if self.planned.len() < ROUNDS_MAX && !self.planned.contains(&round) {
            self.planned.push(round);
        }
    }

    /// Plans a poll of all open tasks, because an outage of this node has ended. The outage counts for `skew` longer:
    /// another node's clock may be ahead, and tasks that it sent in that time count, too.
    pub(crate) fn plan_for_all(&mut self, ended: Timestamp, skew: Duration) {
        let at = ended + skew;
        self.plan(EvidenceRound { at, asked_before: at, whose: Whose::All, after: None });
    }

    pub(crate) fn plan_for_lost(&mut self, lost: Vec<NodeLoss>, now: Timestamp, skew: Duration) {
        for NodeLoss { address, routed_until } in lost {
            let whose = Whose::Lost(address);
            self.plan(EvidenceRound { at: now, asked_before: now, whose, after: None });
            // Until then a callback may have gone to the dead node, and get no answer.
            if let Some(ended) = routed_until.filter(|ended| *ended + skew > now) {
                let at = ended + skew;
                self.plan(EvidenceRound { at, asked_before: at, whose, after: None });
            }
        }
    }

    /// Reads from the membership which addresses are answered. Returns which nodes and addresses have been lost since
    /// the last read.
    pub(crate) fn heed(&mut self, members: &Members, own: u64, now: Timestamp) -> Vec<NodeLoss> {
        let is_there = |signed: &&Member| {
            signed.node_status.node == own || members.now.since(signed.seen) < SILENT_AFTER
        };
        let address =
            |signed: &Member| signed.node_status.reach.as_ref().map(|reach| address_mark(&reach.address));
        let mut answered: BTreeSet<u32> = members.nodes.iter().filter(is_there).filter_map(address).collect();
        if self.heeded_at.replace(now).is_none_or(|last| last > now || last + ROLL_LATE < now) {
            self.steady_since = now;
        }
        // While the store was away, no node could sign in.
        if now < self.steady_since + SILENT_AFTER {
            if let Some(known) = &mut self.answered {
                known.append(&mut answered);
            }
            return Vec::new();
        }
        let silent = || members.nodes.iter().filter(|signed| !is_there(signed));
        let mut lost = Vec::new();
        for signed in silent().filter(|signed| !self.silent.contains(&signed.node_status.node)) {
            let reach = signed.node_status.reach.as_ref();
            let is_shared = address(signed).is_some_and(|address| answered.contains(&address));
            let routed_until = reach.filter(|_| is_shared).map(|reach| reach.until + STILL_ROUTED);
            // The same node, started again, asks by itself. One that could not be called may have been about to ask.
            if successor(&signed.node_status, members).is_none() {
                lost.push(NodeLoss { address: address(signed), routed_until });
            }
        }
        // A node that ended politely is no longer on the roll.
        let gone = self.answered.iter().flatten().filter(|address| !answered.contains(address));
        lost.extend(gone.map(|address| NodeLoss { address: Some(*address), routed_until: None }));
        lost.dedup();
        self.silent = silent().map(|signed| signed.node_status.node).collect();
        self.answered = Some(answered);
        lost
    }

    fn is_unanswered(&self, address: u32) -> bool {
        self.answered.as_ref().is_some_and(|answered| !answered.contains(&address))
    }

    fn take_due(&mut self, now: Timestamp) -> Option<EvidenceRound> {
        let due = self.planned.iter().position(|round| round.at <= now)?;
        Some(self.planned.swap_remove(due))
    }
}

impl Engine {
    /// Whether no node answers at the address that the callback of this order's attempt goes to.
    pub(crate) fn is_callback_lost(&self, order: &Order) -> bool {
        let attempt = order.current().and_then(|number| order.attempt(number));
        attempt.and_then(|attempt| attempt.callback_address).is_some_and(|address| self.is_lost(address))
    }

    fn is_lost(&self, address: u32) -> bool {
        self.settings().policy.callback_address != Some(address)
            && lock(&self.reach).rounds.is_unanswered(address)
    }

    /// Polls the open tasks whose callbacks may have got no reply.
    pub(crate) async fn ask_for_evidence(&self) {
        let Some(round) = lock(&self.reach).rounds.take_due(self.now()) else { return };
        let next = match self.ask_round(round).await {
            Ok(next) => next,
            Err(error) => {
                self.note_error(&error);
                Some(round)
            }
        };
        if let Some(next) = next {
            lock(&self.reach).rounds.plan(next);
        }
        self.wakeup.ring();
    }

    /// Runs one round, and returns what is left of it.
    async fn ask_round(&self, round: EvidenceRound) -> Result<Option<EvidenceRound>, StoreError> {
        let mut first_poll = Duration::ZERO;
        let backlog_max = self.settings().backlog_max;
        let page_max = PAGE.min(backlog_max / 4).max(1);
        let (mut after, mut is_any_young) = (round.after, false);
        loop {
            let page = self.world.store.list(Which::OPEN, after.as_ref(), page_max).await?;
            let now = self.now();
            let Some(last) = page.last() else { break };
            let last = last.as_ref().map_or_else(|unreadable| unreadable.key, |record| record.order.key);
            // Tasks whose timers fire come first.
            if lock(&self.run_queue).polls_len() > backlog_max / 2 {
                return Ok(Some(EvidenceRound { at: now + CHORES_SPAN, after, ..round }));
            }
            after = Some(last);
            for record in page.into_iter().flatten() {
                let Some((number, attempt, task)) = self.to_ask(&record.order, &round, now) else { continue };
                let least = self.policy(&record.order).first_poll();
                if now < attempt.sent + least {
                    is_any_young = true;
                    first_poll = first_poll.max(least);
                } else {
                    let turn = spread_turn(record.order.key, now);
                    self.ask_at(turn, &record.order, number, task.to_owned());
                }
            }
        }
        Ok(is_any_young.then(|| EvidenceRound { at: self.now() + first_poll, after: None, ..round }))
    }

    /// The task of this order, if the round must poll it.
    fn to_ask<'a>(
        &self,
        order: &'a Order,
        round: &EvidenceRound,
        now: Timestamp,
    ) -> Option<(u32, &'a Attempt, &'a str)> {
        let Phase::Solving { attempt: number, poll_at, .. } = order.phase else { return None };
        let attempt = order.attempt(number)?;
        let Progress::Solving { task } = &attempt.progress else { return None };
        let is_meant = match round.whose {
            Whose::All => true,
            Whose::Lost(lost) => {
                attempt.callback_address.is_some_and(|address| lost == Some(address) || self.is_lost(address))
            }
        };
        // Another node may have polled since.
        let was_missed = attempt.unsolved_at < round.asked_before;
        (is_meant && was_missed && poll_at > now + DUE_SOON).then_some((number, attempt, task))
    }
}

//! The work that is queued in memory. All of it can be lost: the timers in the store bring it back.

use crate::fair::{FairQueue, Shares};
use crate::place::PlacedOrder;
use crate::poll_queue::{PollQueue, spread_turn};
use crate::queue_pace::QueuePace;
use crate::settings::Settings;
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{DeliveryState, Effect, Key, Order, Phase, Priority, Timestamp};
use quittance_ports::Versioned;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// An order whose next step may be a submit. Without `order`, the record is read from the store at its turn.
pub(crate) struct SubmitItem {
    pub(crate) key: Key,
    pub(crate) tenant: String,
    pub(crate) order: Option<Versioned>,
}

/// How many orders may wait in memory by their key alone, for each order that is held in memory as a whole. An order
/// that waits in the store instead is claimed again and again, before other due work such as another tenant's polls.
const KEYS_PER_ORDER: usize = 16;

/// One host gets at most this fraction of all seats, so that a host that hangs does not delay the tenant's other
/// hosts.
const HOST_SHARE: usize = 8;

/// One webhook delivery: the order, what to do, and the tenant and host for which it takes a seat.
pub(crate) struct Delivery {
    pub(crate) now: Versioned,
    pub(crate) effect: Effect,
    pub(crate) host: String,
}

/// The order of deliveries: first tries before retries, then those that have waited longest.
type DeliveryName = (u8, Timestamp, Key, u32);

pub(crate) struct RunQueue {
    /// Orders whose next step may be a submit: by turns of tenants and by priority, and then oldest first.
    submits: FairQueue<(Timestamp, Key), SubmitItem>,
    pace: QueuePace,
    /// Orders whose next step is not a submit.
    pub(crate) steps: VecDeque<Versioned>,
    pub(crate) performs: VecDeque<(Versioned, Effect)>,
    pub(crate) deliveries: FairQueue<DeliveryName, Delivery>,
    pub(crate) reports: FairQueue<Key, (Versioned, Effect)>,
    /// The tasks that are polled next, by provider.
    polls: BTreeMap<String, PollQueue>,
    /// The least time between two polls that are not full.
    poll_span: Duration,
    /// When this node began to work.
    pub(crate) polls_started_at: Timestamp,
    /// Placements whose answer has reached the caller, which the worker must still write.
    pub(crate) collected: VecDeque<PlacedOrder>,
    /// Attempts whose tasks cannot be polled, because this node does not have their provider.
    pub(crate) without_provider: VecDeque<(Key, u32)>,
    pub(crate) is_working: bool,
    /// Submits under way by tenant: a tenant with slow submits leaves seats for other tenants.
    pub(crate) submitting: Shares,
    /// Whether all orders belong to one tenant, which may then have every seat.
    is_one_tenant: bool,
    /// Submits that have been started and have not reached the gate yet.
    pub(crate) before_gate: usize,
    pub(crate) stepping: usize,
    pub(crate) delivering: Shares,
    /// The number of deliveries under way by tenant and host.
    delivering_to: BTreeMap<String, usize>,
    host_max: usize,
    pub(crate) reporting: usize,
    pub(crate) polling: usize,
    pub(crate) is_sweeping: bool,
    pub(crate) is_at_chores: bool,
    pub(crate) is_counting: bool,
    pub(crate) is_sharing_gates: bool,
    pub(crate) gates_shared_at: Timestamp,
    /// When the next order is due, as far as this node knows.
    pub(crate) timer: Timestamp,
    pub(crate) swept_at: Timestamp,
    /// When to write the counters; `None` if there are none to write.
    pub(crate) counts_at: Option<Timestamp>,
    pub(crate) chores_done_at: Timestamp,
    pub(crate) has_spilled: bool,
    /// When to retry a spilled event whose record could not be read.
    pub(crate) unreadable_at: Option<Timestamp>,
}

impl RunQueue {
    pub(crate) fn new(settings: &Settings) -> Self {
        let deliveries_max = settings.follow_ups_max;
        Self {
            submits: FairQueue::weighted(settings.turn_costs(), settings.rules.lane),
            pace: QueuePace::default(),
            steps: VecDeque::new(),
            performs: VecDeque::new(),
            deliveries: FairQueue::default(),
            reports: FairQueue::default(),
            polls: BTreeMap::new(),
            poll_span: PollQueue::call_span(&settings.policy),
            polls_started_at: Timestamp::ZERO,
            collected: VecDeque::new(),
            without_provider: VecDeque::new(),
            is_working: false,
            submitting: Shares::new(settings.submits_max),
            is_one_tenant: settings.tenants.len() <= 1,
            before_gate: 0,
            stepping: 0,
            delivering: Shares::new(deliveries_max),
            delivering_to: BTreeMap::new(),
            host_max: (deliveries_max / HOST_SHARE).max(1),
            reporting: 0,
            polling: 0,
            is_sweeping: false,
            is_at_chores: false,
            is_counting: false,
            is_sharing_gates: false,
            gates_shared_at: Timestamp::ZERO,
            timer: Timestamp::ZERO,
            swept_at: Timestamp::ZERO,
            counts_at: None,
            chores_done_at: Timestamp::ZERO,
            has_spilled: false,
            unreadable_at: None,
        }
    }

    /// Works by these settings from now on. `is_known` is true for providers that have or may have tasks of ours.
    pub(crate) fn follow(&mut self, settings: &Settings, is_known: impl Fn(&str) -> bool) {
        self.polls.retain(|provider, polls| polls.len() > 0 || is_known(provider));
        self.submits.set_costs(settings.turn_costs());
        self.is_one_tenant = settings.tenants.len() <= 1;
        self.poll_span = PollQueue::call_span(&settings.policy);
        self.polls.values_mut().for_each(|polls| polls.set_call_span(self.poll_span));
    }

    /// How many orders wait here or are being worked on.
    pub(crate) fn in_hand(&self) -> usize {
        let waiting = self.submits.len() + self.steps.len() + self.performs.len() + self.polls_len();
        let owed = self.deliveries.len() + self.reports.len() + self.delivering.taken() + self.reporting;
        waiting + owed + self.submitting.taken() + self.stepping + self.polling
    }

    /// The length of the longest queue of due orders. Orders that wait by key alone count as a fraction of an order.
    pub(crate) fn waiting(&self) -> usize {
        self.submits.len().div_ceil(KEYS_PER_ORDER).max(self.steps.len()).max(self.polls_len())
    }

    /// Adds a due order, where `max` orders may be held in full. Returns whether there was room. An order that is
    /// past its deadline needs no turn at the gate.
    pub(crate) fn push_due(&mut self, record: Versioned, now: Timestamp, max: usize) -> bool {
        let order = &record.order;
        let (tenant, name) = (order.terms.tenant.clone(), (order.placed, order.key));
        let priority = order.priority;
        // An order whose doubt is over is queued first, so that it does not wait for its turn in doubt.
        let may_submit = matches!(order.phase, Phase::Queued { .. });
        if may_submit && now < order.deadline {
            let key = order.key;
            let order = (self.submits.len() < max).then_some(record);
            let due = SubmitItem { key, tenant: tenant.clone(), order };
            self.note_if_empty(now);
            return self.submits.push_at(&tenant, (priority, name), due, max.saturating_mul(KEYS_PER_ORDER));
        }
        self.submits.remove(&tenant, &name);
        self.note_if_empty(now);
        let has_room = self.steps.len() < max;
        if has_room {
            self.steps.push_back(record);
        }
        has_room
    }

    /// When the next submit may start; `turn_of` is when a tenant's orders may ask the gate.
    pub(crate) fn submit_at(&self, now: Timestamp, mut turn_of: impl FnMut(&str) -> Timestamp) -> Timestamp {
        let mut at = Timestamp::MAX;
        for tenant in self.submits.tenants().filter(|tenant| self.may_seat(tenant)) {
            at = at.min(turn_of(tenant));
            if at <= now {
                break;
            }
        }
        at
    }

    fn may_seat(&self, tenant: &str) -> bool {
        let is_free = self.submitting.is_free();
        is_free && (self.is_one_tenant || self.submitting.may_take(tenant))
    }

    fn note_if_empty(&mut self, now: Timestamp) {
        if self.submits.len() == 0 {
            self.pace.note_empty(now);
        }
    }

    /// The least time that a new order of this tenant and priority waits behind others; `None` if that is not known.
    pub(crate) fn wait_of(&self, tenant: &str, priority: Priority, now: Timestamp) -> Option<Duration> {
        let ahead = self.submits.ahead_of(tenant, priority);
        if ahead == 0 { None } else { self.pace.wait(ahead, now) }
    }

    /// Takes the next order to submit, with a seat for it, of a tenant that may ask the gate now.
    pub(crate) fn pop_submit(
        &mut self,
        now: Timestamp,
        may_ask: impl FnMut(&str) -> bool,
    ) -> Option<SubmitItem> {
        let Self { submits, submitting, is_one_tenant, .. } = self;
        if !submitting.is_free() {
            return None;
        }
        let mut may_ask = may_ask;
        let due =
            submits.pop_of(|tenant| (*is_one_tenant || submitting.may_take(tenant)) && may_ask(tenant))?;
        submitting.take(&due.tenant);
        self.pace.note_left(now);
        self.note_if_empty(now);
        Some(due)
    }

    /// The tasks that are polled next at this provider.
    pub(crate) fn polls_of(&mut self, provider: &str) -> &mut PollQueue {
        if !self.polls.contains_key(provider) {
            self.polls.insert(provider.to_owned(), PollQueue::new(self.poll_span));
        }
        self.polls.entry(provider.to_owned()).or_default()
    }

    /// How many tasks wait for a poll that is due.
    pub(crate) fn polls_len(&self) -> usize {
        self.polls.values().map(PollQueue::len).sum()
    }

    /// Queues the tasks whose turn has come.
    pub(crate) fn ripen_polls(&mut self, now: Timestamp, max: usize) {
        self.polls.values_mut().for_each(|polls| polls.ripen(now, max));
    }

    /// When the next call to this provider may start, if one call polls up to `batch_max` tasks.
    pub(crate) fn poll_call_at(&self, provider: &str, now: Timestamp, batch_max: usize) -> Timestamp {
        self.polls.get(provider).map_or(Timestamp::MAX, |polls| polls.call_at(now, batch_max))
    }

    /// When a task that became due while this node did not run is polled.
    pub(crate) fn poll_turn(&self, order: &Order, now: Timestamp) -> Timestamp {
        let was_away = order.phase_due().is_some_and(|due| due < self.polls_started_at);
        if was_away { spread_turn(order.key, self.polls_started_at) } else { now }
    }

    /// Adds a delivery or a report. If there is no room, the order's timer brings it back.
    pub(crate) fn push_owed(&mut self, now: Versioned, effect: Effect, max: usize) {
        let (tenant, key) = (now.order.terms.tenant.clone(), now.order.key);
        let Effect::DeliverWebhook { webhook: number } = effect else {
            self.reports.push(&tenant, key, (now, effect), max);
            return;
        };
        let Some(webhook) = now.order.webhooks.iter().find(|webhook| webhook.number == number) else {
            return;
        };
        let (tries, at) = match webhook.state {
            DeliveryState::Owed { at, tries } => (tries, at),
            DeliveryState::Dead { at, .. } => (u8::MAX, at),
        };
        let host = page_host(&webhook.url).unwrap_or_default().to_ascii_lowercase();
        let host = format!("{tenant} {host}");
        self.deliveries.push(&tenant, (tries, at, key, number), Delivery { now, effect, host }, max);
    }

    /// Whether the only due work of this order is a delivery that already waits here. To wake the order for it again
    /// would count a try that was never made.
    pub(crate) fn is_delivery_waiting(&self, order: &Order, now: Timestamp) -> bool {
        let is_phase_due = order.phase_due().is_some_and(|due| due <= now);
        let key = order.key;
        !is_phase_due && self.deliveries.has(&order.terms.tenant, |(_, _, waiting, _)| *waiting == key)
    }

    /// Takes the next delivery for which its tenant and its host have a seat, with both seats.
    pub(crate) fn pop_delivery(&mut self) -> Option<Delivery> {
        let Self { deliveries, delivering, delivering_to, host_max, .. } = self;
        let has_seat = |host: &str| delivering_to.get(host).is_none_or(|count| count < host_max);
        let delivery = deliveries
            .pop_where(|tenant, delivery| delivering.may_take(tenant) && has_seat(&delivery.host))?;
        delivering.take(&delivery.now.order.terms.tenant);
        *delivering_to.entry(delivery.host.clone()).or_default() += 1;
        Some(delivery)
    }

    pub(crate) fn end_delivery(&mut self, tenant: &str, host: &str) {
        self.delivering.give_back(tenant);
        if let Some(count) = self.delivering_to.get_mut(host) {
            *count -= 1;
            if *count == 0 {
                self.delivering_to.remove(host);
            }
        }
    }
}

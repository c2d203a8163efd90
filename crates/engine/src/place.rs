//! Placing, cancelling, replaying, releasing: what callers and operators do to orders.

use crate::apply::is_ours;
use crate::inspect::{Inspection, Step, fields_of};
use crate::node_stats::NodeCounters;
use crate::settings::TranslatedKind;
use crate::targets::{NotAllowed, Targets, site};
use crate::{ApplyOutcome, Engine};
use quittance_lifecycle::terms::check_params;
use quittance_lifecycle::{
    Advance, BadRequest, Counters, Draft, Event, Key, KeyHead, Kind, Order, Origin, Placement, Policy,
    Refusal, Terms, Timestamp, Value,
};
use quittance_ports::{Commit, StoreError, TaskField, Unreadable, UsageRow, Version, Versioned, Which};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How many orders are read at once when all open ones are visited.
const PAGE: usize = 256;
/// How many orders with the same short key are examined.
const ALIKE_MAX: usize = 8;
/// How many orders are read at once by short key: the wanted one, and the next, which shows that there is no other.
const ALIKE_PAGE: usize = 2;

/// What a caller gets for its placement: the key, and what the answer must fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    pub key: Key,
    /// The claimant of the answer, if it can go to one order only.
    pub claimant: Key,
    pub origin: Origin,
    /// How much life the answer must have for this caller.
    pub min_life: Duration,
    /// When this caller stops waiting.
    pub until: Timestamp,
    /// The order as the placement read or wrote it; `None` if it did not. A caller that finds the answer in it need
    /// not read the store again.
    pub order: Option<Arc<Order>>,
}

/// A placement under way.
struct OpenPlacement {
    key: Key,
    terms: Arc<Terms>,
    policy: Policy,
    /// The secret under which the key was hashed.
    secret: Option<[u8; 32]>,
    /// When the placement began.
    now: Timestamp,
    /// When the meaning of the placement was last decided.
    at: Timestamp,
    /// The record under the key, as far as it was read.
    record: Option<Versioned>,
}

impl OpenPlacement {
    fn placed(&self, key: Key, origin: Origin, order: Option<Arc<Order>>) -> PlacedOrder {
        let terms = &self.terms;
        PlacedOrder {
            key,
            claimant: key,
            origin,
            min_life: if origin == Origin::Cached { terms.margin } else { terms.min_life },
            until: self.now + terms.timeout,
            order,
        }
    }

    /// The record that a write under `target` would replace.
    fn before<'a>(&'a self, target: &Key, follower: Option<&'a Versioned>) -> Option<&'a Versioned> {
        if *target == self.key { self.record.as_ref() } else { follower }
    }

    /// Whether the placement opens an order: a new one, or one that is not open or that no caller wants.
    fn opens(&self, placement: &Placement, follower: Option<&Versioned>) -> bool {
        match placement {
            Placement::Stands { .. } | Placement::Refused(_) => false,
            Placement::Follow { .. } => true,
            Placement::Commit { advance, .. } => {
                let before = self.before(&advance.next.key, follower);
                advance.next.is_awaited() && !before.is_some_and(|before| before.order.is_awaited())
            }
        }
    }
}

/// The result of writing a placement.
enum PlacementWrite {
    Ours(Versioned),
    /// Another node was faster. This is the record that it wrote, if there is one.
    Theirs(Option<Versioned>),
    /// The record was lost. The order resumes the attempt that was paid for before.
    Revived(Arc<Order>),
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("there is no kind of order called `{}`: `quittance kinds` lists those that there are", .name.escape_debug())]
    UnknownKind { name: String },
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("{}", refusal(.0))]
    Refused(Refusal),
    /// No caller has the order's id yet, so placing again is safe.
    #[error("{}", not_accepted(.0))]
    Store(#[from] StoreError),
}

fn not_accepted(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { .. } => "the order could not be accepted: place it again".into(),
        StoreError::Corrupt { .. } => {
            "the record of this order cannot be read, so it is not known whether it was paid for: drop it with `quittance dead drop`, then place it again".into()
        }
    }
}

/// The whole seconds in this time, for a text about the time that is there.
const fn seconds_down(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs())
}

/// This time, rounded up to whole seconds, for a text about the time that is needed.
const fn seconds_up(span: Duration) -> Duration {
    let is_whole = span.subsec_nanos() == 0;
    Duration::from_secs(if is_whole { span.as_secs() } else { span.as_secs().saturating_add(1) })
}

fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::OtherParameters => {
            "this idempotency key belongs to an order with other parameters: use another key".into()
        }
        Refusal::HeldBack { fault, .. } => {
            format!(
                "the same order was refused a moment ago ({fault}): change the request, or wait before you place it again"
            )
        }
        Refusal::Expired => {
            "the answer under this idempotency key has expired, or has too little life left for `min_life_s`: use another key to \
             buy a new one".into()
        }
        Refusal::TooShort { timeout, needs } => {
            format!(
                "the order could not be answered in time: its timeout is {timeout:?}, and the quickest of the last answers of \
                 this kind took {needs:?}; place it with a longer timeout (`deadline_s`)",
                timeout = seconds_down(*timeout),
                needs = seconds_up(*needs),
            )
        }
        Refusal::QueueTooLong { timeout, wait } => {
            format!(
                "the order could not be answered in time: the orders before it in the queue take {wait:?}, and its timeout is \
                 {timeout:?}; place it again later, or with a longer timeout (`deadline_s`)",
                wait = seconds_up(*wait),
                timeout = seconds_down(*timeout),
            )
        }
        Refusal::NoBudget { .. } => {
            "a budget for this order allows no purchase now: place it again in the next period, or ask the operator to raise the \
             limit"
                .into()
        }
        Refusal::NeedsAPerson => {
            "it is not known whether this order has been paid for: it is a dead letter, replay or drop it"
                .into()
        }
    }
}

/// Returns the orders, or an error for a damaged record: a damaged record is not a missing one.
fn readable(orders: Vec<Arc<Order>>, damaged: Option<Unreadable>) -> Result<Vec<Arc<Order>>, StoreError> {
    match damaged {
        Some(Unreadable { key, detail }) if orders.is_empty() => Err(StoreError::Corrupt { key, detail }),
        _ => Ok(orders),
    }
}

impl Engine {
    /// Places an order, or joins the existing one. When this returns, the order is durable, and is carried out
    /// whatever happens to the caller.
    pub async fn place(&self, kind: &str, draft: Draft) -> Result<PlacedOrder, PlaceError> {
        let now = self.now();
        let secret = self.keys().secret;
        let (key, terms, policy) = self.agree(kind, draft)?;
        let terms = Arc::new(terms);
        // A caller that asks for more life gets an order of its own, which is supplied from the stock: the order that
        // brought a stocked answer does not know what its taker was promised.
        if terms.is_supplied_at_once()
            && let Some(placed) = self.take_from_stock(key, &terms, &policy, now).await?
        {
            return Ok(placed);
        }
        let mut placing = OpenPlacement { key, terms, policy, secret, now, at: now, record: None };
        // Nothing is read first: the commit of a new order finds the old one if there is one, in one round trip.
        // What this node has in hand is there, or was forgotten and must not be bought again.
        if self.is_held(&key) {
            match self.load(&key).await {
                Ok(loaded) => placing.record = loaded,
                Err(error) => self.note_error(&error),
            }
        }
        loop {
            let (placement, follower) = self.decide_placement(&mut placing).await?;
            if let Some(placed) = self.carry_out(&mut placing, placement, follower).await? {
                return Ok(placed);
            }
        }
    }

    /// Places an order only if this opens no order: the placement joins an order that is open and wanted, or gets an
    /// answer or a refusal that is on record. Otherwise returns `None`: for a new order, a new life, and a cancelled
    /// order that is wanted again. The commit compares versions, so no order is opened even if it ends or is
    /// cancelled meanwhile.
    pub async fn place_without_opening(
        &self,
        kind: &str,
        draft: &Draft,
    ) -> Result<Option<PlacedOrder>, PlaceError> {
        let now = self.now();
        let secret = self.keys().secret;
        let (meant, checked) = self.meant(kind, draft.clone())?;
        // Which kinds there are is decided when the order is placed.
        let Some(known) = (self.settings().kinds)(&meant) else { return Ok(None) };
        let policy = self.policy_for(&self.first_provider(), &known.name, || Some(known.pace));
        let (key, terms) = self.check(&known, checked, &policy)?;
        let record = match self.load(&key).await {
            // What cannot be read is decided about when it is placed.
            Ok(None) | Err(StoreError::Corrupt { .. }) => return Ok(None),
            Ok(record) => record,
            Err(error) => return Err(error.into()),
        };
        let mut placing = OpenPlacement { key, terms: Arc::new(terms), policy, secret, now, at: now, record };
        loop {
            let (placement, follower) = self.decide_placement(&mut placing).await?;
            if placing.opens(&placement, follower.as_ref()) {
                return Ok(None);
            }
            // The operator's lists hold for repeats, too.
            self.agree(kind, draft.clone())?;
            if let Some(placed) = self.carry_out(&mut placing, placement, follower).await? {
                return Ok(Some(placed));
            }
        }
    }

    /// Decides what the placement means for the record that was found, and for the order that follows it.
    async fn decide_placement(
        &self,
        placing: &mut OpenPlacement,
    ) -> Result<(Placement, Option<Versioned>), StoreError> {
        let follower = self.follower_of(placing.record.as_ref()).await?;
        placing.at = self.now();
        let OpenPlacement { key, terms, policy, at, record, .. } = placing;
        let (order, next) =
            (record.as_ref().map(|record| &*record.order), follower.as_ref().map(|record| &*record.order));
        let placement = (self.settings().rules.place)(order, next, *key, terms, *at, policy);
        Ok((placement, follower))
    }

    /// Reads the record of this placement. Returns whether there is one.
    async fn finds_record(&self, placing: &mut OpenPlacement) -> Result<bool, PlaceError> {
        placing.record = match self.load(&placing.key).await {
            Ok(record) => record,
            Err(StoreError::Corrupt { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(placing.record.is_some())
    }

    /// Writes what was decided. Returns `None` if another node was faster, or if a step was written that another step
    /// must follow. Then `placing` has the present record, and the decision is made again.
    async fn carry_out(
        &self,
        placing: &mut OpenPlacement,
        placement: Placement,
        follower: Option<Versioned>,
    ) -> Result<Option<PlacedOrder>, PlaceError> {
        let (at, until) = (placing.at, placing.now + self.settings().place_wait);
        match placement {
            // The store may have the order: a repeat or a join buys nothing, so it is not refused for what a new order is.
            Placement::Refused(_) if placing.record.is_none() && self.finds_record(placing).await? => {
                Ok(None)
            }
            Placement::Refused(refusal) => {
                self.counters(&placing.terms, Counters { asked: 1, refused: 1, ..Counters::default() }, at);
                Err(PlaceError::Refused(refusal))
            }
            Placement::Stands { key, origin, counters } => {
                NodeCounters::add(&self.node_counters.joined, 1);
                self.counters(&placing.terms, counters, at);
                let records = [placing.record.as_ref(), follower.as_ref()].into_iter().flatten();
                let order = records.map(|record| &record.order).find(|order| order.key == key).cloned();
                Ok(Some(placing.placed(key, origin, order)))
            }
            Placement::Follow { advance } => {
                placing.record =
                    match self.write_placement(placing.record.as_ref(), *advance, at, until).await? {
                        PlacementWrite::Ours(now) => Some(now),
                        PlacementWrite::Theirs(theirs) => theirs,
                        PlacementWrite::Revived(_) => None,
                    };
                Ok(None)
            }
            Placement::Commit { origin, advance } => {
                let target = advance.next.key;
                let before = placing.before(&target, follower.as_ref());
                if before.is_none() && self.recovering().is_some() {
                    self.wait_for_recovery(placing.now).await?;
                    return Ok(None);
                }
                if before.is_none() {
                    self.check_key_secret(placing.secret)?;
                }
                match self.write_placement(before, *advance, at, until).await? {
                    PlacementWrite::Ours(now) => {
                        self.note_placed(origin);
                        let order = Arc::clone(&now.order);
                        self.attend_soon(now);
                        Ok(Some(placing.placed(target, origin, Some(order))))
                    }
                    PlacementWrite::Revived(order) => {
                        self.note_placed(origin);
                        Ok(Some(placing.placed(target, origin, Some(order))))
                    }
                    PlacementWrite::Theirs(theirs) => {
                        // The order that follows is read again.
                        if target == placing.key {
                            placing.record = theirs;
                        }
                        Ok(None)
                    }
                }
            }
        }
    }

    /// The order that takes the place of the one that was found.
    async fn follower_of(&self, record: Option<&Versioned>) -> Result<Option<Versioned>, StoreError> {
        match record.and_then(|record| record.order.followed_by) {
            Some(next) => self.load(&next).await,
            None => Ok(None),
        }
    }

    /// Writes a placement. If another node wrote first, returns what that node wrote.
    async fn write_placement(
        &self,
        before: Option<&Versioned>,
        advance: Advance,
        at: Timestamp,
        until: Timestamp,
    ) -> Result<PlacementWrite, StoreError> {
        let expected = before.map_or(Version::ABSENT, |before| before.version);
        let next = Arc::new(advance.next);
        if before.is_none()
            && let Some(revived) = self.revive(&next, advance.counters, false).await?
        {
            return Ok(PlacementWrite::Revived(revived));
        }
        match self.world.store.commit(expected, &next, &advance.counters, at).await {
            Ok(Commit::Done(version)) => {
                self.note_commit(&next);
                Ok(PlacementWrite::Ours(Versioned { version, order: next }))
            }
            Ok(Commit::Conflict(winner)) => Ok(PlacementWrite::Theirs(winner.map(|winner| *winner))),
            Err(error @ StoreError::Corrupt { .. }) => {
                match self.revive(&next, advance.counters, true).await? {
                    Some(revived) => Ok(PlacementWrite::Revived(revived)),
                    None => {
                        self.note_error(&error);
                        Err(error)
                    }
                }
            }
            Err(error) => match self.look_again_until(&next.key, until, error).await? {
                Some(record) if is_ours(&record, expected, &next) => {
                    self.note_commit(&next);
                    Ok(PlacementWrite::Ours(record))
                }
                record => Ok(PlacementWrite::Theirs(record)),
            },
        }
    }

    /// The key, terms and policy that this placement would get.
    pub(crate) fn agree(&self, kind: &str, draft: Draft) -> Result<(Key, Terms, Policy), PlaceError> {
        let (kind, draft) = self.meant(kind, draft)?;
        let Some(kind) = (self.settings().kinds)(&kind) else {
            return Err(PlaceError::UnknownKind { name: kind });
        };
        self.check_order(Step::Place, &kind, &draft.tenant, &fields_of(&draft.params))?;
        let mut policy = self.policy_for(&self.first_provider(), &kind.name, || Some(kind.pace));
        let (key, terms) = self.check(&kind, draft, &policy)?;
        self.check_task(&kind, &terms.tenant, &terms.params)?;
        policy.quickest = self.quickest(&terms.kind, &terms.tenant);
        policy.queue_wait = self.queue_wait(&terms);
        policy.no_budget_until = self.no_budget_until(&terms);
        Ok((key, terms, policy))
    }

    /// The key and the terms of a draft. Lifetimes follow the operator's rules and callers' reports.
    fn check(&self, kind: &Kind, mut draft: Draft, policy: &Policy) -> Result<(Key, Terms), BadRequest> {
        let now = self.now();
        if draft.slot.is_none() {
            let settings = self.settings();
            let rule = settings.tenants.get(&draft.tenant);
            draft.priority = draft.priority.or_else(|| rule.and_then(|rule| rule.priority));
        }
        let site = site(kind, &draft.params);
        let kind = self.with_lifetimes(kind, &draft, &site, now);
        let (key, mut terms) = draft.check(&kind, self.keys(), policy, now, self.unique())?;
        terms.site = site;
        self.set_account(&mut terms);
        Ok((key, terms))
    }

    async fn look_again_until(
        &self,
        key: &Key,
        until: Timestamp,
        mut error: StoreError,
    ) -> Result<Option<Versioned>, StoreError> {
        self.note_error(&error);
        while matches!(error, StoreError::Unavailable { .. }) && self.now() < until {
            match self.look_again(key).await {
                Ok(record) => return Ok(record),
                Err(again) => error = again,
            }
        }
        self.note_error(&error);
        Err(error)
    }

    /// Counts a placement by its origin. A commit may also be a join, if it moves the deadline.
    fn note_placed(&self, origin: Origin) {
        let node_counters = &self.node_counters;
        NodeCounters::add(
            if origin == Origin::Api { &node_counters.placed } else { &node_counters.joined },
            1,
        );
    }

    fn counters(&self, terms: &Terms, counters: Counters, at: Timestamp) {
        if counters != Counters::default() {
            self.count(UsageRow::for_terms(terms, at), counters);
        }
    }

    /// The key of the order that a tenant placed under this idempotency key.
    #[must_use]
    pub fn chosen_key(&self, tenant: &str, idempotency_key: &str) -> Key {
        Key::chosen(tenant, idempotency_key).hidden(self.keys().secret.as_ref())
    }

    pub async fn read(&self, key: &Key) -> Result<Option<Arc<Order>>, StoreError> {
        Ok(self.load(key).await?.map(|record| record.order))
    }

    /// Orders whose key begins with these bits. Mostly there is at most one.
    pub async fn find(&self, head: KeyHead) -> Result<Vec<Arc<Order>>, StoreError> {
        let mut alike: Vec<Arc<Order>> = Vec::new();
        let mut damaged = None;
        let mut after = head.before();
        while alike.len() < ALIKE_MAX {
            let page = self.world.store.list(Which::ALL, after.as_ref(), ALIKE_PAGE).await?;
            let is_short = page.len() < ALIKE_PAGE;
            for record in page {
                let key = record.as_ref().map_or_else(|broken| broken.key, |record| record.order.key);
                if key.head() != head {
                    return readable(alike, damaged);
                }
                after = Some(key);
                match record {
                    Ok(record) => alike.push(record.order),
                    Err(unreadable) => damaged = Some(unreadable),
                }
            }
            if is_short {
                break;
            }
        }
        readable(alike, damaged)
    }

    /// Lists orders by key, beginning after `after`. A record that cannot be read is listed as unreadable.
    pub async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.world.store.list(which, after, limit).await
    }

    /// Cancels an order. An attempt that may be paid for continues, and its answer goes to the stock.
    pub async fn cancel(&self, key: &Key) -> Result<ApplyOutcome, StoreError> {
        self.apply(key, None, &Event::Cancelled).await
    }

    /// Replays a dead letter, unless its site may not be automated any more.
    pub async fn replay(&self, key: &Key) -> Result<ApplyOutcome, StoreError> {
        self.apply_if(key, None, &Event::Replayed, |order| self.may_replay(order)).await
    }

    /// The kind and the parameters of an order in the names of the catalogue.
    pub fn meaning(
        &self,
        kind: &str,
        params: &BTreeMap<String, Value>,
    ) -> Result<TranslatedKind, BadRequest> {
        self.settings().meaning.as_ref().map_or(Ok(None), |meaning| meaning(kind, params))
    }

    fn meant(&self, kind: &str, draft: Draft) -> Result<(String, Draft), BadRequest> {
        Ok(match self.meaning(kind, &draft.params)? {
            Some((kind, params)) => (kind, Draft { params, ..draft }),
            None => (kind.to_owned(), draft),
        })
    }

    /// Whether the operator and the order's tenant now allow everything that these fields name.
    pub(crate) fn check_order(
        &self,
        step: Step,
        kind: &Kind,
        tenant: &str,
        fields: &[TaskField<'_>],
    ) -> Result<(), NotAllowed> {
        let settings = self.settings();
        let rule = settings.tenants.get(tenant);
        let tenant = rule.and_then(|rule| rule.targets.as_ref());
        if let Some(kinds) = rule.and_then(|rule| rule.kinds.as_ref())
            && !kinds.iter().any(|named| *named == kind.name)
        {
            return Err(NotAllowed::Kind { kind: kind.name.to_string() });
        }
        let operator = &settings.targets;
        (settings.rules.inspect)(&Inspection { step, kind, fields, operator, tenant })
    }

    /// Whether the provider can be sent this order, and the exact task may leave. So an accepted order is not refused
    /// at the last step.
    fn check_task(
        &self,
        kind: &Kind,
        tenant: &str,
        params: &BTreeMap<String, Value>,
    ) -> Result<(), NotAllowed> {
        let refused = OnceLock::new();
        let guard = |fields: &[TaskField<'_>]| {
            let checked = self.check_order(Step::Send, kind, tenant, fields);
            checked.map_err(|why| refused.get_or_init(|| why).to_string())
        };
        // One provider that can be sent the order is enough.
        let mut first = None;
        for provider in self.providers_for(&kind.name, tenant) {
            match provider.adapter.preview(&kind.name, params, &guard) {
                Ok(()) => return Ok(()),
                Err(why) => _ = first.get_or_insert(why),
            }
        }
        let none = || format!("no provider takes {}: see `kinds` and `tenants` of [[provider]]", kind.name);
        let why = first.unwrap_or_else(none);
        Err(refused.into_inner().unwrap_or(NotAllowed::CannotSend { why }))
    }

    /// Whether the settings for all tenants allow this order, and it can be sent.
    pub fn check_draft(&self, kind: &Kind, draft: &Draft) -> Result<(), NotAllowed> {
        let settings = self.settings();
        let (fields, operator) = (fields_of(&draft.params), &settings.targets);
        let inspection = Inspection { step: Step::Place, kind, fields: &fields, operator, tenant: None };
        (settings.rules.inspect)(&inspection)?;
        self.check_task(kind, &draft.tenant, &draft.params)
    }

    /// Whether a tenant that is limited to these targets may place this order.
    pub fn check_for(&self, kind: &Kind, draft: &Draft, tenant: &Targets) -> Result<(), NotAllowed> {
        let settings = self.settings();
        let (fields, operator) = (fields_of(&draft.params), &settings.targets);
        let inspection =
            Inspection { step: Step::Place, kind, fields: &fields, operator, tenant: Some(tenant) };
        (settings.rules.inspect)(&inspection)
    }

    /// Whether an order of these terms may be sent now. A dead letter may be older than the operator's list, or come
    /// from another store, with names that are not in the catalogue.
    pub fn check_target(&self, order: &Order) -> Result<(), NotAllowed> {
        let terms = &order.terms;
        let Some(kind) = self.kind(&terms.kind) else {
            // It is no longer known which of its parameters is the page; the site was found when that was known.
            return self.settings().targets.check_host(&terms.site);
        };
        // An order on record may come from another store, without a tenant that answers for it.
        let settings = self.settings();
        if !settings.tenants.is_empty() && !settings.tenants.contains_key(&terms.tenant) {
            return Err(NotAllowed::Tenant { tenant: terms.tenant.clone() });
        }
        self.check_words(terms)?;
        check_complete(&kind, terms)?;
        self.check_order(Step::Replay, &kind, &terms.tenant, &fields_of(&terms.params))?;
        self.check_task(&kind, &terms.tenant, &terms.params)
    }

    /// Whether the names in an order on record are names of the catalogue.
    pub(crate) fn check_words(&self, terms: &Terms) -> Result<(), NotAllowed> {
        match self.meaning(&terms.kind, &terms.params) {
            Ok(None) => Ok(()),
            Ok(Some((kind, _))) => Err(NotAllowed::Unclear { why: format!("the order is of kind {kind}") }),
            Err(why) => Err(NotAllowed::Unclear { why: why.to_string() }),
        }
    }

    /// Whether a dead letter may be replayed. A replay that only calls a webhook again is always allowed: it sends
    /// nothing to the site.
    pub(crate) fn may_replay(&self, order: &Order) -> bool {
        !order.phase.is_dead() || self.check_target(order).is_ok()
    }

    /// Drops a dead letter for good.
    pub async fn drop_dead(&self, key: &Key) -> Result<ApplyOutcome, StoreError> {
        self.apply(key, None, &Event::Dropped).await
    }

    /// Adds an operator's note to the order.
    pub async fn note(&self, key: &Key, text: String) -> Result<ApplyOutcome, StoreError> {
        self.apply(key, None, &Event::Noted { text }).await
    }

    /// Continues all orders that wait for a provider's account, on this node, and forgets why they wait. Returns their
    /// number.
    pub async fn release(&self) -> Result<usize, StoreError> {
        // Submits that are under way were sent before, and know nothing of it: they are let go when they come back.
        self.let_go_at.store(self.now().as_millis(), Ordering::Relaxed);
        self.providers().iter().for_each(|it| it.release());
        self.release_orders().await
    }

    /// Continues all orders that wait for a provider's account.
    pub async fn release_orders(&self) -> Result<usize, StoreError> {
        let mut released = 0;
        let mut after = None;
        loop {
            let page = self.world.store.list(Which::OPEN, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(released) };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |record| record.order.key));
            // A record that cannot be read is not open, and stops no other.
            for record in page.into_iter().flatten() {
                let key = record.order.key;
                if let ApplyOutcome::Advanced { .. } =
                    self.apply(&key, Some(record), &Event::Released).await?
                {
                    released += 1;
                }
            }
        }
    }
}

/// Whether an order on record has all that its kind requires.
pub(crate) fn check_complete(kind: &Kind, terms: &Terms) -> Result<(), NotAllowed> {
    check_params(kind, &terms.params).map_err(|why| NotAllowed::Incomplete { why: why.to_string() })
}

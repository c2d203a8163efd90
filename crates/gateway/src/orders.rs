//! The order service behind all APIs. An API only translates: this service decides what a caller may do, get and see.

mod new_tenants;
mod reading;
mod reuse;
mod tenant_limits;

pub use new_tenants::CountedTenants;
pub(crate) use reading::is_placed_by;

use crate::api::carry_out;
use crate::commit_feed::CommitFeed;
use crate::id_cache::IdCache;
use crate::log_once::LogOnce;
use crate::order_id::OrderId;
use crate::streams::Streams;
use crate::tenant::{Caller, TenantSettings, Tenants};
use crate::tenant_permits::TenantPermits;
use arc_swap::ArcSwap;
use quittance_engine::targets::NotAllowed;
use quittance_engine::{ApplyOutcome, Engine, Outcome, PlaceError, PlacedOrder};
use quittance_http_server::{Limits, WrongKeys};
use quittance_lifecycle::{Counters, Draft, Key, Order, Origin, Timestamp, WhyIgnored};
use quittance_ports::{Account, Clock, Day, StoreError, UsageRow};
use quittance_quota::Quotas;
use quittance_telemetry::money::in_currency;
use quittance_telemetry::trace::{Placing, TraceParent};
use quittance_telemetry::{AccountCaches, ApiCounts, Traces};
use quittance_webhooks::{BadCallback, WebhookFormat, Webhooks};
use reuse::SharedSingleUse;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenant_limits::Admission;
use tokio::sync::watch;

/// How many orders are read from the store at once, to find those of one tenant.
const PAGE: usize = 256;
/// How many pages one listing can read before it returns a cursor.
const PAGES_MAX: usize = 8;
/// How often the open orders of tenants with a limit are counted again, if other nodes work on the same orders.
const COUNT_SPAN: Duration = Duration::from_secs(10);

/// An order request of a caller. Every API makes one.
#[derive(Clone, Debug, Default)]
pub struct OrderRequest {
    pub kind: String,
    /// What the engine gets. The order service sets the tenant.
    pub draft: Draft,
    /// The webhook to call when the order has ended, and its format.
    pub webhook: Option<(String, WebhookFormat)>,
    /// Whether an equal order in flight is a conflict. If not, the request joins it.
    pub is_strict: bool,
}

/// An order that is on record, so it will be carried out.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub id: OrderId,
    pub placed: PlacedOrder,
    /// Whether the caller gave an idempotency key.
    pub is_keyed: bool,
    /// The parent span for the trace of the answer, if the caller gets it now.
    pub above: Option<TraceParent>,
}

impl Accepted {
    /// Whether the caller's idempotency key was used before.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.is_keyed && self.placed.origin != Origin::Api
    }
}

/// Why an order was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Declined {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("orders of kind `{kind}` are not for this key: ask the operator")]
    KindNotForYou { kind: String },
    #[error("{}", not_for_you(.0))]
    HostNotForYou(NotAllowed),
    #[error("too many orders in too short a time: wait {} ms", .again_in.as_millis())]
    TooFast { again_in: Duration },
    #[error("{open} orders are open, as many as this key may have: wait until one is done")]
    TooManyOpen { open: usize },
    #[error("the callback address cannot be used: {0}")]
    Callback(#[from] BadCallback),
    #[error("this order has too many webhooks already")]
    TooManyWebhooks,
    #[error("the order under this idempotency key is still in flight")]
    InFlight { id: OrderId },
    /// The order may still be on record.
    #[error("the gateway's store does not answer in time: send the order again")]
    TimedOut,
}

fn not_for_you(why: &NotAllowed) -> String {
    match why {
        NotAllowed::Host { host, field } => {
            let field = field.escape_debug();
            format!("`{host}` is not among the hosts of this key (it is in `{field}`): ask the operator")
        }
        NotAllowed::Images { .. } => "orders that name no page are not for this key: ask the operator".into(),
        other => other.to_string(),
    }
}

/// The state of an order for its caller, with the order as it was read.
#[derive(Clone, Debug)]
pub struct OrderView {
    pub order: Arc<Order>,
    pub outcome: Outcome,
}

#[derive(Debug, thiserror::Error)]
pub enum NotSeen {
    /// The order does not exist, or belongs to another tenant. A caller cannot learn which.
    #[error("there is no such order")]
    Unknown,
    #[error("the store is not available for the moment")]
    StoreAway(#[source] StoreError),
}

/// The outcome of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Recorded,
    /// The opposite was reported before.
    Contradicted,
    /// There is no answer to report on.
    NothingToReport,
}

/// The part of the order service that all clones share.
#[derive(Clone)]
pub struct OrderService {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    tenants: ArcSwap<Tenants>,
    commit_feed: CommitFeed,
    names: IdCache,
    accounts: AccountCaches,
    webhooks: Webhooks,
    logged: LogOnce,
    shared: SharedSingleUse,
    /// Whether the node is stopping, so that no request waits for an answer.
    is_closing: watch::Sender<bool>,
    /// Slots for requests that wait for an order.
    waits: TenantPermits,
    streams: Streams,
    wrong_keys: WrongKeys,
    /// Set if other nodes accept orders into the same store.
    quotas: Option<Quotas>,
}

impl fmt::Debug for OrderService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderService({:?})", self.tenants())
    }
}

impl OrderService {
    #[must_use]
    pub fn new(engine: Arc<Engine>, tenants: Tenants, commit_feed: CommitFeed, webhooks: Webhooks) -> Self {
        let accounts = AccountCaches::of(&engine);
        let limits = Limits::default();
        let streams = Streams::new(tenants.is_only_one(), &limits);
        Self {
            inner: Arc::new(Inner {
                engine,
                tenants: ArcSwap::from_pointee(tenants),
                commit_feed,
                names: IdCache::default(),
                accounts,
                webhooks,
                logged: LogOnce::default(),
                shared: SharedSingleUse::default(),
                is_closing: watch::Sender::new(false),
                waits: tenant_limits::waits(&limits),
                streams,
                wrong_keys: WrongKeys::default(),
                quotas: None,
            }),
        }
    }

    #[must_use]
    pub fn tenants(&self) -> Arc<Tenants> {
        self.inner.tenants.load_full()
    }

    #[must_use]
    pub fn commit_feed(&self) -> &CommitFeed {
        &self.inner.commit_feed
    }

    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    #[must_use]
    pub fn webhooks(&self) -> &Webhooks {
        &self.inner.webhooks
    }

    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.engine.clock()
    }

    /// Counts the open orders of tenants with a limit, including those of other nodes and of earlier processes.
    pub async fn count_open(&self) -> Result<(), StoreError> {
        for tenant in self.inner.commit_feed.limited() {
            self.count_open_of(&tenant, usize::MAX).await?;
        }
        Ok(())
    }

    /// Counts the open orders again and again, until the future is dropped. It is for a node that shares its store:
    /// other nodes begin and end orders without a notice.
    pub async fn keep_counting(self) {
        loop {
            tokio::time::sleep(COUNT_SPAN).await;
            // A store that is away can be asked again.
            _ = self.count_open().await;
        }
    }

    /// Ends every wait for an answer, now and later: each caller gets its order as pending. Another node, or the next
    /// process, will have the answer.
    pub fn stop_waiting(&self) {
        self.inner.is_closing.send_replace(true);
    }

    /// Whether the node is stopping, so that waits end early.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        *self.inner.is_closing.borrow()
    }

    /// Returns when the node is stopping.
    pub async fn closing(&self) {
        // The sender lives as long as this service.
        _ = self.inner.is_closing.subscribe().wait_for(|is_closing| *is_closing).await;
    }

    /// The seats for live streams.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    /// Counts of the APIs, for the metrics.
    #[must_use]
    pub fn api_counts(&self) -> ApiCounts {
        ApiCounts { shared_single_use: self.shared_single_use(), wrong_keys: self.wrong_keys().count() }
    }

    // ---- placing -------------------------------------------------------------------------------------------

    /// Accepts an order, or joins an equal one. The order is durable when this returns. The placement continues if
    /// the caller disconnects or the timeout passes.
    pub async fn place(
        &self,
        caller: Caller,
        mut request: OrderRequest,
        timeout: Duration,
    ) -> Result<Accepted, Declined> {
        let service = self.clone();
        let placing = async move {
            let placing = service.inner.commit_feed.traces().map(|traces| {
                let placing = traces.placing(&request.draft.trace, service.inner.engine.now());
                request.draft.trace = placing.above().to_string();
                (traces, placing)
            });
            let kind = request.kind.clone();
            let mut accepted = service.accept(&caller, request).await;
            if let Err(declined) = &accepted {
                service.log_refusal(&caller, &kind, declined);
            }
            if let Some((traces, placing)) = placing {
                trace_placement(traces, &placing, &kind, &mut accepted, service.inner.engine.now());
            }
            accepted
        };
        carry_out(placing, timeout).await.unwrap_or(Err(Declined::TimedOut))
    }

    /// Logs a refusal once for each tenant and reason. Clients show their users at most a code, so the reason must be
    /// in the log.
    fn log_refusal(&self, caller: &Caller, kind: &str, declined: &Declined) {
        let tenant = caller.tenant.name();
        let line = match declined {
            // Each of these has numbers of its own.
            Declined::TooFast { .. } => format!("{tenant}: too fast"),
            Declined::TooManyOpen { .. } => format!("{tenant}: too many open"),
            Declined::InFlight { .. } => return,
            other => format!("{tenant}: {other}"),
        };
        if self.inner.logged.is_first(&line) {
            tracing::warn!(tenant, kind, "refused an order; equal refusals are not logged again: {declined}");
        }
    }

    async fn accept(&self, caller: &Caller, request: OrderRequest) -> Result<Accepted, Declined> {
        let Inner { engine, webhooks, names, .. } = &*self.inner;
        let settings = &caller.tenant.settings;
        let OrderRequest { mut kind, mut draft, webhook, is_strict } = request;
        // A tenant's limits are about what the provider will be asked, whatever the order calls it.
        if let Some(meaning) = engine.meaning(&kind, &draft.params).map_err(PlaceError::BadRequest)? {
            (kind, draft.params) = meaning;
        }
        check_kind(settings, &kind)?;
        let webhook = match webhook {
            Some((url, format)) => Some((webhooks.check(&url)?, format)),
            None => None,
        };
        let decision = self.decide_reuse(caller, &kind, &draft);
        draft.tenant.clone_from(&settings.name);
        draft.reuse = decision.reuse;
        draft.no_stock |= caller.is_fresh_wanted;
        let is_keyed = draft.idempotency_key.is_some();
        self.check_host(settings, &kind, &draft)?;
        let placed = match self.admit(caller, &kind, &draft).await? {
            Admission::Repeat(placed) => placed,
            // When this returns the order itself is counted.
            Admission::Place(place) => place.with(pin!(engine.place(&kind, draft))).await?,
        };
        self.note_shared(&placed, &decision);
        let id = OrderId::of(&placed.key, placed.origin);
        names.learn(&settings.name, id, placed.key);
        if is_strict && placed.origin == Origin::Joined {
            return Err(Declined::InFlight { id });
        }
        if let Some((url, format)) = webhook {
            self.listen(&placed.key, url, format).await?;
        }
        Ok(Accepted { id, placed, is_keyed, above: None })
    }

    fn check_host(&self, tenant: &TenantSettings, kind: &str, draft: &Draft) -> Result<(), Declined> {
        let Some(targets) = &tenant.targets else { return Ok(()) };
        let engine = &self.inner.engine;
        let kind = engine.kind(kind).ok_or(PlaceError::UnknownKind { name: kind.to_owned() })?;
        // What no tenant may order is refused before this tenant's own list is read.
        engine.check_draft(&kind, draft).map_err(PlaceError::NotAllowed)?;
        engine.check_for(&kind, draft, targets).map_err(Declined::HostNotForYou)
    }

    /// Checks whether orders of this tenant can use the answers of a pool.
    pub fn check_for(&self, tenant: &TenantSettings, kind: &str, draft: &Draft) -> Result<(), Declined> {
        let meant = self.inner.engine.meaning(kind, &draft.params).map_err(PlaceError::BadRequest)?;
        let Some((kind, params)) = meant else {
            check_kind(tenant, kind)?;
            return self.check_host(tenant, kind, draft);
        };
        check_kind(tenant, &kind)?;
        self.check_host(tenant, &kind, &Draft { params, ..draft.clone() })
    }

    async fn listen(&self, key: &Key, url: String, format: WebhookFormat) -> Result<(), Declined> {
        match self.inner.engine.listen_for(key, url, format.name()).await.map_err(PlaceError::Store)? {
            ApplyOutcome::Ignored { why: WhyIgnored::TooMany, .. } => Err(Declined::TooManyWebhooks),
            _ => Ok(()),
        }
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    /// Cancels an order. Returns whether the order changed.
    pub async fn cancel(&self, caller: &Caller, id: OrderId) -> Result<bool, NotSeen> {
        let order = self.find(caller, id).await?;
        let applied = self.inner.engine.cancel(&order.key).await.map_err(NotSeen::StoreAway)?;
        Ok(matches!(applied, ApplyOutcome::Advanced { .. }))
    }

    /// Reports whether an answer was good. The report is durable when this returns, and is passed on to the
    /// provider once.
    pub async fn report(&self, caller: &Caller, id: OrderId, is_good: bool) -> Result<Reported, NotSeen> {
        let order = self.find(caller, id).await?;
        let applied = self.inner.engine.report(&order.key, is_good).await.map_err(NotSeen::StoreAway)?;
        Ok(match applied {
            ApplyOutcome::Advanced { .. } | ApplyOutcome::Act { .. } => Reported::Recorded,
            ApplyOutcome::Ignored { now, .. } => match now.order.report() {
                Some(report) if report.is_good == is_good => Reported::Recorded,
                Some(_) => Reported::Contradicted,
                None => Reported::NothingToReport,
            },
            ApplyOutcome::Missing => return Err(NotSeen::Unknown),
        })
    }

    /// Reports like [`report`](Self::report), and continues if the caller disconnects. `None` if the timeout passes.
    pub(crate) async fn report_within(
        &self,
        caller: Caller,
        id: OrderId,
        is_good: bool,
        timeout: Duration,
    ) -> Option<Result<Reported, NotSeen>> {
        let orders = self.clone();
        carry_out(async move { orders.report(&caller, id, is_good).await }, timeout).await
    }

    /// The usage of all nodes for these days, both included. Amounts in another currency than the node's count as
    /// unknown.
    pub async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        Ok(in_currency(self.all_usage(from, to).await?, self.engine().currency()))
    }

    /// All usage, each amount in the currency of its row's account.
    pub async fn all_usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.inner.engine.usage(from, to).await
    }

    /// The first provider's account as it was last read; `None` if it was never read.
    pub async fn account(&self) -> Option<Account> {
        self.inner.accounts.read_first(self.inner.engine.now()).await
    }

    /// The accounts of all providers.
    #[must_use]
    pub fn accounts(&self) -> &AccountCaches {
        &self.inner.accounts
    }
}

/// Ends the trace of a placement. If the caller gets its answer now, the answer is traced below this
/// placement.
fn trace_placement(
    traces: &Traces,
    placing: &Placing,
    kind: &str,
    accepted: &mut Result<Accepted, Declined>,
    now: Timestamp,
) {
    match accepted {
        Ok(accepted) => {
            if let Some(order) = accepted.placed.order.as_deref() {
                traces.placed(placing, kind, Ok((order, accepted.placed.origin)), now);
            }
            accepted.above = Some(placing.above());
        }
        Err(declined) => traces.placed(placing, kind, Err(&declined.to_string()), now),
    }
}

fn check_kind(tenant: &TenantSettings, kind: &str) -> Result<(), Declined> {
    match &tenant.kinds {
        Some(kinds) if !kinds.iter().any(|named| named == kind) => {
            Err(Declined::KindNotForYou { kind: kind.to_owned() })
        }
        _ => Ok(()),
    }
}

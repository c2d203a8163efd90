//! The desk behind all doors. A door only translates: what a caller may do, what he gets, and what he may see is decided
//! here, once, in our own words.

use crate::account::AccountCache;
use crate::hub::Hub;
use crate::id::OrderId;
use crate::names::Names;
use crate::outbound::{BadCallback, Outbound};
use crate::tenant::{Caller, TenantSettings, Tenants};
use hashbrown::HashMap;
use quittance_engine::targets::NotAllowed;
use quittance_engine::{Applied, Engine, Outcome, PlaceError, Placed};
use quittance_lifecycle::{Draft, Key, Order, Origin, Phase, Reuse, Value, WhyIgnored};
use quittance_ports::{Account, Clock, MemoryRoster, Provider, Roster, StoreError, Which};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many orders are read from the store at once, to find those of one tenant.
const PAGE: usize = 256;
/// How many pages one listing may read before it says "go on from here".
const PAGES_MAX: usize = 8;
/// How often the open orders of tenants with a limit are counted anew where other nodes work on the same orders.
const COUNT_SPAN: Duration = Duration::from_secs(10);

/// What a caller wants.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub kind: String,
    pub params: BTreeMap<String, Value>,
    pub idempotency_key: Option<String>,
    pub reuse: Option<Reuse>,
    pub patience: Option<Duration>,
    pub min_life: Option<Duration>,
    /// Whom to call when it has come to something, and in which dialect (see `outbound`).
    pub callback: Option<(String, &'static str)>,
    /// Whether an order that is in flight already is a conflict, rather than one to join.
    pub is_strict: bool,
}

/// An order that is on record: whatever happens now, it is carried out.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub id: OrderId,
    pub placed: Placed,
}

/// Why nothing was accepted.
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
    #[error("the callback address is not one that is called: {0}")]
    Callback(#[from] BadCallback),
    #[error("too many callers wait to be called about this order")]
    TooManyListeners,
    #[error("the order under this idempotency key is still in flight")]
    InFlight { id: OrderId },
}

fn not_for_you(why: &NotAllowed) -> String {
    match why {
        NotAllowed::Host { host } => format!("`{host}` is not among the hosts of this key: ask the operator"),
        NotAllowed::Images { .. } => "orders that name no page are not for this key: ask the operator".into(),
    }
}

/// What an order has for its caller now. The order is as it was read.
#[derive(Clone, Debug)]
pub struct Seen {
    pub order: Arc<Order>,
    pub outcome: Outcome,
}

#[derive(Debug, thiserror::Error)]
pub enum NotSeen {
    /// No such order, or somebody else's: nobody learns which.
    #[error("there is no such order")]
    Unknown,
    #[error("the store is not available for the moment")]
    StoreAway(#[source] StoreError),
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Recorded,
    /// He had said the opposite before.
    Contradicted,
    /// There is no answer to report on.
    NothingToReport,
}

/// Clones share it.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    provider: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
    tenants: Tenants,
    hub: Hub,
    names: Names,
    account: AccountCache,
    outbound: Outbound,
    roster: Arc<dyn Roster>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desk({:?})", self.inner.tenants)
    }
}

impl Desk {
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        provider: Arc<dyn Provider>,
        clock: Arc<dyn Clock>,
        tenants: Tenants,
        hub: Hub,
        outbound: Outbound,
    ) -> Self {
        let (names, account) = (Names::default(), AccountCache::default());
        let roster = Arc::new(MemoryRoster::default());
        Self {
            inner: Arc::new(Inner {
                engine,
                provider,
                clock,
                tenants,
                hub,
                names,
                account,
                outbound,
                roster,
            }),
        }
    }

    /// # Panics
    /// If it is shared already.
    #[must_use]
    pub fn with_roster(mut self, roster: Arc<dyn Roster>) -> Self {
        Arc::get_mut(&mut self.inner).expect("a desk is given its roster before it is shared").roster =
            roster;
        self
    }

    #[must_use]
    pub fn tenants(&self) -> &Tenants {
        &self.inner.tenants
    }

    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    #[must_use]
    pub fn outbound(&self) -> &Outbound {
        &self.inner.outbound
    }

    #[must_use]
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.inner.provider
    }

    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Counts the open orders of those tenants who have a limit, also those that other nodes or an earlier process began.
    pub async fn count_open(&self) -> Result<(), StoreError> {
        let Some(before) = self.inner.hub.counted() else { return Ok(()) };
        let mut found = HashMap::new();
        let mut after = None;
        loop {
            let page = self.inner.engine.list(Which::Open, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
            let awaited =
                page.into_iter().flatten().map(|found| found.order).filter(|order| order.is_awaited());
            let counted = awaited.filter(|order| self.inner.hub.is_limited(&order.terms.tenant));
            found.extend(counted.map(|order| (order.key, order.terms.tenant.clone())));
        }
        self.inner.hub.recount(&before, &found);
        Ok(())
    }

    /// Counts again and again, for a node whose neighbours begin and end orders without telling it. Until it is dropped.
    pub async fn keep_counting(self) {
        loop {
            tokio::time::sleep(COUNT_SPAN).await;
            // A store that is away can be asked again.
            _ = self.count_open().await;
        }
    }

    /// Who works on the same orders.
    #[must_use]
    pub fn roster(&self) -> &Arc<dyn Roster> {
        &self.inner.roster
    }

    // ---- placing -------------------------------------------------------------------------------------------

    /// Accepts an order, or joins the one that is there. It is durable when this returns.
    pub async fn place(&self, caller: &Caller, wish: Wish) -> Result<Accepted, Declined> {
        let Inner { engine, clock, outbound, names, .. } = &*self.inner;
        let settings = &caller.tenant.settings;
        if settings.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&wish.kind)) {
            return Err(Declined::KindNotForYou { kind: wish.kind });
        }
        let callback = match &wish.callback {
            Some((url, dialect)) => Some((outbound.check(url)?, *dialect)),
            None => None,
        };
        let reuse = if caller.is_fresh_wanted {
            Reuse::Exclusive
        } else {
            wish.reuse.unwrap_or_else(|| self.usual_reuse(settings, &wish))
        };
        let draft = Draft {
            tenant: settings.name.clone(),
            params: wish.params,
            idempotency_key: wish.idempotency_key,
            reuse,
            patience: wish.patience,
            min_life: wish.min_life,
        };
        if let Some(targets) = &settings.targets {
            let kind = engine.kind(&wish.kind).ok_or(PlaceError::UnknownKind { name: wish.kind.clone() })?;
            targets.check(&kind, &draft).map_err(Declined::HostNotForYou)?;
        }
        // Limits are for what is new: whoever repeats himself must get what is his.
        let is_limited = settings.open_max.is_some() || settings.rate.is_some();
        if is_limited && !engine.is_repeat(&wish.kind, &draft).await? {
            settings.open_max.map_or(Ok(()), |most| self.check_room(&settings.name, most))?;
            caller.tenant.spend(clock.now()).map_err(|again_in| Declined::TooFast { again_in })?;
        }
        let placed = engine.place(&wish.kind, draft).await?;
        let id = OrderId::of(&placed.key, placed.origin);
        names.learn(&settings.name, id, placed.key);
        if wish.is_strict && placed.origin == Origin::Joined {
            return Err(Declined::InFlight { id });
        }
        if let Some((url, dialect)) = callback {
            self.listen(&placed.key, url, dialect).await?;
        }
        Ok(Accepted { id, placed })
    }

    fn usual_reuse(&self, tenant: &TenantSettings, wish: &Wish) -> Reuse {
        let page = match wish.params.get("pageurl") {
            Some(Value::Text(page)) => Some(page.as_str()),
            _ => None,
        };
        self.inner.tenants.reuse(tenant, &wish.kind, page)
    }

    fn check_room(&self, tenant: &str, most: usize) -> Result<(), Declined> {
        let open = self.inner.hub.open_orders(tenant);
        if open < most { Ok(()) } else { Err(Declined::TooManyOpen { open }) }
    }

    async fn listen(&self, key: &Key, url: String, dialect: &str) -> Result<(), Declined> {
        match self.inner.engine.listen_for(key, url, dialect).await.map_err(PlaceError::Store)? {
            Applied::Ignored { why: WhyIgnored::TooMany, .. } => Err(Declined::TooManyListeners),
            _ => Ok(()),
        }
    }

    // ---- reading -------------------------------------------------------------------------------------------

    /// What this id has for its caller now. It reads our own record and asks nobody.
    pub async fn look(&self, caller: &Caller, id: OrderId) -> Result<Seen, NotSeen> {
        let (order, placed) = self.claim_of(caller, id).await?;
        self.look_at(order, &placed).await
    }

    /// The same, and waits until there is something to tell, but no longer than `patience`.
    pub async fn wait(&self, caller: &Caller, id: OrderId, patience: Duration) -> Result<Seen, NotSeen> {
        let (order, placed) = self.claim_of(caller, id).await?;
        self.wait_for(order, placed, patience).await
    }

    /// The same for an order that was just accepted, in the name of that very placement.
    pub async fn wait_for_accepted(&self, accepted: &Accepted, patience: Duration) -> Result<Seen, NotSeen> {
        let order = self.inner.engine.read(&accepted.placed.key).await.map_err(NotSeen::StoreAway)?;
        self.wait_for(order.ok_or(NotSeen::Unknown)?, accepted.placed.clone(), patience).await
    }

    async fn wait_for(&self, order: Arc<Order>, placed: Placed, patience: Duration) -> Result<Seen, NotSeen> {
        if patience.is_zero() {
            return self.look_at(order, &placed).await;
        }
        let until = self.inner.clock.now() + patience;
        let outcome = self.inner.engine.wait(&Placed { until, ..placed }).await;
        let order = self.inner.engine.read(&order.key).await.ok().flatten().unwrap_or(order);
        Ok(Seen { order, outcome })
    }

    async fn look_at(&self, order: Arc<Order>, placed: &Placed) -> Result<Seen, NotSeen> {
        let outcome = self.inner.engine.peek_at(placed, &order).await.map_err(NotSeen::StoreAway)?;
        Ok(Seen { order, outcome: outcome.unwrap_or(Outcome::NotYet) })
    }

    /// The order that an id names, if it is this caller's, and his claim on it.
    async fn claim_of(&self, caller: &Caller, id: OrderId) -> Result<(Arc<Order>, Placed), NotSeen> {
        let order = self.find(caller, id).await?;
        let claimant = match &order.phase {
            Phase::Taken { by, .. } if id.is_from_stock() => *by,
            _ => order.key,
        };
        let placed = Placed {
            key: order.key,
            claimant,
            origin: if id.is_from_stock() { Origin::Stock } else { Origin::Joined },
            min_life: order.terms.min_life,
            until: order.deadline,
        };
        Ok((order, placed))
    }

    /// The record of an order of this caller's.
    pub async fn find(&self, caller: &Caller, id: OrderId) -> Result<Arc<Order>, NotSeen> {
        let tenant = caller.tenant.name();
        let Inner { engine, names, .. } = &*self.inner;
        if let Some(key) = names.recall(tenant, id) {
            let order = engine.read(&key).await.map_err(NotSeen::StoreAway)?;
            return order.filter(|order| order.terms.tenant == tenant).ok_or(NotSeen::Unknown);
        }
        let mut found = engine.find(id.head()).await.map_err(NotSeen::StoreAway)?;
        found.retain(|order| order.terms.tenant == tenant);
        // Two that are named alike: to hand out the wrong one would be worse than none.
        match <[_; 1]>::try_from(found) {
            Ok([order]) => {
                names.learn(tenant, id, order.key);
                Ok(order)
            }
            Err(_) => Err(NotSeen::Unknown),
        }
    }

    /// Orders of one tenant, or of all for the operator, in the order of their keys; and where to go on, if there are more.
    pub async fn list(
        &self,
        tenant: Option<&str>,
        which: Which,
        after: Option<Key>,
        limit: usize,
    ) -> Result<(Vec<Arc<Order>>, Option<Key>), StoreError> {
        let mut listed = Vec::new();
        let mut after = after;
        for _ in 0..PAGES_MAX {
            let page = self.inner.engine.list(which, after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for found in page {
                after =
                    Some(found.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
                let Ok(found) = found else { continue };
                if tenant.is_none_or(|tenant| tenant == found.order.terms.tenant) {
                    listed.push(found.order);
                }
                if listed.len() == limit {
                    return Ok((listed, after));
                }
            }
            if is_last {
                return Ok((listed, None));
            }
        }
        Ok((listed, after))
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    /// Nobody wants the order any more; says whether that changed anything.
    pub async fn cancel(&self, caller: &Caller, id: OrderId) -> Result<bool, NotSeen> {
        let order = self.find(caller, id).await?;
        let applied = self.inner.engine.cancel(&order.key).await.map_err(NotSeen::StoreAway)?;
        Ok(matches!(applied, Applied::Advanced { .. }))
    }

    /// Says whether an answer was any good: on record when this returns, and passed on once.
    pub async fn report(&self, caller: &Caller, id: OrderId, is_good: bool) -> Result<Reported, NotSeen> {
        let order = self.find(caller, id).await?;
        let applied = self.inner.engine.report(&order.key, is_good).await.map_err(NotSeen::StoreAway)?;
        Ok(match applied {
            Applied::Advanced { .. } | Applied::Act { .. } => Reported::Recorded,
            Applied::Ignored { now, .. } => match now.order.report() {
                Some(report) if report.is_good == is_good => Reported::Recorded,
                Some(_) => Reported::Contradicted,
                None => Reported::NothingToReport,
            },
            Applied::Missing => return Err(NotSeen::Unknown),
        })
    }

    /// The provider's account as it was told a moment ago; nothing, if it has never been.
    pub async fn account(&self) -> Option<Account> {
        self.inner.account.read(&self.inner.provider, self.inner.clock.now()).await
    }
}

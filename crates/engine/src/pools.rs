//! Pools: how each node learns of them, counts the demand for them, and reports their state. `pools/keep.rs` decides
//! which of them this node refills, and with what.
//!
//! There is no pool lock. A place in a pool is filled by an ordinary order whose key is (pool, place, generation).
//! The generations are in a document that is written by compare-and-swap. So two nodes that refill at once place one
//! order.

mod budget;
mod keep;
mod local;
mod put_back;

use crate::{Engine, PlaceError};
use local::LocalPool;
pub use put_back::KnownDocument;
use quittance_lifecycle::{Draft, Money, Reuse, Slot, Target, Terms, Timestamp};
use quittance_ports::document::POOL_NAME_BYTES_MAX;
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{
    Demand, DocumentWritten, Members, NodeStatus, PoolDocument, PoolSpec, SharedDocument, Spent, StoreError,
    StoredDocument, TrustDocument, Version,
};
use quittance_ports::{Goal, SIZE_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most entries that the `hours` of a pool may have. Each entry is one part of the day.
const HOURS_MAX: usize = 16;
/// The most bytes of a pool's parameters. The limit is low because every node reads all pools every few
/// seconds.
const PARAMS_BYTES_MAX: usize = 16 * 1024;
/// How often a write of a shared document is tried before it fails, if other nodes write the same document.
pub(crate) const WRITES_MAX: u32 = 8;

#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error(
        "a pool's name is 1 to {POOL_NAME_BYTES_MAX} letters, digits, dots, dashes and underscores, and begins with a letter or a digit: `{}` does not",
        .name.escape_debug()
    )]
    BadName { name: String },
    #[error("a pool's service level is between 0.001 and 0.999, and its size between 1 and {SIZE_MAX}")]
    BadGoal,
    #[error("a pool has at most {HOURS_MAX} parts of the day, each from 00:00 to 24:00")]
    BadHours,
    #[error("the parameters of a pool have at most {PARAMS_BYTES_MAX} bytes: these have {bytes}")]
    TooLarge { bytes: usize },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(
        "a pool cannot keep answers of kind `{kind}`: they can be used more than once, or never expire, so none is needed"
    )]
    CannotBeKept { kind: String },
    #[error("pool `{other}` keeps the same target already: change that one, or remove it first")]
    SameTarget { other: String },
    #[error("there are too many pools: remove one first")]
    NoRoom,
    #[error("another writer changed the same pool: read it again, and try again")]
    Conflict,
    #[error("the pool could not be written: try again")]
    Store(#[from] StoreError),
}

/// A pool, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolView {
    pub document: PoolDocument,
    /// The stock that the pool keeps; `None` if the pool is not valid on this node.
    pub target: Option<Target>,
    /// The demand that all present nodes have counted, each since its start.
    pub demand: Demand,
    pub is_kept_here: bool,
    /// How long after its solve an answer can be handed out.
    pub usable: Duration,
    /// What the next refill costs: the price of the pool's last answer, or else of the price list; `None` if neither
    /// is known.
    pub price: Option<Money>,
    /// The currency of all amounts of the pool.
    pub currency: String,
}

impl PoolView {
    /// Why the pool buys nothing in the hour of `now`, although as far as is known its budget is not used up.
    #[must_use]
    pub fn stopped(&self, now: Timestamp) -> Option<String> {
        self.stopped_by_price(now).or_else(|| self.stopped_by_loss(now))
    }

    /// The error if an unknown price stops the pool in the hour of `now`: the price of the next answer, or of one
    /// that it bought in that hour.
    #[must_use]
    pub fn stopped_by_price(&self, now: Timestamp) -> Option<String> {
        let spec = self.with_budget()?;
        match self.price {
            None => Some(price_not_known(&spec.kind)),
            Some(_) => prices_not_known(&self.document.spent.in_hour_of(now)),
        }
    }

    /// The error if the pool buys nothing in the hour of `now` because the store forgot what it spent in that hour.
    fn stopped_by_loss(&self, now: Timestamp) -> Option<String> {
        let spent = self.document.spent.in_hour_of(now);
        self.with_budget().filter(|_| spent.is_incomplete).map(|_| spending_not_known(spent.hour))
    }

    fn with_budget(&self) -> Option<&PoolSpec> {
        Some(&self.document.spec).filter(|spec| spec.is_on && spec.budget.is_some())
    }
}

/// What this node knows of the documents and of each pool.
#[derive(Default)]
pub(crate) struct Pools {
    documents: BTreeMap<String, StoredDocument>,
    /// Documents that existed when the store was last known to be the same, and no longer exist.
    vanished: BTreeMap<String, KnownDocument>,
    /// The pools that this node refilled in its last round.
    refilled: BTreeSet<String>,
    local: BTreeMap<String, LocalPool>,
    by_target: BTreeMap<Target, String>,
    /// The demand at this node since its start, by pool.
    demand: BTreeMap<String, Demand>,
    looked_at: Timestamp,
}

impl Pools {
    pub(crate) fn demand_of(&mut self, target: &Target) -> Option<&mut Demand> {
        let name = self.by_target.get(target)?;
        self.demand.get_mut(name)
    }

    pub(crate) fn trusts(&self) -> impl Iterator<Item = &TrustDocument> {
        self.documents.values().filter_map(|stored| match &stored.document {
            SharedDocument::Trust(document) => Some(document),
            _ => None,
        })
    }

    /// The age up to which answers are handed out.
    pub(crate) fn trusted(
        &self,
        tenant: &str,
        kind: &str,
        site: &str,
        usable: Duration,
        now: Timestamp,
    ) -> Duration {
        // Most have no document at all, and a placement should not pay for the look-up of a name.
        if self.documents.is_empty() {
            return usable;
        }
        match self
            .documents
            .get(&SharedDocument::trust_name(tenant, kind, site))
            .map(|stored| &stored.document)
        {
            Some(SharedDocument::Trust(document)) => document.trust.life(usable, now),
            _ => usable,
        }
    }

    pub(crate) fn note_document(&mut self, stored: StoredDocument) {
        self.documents.insert(stored.name.clone(), stored);
    }
}

/// The nodes with a recent heartbeat.
fn alive(members: &Members) -> impl Iterator<Item = &NodeStatus> {
    let is_there = |last_heartbeat: Timestamp| members.now.since(last_heartbeat) < SILENT_AFTER;
    members.nodes.iter().filter(move |signed| is_there(signed.seen)).map(|signed| &signed.node_status)
}

impl Engine {
    /// The demand that this node has counted for each pool, since it started.
    #[must_use]
    pub fn demand(&self) -> BTreeMap<String, Demand> {
        crate::lock(&self.pools).demand.clone()
    }

    pub async fn pools(&self) -> Result<Vec<PoolView>, StoreError> {
        let documents = self.world.membership.documents().await?;
        let members = self.world.membership.members().await?;
        Ok(self.pools_among(&documents, &members))
    }

    /// The pools, from documents and members that the caller has just read.
    #[must_use]
    pub fn pools_among(&self, documents: &[StoredDocument], members: &Members) -> Vec<PoolView> {
        let pools = documents.iter().filter_map(|stored| match &stored.document {
            SharedDocument::Pool(document) if !document.is_removed => Some(document.clone()),
            _ => None,
        });
        pools.map(|document| self.show_pool(document, members)).collect()
    }

    fn show_pool(&self, document: PoolDocument, members: &Members) -> PoolView {
        let terms = self.pool_terms(&document.spec).ok();
        let document = document.in_currency(self.currency());
        let price =
            terms.as_ref().and_then(|terms| budget::price(&document, self.price_basis(terms), terms.price));
        PoolView {
            target: terms.as_ref().map(|terms| terms.target),
            price,
            currency: self.currency().to_owned(),
            usable: terms.and_then(|terms| terms.usable()).unwrap_or_default(),
            demand: self.demand_of_all(&document.spec.name, members),
            is_kept_here: self.is_keeper(&document.spec.name, members),
            document,
        }
    }

    /// The demand for a pool at all nodes. This node's own count is newer than the count in its stored status.
    fn demand_of_all(&self, pool: &str, members: &Members) -> Demand {
        let others = alive(members).filter(|node_status| node_status.node != self.node);
        let others = others.filter_map(|node_status| node_status.demand.get(pool)).copied();
        let own = crate::lock(&self.pools).demand.get(pool).copied().unwrap_or_default();
        others.fold(own, |sum, last_heartbeat| Demand {
            served: sum.served.saturating_add(last_heartbeat.served),
            missed: sum.missed.saturating_add(last_heartbeat.missed),
        })
    }

    /// Creates or changes a pool. Answers that it has bought stay in its stock.
    pub async fn set_pool(&self, spec: PoolSpec) -> Result<PoolView, PoolError> {
        let meant = self.meaning(&spec.kind, &spec.params).map_err(PlaceError::BadRequest)?;
        let spec = match meant {
            Some((kind, params)) => PoolSpec { kind, params, ..spec },
            None => spec,
        };
        self.check_pool(&spec)?;
        let name = SharedDocument::pool_name(&spec.name);
        for _ in 0..WRITES_MAX {
            let documents = self.world.membership.documents().await?;
            if let Some(other) = self.keeps_the_same(&spec, &documents) {
                return Err(PoolError::SameTarget { other });
            }
            let stored = documents.into_iter().find(|stored| stored.name == name);
            let version = stored.as_ref().map_or(Version::ABSENT, |stored| stored.version);
            let (spec, asked_at) = (spec.clone(), self.now());
            let document = match stored.map(|stored| stored.document) {
                Some(SharedDocument::Pool(old)) if old.is_removed => old.set_again(spec, asked_at),
                Some(SharedDocument::Pool(old)) => PoolDocument { spec, asked_at, level: None, ..old },
                _ => self.new_pool(spec),
            };
            let document = document.in_currency(self.currency());
            let document = SharedDocument::Pool(document);
            match self.world.membership.write_document(&name, version, Some(&document)).await? {
                DocumentWritten::Done(_) => {}
                DocumentWritten::Conflict => continue,
                DocumentWritten::NoRoom => return Err(PoolError::NoRoom),
            }
            self.look_at_pools_soon();
            let members = self.world.membership.members().await?;
            let SharedDocument::Pool(document) = document else { continue };
            return Ok(self.show_pool(document, &members));
        }
        Err(PoolError::Conflict)
    }

    /// Removes a pool, and returns whether it existed. Its answers stay in stock until they expire. What it has spent
    /// stays on record until the hour is over: otherwise a pool that is set again would get a new budget.
    pub async fn remove_pool(&self, name: &str) -> Result<bool, StoreError> {
        let name = SharedDocument::pool_name(name);
        loop {
            let documents = self.world.membership.documents().await?;
            let Some(stored) = documents.into_iter().find(|stored| stored.name == name) else {
                return Ok(false);
            };
            let local = match stored.document {
                SharedDocument::Pool(pool) if pool.is_removed => return Ok(false),
                SharedDocument::Pool(pool) if budget::has_spent(&pool, self.now()) => {
                    Some(SharedDocument::Pool(PoolDocument { is_removed: true, level: None, ..pool }))
                }
                _ => None,
            };
            if let DocumentWritten::Done(_) =
                self.world.membership.write_document(&name, stored.version, local.as_ref()).await?
            {
                self.look_at_pools_soon();
                return Ok(true);
            }
        }
    }

    fn look_at_pools_soon(&self) {
        crate::lock(&self.pools).looked_at = Timestamp::ZERO;
    }

    /// The name of another pool with the same stock. Two such pools would count the same orders and fill the stock
    /// twice.
    fn keeps_the_same(&self, spec: &PoolSpec, documents: &[StoredDocument]) -> Option<String> {
        let target = self.pool_terms(spec).ok()?.target;
        documents.iter().find_map(|stored| match &stored.document {
            SharedDocument::Pool(PoolDocument { spec: other, is_removed: false, .. })
                if other.name != spec.name =>
            {
                let is_same = self.pool_terms(other).is_ok_and(|terms| terms.target == target);
                is_same.then(|| other.name.clone())
            }
            _ => None,
        })
    }

    fn check_pool(&self, spec: &PoolSpec) -> Result<(), PoolError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let name = &spec.name;
        // Readers of addresses take `.` and `..` for something else.
        let is_named = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !is_named || name.len() > POOL_NAME_BYTES_MAX || !name.chars().all(is_plain) {
            return Err(PoolError::BadName { name: name.clone() });
        }
        let is_good = match spec.goal {
            Goal::Served { permille } => (1..=999).contains(&permille),
            Goal::Fixed { size } => (1..=SIZE_MAX).contains(&size),
        };
        if !is_good {
            return Err(PoolError::BadGoal);
        }
        const DAY: u16 = 24 * 60;
        if spec.hours.len() > HOURS_MAX || spec.hours.iter().any(|hours| hours.from > DAY || hours.to > DAY) {
            return Err(PoolError::BadHours);
        }
        let terms = self.pool_terms(spec)?;
        if terms.size() > PARAMS_BYTES_MAX {
            return Err(PoolError::TooLarge { bytes: terms.size() });
        }
        if !terms.single_use || terms.usable().is_none() {
            return Err(PoolError::CannotBeKept { kind: spec.kind.clone() });
        }
        Ok(())
    }

    /// The terms that all orders of a pool have.
    fn pool_terms(&self, spec: &PoolSpec) -> Result<Terms, PlaceError> {
        Ok(self.agree(&spec.kind, pool_draft(spec, None))?.1)
    }
}

/// The error if a pool with a budget buys nothing because a price is not known, and what to do.
#[must_use]
pub fn price_not_known(kind: &str) -> String {
    format!(
        "the pool has a budget, and the price of `{kind}` is not known: the pool buys nothing until `prices.{kind}` is set"
    )
}

/// The error if a pool with a budget buys nothing in this hour because the store forgot, and when it buys again.
#[must_use]
pub fn spending_not_known(hour: u64) -> String {
    format!("the store forgot what the pool has spent in this hour, {}", budget_counts_as_spent(hour))
}

/// The error if a pool with a budget buys nothing in this hour because the price of some of its refills is not known.
fn prices_not_known(spent: &Spent) -> Option<String> {
    let rest = || budget_counts_as_spent(spent.hour);
    (spent.without_price > 0).then(|| {
        format!(
            "the price of {} refills of the pool in this hour is not known, {}",
            spent.without_price,
            rest()
        )
    })
}

fn budget_counts_as_spent(hour: u64) -> String {
    let next = (hour % 24 + 1) % 24;
    format!(
        "so the budget counts as spent: the pool buys nothing until {next:02}:00 UTC; to buy now, set the pool without a \
         budget"
    )
}

/// The order that a pool places. No caller waits for it, so it may take as long as any order.
fn pool_draft(spec: &PoolSpec, slot: Option<Slot>) -> Draft {
    Draft {
        params: spec.params.clone(),
        reuse: Some(Reuse::Exclusive),
        min_life: spec.min_life,
        slot,
        ..Draft::new(spec.tenant.clone())
    }
}

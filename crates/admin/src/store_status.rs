//! The state of a store: how many orders it has, how many nodes work on it, whether it is sealed, and what its settings promise.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::{Key, Order};
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{Membership, StoreError, Unreadable, Verdict, Versioned, Which};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many records are read at once.
pub const PAGE: usize = 1000;

problems!(StoreProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// Why the store is sealed: it accepts no changes; null if it is not.
    pub sealed: Option<String>,
    /// What fills the store: no node starts on it until that has ended; null if nothing does.
    pub filling: Option<String>,
    pub orders: StoredOrders,
    pub nodes: NodeCounts,
    pub checkup: Vec<CheckupFinding>,
}

/// Records of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredOrders {
    pub all: u64,
    pub open: u64,
    /// Dead letters that can be read.
    pub dead: u64,
    pub unreadable: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeCounts {
    pub at_work: u64,
    /// Nodes without a heartbeat: they have died, hang, or are cut off.
    pub silent: u64,
}

/// What a setting of the store means for the promises.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckupFinding {
    pub state: CheckupState,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckupState {
    Good,
    /// A promise is weaker than it could be.
    Note,
    /// A promise is broken.
    Bad,
}

impl CheckupState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

impl StoredOrders {
    fn add(&mut self, order: Option<&Order>) {
        let is = |which: Which<'_>| u64::from(order.is_some_and(|order| which.includes(order)));
        self.all += 1;
        self.open += is(Which::OPEN);
        self.dead += is(Which::DEAD);
        self.unreadable += u64::from(order.is_none());
    }
}

impl StoreStatus {
    /// Reads the status of a store. `list` returns the next [`PAGE`] records after a key, of all classes.
    pub async fn read<F>(
        list: impl Fn(Option<Key>) -> F,
        membership: &dyn Membership,
    ) -> Result<Self, StoreError>
    where
        F: Future<Output = Result<Vec<Result<Versioned, Unreadable>>, StoreError>>,
    {
        let (mut orders, mut after) = (StoredOrders::default(), None);
        loop {
            let page = list(after).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
            page.iter().for_each(|found| orders.add(found.as_ref().ok().map(|found| &*found.order)));
        }
        let members = membership.members().await?;
        let silent =
            members.nodes.iter().filter(|node| members.now.since(node.seen) > SILENT_AFTER).count() as u64;
        let checkup = membership.checkup().await?.into_iter().map(|finding| CheckupFinding {
            state: match finding.verdict {
                Verdict::Good => CheckupState::Good,
                Verdict::Note => CheckupState::Note,
                Verdict::Bad => CheckupState::Bad,
            },
            what: finding.what,
        });
        Ok(Self {
            sealed: membership.sealed().await?,
            filling: membership.filling().await?,
            orders,
            nodes: NodeCounts { at_work: members.nodes.len() as u64 - silent, silent },
            checkup: checkup.collect(),
        })
    }
}

/// Read the state of the store
///
/// Reads every record, so it takes a while on a large store.
#[utoipa::path(
    get, path = "/v1/admin/store", operation_id = "storeStatus", tag = "admin",
    responses((status = 200, body = StoreStatus, description = "The current state."), StoreProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn status(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let engine = state.orders.engine();
    let list = |after: Option<Key>| async move { engine.list(Which::ALL, after.as_ref(), PAGE).await };
    let status = StoreStatus::read(list, engine.membership().as_ref()).await;
    Ok(json(StatusCode::OK, &status.map_err(|error| store_problem(&error))?))
}

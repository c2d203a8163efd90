//! Quittance stands between you and an API that sells answers, and promises: paid once, never lost, never wasted,
//! never stale, in plain sight.
//!
//! ```no_run
//! use quittance::{ApiKey, ClassicDialect, ProviderSettings, Quittance, RecaptchaV2};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let key = std::env::var("CAPTCHAAI_API_KEY")?;
//! let provider = ProviderSettings::new("main", "https://ocr.captchaai.com", ApiKey::new(key));
//! let quittance = Quittance::builder()
//!     .embedded("./quittance-data")
//!     .classic_provider(ClassicDialect::CaptchaAi, provider)?
//!     .allow("*.example.org")
//!     .start()
//!     .await?;
//!
//! let login = RecaptchaV2::new("6Le-site-key", "https://shop.example.org/login").idempotency_key("login-42");
//! let solved = quittance.solve(login).await?;
//! println!("{} (from {:?})", solved.text(), solved.origin);
//!
//! quittance.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! An order is durable when [`Quittance::place`] returns. Even if the caller or the process ends, it is carried out
//! by this process or by the next one that opens its store. A placement with a known idempotency key joins the order
//! of that key. Nothing is paid for twice as long as an attempt in doubt can be settled. Without a key, each
//! placement of a single-use token is an order of its own, and equal placements of images share one order.
//! [`Order::shared`] and [`Order::exclusive`] change this.
//!
//! # Features
//!
//! | feature | default | what it adds | what it compiles besides |
//! | --- | --- | --- | --- |
//! | `classic` | yes | providers that speak `in.php` and `res.php`: [`Builder::classic_provider`] | an HTTP client, TLS |
//! | `json` | yes | providers that speak `createTask` and `getTaskResult`: [`Builder::json_provider`] | an HTTP client, TLS |
//! | `embedded` | yes | the store of one machine: [`Builder::embedded`] | SQLite |
//! | `redis` | no | a store that nodes share: `Place::Redis` | a Redis client, TLS |
//! | `postgres` | no | a store that nodes share: `Place::Postgres` | a PostgreSQL client, TLS |
//! | `gateway` | yes | callers over HTTP, callbacks, webhooks, the operator's API | an HTTP server |
//!
//! A program that only places orders needs `default-features = false, features = ["classic", "embedded"]`. Without
//! `gateway` nothing listens, so answers are polled. A submit whose reply is lost cannot be settled by a callback: the
//! order is submitted again, and counted as a possible double payment.
#![forbid(unsafe_code)]

mod builder;
mod callback_secret;
mod clock;
pub mod copy;
mod in_hand_file;
#[cfg_attr(not(feature = "gateway"), path = "no_servers.rs")]
mod node_servers;
mod order;
mod place;
mod presence;
#[cfg(feature = "gateway")]
mod reload_setup;
mod store_memory;

pub use builder::{Builder, SPILL_BYTES_MAX, SPILL_NAME, StartError};
#[cfg(feature = "embedded")]
pub use callback_secret::SECRET_NAME;
pub use clock::SystemClock;
pub use in_hand_file::IN_HAND_NAME;
#[cfg(feature = "gateway")]
pub use node_servers::{Callbacks, GatewaySetup};
pub use order::{
    CloudflareChallenge, DEFAULT_TENANT, FunCaptcha, Geetest, GeetestV4, HCaptcha, Image, Order, RecaptchaV2,
    RecaptchaV3, Text, Turnstile,
};
pub use place::{Opened, Place, SecretError, StoreOpenError};
#[cfg(feature = "gateway")]
pub use quittance_admin as admin;
pub use quittance_engine::{
    LifeRule, PlaceError, PlacedOrder, PoolError, PoolView, ProviderRules, ReloadError, ReloadedProvider,
    RoutingRules, Settings, Targets, Throttle, targets,
};
#[cfg(feature = "gateway")]
pub use quittance_gateway::{self as gateway, Limits};
pub use quittance_lifecycle as lifecycle;
pub use quittance_lifecycle::{Key, Money, Origin, Priority, Value};
pub use quittance_ports as ports;
pub use quittance_ports::{
    Account, Finding, Member, Members, Membership, NodeStats, NodeStatus, Store, Verdict, membership,
};
pub use quittance_ports::{Day, StoreError, Unreadable, UsageRow, Versioned, Which};
pub use quittance_ports::{
    Demand, LevelView, PoolDocument, PoolSpec, SharedDocument, Spent, TrustDocument, document,
};
pub use quittance_ports::{Goal, Hours, HoursError};
#[cfg(feature = "classic")]
pub use quittance_protocol::classic::ClassicDialect;
#[cfg(feature = "json")]
pub use quittance_protocol::json::JsonDialect;
#[cfg(feature = "classic")]
pub use quittance_provider::ClassicProvider;
#[cfg(feature = "json")]
pub use quittance_provider::JsonProvider;
#[cfg(any(feature = "classic", feature = "json"))]
pub use quittance_provider::{ApiKey, BadSettings, Settings as ProviderSettings};
#[cfg(feature = "embedded")]
pub use quittance_store_embedded as embedded;
#[cfg(feature = "postgres")]
pub use quittance_store_postgres::{self as postgres, PostgresStore, Settings as PostgresSettings};
#[cfg(feature = "redis")]
pub use quittance_store_redis::{self as redis, RedisStore, Settings as RedisSettings};
#[cfg(feature = "gateway")]
pub use reload_setup::{NotReloaded, ReloadSetup};
pub use store_memory::{IDENTITY as IDENTITY_NAME, NOTE as FORGOT_NAME};

use in_hand_file::InHandFile;
use node_servers::{CallbackServer, Server};
use quittance_engine::{ApplyOutcome, DropOutcome, Engine, Outcome};
use quittance_lifecycle::{Answer, Counters, DeadCause, FailCause, Fault};
use quittance_ports::Clock;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long the last check of the store may take, including the putting back of forgotten orders.
const LAST_LOOK_WAIT: Duration = Duration::from_secs(8);
/// How long a ticket waits after its deadline. An order without an answer becomes a dead letter at its deadline, and the
/// caller gets the reason once that is written.
const LAST_COMMIT_WAIT: Duration = Duration::from_secs(1);

/// One node: it accepts orders, carries them out and hands out answers. Clones share the node.
#[derive(Clone)]
pub struct Quittance {
    engine: Arc<Engine>,
    store: Arc<dyn Store>,
    membership: Arc<dyn Membership>,
    /// A number that is new for each start of each process.
    number: u64,
    server: Server,
    running: Arc<Mutex<BackgroundTasks>>,
}

/// The tasks that run in the background.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    worker: Option<JoinHandle<()>>,
    callbacks: Option<CallbackServer>,
    releasing: Option<JoinHandle<Result<(), StoreError>>>,
    /// The task that sends heartbeats, and the channel that ends it.
    presence: Option<(oneshot::Sender<()>, JoinHandle<bool>)>,
    /// The file for the orders in hand when the node stops.
    in_hand_file: Option<InHandFile>,
    counting: Option<JoinHandle<()>>,
    listens_on: Option<SocketAddr>,
}

/// Lets a node check its store once more, and put back what the store has forgotten. Returns whether the store has
/// all orders that the node has in hand.
async fn last_look(presence: Option<(oneshot::Sender<()>, JoinHandle<bool>)>) -> bool {
    let Some((end, mut presence)) = presence else { return true };
    // It may have ended already.
    _ = end.send(());
    match tokio::time::timeout(LAST_LOOK_WAIT, &mut presence).await {
        Ok(looked) => looked.unwrap_or(false),
        Err(_) => {
            presence.abort();
            false
        }
    }
}

/// Writes the orders in hand into the node's folder when this process ends. The store may not know them, or may
/// forget them before the next start.
fn keep_in_hand(engine: &Engine, file: &InHandFile, is_all_stored: bool) {
    let orders = engine.orders_in_hand();
    if orders.is_empty() {
        return;
    }
    let (path, count) = (file.path(), orders.len());
    match (file.keep(&orders, is_all_stored), is_all_stored) {
        (Ok(kept), true) => tracing::info!(
            "{kept} of {count} orders in hand are kept in {}: the next start of this node puts them back if the store has \
             forgotten them",
            path.display()
        ),
        (Ok(kept), false) => tracing::warn!(
            "the store cannot be reached: {kept} of {count} orders in hand are kept in {}, and the next start of this node puts \
             back what the store has forgotten",
            path.display()
        ),
        (Err(error), true) => tracing::warn!(
            %error,
            "{count} orders in hand cannot be kept in {}: if the store forgets them before the next start, they are lost",
            path.display()
        ),
        (Err(error), false) => tracing::error!(
            %error,
            "the store cannot be reached, and {count} orders in hand cannot be kept in {}: if the store has forgotten them, they \
             are lost",
            path.display()
        ),
    }
}

impl Drop for BackgroundTasks {
    /// Drops the node without a stop. Nothing is lost: every order has a timer in the store.
    fn drop(&mut self) {
        let callbacks = self.callbacks.take().map(|server| server.abort_handle());
        let releasing = self.releasing.take().map(|task| task.abort_handle());
        let worker = self.worker.take().map(|task| task.abort_handle());
        let presence = self.presence.take().map(|(_, task)| task.abort_handle());
        let counting = self.counting.take().map(|task| task.abort_handle());
        [callbacks, releasing, worker, presence, counting]
            .into_iter()
            .flatten()
            .for_each(|task| task.abort());
    }
}

/// What a caller gets for its placement, to wait for the answer.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub placed: PlacedOrder,
    engine: Arc<Engine>,
}

/// An answer, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    pub answer: Answer,
    pub order: Key,
    pub origin: Origin,
    /// How long the answer still lived when it was handed out; `None` if it lives for ever.
    pub remaining_life: Option<Duration>,
}

impl Solved {
    /// The content of the answer: a token, a text or a JSON document.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.answer.payload.text
    }
}

/// Why there is no answer for this caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error("{}", failed(.0))]
    Failed(FailCause),
    #[error("the order is a dead letter: {0}; see `quittance dead show {1}`, then replay or drop it")]
    Dead(DeadCause, Key),
    #[error("the answer has less life left than requested: place the order again")]
    Expired,
    #[error("the answer went to another order: place the order again")]
    TakenByAnother,
    #[error(
        "there is no answer yet, and the order continues: to join it, place it again with the same idempotency key"
    )]
    NotYet,
    #[error("the order is no longer on record")]
    Forgotten,
}

/// The sentence about an order that the provider rejected with this fault.
#[must_use]
pub fn rejection(fault: impl std::fmt::Display) -> String {
    format!("the provider rejected the order: {fault}; `quittance errors` explains the code")
}

fn failed(cause: &FailCause) -> String {
    match cause {
        FailCause::Rejected(fault) => rejection(fault),
        FailCause::Cancelled => "it was cancelled".into(),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SolveError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

impl Quittance {
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Places an order and waits for its answer.
    pub async fn solve(&self, order: impl Into<Order>) -> Result<Solved, SolveError> {
        Ok(self.place(order).await?.wait().await?)
    }

    /// Places an order, or joins the existing one. The order is durable when this returns.
    pub async fn place(&self, order: impl Into<Order>) -> Result<Ticket, PlaceError> {
        let Order { kind, draft } = order.into();
        let placed = self.engine.place(&kind, draft).await?;
        Ok(Ticket { placed, engine: Arc::clone(&self.engine) })
    }

    /// A ticket for an order on record.
    pub async fn ticket(&self, key: &Key) -> Result<Option<Ticket>, StoreError> {
        let Some(order) = self.read(key).await? else { return Ok(None) };
        let min_life = order.terms.min_life;
        let until = SystemClock.now() + order.terms.timeout;
        let placed = PlacedOrder {
            key: *key,
            claimant: *key,
            origin: Origin::Joined,
            min_life,
            until,
            order: Some(order),
        };
        Ok(Some(Ticket { placed, engine: Arc::clone(&self.engine) }))
    }

    /// The record of an order.
    pub async fn read(&self, key: &Key) -> Result<Option<Arc<lifecycle::Order>>, StoreError> {
        self.engine.read(key).await
    }

    /// Lists orders by key, beginning after `after`. A record that cannot be read is listed as unreadable.
    pub async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.store.list(which, after, limit).await
    }

    /// Cancels an order. An attempt that may be paid for continues, and its answer goes to the stock.
    pub async fn cancel(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(matches!(self.engine.cancel(key).await?, ApplyOutcome::Advanced { .. }))
    }

    /// Replays a dead letter. Returns whether there was one.
    pub async fn replay(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(matches!(self.engine.replay(key).await?, ApplyOutcome::Advanced { .. }))
    }

    /// Drops a dead letter for good. Returns whether there was one. An unreadable record is removed, which frees its
    /// key.
    pub async fn drop_dead(&self, key: &Key) -> Result<bool, StoreError> {
        let dropped = self.engine.drop_dead_letter(key).await?;
        Ok(matches!(dropped, DropOutcome::Discarded | DropOutcome::Applied(ApplyOutcome::Advanced { .. })))
    }

    /// The usage of these days, both included.
    pub async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.store.usage(from, to).await
    }

    /// The pools and their state, by name.
    pub async fn pools(&self) -> Result<Vec<PoolView>, StoreError> {
        self.engine.pools().await
    }

    /// Creates or changes a pool. An invalid pool is refused, and changes nothing.
    pub async fn set_pool(&self, spec: PoolSpec) -> Result<PoolView, PoolError> {
        self.engine.set_pool(spec).await
    }

    /// Removes a pool. Returns whether there was one. Its answers stay in stock until they expire.
    pub async fn remove_pool(&self, name: &str) -> Result<bool, StoreError> {
        self.engine.remove_pool(name).await
    }

    /// The currency of all amounts, by ISO 4217.
    #[must_use]
    pub fn currency(&self) -> &str {
        self.engine.currency()
    }

    /// What callers have reported about the answers of each site, read from the store. The engine of a node that only
    /// reads knows nothing of this.
    pub async fn trusts(&self) -> Result<Vec<TrustDocument>, StoreError> {
        let documents = self.membership.documents().await?.into_iter();
        let trusts = documents.filter_map(|record| match record.document {
            SharedDocument::Trust(document) => Some(document),
            _ => None,
        });
        Ok(trusts.collect())
    }

    /// The fault for which nothing is submitted until an operator has fixed the provider's account; `None` if there
    /// is none.
    #[must_use]
    pub fn paused(&self) -> Option<Fault> {
        self.engine.paused()
    }

    /// Resumes all providers, because an operator has fixed their accounts: orders that waited continue. Other nodes of
    /// the store do this within a second. Returns the number of orders.
    pub async fn resume_all(&self) -> Result<usize, StoreError> {
        self.engine.resume_all().await
    }

    /// The address that listens for callbacks; `None` if there is none.
    #[must_use]
    pub fn listens_on(&self) -> Option<SocketAddr> {
        self.running().listens_on
    }

    /// How many callbacks had an invalid MAC, and how many could not be read.
    #[must_use]
    pub fn strange_callbacks(&self) -> (u64, u64) {
        let senseless = self.running().callbacks.as_ref().map_or(0, CallbackServer::senseless);
        (self.engine.forged(), senseless)
    }

    /// How many stored records could not be read since the start.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.engine.unreadable()
    }

    /// Accepts nothing new, finishes the work in progress and returns. Nothing is lost without this call.
    pub async fn stop(&self) {
        self.engine.stop();
        let (worker, callbacks, releasing, presence, in_hand_file) = {
            let mut running = self.running();
            (
                running.worker.take(),
                running.callbacks.take(),
                running.releasing.take(),
                running.presence.take(),
                running.in_hand_file.take(),
            )
        };
        if let Some(releasing) = releasing {
            releasing.abort();
        }
        let is_present = presence.is_some();
        // A worker that waits for the provider must not keep back what the store has forgotten.
        let (is_all_stored, ()) = tokio::join!(last_look(presence), async {
            if let Some(worker) = worker {
                // It ends by itself; if it panicked there is nothing left to wait for.
                _ = worker.await;
            }
        });
        if let Some(callbacks) = callbacks {
            callbacks.close().await;
        }
        if let Some(file) = in_hand_file {
            keep_in_hand(&self.engine, &file, is_all_stored);
        }
        if let Some(counting) = self.running().counting.take() {
            counting.abort();
        }
        self.server.give_back_leases().await;
        if is_present {
            // A node that cannot sign out because the store is away is shown as silent, and then forgotten.
            _ = self.membership.leave(self.number).await;
        }
        // Last, because all that came before may be part of a trace.
        self.server.finish_traces().await;
    }

    /// The nodes of the store, and their state.
    pub async fn members(&self) -> Result<Members, StoreError> {
        self.membership.members().await
    }

    /// Findings about the store's own settings.
    pub async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        self.membership.checkup().await
    }

    /// The note of the store's seal; `None` if the store is not sealed.
    pub async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.membership.sealed().await
    }

    fn running(&self) -> MutexGuard<'_, BackgroundTasks> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Quittance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quittance").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Ticket {
    #[must_use]
    pub const fn order(&self) -> Key {
        self.placed.key
    }

    /// Waits for the answer until the caller's time is up. This may be called again.
    pub async fn wait(&self) -> Result<Solved, NoAnswer> {
        let order = self.placed.key;
        let outcome = match self.engine.wait(&self.placed).await {
            Outcome::NotYet => {
                let placed =
                    PlacedOrder { until: self.engine.now() + LAST_COMMIT_WAIT, ..self.placed.clone() };
                self.engine.wait(&placed).await
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Answered(answer) => {
                let origin = self.origin().await;
                let remaining_life = answer.remaining_life(self.engine.now());
                Ok(Solved { answer, order, origin, remaining_life })
            }
            Outcome::Expired => Err(NoAnswer::Expired),
            Outcome::TakenByAnother => Err(NoAnswer::TakenByAnother),
            Outcome::Failed(cause) => Err(NoAnswer::Failed(cause)),
            Outcome::Dead(cause) => Err(NoAnswer::Dead(cause, order)),
            Outcome::NotYet => Err(NoAnswer::NotYet),
            Outcome::Forgotten => Err(NoAnswer::Forgotten),
        }
    }

    /// The origin of the answer, read again from the store: an order may have got an answer from stock, before
    /// anything was bought for it. A caller that waited for the answer can wait for this read, too.
    async fn origin(&self) -> Origin {
        if self.placed.origin != Origin::Api {
            return self.placed.origin;
        }
        match self.engine.read(&self.placed.key).await {
            Ok(Some(order)) if order.is_from_stock() => Origin::Stock,
            _ => Origin::Api,
        }
    }
}

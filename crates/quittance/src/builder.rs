//! Builds a node from a store, a provider, an address for callbacks, and the operator's settings.

use crate::clock::FleetClock;
use crate::node_servers::{ServerSetup, Webhooks};
use crate::place::{Opened, Place, SecretError, StoreOpenError};
use crate::presence::Presence;
use crate::store_memory::StoreMemory;
use crate::{BackgroundTasks, Quittance, callback_secret};
use quittance_engine::targets::{BadPattern, HostPattern};
use quittance_engine::{Engine, LifeRule, PoolError, ProviderRules, Settings, World};
use quittance_lifecycle::{Fault, FaultClass, SubmitOutcome};
use quittance_ports::membership::{SILENT_AFTER, SKEW_MAX};
use quittance_ports::{
    Clock, FixedProvider, Member, Members, MemorySpill, PoolSpec, Provider, Spill, SpillError, StoreError,
};
use quittance_record::SpillFile;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The name of the spill's file in the home of a node.
pub const SPILL_NAME: &str = "spill";
/// The default limit of the spill, in bytes.
pub const SPILL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How many orders in flight a node on a shared store remembers.
const IN_HAND_MAX: usize = 10_000;
/// How long a node that joined a store without a secret waits for the secrets of other nodes before it counts a
/// callback as forged.
const SECRETS_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("there is no provider: give one to the builder")]
    NoProvider,
    #[error(transparent)]
    BadPattern(#[from] BadPattern),
    #[error(transparent)]
    Open(#[from] StoreOpenError),
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    #[error(
        "the store is sealed: {note}; use the store that has its orders now, or unseal this one with `quittance store \
         unseal --yes`"
    )]
    Moved { note: String },
    #[error(
        "orders are on their way to this store ({note}): finish `quittance store copy` first, or they are paid for again"
    )]
    BeingFilled { note: String },
    #[error(
        "a node on a shared store needs a folder of its own, for callbacks that come while the store is away: set its home \
         folder"
    )]
    NoHome,
    #[error("the folder {path} cannot be made or written: see that its parent is there and can be written")]
    Home { path: PathBuf, source: io::Error },
    #[error(
        "the spill file {path} cannot be used: see that its directory can be written, and that no other process uses it"
    )]
    Spill { path: PathBuf, source: SpillError },
    #[error(
        "cannot listen for callbacks on {address}: choose another `listen` address, or stop the process that uses it"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("the pool `{}` cannot be set", .name.escape_debug())]
    Pool { name: String, source: PoolError },
}

/// See [`Quittance::builder`].
pub struct Builder {
    place: Place,
    home: Option<PathBuf>,
    name: Option<String>,
    providers: Vec<(Arc<dyn Provider>, ProviderRules)>,
    pub(crate) server: ServerSetup,
    allow: Vec<String>,
    spill_bytes_max: u64,
    /// Whether the node has no provider, because it only reads.
    only_reads: bool,
    pools: Vec<PoolSpec>,
    settings: Box<dyn FnOnce(&mut Settings) + Send>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The secrets that sign callbacks.
pub(crate) struct SecretSource {
    /// The store's own secret, which also hashes the keys of orders.
    pub(crate) of_store: [u8; 32],
    /// All secrets of the store that this node knows.
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "only a server takes callbacks"))]
    pub(crate) known: Vec<[u8; 32]>,
}

/// The secret that the nodes of the store use, and whether other nodes may know of more. The store decides, because
/// this node may remember the secret of another store. While the store cannot be read, the remembered secret counts.
async fn agreed_secret(opened: &Opened, memory: &mut StoreMemory) -> Result<([u8; 32], bool), SecretError> {
    match memory.agree().await {
        Ok(is_unsettled) => match memory.secrets().first() {
            Some(secret) => Ok((*secret, is_unsettled)),
            None => Ok((opened.secret(callback_secret::draw()?).await?, is_unsettled)),
        },
        // A store that takes no writes just now must not keep a node from starting.
        Err(error) => {
            let stands = opened.standing_secret().await.ok().flatten();
            let secret = stands.or_else(|| memory.secrets().first().copied()).ok_or(error)?;
            Ok((secret, false))
        }
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            place: Place::Memory,
            home: None,
            name: None,
            providers: Vec::new(),
            server: ServerSetup::default(),
            allow: Vec::new(),
            spill_bytes_max: SPILL_BYTES_MAX,
            only_reads: false,
            pools: Vec::new(),
            settings: Box::new(|_| ()),
        }
    }

    /// Keeps orders in this directory, through crashes and loss of power. The directory is created if it is missing.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn embedded(self, dir: impl Into<PathBuf>) -> Self {
        self.place(Place::Embedded(dir.into()))
    }

    /// Keeps orders in memory, which is the default: orders in flight are lost when the process ends. For tests and
    /// trials.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self.place(Place::Memory)
    }

    /// Sets the place where orders are kept. Nodes with one place share its orders, and any of them can serve a
    /// caller.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Sets a folder of this node's own, for events that come while the store is away. It is needed if the store is
    /// on a server; an embedded store has a folder already. The folder is created if it is missing.
    #[must_use]
    pub fn home(mut self, dir: impl Into<PathBuf>) -> Self {
        self.home = Some(dir.into());
        self
    }

    /// Sets the name of this node.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a provider that takes attempts: [`ClassicProvider`](crate::ClassicProvider),
    /// [`JsonProvider`](crate::JsonProvider), or a provider of your own. With several of them, [`Settings::routing`]
    /// decides which one gets an order; give each a name with [`provider_with`](Self::provider_with).
    #[must_use]
    pub fn provider(self, provider: impl Provider + 'static) -> Self {
        self.provider_with(ProviderRules::default(), provider)
    }

    /// Adds a provider with its name, its prices and its limits.
    #[must_use]
    pub fn provider_with(mut self, rules: ProviderRules, provider: impl Provider + 'static) -> Self {
        self.providers.push((Arc::new(provider), rules));
        self
    }

    /// Submits to a service that speaks the classic protocol (`in.php`, `res.php`). Fails if its key or its address
    /// cannot be used.
    #[cfg(feature = "classic")]
    pub fn classic_provider(
        self,
        dialect: crate::ClassicDialect,
        settings: crate::ProviderSettings,
    ) -> Result<Self, crate::BadSettings> {
        let rules = ProviderRules { name: settings.name.clone(), ..ProviderRules::default() };
        Ok(self.provider_with(rules, crate::ClassicProvider::new(dialect, settings)?))
    }

    /// Submits to a service that speaks the JSON protocol (`createTask`, `getTaskResult`). Fails if its key or its
    /// address cannot be used.
    ///
    /// Here the service is the mock provider, which answers at once and costs nothing:
    ///
    /// ```
    /// use quittance::{ApiKey, JsonDialect, ProviderSettings, Quittance, Turnstile};
    /// use quittance_mock_provider::{DEMO_KEY, MockClassicDialect, MockProvider, Settings};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mock = MockProvider::start(Settings::quick(MockClassicDialect::TwoCaptcha)).await?;
    /// let url = format!("{}/capsolver", mock.url());
    /// let settings = ProviderSettings::new("main", url, ApiKey::new(DEMO_KEY));
    /// let quittance = Quittance::builder()
    ///     .json_provider(JsonDialect::CapSolver, settings)?
    ///     .settings(|settings| settings.policy.first_poll = Some(Duration::from_millis(50)))
    ///     .start()
    ///     .await?;
    ///
    /// let solved = quittance.solve(Turnstile::new("0x4AAAAAAADnPIDROrmt1Wwj", "https://shop.example.com/")).await?;
    /// assert_eq!(mock.ledger().tasks[0].answer, Some(solved.text().into()));
    /// quittance.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "json")]
    pub fn json_provider(
        self,
        dialect: crate::JsonDialect,
        settings: crate::ProviderSettings,
    ) -> Result<Self, crate::BadSettings> {
        let result_kept = dialect.facts().limits.result_kept;
        let rules = ProviderRules { name: settings.name.clone(), result_kept, ..ProviderRules::default() };
        Ok(self.provider_with(rules, crate::JsonProvider::new(dialect, settings)?))
    }

    /// Allows orders for a page host: `shop.example.org`, `*.example.org`, or `*`.
    #[must_use]
    pub fn allow(mut self, pattern: impl Into<String>) -> Self {
        self.allow.push(pattern.into());
        self
    }

    /// Sets the limit of the spill, in bytes.
    #[must_use]
    pub const fn spill_bytes_max(mut self, bytes: u64) -> Self {
        self.spill_bytes_max = bytes;
        self
    }

    /// Creates a pool at the start, or changes the pool of this name if it differs. Other pools stay as they are.
    /// [`Quittance::remove_pool`] removes one.
    #[must_use]
    pub fn pool(mut self, spec: PoolSpec) -> Self {
        self.pools.push(spec);
        self
    }

    /// Sets how long answers live, where this differs from their kind. The last rule that fits counts.
    #[must_use]
    pub fn lifetimes(self, rules: impl IntoIterator<Item = LifeRule>) -> Self {
        let rules: Vec<LifeRule> = rules.into_iter().collect();
        self.settings(move |settings| settings.lifetimes.extend(rules))
    }

    /// Changes all other settings: durations, limits, kinds. `change` is called once, with the defaults.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings) + Send + 'static) -> Self {
        let before = self.settings;
        self.settings = Box::new(|settings| {
            before(settings);
            change(settings);
        });
        self
    }

    /// Opens the store and carries orders out until [`Quittance::stop`]. Needs a tokio runtime.
    pub async fn start(mut self) -> Result<Quittance, StartError> {
        if self.providers.is_empty() {
            return Err(StartError::NoProvider);
        }
        let (name, is_shared) = (self.name.clone(), self.place.is_shared());
        let pools = std::mem::take(&mut self.pools);
        let opened = self.place.open().await?;
        if let Some(note) = opened.membership.sealed().await? {
            return Err(StartError::Moved { note });
        }
        let (lost, is_restored, opened_damage) = (opened.stale(), opened.is_restored(), opened.damage());
        let clock = FleetClock::default();
        let spill = self.spill()?;
        let mut memory = StoreMemory::recall(opened.clone(), self.folder(), self.place.address());
        let (of_store, is_unsettled) = agreed_secret(&opened, &mut memory).await?;
        let secrets = SecretSource { of_store, known: memory.secrets().to_vec() };
        let is_own = self.server.uses_secret_of_store();
        let listener = self.server.callback_listener();
        let (node, webhooks) = self.assemble(opened, spill, clock.clone(), secrets).await?;
        if let Some(address) = node.engine.callback_address().filter(|_| is_unsettled) {
            address.is_unsettled_until(clock.now() + SECRETS_WAIT);
        }
        let in_hand_file = memory.in_hand_file().filter(|_| is_shared);
        let (has_forgotten, was_replaced) = (opened_damage.is_some(), memory.is_replaced());
        memory.hold_to(&node.engine, of_store, is_own.then_some(webhooks));
        for key in &lost {
            node.engine.lose(key).await?;
        }
        if is_restored {
            node.engine.list_restored().await?;
            memory.forget_restored();
        }
        let name = name.unwrap_or_else(|| format!("process {}", std::process::id()));
        let mut presence = Presence::new(
            Arc::clone(&node.membership),
            Arc::clone(&node.engine),
            node.number,
            name,
            clock,
            memory,
        );
        if has_forgotten || was_replaced {
            lose_spending(&node, has_forgotten).await?;
        }
        // A store that is away just now hears of us when it is back. Otherwise nothing is done before we are on its
        // roll, and have a clock that agrees with the others'.
        _ = presence.heartbeat().await;
        if let Some(note) = node.membership.filling().await? {
            _ = node.membership.leave(node.number).await;
            return Err(StartError::BeingFilled { note });
        }
        if let Err(error) = set_pools(&node, pools).await {
            _ = node.membership.leave(node.number).await;
            return Err(error);
        }
        let mut running = BackgroundTasks::default();
        running.in_hand_file = in_hand_file;
        if let Some(listener) = listener {
            let server = listener.start(&node.engine).await?;
            running.listens_on = server.listens_on;
            running.callbacks = Some(server);
        }
        let is_alone = !is_shared || !has_others(&node).await;
        // A store that is away just now keeps its pauses: an operator resumes the providers.
        let has_begun = is_alone && node.engine.begin_alone().await.is_ok();
        let engine = Arc::clone(&node.engine);
        running.worker = Some(tokio::spawn(async move { engine.work().await }));
        let engine = Arc::clone(&node.engine);
        running.releasing = Some(tokio::spawn(async move {
            if has_begun { engine.release_orders().await.map(drop) } else { Ok(()) }
        }));
        // Alone, it sees every order begin and end.
        running.counting = if is_shared { node.server.keep_counting() } else { None };
        let (end, ends) = oneshot::channel();
        running.presence = Some((end, tokio::spawn(presence.keep_up(ends))));
        Ok(Quittance { running: Arc::new(std::sync::Mutex::new(running)), ..node })
    }

    /// Opens the store to read and repair it, and carries nothing out. Needs a tokio runtime.
    pub async fn open(mut self) -> Result<Quittance, StartError> {
        self.only_reads = self.providers.is_empty();
        let opened = self.place.open().await?;
        // Nothing comes in, and the file may be in use by the node that runs beside us.
        let spill = Arc::new(MemorySpill::default());
        let drawn = callback_secret::draw().map_err(SecretError::from)?;
        let secrets = SecretSource { of_store: opened.secret_as_it_is(drawn).await?, known: Vec::new() };
        self.server = self.server.without_callbacks();
        let (node, _) = self.assemble(opened, spill, FleetClock::default(), secrets).await?;
        Ok(node)
    }

    /// The folder of this node; `None` if it has none.
    fn folder(&self) -> Option<&Path> {
        match (&self.home, &self.place) {
            (Some(home), _) => Some(home),
            #[cfg(feature = "embedded")]
            (None, Place::Embedded(dir)) => Some(dir),
            _ => None,
        }
    }

    /// The spill, which keeps events while the store is away.
    fn spill(&self) -> Result<Arc<dyn Spill>, StartError> {
        let dir = match (&self.home, &self.place) {
            (Some(home), _) => {
                make_home(home).map_err(|source| StartError::Home { path: home.clone(), source })?;
                home
            }
            #[cfg(feature = "embedded")]
            (None, Place::Embedded(dir)) => dir,
            (None, place) if place.is_shared() => return Err(StartError::NoHome),
            (None, _) => return Ok(Arc::new(MemorySpill::default())),
        };
        let path = dir.join(SPILL_NAME);
        match SpillFile::open(&path, self.spill_bytes_max) {
            Ok(spill) => Ok(Arc::new(spill)),
            Err(source) => Err(StartError::Spill { path, source }),
        }
    }

    async fn assemble(
        self,
        opened: Opened,
        spill: Arc<dyn Spill>,
        clock: FleetClock,
        secrets: SecretSource,
    ) -> Result<(Quittance, Webhooks), StartError> {
        let is_shared = self.place.is_shared();
        let number = u64::from_le_bytes(callback_secret::draw().map_err(SecretError::from)?);
        let mut settings = usual_settings(number);
        let (mut adapters, rules): (Vec<Arc<dyn Provider>>, Vec<_>) = self.providers.into_iter().unzip();
        settings.providers = rules;
        (self.settings)(&mut settings);
        if self.only_reads {
            // It knows all providers by name, and calls none.
            settings.providers.resize_with(settings.providers.len().max(1), ProviderRules::default);
            adapters.resize_with(settings.providers.len(), || Arc::new(no_provider()));
        }
        complete(&mut settings, is_shared);
        for pattern in &self.allow {
            settings.targets.allow.push(HostPattern::parse(pattern)?);
        }
        // It follows from the store's own secret, and not from one that the operator may change: keys must stay what
        // they are.
        settings.keys.secret = Some(secrets.of_store);
        settings.in_hand_max = if self.place.is_shared() { IN_HAND_MAX } else { 0 };
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let prepared = self.server.prepare(&mut settings, secrets, Arc::clone(&clock));
        let webhooks = prepared.webhooks.clone();
        let Opened { store, membership, leases, .. } = opened;
        let world = World {
            store: Arc::clone(&store),
            providers: adapters,
            clock: Arc::clone(&clock),
            spill,
            webhook_sender: Arc::new(webhooks.clone()),
            membership: Arc::clone(&membership),
        };
        let engine = Arc::new(Engine::new(world, settings));
        let server = prepared.mount(&engine, leases, number);
        let node = Quittance { engine, store, membership, number, server, running: Arc::default() };
        Ok((node, webhooks))
    }
}

/// The settings that an operator has not changed.
pub(crate) fn usual_settings(node: u64) -> Settings {
    use quittance_protocol::kinds::{kind, open_kind};
    Settings::new(node, |name| Some(kind(name).unwrap_or_else(|| open_kind(name))))
}

/// Fills in what follows from the other settings and from the store.
pub(crate) fn complete(settings: &mut Settings, is_shared: bool) {
    if is_shared {
        // One clock may be ahead of the store's by so much, and another behind.
        settings.policy.clock_skew = settings.policy.clock_skew.max(SKEW_MAX * 2);
    }
    let kinds = Arc::clone(&settings.kinds);
    settings.meaning.get_or_insert_with(|| {
        Arc::new(move |kind, params| {
            let meant = quittance_protocol::json::meaning(kind, params, &|name| kinds(name))?;
            Ok(meant.map(|meant| (meant.kind, meant.params)))
        })
    });
}

/// The provider of a node that only reads the store. It is never called, and takes nothing.
fn no_provider() -> FixedProvider {
    let fault = Fault::new(FaultClass::Unreachable, "this node has no provider");
    FixedProvider::new(SubmitOutcome::Rejected(fault))
}

async fn has_any_node(node: &Quittance) -> Result<bool, StoreError> {
    let members = node.membership.members().await?;
    Ok(members.nodes.iter().any(|member| members.now.since(member.seen) < SILENT_AFTER))
}

/// Whether another node works on the store. If that cannot be read, there may be one.
async fn has_others(node: &Quittance) -> bool {
    let is_other = |members: &Members, member: &Member| {
        member.node_status.node != node.number && members.now.since(member.seen) < SILENT_AFTER
    };
    let members = node.membership.members().await;
    members.map_or(true, |members| members.nodes.iter().any(|member| is_other(&members, member)))
}

/// Notes that the store forgot before this node ran. Other running nodes put back what the pools have spent. If there
/// are none, that is not known.
async fn lose_spending(node: &Quittance, is_alone: bool) -> Result<(), StoreError> {
    if !is_alone && has_any_node(node).await? {
        node.engine.note_lost_spending();
        return Ok(());
    }
    node.engine.lose_spending().await
}

/// Sets pools. A pool that is already correct is not written, because every write makes its keeper check it again.
async fn set_pools(node: &Quittance, specs: Vec<PoolSpec>) -> Result<(), StartError> {
    if specs.is_empty() {
        return Ok(());
    }
    let there = node.pools().await?;
    for spec in specs.into_iter().filter(|spec| !there.iter().any(|pool| pool.document.spec == *spec)) {
        let name = spec.name.clone();
        node.set_pool(spec).await.map_err(|source| StartError::Pool { name, source })?;
    }
    Ok(())
}

/// Creates the folder so that only its owner may read it: events are worth money.
fn make_home(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

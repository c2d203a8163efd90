//! Reads the account of each provider at most every half minute. Clients ask for their balance all the time, and providers
//! ban accounts that pass that on.

use quittance_engine::{Engine, ProviderRules};
use quittance_lifecycle::Timestamp;
use quittance_ports::{Account, Provider};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// The least time between two reads of the account. Some providers allow two requests a minute.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// How long a caller waits for a slow provider; then it gets the last known account.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The last known account. Clones share it.
#[derive(Clone)]
pub struct AccountCache {
    provider: Arc<dyn Provider>,
    /// One caller reads at a time; the other callers wait for the result.
    last: Arc<Mutex<Option<LastRead>>>,
}

/// When the account was last read, and what it was.
#[derive(Clone, Copy, Debug)]
struct LastRead {
    at: Timestamp,
    account: Option<Account>,
}

impl fmt::Debug for AccountCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountCache")
    }
}

impl AccountCache {
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, last: Arc::default() }
    }

    /// The account, at most half a minute old if the provider answers; `None` if it was never known.
    pub async fn read(&self, now: Timestamp) -> Option<Account> {
        let mut last = self.last.lock().await;
        if let Some(read) = *last
            && read.at <= now
            && now.since(read.at) < READ_INTERVAL
        {
            return read.account;
        }
        let known = last.and_then(|read| read.account);
        let reported = tokio::time::timeout(READ_TIMEOUT, self.provider.account()).await.ok().flatten();
        let account = reported.or(known);
        *last = Some(LastRead { at: now, account });
        account
    }
}

/// A provider's account, as it was last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAccount {
    pub provider: String,
    /// The currency of the balance, by ISO 4217.
    pub currency: String,
    /// `None` if the account was never read.
    pub account: Option<Account>,
}

/// The last known account of each provider, in the order of the configuration. Clones share them.
#[derive(Clone, Debug)]
pub struct AccountCaches(Arc<RwLock<Caches>>);

type Caches = Arc<[(KnownAccount, AccountCache)]>;

impl AccountCaches {
    /// One cache for each provider of this engine.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        let caches = Self(Arc::default());
        caches.follow(engine);
        caches
    }

    /// Has the providers that this engine has now. The last read of a provider that stays is kept.
    pub fn follow(&self, engine: &Engine) {
        let known = self.caches();
        let cache_of = |rules: ProviderRules| {
            let adapter = engine.adapter(&rules.name)?;
            let same = known.iter().map(|(_, cache)| cache).find(|it| Arc::ptr_eq(&it.provider, &adapter));
            let cache = same.cloned().unwrap_or_else(|| AccountCache::new(adapter));
            Some((KnownAccount { provider: rules.name, currency: rules.currency, account: None }, cache))
        };
        let next = engine.provider_rules().into_iter().filter_map(cache_of).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn caches(&self) -> Caches {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The account of the first provider, at most half a minute old if it answers.
    pub async fn read_first(&self, now: Timestamp) -> Option<Account> {
        self.caches().first()?.1.read(now).await
    }

    /// The accounts of all providers, read at the same time, each at most half a minute old if its provider answers.
    pub async fn read_all(&self, now: Timestamp) -> Vec<KnownAccount> {
        let mut reads = JoinSet::new();
        let caches = self.caches();
        for (place, (_, cache)) in caches.iter().enumerate() {
            let cache = cache.clone();
            reads.spawn(async move { (place, cache.read(now).await) });
        }
        let mut all: Vec<KnownAccount> = caches.iter().map(|(known, _)| known.clone()).collect();
        while let Some(read) = reads.join_next().await {
            if let Ok((place, account)) = read {
                all[place].account = account;
            }
        }
        all
    }
}

//! Tenants. A tenant has a key of ours, of which only the digest is kept, and its own limits. The key decides what it
//! can see and spend.

use quittance_engine::Targets;
use quittance_engine::targets::host_of_page;
use quittance_lifecycle::{Priority, Reuse, Timestamp};
use quittance_protocol::Dialect;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The length of a key. Clients refuse any other length.
pub const KEY_BYTES: usize = 32;

/// The suffix of a key that asks for a fresh answer.
const NO_CACHE_SUFFIX: &str = "__nocache";

/// The digest of a key. Keys are random and long, so a plain digest does not reveal them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        quittance_lifecycle::Key::parse(text).ok().map(|key| Self(key.0))
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(..)")
    }
}

/// The operator's settings for one tenant.
#[derive(Clone, Debug)]
pub struct TenantSettings {
    pub name: String,
    pub key: KeyDigest,
    /// The hosts that the tenant may automate, out of those that the operator allows. All of those, if absent.
    pub targets: Option<Targets>,
    /// The kinds that the tenant may order. All kinds, if absent.
    pub kinds: Option<Vec<String>>,
    pub reuse: Option<Reuse>,
    /// How many turns in the queue to the provider the tenant gets for one of a tenant without a weight.
    pub weight: Option<u32>,
    /// The priority of the tenant's orders that set none.
    pub priority: Option<Priority>,
    /// The rate of new placements.
    pub rate: Option<Rate>,
    /// How many of the tenant's orders may be open at once.
    pub open_max: Option<usize>,
    /// The dialect of the tenant's requests that name none in the path.
    pub dialect: Option<Dialect>,
    /// The tenant's own secret that signs its webhooks.
    pub webhook_secret: Option<[u8; 32]>,
    /// Whether the tenant may see the balance of the provider's account, and so the spending of all tenants.
    pub sees_balance: bool,
}

impl TenantSettings {
    #[must_use]
    pub fn new(name: impl Into<String>, key: KeyDigest) -> Self {
        Self {
            name: name.into(),
            key,
            targets: None,
            kinds: None,
            reuse: None,
            weight: None,
            priority: None,
            rate: None,
            open_max: None,
            dialect: None,
            webhook_secret: None,
            sees_balance: false,
        }
    }
}

/// A rate: one placement in each `every`, and up to `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub every: Duration,
    pub burst: u32,
}

/// A tenant, and the used part of its rate.
pub struct Tenant {
    pub settings: TenantSettings,
    /// When the next placement would be on time (GCRA).
    due: Arc<Mutex<Timestamp>>,
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant({})", self.settings.name)
    }
}

impl Tenant {
    #[must_use]
    pub fn new(settings: TenantSettings) -> Self {
        Self { settings, due: Arc::new(Mutex::new(Timestamp::ZERO)) }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Takes one placement from the rate, or returns how long to wait for the next.
    pub fn spend(&self, now: Timestamp) -> Result<(), Duration> {
        let Some(Rate { every, burst }) = self.settings.rate else { return Ok(()) };
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = every * burst.saturating_sub(1);
        // A clock that was set back must not lock a tenant out for longer than its whole burst.
        let next = (*due).clamp(now, now + ahead + every);
        let early = next.since(now);
        if early > ahead {
            return Err(early - ahead);
        }
        *due = next + every;
        Ok(())
    }
}

/// The key without its suffix, and whether the suffix asks for a fresh answer.
pub(crate) fn without_suffix(key: &str) -> (&str, bool) {
    match key.strip_suffix(NO_CACHE_SUFFIX) {
        Some(key) => (key, true),
        None => (key, false),
    }
}

/// A setting about reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReuseSetting {
    pub reuse: Reuse,
    /// The name of the setting, for the log: `reuse.kinds.turnstile`.
    pub name: String,
}

/// Finds the setting for a tenant, a kind and a page host, if there is one.
type Rule = dyn Fn(&str, &str, Option<&str>) -> Option<ReuseSetting> + Send + Sync;

/// The operator's settings about reuse. If none applies, the kind decides.
#[derive(Clone)]
pub struct ReuseRule(pub Arc<Rule>);

impl fmt::Debug for ReuseRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReuseRule")
    }
}

/// All tenants, and the key of the operator.
#[derive(Debug, Default)]
pub struct Tenants {
    known: Vec<Arc<Tenant>>,
    /// The tenant of all requests if no tenant is configured: the user of this machine.
    local: Option<Arc<Tenant>>,
    admin: Option<KeyDigest>,
    reuse: Option<ReuseRule>,
}

/// A key that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// The request has no key, or a key of a length that no key has.
    NoKey,
    WrongKey,
}

/// The sender of a request, identified by its key.
#[derive(Clone, Debug)]
pub struct Caller {
    pub tenant: Arc<Tenant>,
    /// Whether the caller wants a fresh answer.
    pub is_fresh_wanted: bool,
}

impl Tenants {
    /// The name of the tenant if no tenant is configured.
    pub const LOCAL: &'static str = "default";

    #[must_use]
    pub fn new(tenants: Vec<TenantSettings>, admin: Option<KeyDigest>) -> Self {
        let known: Vec<_> = tenants.into_iter().map(Tenant::new).map(Arc::new).collect();
        let local = known
            .is_empty()
            .then(|| Arc::new(Tenant::new(TenantSettings::new(Self::LOCAL, KeyDigest([0; 32])))));
        Self { known, local, admin, reuse: None }
    }

    /// These tenants, where each that `present` has under the same name keeps the used part of its rate.
    #[must_use]
    pub(crate) fn following(mut self, present: &Self) -> Self {
        for tenant in self.known.iter_mut().chain(&mut self.local) {
            if let Some(same) = present.named(tenant.name()) {
                let settings = tenant.settings.clone();
                *tenant = Arc::new(Tenant { settings, due: Arc::clone(&same.due) });
            }
        }
        self
    }

    /// The tenants with a limit of open orders.
    pub(crate) fn limited(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter(|tenant| tenant.settings.open_max.is_some()).map(|tenant| tenant.name())
    }

    /// Sets a rule about reuse that overrides the settings of the tenants.
    #[must_use]
    pub fn with_reuse(self, rule: Option<ReuseRule>) -> Self {
        Self { reuse: rule, ..self }
    }

    /// The setting about answers of this kind for this tenant, if the order has no `reuse`. `None` means that the
    /// kind decides.
    #[must_use]
    pub fn reuse(&self, tenant: &TenantSettings, kind: &str, page: Option<&str>) -> Option<ReuseSetting> {
        match &self.reuse {
            Some(ReuseRule(rule)) => rule(&tenant.name, kind, page.and_then(host_of_page).as_deref()),
            None => tenant
                .reuse
                .map(|reuse| ReuseSetting { reuse, name: format!("tenant.{}.reuse", tenant.name) }),
        }
    }

    /// Whether no key is needed: then requests from other sites are refused.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.local.is_some()
    }

    /// The caller of every request, if no key is needed.
    #[must_use]
    pub fn local(&self) -> Option<Caller> {
        let tenant = Arc::clone(self.local.as_ref()?);
        Some(Caller { tenant, is_fresh_wanted: false })
    }

    /// Whether there is at most one tenant.
    #[must_use]
    pub fn is_only_one(&self) -> bool {
        self.known.len() <= 1
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().chain(&self.local).map(|tenant| tenant.name())
    }

    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Tenant>> {
        self.known.iter().chain(&self.local).find(|tenant| tenant.name() == name)
    }

    /// The caller with this key. Every tenant is compared in full, so the time reveals neither the tenant nor how
    /// close a guess was.
    pub fn caller(&self, key: &str) -> Result<Caller, NotKnown> {
        let (key, is_fresh_wanted) = without_suffix(key);
        if key.len() != KEY_BYTES {
            return Err(NotKnown::NoKey);
        }
        if let Some(local) = &self.local {
            return Ok(Caller { tenant: Arc::clone(local), is_fresh_wanted });
        }
        let shown = KeyDigest::of(key);
        let none_found = u64::MAX;
        let found = (0u64..).zip(&self.known).fold(none_found, |found, (index, tenant)| {
            let is_match: Choice = tenant.settings.key.0.ct_eq(&shown.0);
            u64::conditional_select(&found, &index, is_match)
        });
        let tenant = usize::try_from(found).ok().and_then(|index| self.known.get(index));
        tenant.map(|tenant| Caller { tenant: Arc::clone(tenant), is_fresh_wanted }).ok_or(NotKnown::WrongKey)
    }

    /// Whether this is the operator's key. If no key is configured at all, every caller on this machine is the
    /// operator.
    #[must_use]
    pub fn is_admin(&self, key: &str) -> bool {
        match &self.admin {
            Some(admin) => admin.0.ct_eq(&KeyDigest::of(key).0).into(),
            None => self.is_open(),
        }
    }
}

//! The request of a caller and its meaning. A [`Draft`] is what a caller sent. [`Draft::check`] turns it into the
//! [`Terms`] of an order and its key, or returns exactly what is wrong.

use crate::answer::Money;
use crate::bad_request::BadRequest;
use crate::key::{Digester, Key, Target};
use crate::kind::{Field, Identity, Kind, Shape};
use crate::policy::Policy;
use crate::priority::Priority;
use crate::retry::RetryLimits;
use crate::time::{Timestamp, millis};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

pub const TENANT_BYTES_MAX: usize = 64;
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
pub const KIND_BYTES_MAX: usize = 64;
pub const PARAMS_MAX: usize = 64;
pub const PARAM_NAME_BYTES_MAX: usize = 128;
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
pub const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;
pub const PAGE_ADDRESS_BYTES_MAX: usize = 8 * 1024;
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Value {
    /// Shows only the size of a value: it may be a password of a proxy or a private image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// What equal placements without an idempotency key mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// One order: later placements join it while it is in flight, and get the same answer while that is good.
    Shared,
    /// Separate orders: each placement gets an answer of its own.
    Exclusive,
}

impl Reuse {
    /// The default of a kind: exclusive if the site takes an answer only once, shared if the answer can be used
    /// again.
    #[must_use]
    pub const fn by_kind(kind: &Kind) -> Self {
        if kind.single_use { Self::Exclusive } else { Self::Shared }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

/// What a caller requests, as the API received it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub tenant: String,
    pub params: BTreeMap<String, Value>,
    pub idempotency_key: Option<String>,
    /// The reuse that the caller or a setting wants. If neither is set, the [kind](Reuse::by_kind) decides.
    pub reuse: Option<Reuse>,
    /// How long the order may take.
    pub timeout: Option<Duration>,
    /// Fewer retries, or longer pauses, than the operator sets. More retries than the operator allows, or shorter
    /// pauses, have no effect.
    pub retry: RetryLimits,
    /// How much life the answer must have when it is handed out. `None`: an answer that is bought for the caller only
    /// has to be alive.
    pub min_life: Option<Duration>,
    /// Whether an answer from stock is not wanted.
    pub no_stock: bool,
    /// How long the caller may take to collect an answer that is ready. The answer must have the requested life left
    /// then.
    pub collected_in: Duration,
    /// The place in a pool that this order fills; `None` if the order is for a caller.
    pub slot: Option<Slot>,
    /// How urgent the order is; `None` is [`Priority::Normal`], and [`Priority::Bulk`] for a place in a pool.
    pub priority: Option<Priority>,
    /// The caller's `traceparent` (W3C), or an empty text.
    pub trace: String,
}

/// A place in a pool, and how often it has been filled. Nothing else determines the key of a refill, so two nodes
/// that refill the same place at once place one order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub pool: String,
    pub number: u32,
    pub generation: u64,
}

/// What the operator sets about keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySettings {
    /// Whether orders through different proxies are different orders.
    pub proxy_counts: bool,
    /// The length of the windows into which time is split. Equal orders in different windows are different orders.
    pub window: Option<Duration>,
    /// The secret for hashing keys and targets, equal on all nodes of a store. Without it, a key is a plain hash of
    /// values that others can guess: the tenant, the site, the site key.
    pub secret: Option<[u8; 32]>,
}

/// The terms of an order. They do not change during one life of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub tenant: String,
    pub kind: String,
    pub params: BTreeMap<String, Value>,
    pub target: Target,
    /// A digest of the whole request, which distinguishes a repeat from a different request under the same key. For
    /// an order without a chosen key, the target.
    pub fingerprint: [u8; 32],
    /// Whether the caller chose the key.
    pub keyed: bool,
    pub reuse: Reuse,
    pub single_use: bool,
    pub life: Option<Duration>,
    /// How much life the answer must have left for the callers for which it was bought; zero if they requested none.
    pub min_life: Duration,
    /// How much life a reused answer must have left: one for a later placement, or from stock.
    pub margin: Duration,
    pub timeout: Duration,
    /// The limits of retries that the caller asked for.
    pub retry: RetryLimits,
    pub keep: Duration,
    /// The host of the page; empty if the order has no page. Usage is counted by site. The engine writes it in ASCII
    /// (`xn--`): this crate has no tables for that.
    pub site: String,
    /// Whether an answer from stock is accepted.
    pub takes_stock: bool,
    /// How long the caller may take to collect an answer that is ready.
    pub collected_in: Duration,
    /// The place in a pool that the answer fills.
    pub slot: Option<Slot>,
    /// How urgent this placement is. The [order](crate::order::Order::priority) may have become more urgent since.
    pub priority: Priority,
    /// The provider and the currency of the account there, as [`account`](crate::account::account) writes them. Usage
    /// is counted by both.
    pub account: String,
    /// The price of an answer of this kind on the price list, used if the provider reports none; `None` if the list
    /// has no price.
    pub price: Option<Money>,
    /// The `traceparent` of the caller that began this life, or an empty text.
    pub trace: String,
}

/// The longest time to hand out an answer to a waiting caller, including the write to the store before it.
const HANDED_OUT_IN: Duration = Duration::from_secs(1);

impl Terms {
    /// How long after a placement a reused answer must keep its margin.
    #[must_use]
    pub fn promised_for(&self) -> Duration {
        self.collected_in.max(HANDED_OUT_IN)
    }

    /// Whether the stock is looked in before the order is placed. Any other order that takes answers from stock looks
    /// there at its first step.
    #[must_use]
    pub fn is_supplied_at_once(&self) -> bool {
        self.takes_stock && self.reuse == Reuse::Exclusive && !self.keyed && self.min_life.is_zero()
    }

    /// Whether the stock may have an answer that the placement has not looked for.
    #[must_use]
    pub fn may_be_stocked(&self) -> bool {
        self.takes_stock && !self.is_supplied_at_once()
    }

    /// How long after its solve an answer can still be reused.
    #[must_use]
    pub fn usable(&self) -> Option<Duration> {
        self.life.map(|life| life.saturating_sub(self.margin))
    }

    /// The number of bytes of text and files in the terms, which is their cost in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.params.iter().map(|(name, value)| name.len() + value.as_bytes().len()).sum()
    }
}

impl Draft {
    #[must_use]
    pub fn new(tenant: impl Into<String>) -> Self {
        Self {
            tenant: tenant.into(),
            params: BTreeMap::new(),
            idempotency_key: None,
            reuse: None,
            timeout: None,
            retry: RetryLimits::NONE,
            min_life: None,
            no_stock: false,
            collected_in: Duration::ZERO,
            slot: None,
            priority: None,
            trace: String::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Checks the draft. Returns the key and the terms of its order. `nonce` must be new for each call: it makes
    /// exclusive placements different.
    pub fn check(
        self,
        kind: &Kind,
        settings: KeySettings,
        policy: &Policy,
        now: Timestamp,
        nonce: u128,
    ) -> Result<(Key, Terms), BadRequest> {
        self.check_frame()?;
        if kind.name.is_empty() || kind.name.len() > KIND_BYTES_MAX || kind.name.chars().any(char::is_control)
        {
            return Err(BadRequest::BadKindName { name: kind.name.to_string() });
        }
        check_params(kind, &self.params)?;
        for (name, value) in &self.params {
            check_sizes(kind, name, value)?;
        }
        let (min_life, margin) = check_min_life(kind, self.min_life)?;
        // The promised life is part of the order's identity. The id says nothing about the callers, so all of them
        // must have requested the same life. An answer that lives for ever has every life.
        let requested_life = if kind.life.is_some() { min_life } else { Duration::ZERO };
        let timeout = self.timeout.unwrap_or(policy.timeout);
        if timeout < Duration::from_secs(1) || timeout > TIMEOUT_MAX {
            return Err(BadRequest::BadTimeout { wanted: timeout });
        }
        let target = Target(identity(&self.tenant, kind, &self.params, settings.proxy_counts));
        let target = target.hidden(settings.secret.as_ref());
        // Only an order whose key was chosen can be mistaken for another, and every join pays for the digest.
        let fingerprint = match self.idempotency_key {
            Some(_) => fingerprint(&self.tenant, kind, &self.params, requested_life, settings.proxy_counts),
            None => target.0,
        };
        let reuse = match self.slot {
            Some(_) => Reuse::Exclusive,
            None => self.reuse.unwrap_or(Reuse::by_kind(kind)),
        };
        let site = site(kind, &self.params);
        let key = match (&self.slot, &self.idempotency_key, reuse) {
            (Some(slot), ..) => Key::slot(&self.tenant, slot).hidden(settings.secret.as_ref()),
            (None, Some(chosen), _) => Key::chosen(&self.tenant, chosen).hidden(settings.secret.as_ref()),
            (None, None, Reuse::Shared) => Key::shared(&target, requested_life, settings.window, now),
            (None, None, Reuse::Exclusive) => Key::exclusive(&target, nonce),
        };
        let usual = if self.slot.is_some() { Priority::Bulk } else { Priority::Normal };
        let terms = Terms {
            tenant: self.tenant,
            kind: kind.name.to_string(),
            params: self.params,
            target,
            fingerprint,
            keyed: self.idempotency_key.is_some(),
            reuse,
            single_use: kind.single_use,
            life: kind.life,
            min_life,
            margin,
            timeout,
            retry: self.retry,
            keep: policy.keep,
            site,
            takes_stock: kind.single_use && !self.no_stock && self.slot.is_none(),
            collected_in: self.collected_in,
            slot: self.slot,
            priority: self.priority.unwrap_or(usual),
            account: String::new(),
            price: None,
            trace: self.trace,
        };
        Ok((key, terms))
    }

    fn check_frame(&self) -> Result<(), BadRequest> {
        let odd = self.tenant.chars().any(char::is_control);
        if odd || self.tenant.is_empty() || self.tenant.len() > TENANT_BYTES_MAX {
            return Err(BadRequest::BadTenant { bytes: self.tenant.len() });
        }
        if let Some(key) = &self.idempotency_key
            && (key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX)
        {
            return Err(BadRequest::IdempotencyKeyLength { bytes: key.len() });
        }
        if self.params.len() > PARAMS_MAX {
            return Err(BadRequest::TooManyParams { found: self.params.len() });
        }
        Ok(())
    }
}

/// Checks that the parameters include all that the kind requires, and that every known parameter has its shape.
pub fn check_params(kind: &Kind, params: &BTreeMap<String, Value>) -> Result<(), BadRequest> {
    kind.fields.iter().try_for_each(|field| check_field(kind, field, params))
}

fn check_field(kind: &Kind, field: &Field, params: &BTreeMap<String, Value>) -> Result<(), BadRequest> {
    let value = params.get(field.name);
    let is_given =
        |name: &&str| params.get(*name).is_some_and(|value| !value.as_bytes().trim_ascii().is_empty());
    let is_required = field.required && !field.substitutes.iter().any(is_given);
    let missing = || BadRequest::MissingField { kind: kind.name.to_string(), field: field.name };
    let name = || field.name.to_string();
    match (value, field.shape) {
        (None, _) if is_required => Err(missing()),
        (None, _) => Ok(()),
        (
            Some(Value::Bytes(_)),
            Shape::Text | Shape::PageAddress | Shape::VendorAddress | Shape::Document,
        ) => Err(BadRequest::NotText { field: name() }),
        (Some(Value::Text(text)), _) if text.trim().is_empty() => {
            if is_required {
                Err(missing())
            } else {
                Ok(())
            }
        }
        (Some(Value::Text(_)), Shape::File { .. }) => Err(BadRequest::NotAFile { field: name() }),
        (Some(Value::Text(_)), Shape::Text | Shape::VendorAddress | Shape::Document) => Ok(()),
        (Some(Value::Text(text)), Shape::PageAddress) => {
            page_host(text).map(drop).map_err(|why| BadRequest::NotAPageAddress { field: name(), why })
        }
        (Some(Value::Bytes(bytes)), Shape::File { bytes_min, bytes_max }) => match bytes.len() {
            n if n < bytes_min.max(1) => Err(BadRequest::FileTooSmall { field: name(), bytes: n, bytes_min }),
            n if n > bytes_max => Err(BadRequest::FileTooLarge { field: name(), bytes: n, bytes_max }),
            _ => Ok(()),
        },
    }
}

/// Checks the size limits that hold for every parameter, also of open kinds.
fn check_sizes(kind: &Kind, name: &str, value: &Value) -> Result<(), BadRequest> {
    if name.is_empty() || name.len() > PARAM_NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(BadRequest::BadParamName { name: name.into() });
    }
    // A document or a picture is a file that travels as text.
    let is_document = kind.fields.iter().any(|field| field.name == name && field.shape == Shape::Document);
    let bytes_max = if is_document { FILE_BYTES_MAX } else { TEXT_BYTES_MAX };
    match value {
        Value::Text(text) if text.len() > bytes_max => {
            Err(BadRequest::TextTooLong { field: name.into(), bytes: text.len(), bytes_max })
        }
        Value::Bytes(bytes) if bytes.len() > FILE_BYTES_MAX => Err(BadRequest::FileTooLarge {
            field: name.into(),
            bytes: bytes.len(),
            bytes_max: FILE_BYTES_MAX,
        }),
        _ => Ok(()),
    }
}

/// The least life of an answer that is bought for the caller, and of a reused one. Part of every answer's life passes
/// before we know of it, so not all of it can be promised.
fn check_min_life(kind: &Kind, wanted: Option<Duration>) -> Result<(Duration, Duration), BadRequest> {
    let min_life = wanted.unwrap_or_default();
    let margin = min_life.max(kind.margin);
    match kind.life {
        Some(life) if margin > life * 3 / 4 => {
            Err(BadRequest::LifeNotToBeHad { wanted: margin, most: life * 3 / 4 })
        }
        _ => Ok((min_life, margin)),
    }
}

/// The host of an absolute http or https address, or what is wrong with the address.
pub fn page_host(address: &str) -> Result<&str, &'static str> {
    if address.len() > PAGE_ADDRESS_BYTES_MAX {
        return Err("it is too long");
    }
    // Browsers read a backslash as a slash, so it could make two readers see two hosts.
    let is_odd = if address.is_ascii() {
        address.bytes().any(|byte| byte <= b' ' || byte == b'\\' || byte == 0x7f)
    } else {
        address.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\')
    };
    if is_odd {
        return Err("it contains a space, a backslash or a control character");
    }
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| {
            address
                .get(..scheme.len())
                .filter(|s| s.eq_ignore_ascii_case(scheme))
                .map(|_| &address[scheme.len()..])
        })
        .ok_or("it does not begin with http:// or https://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']').ok_or("its bracket is not closed")?;
            let port = match after {
                "" => None,
                _ => Some(after.strip_prefix(':').ok_or("something follows its bracket")?),
            };
            (host, port)
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let is_port =
        |port: &str| port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if port.is_some_and(|port| !is_port(port)) {
        return Err("its port is not a number from 0 to 65535");
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match host {
        "" => Err("it names no host"),
        _ if !host.chars().all(allowed) => Err("its host has a character that no host has"),
        _ if !host.chars().any(char::is_alphanumeric) => Err("it names no host"),
        _ if host.contains("..") || host.starts_with('.') => Err("its host has an empty part"),
        _ => Ok(host),
    }
}

/// The host of the page of these parameters as the caller wrote it, in lower case, or an empty text.
#[must_use]
pub fn site(kind: &Kind, params: &BTreeMap<String, Value>) -> String {
    let page = kind.fields.iter().find(|field| field.shape == Shape::PageAddress);
    match page.and_then(|field| params.get(field.name)) {
        Some(Value::Text(address)) => page_host(address)
            .map_or_else(|_| String::new(), |host| host.trim_end_matches('.').to_lowercase()),
        _ => String::new(),
    }
}

/// A digest that identifies the answer that these parameters request. Only parameters with an effect go in, by name,
/// so that a better description of a kind does not change the keys of existing orders.
fn identity(tenant: &str, kind: &Kind, params: &BTreeMap<String, Value>, proxy_counts: bool) -> [u8; 32] {
    let address_counts = proxy_counts || kind.bound_to_address;
    let identifies = |name: &str| match kind.identity {
        _ if kind.address_fields.contains(&name) => address_counts,
        Identity::Fields => kind.fields.iter().any(|field| field.identifies && field.name == name),
        Identity::Everything => true,
    };
    digest("quittance/target/1", tenant, kind, params, identifies)
}

/// A digest of the whole request, which detects a different request under a chosen key. If the proxy does not count,
/// a retry through another proxy is still a retry.
fn fingerprint(
    tenant: &str,
    kind: &Kind,
    params: &BTreeMap<String, Value>,
    min_life: Duration,
    proxy_counts: bool,
) -> [u8; 32] {
    let address_counts = proxy_counts || kind.bound_to_address;
    let counts = |name: &str| address_counts || !kind.address_fields.contains(&name);
    let request = digest("quittance/asked/1", tenant, kind, params, counts);
    if min_life.is_zero() {
        return request;
    }
    Digester::new("quittance/asked-with-life/1").part(&request).number(millis(min_life)).finish()
}

fn digest(
    purpose: &str,
    tenant: &str,
    kind: &Kind,
    params: &BTreeMap<String, Value>,
    counts: impl Fn(&str) -> bool,
) -> [u8; 32] {
    let start = Digester::new(purpose).part(tenant.as_bytes()).part(kind.name.as_bytes());
    everything_material(kind, params)
        .filter(|(name, _)| counts(name))
        .fold(start, |digester, (name, value)| digester.part(name.as_bytes()).part(value))
        .finish()
}

fn default(kind: &Kind, name: &str) -> Option<&'static [u8]> {
    let field = kind.fields.iter().find(|field| field.name == name)?;
    field.default.map(str::as_bytes)
}

/// The parameters with an effect: without those that are immaterial, and those that only repeat the default.
fn everything_material<'a>(
    kind: &'a Kind,
    params: &'a BTreeMap<String, Value>,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    params
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, value)| !kind.immaterial.contains(name) && default(kind, name) != Some(*value))
}

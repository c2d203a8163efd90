//! What makes two placements one order: a 256-bit digest of what identifies the answer. The length of every part is
//! written before it, so that different parts never give the same joined text.

use crate::terms::Slot;
use crate::time::{Timestamp, millis};
use alloc::string::String;
use core::fmt;
use core::time::Duration;
use sha2::{Digest, Sha256};

/// The key of one order, equal on every node and in every store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 32]);

/// The first 52 bits of a key: as many as fit into the decimal ids that clients accept. Two keys share them about
/// once in a million sets of a hundred thousand orders. A reader that finds two keys must use neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHead(u64);

impl KeyHead {
    pub const BITS: u32 = 52;

    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> Self::BITS == 0 { Some(Self(bits)) } else { None }
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The last key before all keys that begin with these bits, if there is one.
    #[must_use]
    pub fn before(self) -> Option<Key> {
        let bits = self.0.checked_sub(1)? << (64 - Self::BITS) | 0xfff;
        let mut key = [0xff; 32];
        key[..8].copy_from_slice(&bits.to_be_bytes());
        Some(Key(key))
    }
}

/// A target: what an answer is good for. All orders of one target can use each other's answers. An answer without an
/// owner is in the stock of its target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(pub [u8; 32]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    Length { found: usize },
    NotHex { at: usize },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found } => {
                write!(f, "an order's key is 64 hexadecimal digits, and this has {found} bytes")
            }
            Self::NotHex { at } => {
                write!(f, "an order's key is hexadecimal, and character {} is not", at + 1)
            }
        }
    }
}

impl core::error::Error for KeyError {}

impl Key {
    /// The key of a shared order for `target` at this moment, whose answer must have `min_life` left. `window` splits
    /// time, so that no order is older than one window.
    #[must_use]
    pub fn shared(target: &Target, min_life: Duration, window: Option<Duration>, now: Timestamp) -> Self {
        let slot = window.map_or(0, |window| (now.as_millis() / millis(window).max(1)).saturating_add(1));
        let digester = Digester::new("quittance/shared/1").part(&target.0).number(slot);
        // Most callers ask for no life, and their keys stay as they were before it counted.
        let digester = if min_life.is_zero() { digester } else { digester.number(millis(min_life)) };
        Self(digester.finish())
    }

    /// The key of one exclusive placement. `nonce` must be new each time.
    #[must_use]
    pub fn exclusive(target: &Target, nonce: u128) -> Self {
        Self(Digester::new("quittance/exclusive/1").part(&target.0).part(&nonce.to_le_bytes()).finish())
    }

    /// The key of an order with an idempotency key, within the caller's own tenant.
    #[must_use]
    pub fn chosen(tenant: &str, idempotency_key: &str) -> Self {
        let digester = Digester::new("quittance/chosen/1").part(tenant.as_bytes());
        Self(digester.part(idempotency_key.as_bytes()).finish())
    }

    /// The key of the order that fills a place in a pool, for one generation of the place.
    #[must_use]
    pub fn slot(tenant: &str, slot: &Slot) -> Self {
        let digester = Digester::new("quittance/slot/1").part(tenant.as_bytes()).part(slot.pool.as_bytes());
        Self(digester.number(slot.number.into()).number(slot.generation).finish())
    }

    /// This key hashed with a secret, so that a reader cannot guess the values behind it.
    #[must_use]
    pub fn hidden(self, secret: Option<&[u8; 32]>) -> Self {
        Self(hidden("quittance/key/1", self.0, secret))
    }

    /// The claimant under which an order takes an answer from the stock. It changes with each life and each
    /// attempt, so that a slow taker can neither use nor return what was taken for a later need.
    #[must_use]
    pub fn claimant(&self, life: u32, attempts: u32) -> Self {
        let digester = Digester::new("quittance/claimant/1").part(&self.0);
        Self(digester.number(life.into()).number(attempts.into()).finish())
    }

    /// The key of the order that holds the surplus answer of an attempt in stock. It does not change if the answer is
    /// stocked again.
    #[must_use]
    pub fn surplus(&self, born: Timestamp, attempt: u32) -> Self {
        let digester = Digester::new("quittance/spare/1").part(&self.0);
        Self(digester.number(born.as_millis()).number(attempt.into()).finish())
    }

    /// The key of the order that follows the one under this key. `before` is the order that followed it until now, if
    /// there was one.
    #[must_use]
    pub fn follower(&self, born: Timestamp, life: u32, before: Option<&Self>) -> Self {
        let digester = Digester::new("quittance/follower/1").part(&self.0).number(born.as_millis());
        let digester = digester.number(life.into());
        Self(digester.part(before.map_or(&[], |before| &before.0[..])).finish())
    }

    #[must_use]
    pub fn head(&self) -> KeyHead {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        KeyHead(u64::from_be_bytes(first) >> (64 - KeyHead::BITS))
    }

    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(KeyError::Length { found: digits.len() });
        }
        let mut bytes = [0; 32];
        for (at, &digit) in digits.iter().enumerate() {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return Err(KeyError::NotHex { at }),
            };
            bytes[at / 2] = bytes[at / 2] << 4 | value;
        }
        Ok(Self(bytes))
    }

    /// Eight bytes that differ between orders, for jitter.
    #[must_use]
    pub const fn grain(&self) -> u64 {
        let b = &self.0;
        u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
    }

    /// The first characters of the key, enough to distinguish orders on a screen.
    #[must_use]
    pub fn short(&self) -> String {
        alloc::format!("{self}")[..12].into()
    }
}

impl Target {
    /// This target hashed with a secret, so that a reader cannot guess the values behind it.
    #[must_use]
    pub fn hidden(self, secret: Option<&[u8; 32]>) -> Self {
        Self(hidden("quittance/hidden-target/1", self.0, secret))
    }
}

fn hidden(purpose: &str, digest: [u8; 32], secret: Option<&[u8; 32]>) -> [u8; 32] {
    secret.map_or(digest, |secret| Digester::new(purpose).part(secret).part(&digest).finish())
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Every record holds a handful of these, so they are written at once and not digit by digit.
    let mut text = [0; 64];
    for (at, byte) in bytes.iter().enumerate() {
        text[2 * at] = DIGITS[usize::from(byte >> 4)];
        text[2 * at + 1] = DIGITS[usize::from(byte & 15)];
    }
    f.write_str(core::str::from_utf8(&text[..2 * bytes.len()]).map_err(|_| fmt::Error)?)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0[..6], f)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0[..6], f)
    }
}

/// SHA-256 over parts, each with its length before it.
pub(crate) struct Digester(Sha256);

impl Digester {
    pub(crate) fn new(purpose: &str) -> Self {
        Self(Sha256::new()).part(purpose.as_bytes())
    }

    pub(crate) fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub(crate) fn number(self, n: u64) -> Self {
        self.part(&n.to_le_bytes())
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

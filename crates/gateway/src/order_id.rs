//! The ids that clients see: decimal, at most 2^53, and equal in every API and on every node, because they are
//! derived from the order's key. They are not stored, and placing the same order again gives the same id.

use quittance_lifecycle::{Key, KeyHead, Origin};
use std::fmt;
use std::str::FromStr;

/// The id of an order, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId(u64);

impl OrderId {
    /// The id of an order. An answer from the stock is stored under the order that bought it. The caller that took it
    /// has another id than the caller that placed that order, so that neither can read the other's.
    #[must_use]
    pub fn new(key: &Key, is_from_stock: bool) -> Self {
        Self((key.head().bits() << 1 | u64::from(is_from_stock)) + 1)
    }

    #[must_use]
    pub fn of(key: &Key, origin: Origin) -> Self {
        Self::new(key, origin == Origin::Stock)
    }

    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        let id = Self(number);
        (number > 0 && KeyHead::from_bits((number - 1) >> 1).is_some()).then_some(id)
    }

    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn head(self) -> KeyHead {
        KeyHead::from_bits((self.0 - 1) >> 1).expect("an id is checked when it is made")
    }

    #[must_use]
    pub const fn is_from_stock(self) -> bool {
        (self.0 - 1) & 1 == 1
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is a whole number from 1 to 2^53")]
pub struct NotAnId;

impl FromStr for OrderId {
    type Err = NotAnId;

    /// Accepts only what we write ourselves: no sign, no space, no leading zero.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number = is_plain.then(|| text.parse().ok()).flatten();
        number.and_then(Self::from_number).ok_or(NotAnId)
    }
}

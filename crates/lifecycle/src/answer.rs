//! The answer: its content, its cost, and the moment at which it expires.

use crate::time::Timestamp;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::AddAssign;
use core::time::Duration;

/// An amount in millionths of the unit of the account's currency, which the node's settings name. Floats are never
/// used for money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Money(pub u64);

/// Adds amounts. A sum that is too large for the type stays at the largest amount.
impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// Writes an amount as a decimal with no more places than it needs, such as `0.00299`, without the currency.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(micros) = self;
        let (whole, mut part, mut places) = (micros / 1_000_000, micros % 1_000_000, 6);
        if part == 0 {
            return write!(f, "{whole}");
        }
        while part % 10 == 0 {
            (part, places) = (part / 10, places - 1);
        }
        write!(f, "{whole}.{part:0places$}")
    }
}

/// A sum of prices, and how many prices are not in it because they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceSum {
    pub sum: Money,
    pub unpriced: u64,
}

impl PriceSum {
    pub fn add(&mut self, price: Option<Money>) {
        match price {
            Some(Money(micros)) => self.sum = Money(self.sum.0.saturating_add(micros)),
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }

    /// What is known of the sum: at least this, if some prices are missing. `None` if nothing is known, because
    /// unknown is not 0.
    #[must_use]
    pub fn known(&self) -> Option<Money> {
        (self.sum != Money(0) || self.unpriced == 0).then_some(self.sum)
    }

    /// What was added to the sum since it was `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            sum: Money(self.sum.0.saturating_sub(before.sum.0)),
            unpriced: self.unpriced.saturating_sub(before.unpriced),
        }
    }

    /// The sum in words: an amount, `at least` an amount, or that it is not known.
    #[must_use]
    pub fn words(&self, currency: &str) -> String {
        let unit = if currency.is_empty() { "" } else { " " };
        match self.known() {
            None => "not known".to_owned(),
            Some(sum) if self.unpriced == 0 => format!("{sum}{unit}{currency}"),
            Some(sum) => format!("at least {sum}{unit}{currency}"),
        }
    }
}

impl AddAssign for PriceSum {
    fn add_assign(&mut self, other: Self) {
        self.sum = Money(self.sum.0.saturating_add(other.sum.0));
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// The content of an answer, in the form in which the provider sent it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload {
    pub text: String,
    /// Whether `text` is a JSON document (an object or an array) rather than a plain token.
    pub is_json: bool,
    /// What came with the answer: the user agent that it is bound to, cookies, and so on.
    pub extras: BTreeMap<String, String>,
}

impl Payload {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether the text is a web page. No provider sells one: a proxy or a server on the way sends a page when it
    /// fails.
    #[must_use]
    pub fn is_a_page(&self) -> bool {
        const BEGINNINGS: [&str; 6] = ["<!doctype", "<html", "<head", "<body", "<script", "<?xml"];
        let text = self.text.trim_start();
        let begins =
            |with: &&str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
        BEGINNINGS.iter().any(begins)
    }
}

impl fmt::Debug for Payload {
    /// Shows sizes only: an answer is worth money, so its text must not reach a log through `{:?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.text.len())
    }
}

/// What a provider sent, before we have computed how fresh it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAnswer {
    pub payload: Payload,
    /// The least time that the provider had the task, from when it took the task until the solve; `None` if the
    /// provider does not report it. This is a duration, because a provider's clock may be ahead or behind.
    pub took_at_least: Option<Duration>,
    /// The cost that the provider reports; `None` if it reports none, `Some(Money(0))` if the answer is free.
    pub cost: Option<Money>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub payload: Payload,
    /// The attempt that brought the answer.
    pub attempt: u32,
    /// The earliest moment at which the answer can have been solved. Its life counts from here.
    pub earliest: Timestamp,
    /// When the answer expires; `None` for answers that live for ever.
    pub expires: Option<Timestamp>,
    /// The cost that the provider reports, or else that of the price list. `None` if neither is known, which is not
    /// 0.
    pub cost: Option<Money>,
}

impl Answer {
    /// How long the answer still lives at `now`; `None` if it lives for ever.
    #[must_use]
    pub fn remaining_life(&self, now: Timestamp) -> Option<Duration> {
        self.expires.map(|expires| expires.since(now))
    }

    /// Whether the answer is alive at `now`, with at least `min_life` left.
    #[must_use]
    pub fn is_good_for(&self, min_life: Duration, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires && now + min_life <= expires)
    }
}

//! The answer: what was paid for, what it cost, and the moment at which it expires.

use crate::time::Timestamp;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::AddAssign;
use core::time::Duration;

/// Millionths of the unit of the account's currency, which the node's settings name. Floats are never used for money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Money(pub u64);

/// As a decimal with no more places than it needs, such as `0.00299`, without the currency.
/// A sum that is too large for the type stays at the largest amount.
impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

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

    /// What is known of the sum: at least this, if some prices are missing. `None` if nothing is known of it: what is
    /// not known is not 0.
    #[must_use]
    pub fn known(&self) -> Option<Money> {
        (self.sum != Money(0) || self.unpriced == 0).then_some(self.sum)
    }

    /// What was added since it was `before`.
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

/// The answer itself, in the form in which the provider sent it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload {
    pub text: String,
    /// Whether `text` is a JSON document (an object or an array) rather than a plain token.
    pub is_json: bool,
    /// What came along with it: the user agent it is bound to, cookies, and the like.
    pub extras: BTreeMap<String, String>,
}

impl Payload {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether it is a web page. No provider sells one: it is what a proxy or a server on the way says when it fails.
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
    /// An answer is as good as money: its text never reaches a log by way of `{:?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.text.len())
    }
}

/// What a provider handed over, before we have judged how fresh it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAnswer {
    pub payload: Payload,
    /// For how long the provider had the task, at least, from when it took it until the solve; most do not say. It is a
    /// duration and not a moment, because a provider's clock may be ahead or behind: no offset changes a duration.
    pub took_at_least: Option<Duration>,
    /// What the provider says that it cost. `None` if it does not say; `Some(Money(0))` if it says that it is free.
    pub cost: Option<Money>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub payload: Payload,
    /// The attempt that brought it.
    pub attempt: u32,
    /// The earliest moment at which it can have been solved: its life is counted from here.
    pub earliest: Timestamp,
    /// `None` for answers that live for ever.
    pub expires: Option<Timestamp>,
    /// What it cost: as the provider says, or else by the price list. `None` if that is not known, which is not 0.
    pub cost: Option<Money>,
}

impl Answer {
    /// How long it still lives at `now`; `None` for answers that live for ever.
    #[must_use]
    pub fn remaining_life(&self, now: Timestamp) -> Option<Duration> {
        self.expires.map(|expires| expires.since(now))
    }

    /// Whether it is alive at `now`, and still has `min_life` ahead of it.
    #[must_use]
    pub fn is_good_for(&self, min_life: Duration, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires && now + min_life <= expires)
    }
}

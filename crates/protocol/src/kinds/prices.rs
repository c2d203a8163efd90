//! The price of an answer by service and kind, as data. Replies hold the price where the protocol allows it.
//! Callbacks do not, and neither do CaptchaAI, CapSolver and CapMonster. For those, these lists count, unless the
//! operator's `prices` override them.
//!
//! If a service has a range of prices, or public sources differ, the list has the highest price. So a budget is kept,
//! and usage is rather too high than too low. A kind that is not listed has no known price. No price is guessed.

use core::fmt;
use quittance_lifecycle::{Money, Unsolvable};

/// The public prices of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceList {
    /// The dialect of the service, as the configuration names it.
    pub dialect: &'static str,
    /// The currency of the prices and of the accounts, as in ISO 4217.
    pub currency: &'static str,
    /// The day on which the prices were read.
    pub date: &'static str,
    pub source: &'static str,
    /// A remark about the whole list.
    pub note: &'static str,
    /// Whether the service charges for a task that it could not solve.
    pub unsolvable: Unsolvable,
    prices: &'static [(&'static str, Money)],
}

/// Shows the service, the day and the source.
impl fmt::Display for PriceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} ({}), in {}", self.dialect, self.date, self.source, self.currency)
    }
}

const fn usd(micros: u64) -> Money {
    Money(micros)
}

static LISTS: [PriceList; 5] = [
    PriceList {
        dialect: "captchaai",
        currency: "USD",
        date: "2026-11-17",
        source: "https://blog.captchaai.com/captchaai-thread-limit-upgrade-guide",
        note: "sells threads at a flat price by the month: an answer has no price of its own, so none is known",
        unsolvable: Unsolvable::NotKnown,
        prices: &[],
    },
    PriceList {
        dialect: "2captcha",
        currency: "USD",
        date: "2026-10-04",
        source: "https://2captcha.com/pricing",
        note: "prices depend on the load and are the highest of their range; Turnstile is 0.00145 on that page, and 0.00299 in other public sources",
        unsolvable: Unsolvable::Free,
        prices: &[
            ("image", usd(1_000)),
            ("recaptcha_v2", usd(2_990)),
            ("recaptcha_v3", usd(2_990)),
            ("turnstile", usd(2_990)),
        ],
    },
    PriceList {
        dialect: "anticaptcha",
        currency: "USD",
        date: "2026-03-26",
        source: "https://anti-captcha.com/price",
        note: "prices without a discount for volume",
        unsolvable: Unsolvable::Charged,
        prices: &[
            ("funcaptcha", usd(3_000)),
            ("image", usd(700)),
            ("recaptcha_v2", usd(2_000)),
            ("recaptcha_v2+enterprise", usd(5_000)),
            ("recaptcha_v3", usd(2_000)),
            ("recaptcha_v3+enterprise", usd(5_000)),
            ("turnstile", usd(2_000)),
        ],
    },
    PriceList {
        dialect: "capsolver",
        currency: "USD",
        date: "2026-09-26",
        source: "https://docs.capsolver.com/en/pricing/",
        note: "prices without a package",
        unsolvable: Unsolvable::NotKnown,
        prices: &[
            ("amazon_waf", usd(2_000)),
            ("cloudflare_challenge", usd(1_200)),
            ("datadome", usd(2_500)),
            ("geetest", usd(1_200)),
            ("geetest_v4", usd(1_200)),
            ("image", usd(400)),
            ("recaptcha_v2", usd(800)),
            ("recaptcha_v2+enterprise", usd(1_000)),
            ("recaptcha_v3", usd(1_000)),
            ("recaptcha_v3+enterprise", usd(3_000)),
            ("turnstile", usd(1_200)),
        ],
    },
    PriceList {
        dialect: "capmonster",
        currency: "USD",
        date: "2026-10-07",
        source: "https://capmonster.cloud/en/prices",
        note: "DataDome as read on 2026-03-26",
        unsolvable: Unsolvable::NotKnown,
        prices: &[
            ("amazon_waf", usd(1_400)),
            ("cloudflare_challenge", usd(1_300)),
            ("datadome", usd(2_200)),
            ("geetest", usd(1_200)),
            ("geetest_v4", usd(1_200)),
            ("image", usd(300)),
            ("recaptcha_v2", usd(600)),
            ("recaptcha_v2+enterprise", usd(1_000)),
            ("recaptcha_v3", usd(900)),
            ("recaptcha_v3+enterprise", usd(1_500)),
            ("turnstile", usd(1_300)),
        ],
    },
];

/// The lists that ship with this build.
#[must_use]
pub fn price_lists() -> &'static [PriceList] {
    &LISTS
}

/// The list of the service that speaks this dialect.
#[must_use]
pub fn price_list(dialect: &str) -> Option<&'static PriceList> {
    LISTS.iter().find(|list| list.dialect == dialect)
}

impl PriceList {
    /// Every price in the list. A name such as `recaptcha_v2+enterprise` is the price of an order of that kind with
    /// this parameter set to 1.
    pub fn prices(&self) -> impl Iterator<Item = (&'static str, Money)> {
        self.prices.iter().copied()
    }
}

//! The differences between the providers of the classic protocol, as data: other code reads these facts and compares
//! no names. Two providers are described; a clone is one of them with the operator's corrections.

use crate::poll_rules::{KindRules, rules};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicDialect {
    CaptchaAi,
    TwoCaptcha,
}

/// The HTTP method of a pingback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
}

/// What `ERROR_ZERO_BALANCE` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroBalance {
    NoMoney,
    /// The provider sells threads: none is free, or the plan has ended. `threadsinfo` shows which.
    NoThread,
}

/// The provider blocks an address that makes more than `per_task * tasks + slack` calls of `res.php`. Balance
/// requests and reports count too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollQuota {
    pub per_task: u32,
    pub slack: u32,
}

/// How fast the provider can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// The shortest time between two calls of `in.php`.
    pub submit_interval: Duration,
    pub poll_quota: Option<PollQuota>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicFacts {
    pub name: &'static str,
    pub pingback: Verb,
    pub tempo: Tempo,
    /// How many tasks one `ids=` can ask for.
    pub poll_batch_max: usize,
    /// Whether the service is known to support `ids=`. If not, the first reply that does not fit ends its use.
    pub is_batch_known: bool,
    pub poll_rules: KindRules,
    pub zero_balance: ZeroBalance,
    /// Whether `get2` returns the price of an answer.
    pub has_price: bool,
    /// Whether an answer of several fields is an object in replies, and not a text that holds one.
    pub answers_in_objects: bool,
    /// Whether `threadsinfo` reports how many threads there are and how many are in use.
    pub has_threads: bool,
}

const CAPTCHA_AI: ClassicFacts = ClassicFacts {
    name: "captchaai",
    pingback: Verb::Get,
    tempo: Tempo { submit_interval: Duration::ZERO, poll_quota: None },
    // Neither its documentation nor its own client uses `ids`, but other clients of the protocol do.
    poll_batch_max: 20,
    is_batch_known: false,
    // The vendor's client waits 1 s before the first poll of a picture, a grid or BLS, and 10 to 15 s before that of a
    // token, which is advice: its solves are often faster. Its documents ask for 5 s between polls. It enforces neither
    // ("CaptchaAI does not enforce strict per-second rate limits", in its article about rate limits).
    poll_rules: KindRules { pictures: rules(1, 2), tokens: rules(5, 2) },
    zero_balance: ZeroBalance::NoThread,
    has_price: false,
    answers_in_objects: false,
    has_threads: true,
};

const TWO_CAPTCHA: ClassicFacts = ClassicFacts {
    name: "2captcha",
    pingback: Verb::Post,
    tempo: Tempo {
        // It also takes no more than 60 in 3 s, which this keeps.
        submit_interval: Duration::from_millis(100),
        poll_quota: Some(PollQuota { per_task: 20, slack: 1200 }),
    },
    // Replies to 33 and to 40 ids were seen that had parts for half of them.
    poll_batch_max: 20,
    is_batch_known: true,
    // Its documents advise 5 s before the first poll of a picture, 10 to 20 s before that of a token, and 5 s between
    // polls. It enforces only the number of calls (`poll_quota`), of which a task needs a fraction.
    poll_rules: KindRules { pictures: rules(2, 2), tokens: rules(5, 2) },
    zero_balance: ZeroBalance::NoMoney,
    has_price: true,
    answers_in_objects: true,
    has_threads: false,
};

impl ClassicDialect {
    pub const ALL: [Self; 2] = [Self::CaptchaAi, Self::TwoCaptcha];

    #[must_use]
    pub const fn facts(self) -> &'static ClassicFacts {
        match self {
            Self::CaptchaAi => &CAPTCHA_AI,
            Self::TwoCaptcha => &TWO_CAPTCHA,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name_and_no_other() {
        for dialect in ClassicDialect::ALL {
            assert_eq!(ClassicDialect::named(dialect.name()), Some(dialect));
        }
        assert_eq!(ClassicDialect::named("CaptchaAI"), None);
    }
}

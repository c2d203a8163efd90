//! The differences between the providers of the classic protocol, as data: other code reads these facts and compares
//! no names. Two providers are described; a clone is one of them with the operator's corrections.

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

/// When the provider wants to be polled for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    pub first_poll: Duration,
    pub interval: Duration,
    /// When the provider gives up the task, or says that a client should.
    pub give_up: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicFacts {
    pub name: &'static str,
    pub pingback: Verb,
    pub tempo: Tempo,
    /// How many tasks one `ids=` can ask for; 1 if the provider is not known to support `ids`.
    pub poll_batch_max: usize,
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
    poll_batch_max: 1,
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
    zero_balance: ZeroBalance::NoMoney,
    has_price: true,
    answers_in_objects: true,
    has_threads: false,
};

/// Kinds of pictures and texts. All kinds that are in neither list are tokens.
const PICTURES: &[&str] =
    &["image", "text", "audio", "grid", "coordinates", "canvas", "rotate", "bounding_box", "bls"];
const SLOW_AT_CAPTCHA_AI: &[&str] = &["recaptcha_v2", "geetest", "geetest_v4", "cloudflare_challenge"];

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

    #[must_use]
    pub fn advice(self, kind: &str) -> Advice {
        let is_picture = PICTURES.contains(&kind);
        let (first_poll_s, give_up_s) = match self {
            Self::CaptchaAi if is_picture => (1, 180),
            Self::CaptchaAi if SLOW_AT_CAPTCHA_AI.contains(&kind) => (15, 180),
            Self::CaptchaAi => (10, 180),
            Self::TwoCaptcha if is_picture => (5, 90),
            Self::TwoCaptcha if kind == "recaptcha_v2" => (10, 300),
            Self::TwoCaptcha => (10, 90),
        };
        Advice {
            first_poll: Duration::from_secs(first_poll_s),
            interval: Duration::from_secs(5),
            give_up: Duration::from_secs(give_up_s),
        }
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

    #[test]
    fn pictures_are_polled_soon_and_tokens_later() {
        let first = |dialect: ClassicDialect, kind| dialect.advice(kind).first_poll.as_secs();
        assert_eq!(
            ["image", "turnstile", "recaptcha_v2"].map(|kind| first(ClassicDialect::CaptchaAi, kind)),
            [1, 10, 15]
        );
        assert_eq!(
            ["image", "turnstile", "never seen"].map(|kind| first(ClassicDialect::TwoCaptcha, kind)),
            [5, 10, 10]
        );
    }
}

//! Why an attempt or a poll gave no answer, and what each class of fault leads to. The rules are a table.

use alloc::string::String;
use core::fmt;

/// Why an attempt or a poll gave no answer. The class decides what happens next; [`FaultTable`] has the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// The provider takes no task from us now: no free slot, or too many requests.
    /// The adapter sets it from the provider's code or an HTTP 429. Nothing was taken or paid.
    /// The order tries again after a growing pause, by default until its deadline. The gate slows the tenant's submits
    /// to this provider, and those of all tenants if submits of another tenant are rejected as busy, too.
    Busy,
    /// No request reached the provider: connection refused, unknown host, failed TLS.
    /// The adapter sets it, and only if it is certain that nothing was sent; otherwise the attempt is in doubt.
    /// The order tries again after a growing pause, by default until its deadline. Several in a row trip the provider's
    /// circuit breaker.
    Unreachable,
    /// The provider took the task, worked on it and gave up.
    /// The adapter sets it from the provider's code in a poll or a callback. The provider's rules say whether it
    /// charges. The order is submitted again at once, a few times; then it is a dead letter.
    Unsolvable,
    /// Our account at the provider has no money.
    /// The adapter sets it from the provider's code. Nothing was taken.
    /// The order is held, and the node submits nothing until an operator has paid and released the account. An order
    /// that is still held at its deadline is a dead letter.
    NoFunds,
    /// The provider does not accept our account: a wrong key, or a ban.
    /// The adapter sets it from the provider's code. Nothing was taken.
    /// The order is held, and the node submits nothing until an operator has fixed and released the account. An order
    /// that is still held at its deadline is a dead letter.
    AccountBlocked,
    /// The request itself is wrong: a bad site key, a missing or unusable parameter.
    /// The adapter sets it from the provider's code. Another try would get the same reply.
    /// The order fails at once, and the caller gets the provider's code.
    Caller,
    /// The provider does not sell this kind, or not to us.
    /// The adapter sets it from the provider's code. Nothing was taken.
    /// The order goes to another provider. If there is none, it fails at once, and the caller gets the provider's code.
    NotSold,
    /// The provider replied with a code that is in no table.
    /// The adapter sets it, and keeps the code as it came. An operator can give the code a class in the settings.
    /// The order tries again a few times after a growing pause; then it is a dead letter.
    UnlistedCode,
}

impl FaultClass {
    pub const ALL: [Self; 8] = [
        Self::Busy,
        Self::Unreachable,
        Self::Unsolvable,
        Self::NoFunds,
        Self::AccountBlocked,
        Self::Caller,
        Self::NotSold,
        Self::UnlistedCode,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::Unsolvable => "unsolvable",
            Self::NoFunds => "no_funds",
            Self::AccountBlocked => "account_blocked",
            Self::Caller => "caller",
            Self::NotSold => "not_sold",
            Self::UnlistedCode => "unlisted_code",
        }
    }
}

/// What the table has a rule for: a fault of each class, and an attempt in doubt. An attempt in doubt is no fault,
/// because the provider may have taken the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    Fault(FaultClass),
    InDoubt,
}

impl Signal {
    pub const ALL: [Self; 9] = [
        Self::Fault(FaultClass::Busy),
        Self::Fault(FaultClass::Unreachable),
        Self::InDoubt,
        Self::Fault(FaultClass::Unsolvable),
        Self::Fault(FaultClass::NoFunds),
        Self::Fault(FaultClass::AccountBlocked),
        Self::Fault(FaultClass::Caller),
        Self::Fault(FaultClass::NotSold),
        Self::Fault(FaultClass::UnlistedCode),
    ];

    /// The index of this signal in [`Signal::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Fault(FaultClass::Busy) => 0,
            Self::Fault(FaultClass::Unreachable) => 1,
            Self::InDoubt => 2,
            Self::Fault(FaultClass::Unsolvable) => 3,
            Self::Fault(FaultClass::NoFunds) => 4,
            Self::Fault(FaultClass::AccountBlocked) => 5,
            Self::Fault(FaultClass::Caller) => 6,
            Self::Fault(FaultClass::NotSold) => 7,
            Self::Fault(FaultClass::UnlistedCode) => 8,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fault(class) => class.name(),
            Self::InDoubt => "in_doubt",
        }
    }
}

impl From<FaultClass> for Signal {
    fn from(class: FaultClass) -> Self {
        Self::Fault(class)
    }
}

/// The longest code that is kept, so that a provider that replies with a page of HTML does not fill our records.
pub const CODE_BYTES_MAX: usize = 200;

/// The longest text of a provider's reply that is kept.
pub const TEXT_BYTES_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub class: FaultClass,
    /// The provider's own code for the fault, cut short.
    pub code: String,
    /// The provider's whole text, if it is more than the code. It is cut short, and contains no secrets.
    pub text: String,
}

impl Fault {
    #[must_use]
    pub fn new(class: FaultClass, code: impl Into<String>) -> Self {
        Self { class, code: cut(code.into(), CODE_BYTES_MAX), text: String::new() }
    }

    /// Adds the provider's own text. The adapter must have removed every secret from it.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        if text.trim() != self.code {
            self.text = cut(text.into(), TEXT_BYTES_MAX);
        }
        self
    }
}

/// What was observed of a submit that the provider may have taken; empty if nothing was, for example after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// A short summary: `HTTP 502`, or why the connection ended.
    pub summary: String,
    /// The reply, if it is more than the summary. It is cut short, and contains no secrets.
    pub text: String,
}

impl Evidence {
    #[must_use]
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: cut(summary.into(), CODE_BYTES_MAX), text: String::new() }
    }

    /// Adds the reply as it came. The adapter must have removed every secret from it.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        if text.trim() != self.summary {
            self.text = cut(text.into(), TEXT_BYTES_MAX);
        }
        self
    }
}

fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
    text
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code.escape_debug(), self.class.name())
    }
}

/// What an order does after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Try again after a pause that grows.
    BackOff,
    /// Submit again at once: the provider has room, and the failure was chance.
    AtOnce,
    /// Keep the order until an operator has fixed the account, or until its deadline.
    Hold,
    /// Fail the order and report to the caller: another try would not help.
    Tell,
    /// Send the order to another provider. Without one, as `Tell`.
    Elsewhere,
}

/// What a fault means for all other orders of the same provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    Nothing,
    /// Slow down all submits.
    Slow,
    /// Count towards tripping the circuit breaker.
    Trip,
    /// Stop all submits until an operator releases the account.
    Pause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRule {
    pub remedy: Remedy,
    /// How often one life of an order may retry because of this class; `None` means until its deadline.
    pub limit: Option<u8>,
    pub provider: Reaction,
}

/// One rule for each [signal](Signal), in the order of [`Signal::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultTable([FaultRule; 9]);

impl FaultRule {
    #[must_use]
    pub fn is_spent(&self, retries: u8) -> bool {
        self.limit.is_some_and(|limit| retries >= limit)
    }
}

impl FaultTable {
    /// The limits of [`Preset::Standard`](crate::Preset::Standard).
    pub const STANDARD: Self = Self([
        FaultRule { remedy: Remedy::BackOff, limit: Some(5), provider: Reaction::Slow },
        FaultRule { remedy: Remedy::BackOff, limit: Some(3), provider: Reaction::Trip },
        FaultRule { remedy: Remedy::BackOff, limit: Some(3), provider: Reaction::Trip },
        FaultRule { remedy: Remedy::AtOnce, limit: Some(2), provider: Reaction::Nothing },
        FaultRule { remedy: Remedy::Hold, limit: Some(0), provider: Reaction::Pause },
        FaultRule { remedy: Remedy::Hold, limit: Some(0), provider: Reaction::Pause },
        FaultRule { remedy: Remedy::Tell, limit: Some(0), provider: Reaction::Nothing },
        FaultRule { remedy: Remedy::Elsewhere, limit: Some(0), provider: Reaction::Nothing },
        FaultRule { remedy: Remedy::BackOff, limit: Some(2), provider: Reaction::Slow },
    ]);

    /// As [`Self::STANDARD`], but without a limit for faults that cost nothing and do not depend on the order (busy,
    /// unreachable): these are retried until the order's deadline.
    pub const PATIENT: Self = {
        let mut table = Self::STANDARD;
        table.0[Signal::Fault(FaultClass::Busy).index()].limit = None;
        table.0[Signal::Fault(FaultClass::Unreachable).index()].limit = None;
        table
    };

    #[must_use]
    pub fn rule(&self, signal: impl Into<Signal>) -> FaultRule {
        self.0[signal.into().index()]
    }

    pub fn set(&mut self, signal: impl Into<Signal>, rule: FaultRule) {
        self.0[signal.into().index()] = rule;
    }
}

//! Why an attempt or a poll gave no answer, and what each class of reason leads to. The table is data.

use alloc::string::String;
use core::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// The provider has no room for us now.
    Busy,
    /// Nothing was sent: refused, no such host, no TLS.
    Unreachable,
    /// Sent, and then no word.
    Unknown,
    /// Taken, tried, and given up by the provider.
    Unsolvable,
    /// The account has no money.
    Broke,
    /// The account is not accepted.
    Account,
    /// What was asked for makes no sense; asking again will not help.
    Caller,
    /// A code that nobody has seen before.
    UnknownCode,
}

impl FaultClass {
    pub const ALL: [Self; 8] = [
        Self::Busy,
        Self::Unreachable,
        Self::Unknown,
        Self::Unsolvable,
        Self::Broke,
        Self::Account,
        Self::Caller,
        Self::UnknownCode,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
            Self::Unsolvable => "unsolvable",
            Self::Broke => "broke",
            Self::Account => "account",
            Self::Caller => "caller",
            Self::UnknownCode => "unknown code",
        }
    }
}

/// The longest code that is kept; a provider that answers with a page of HTML does not fill our records.
pub const CODE_BYTES_MAX: usize = 200;

/// The same for all that was said.
pub const SAID_BYTES_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub class: FaultClass,
    /// The provider's own word for it, as far as it is worth keeping.
    pub code: String,
    /// All that it said, as it came, where that is more than the code; cut short, and without secrets.
    pub said: String,
}

impl Fault {
    #[must_use]
    pub fn new(class: FaultClass, code: impl Into<String>) -> Self {
        Self { class, code: cut(code.into(), CODE_BYTES_MAX), said: String::new() }
    }

    /// With what was really said. Whoever calls this has taken every secret out of it.
    #[must_use]
    pub fn saying(mut self, said: &str) -> Self {
        if said.trim() != self.code {
            self.said = cut(said.into(), SAID_BYTES_MAX);
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

/// What becomes of an order that meets a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Try again after a pause that grows.
    BackOff,
    /// Submit again at once: the provider has room, the task was just bad luck.
    AtOnce,
    /// Keep the order until a person has mended the account, or its deadline comes.
    Hold,
    /// Tell the caller; it will never work.
    Tell,
}

/// What a fault means for everybody else who uses the same provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    Nothing,
    /// Slow every submit down.
    Slow,
    /// Count towards opening the circuit.
    Trip,
    /// No submit at all until a person says so.
    Pause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRule {
    pub remedy: Remedy,
    /// How often one life of an order may be tried again because of this class.
    pub limit: u8,
    pub provider: Reaction,
}

/// One rule for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultTable([FaultRule; 8]);

impl FaultTable {
    pub const DEFAULT: Self = Self([
        FaultRule { remedy: Remedy::BackOff, limit: 5, provider: Reaction::Slow },
        FaultRule { remedy: Remedy::BackOff, limit: 3, provider: Reaction::Trip },
        FaultRule { remedy: Remedy::BackOff, limit: 3, provider: Reaction::Trip },
        FaultRule { remedy: Remedy::AtOnce, limit: 2, provider: Reaction::Nothing },
        FaultRule { remedy: Remedy::Hold, limit: 0, provider: Reaction::Pause },
        FaultRule { remedy: Remedy::Hold, limit: 0, provider: Reaction::Pause },
        FaultRule { remedy: Remedy::Tell, limit: 0, provider: Reaction::Nothing },
        FaultRule { remedy: Remedy::BackOff, limit: 2, provider: Reaction::Slow },
    ]);

    #[must_use]
    pub const fn rule(&self, class: FaultClass) -> FaultRule {
        self.0[class as usize]
    }

    pub const fn set(&mut self, class: FaultClass, rule: FaultRule) {
        self.0[class as usize] = rule;
    }
}

//! The errors in a caller's request. Each names the field, what is wrong and what to do. None repeats a value, which
//! may be a secret.

use crate::terms::{
    IDEMPOTENCY_KEY_BYTES_MAX, KIND_BYTES_MAX, PARAM_NAME_BYTES_MAX, PARAMS_MAX, TENANT_BYTES_MAX,
    TIMEOUT_MAX,
};
use alloc::string::String;
use core::fmt;
use core::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    MissingField {
        kind: String,
        field: &'static str,
    },
    NotAPageAddress {
        field: String,
        why: &'static str,
    },
    NotText {
        field: String,
    },
    NotAFile {
        field: String,
    },
    FileTooSmall {
        field: String,
        bytes: usize,
        bytes_min: usize,
    },
    FileTooLarge {
        field: String,
        bytes: usize,
        bytes_max: usize,
    },
    TextTooLong {
        field: String,
        bytes: usize,
        bytes_max: usize,
    },
    TooManyParams {
        found: usize,
    },
    BadParamName {
        name: String,
    },
    BadKindName {
        name: String,
    },
    MisspeltKind {
        name: String,
        meant: String,
    },
    /// The value of a parameter that chooses the kind is nearly a known one.
    MisspeltValue {
        name: String,
        meant: String,
    },
    MisspeltParam {
        kind: String,
        name: String,
        meant: String,
    },
    /// This parameter makes the order one of another kind, or of two kinds.
    OtherKind {
        kind: String,
        name: String,
    },
    /// The requested version does not exist.
    NoSuchVersion {
        name: String,
        known: String,
    },
    /// Two names of one parameter have different values.
    ContradictoryNames {
        one: String,
        other: String,
    },
    BadTenant {
        bytes: usize,
    },
    IdempotencyKeyLength {
        bytes: usize,
    },
    LifeNotToBeHad {
        wanted: Duration,
        most: Duration,
    },
    BadTimeout {
        wanted: Duration,
    },
}

impl core::error::Error for BadRequest {}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingField { kind, field } => {
                write!(f, "`{field}` is missing or empty: an order of kind {kind} needs it")
            }
            Self::NotAPageAddress { field, why } => {
                write!(
                    f,
                    "`{}` is not a page address: {why}; give it in full, like https://example.com/login",
                    HarmlessText(field)
                )
            }
            Self::NotText { field } => write!(f, "`{}` must be text, not a file", HarmlessText(field)),
            Self::NotAFile { field } => {
                write!(f, "`{}` must be the bytes of a file, not text", HarmlessText(field))
            }
            Self::FileTooSmall { field, bytes: 0, .. } => {
                write!(f, "`{}` has zero bytes: there is nothing to solve", HarmlessText(field))
            }
            Self::FileTooSmall { field, bytes, bytes_min } => {
                write!(
                    f,
                    "`{}` has {bytes} bytes; the least that providers take is {bytes_min}",
                    HarmlessText(field)
                )
            }
            Self::FileTooLarge { field, bytes, bytes_max } => {
                write!(
                    f,
                    "`{}` has {bytes} bytes; the most that providers take is {bytes_max}",
                    HarmlessText(field)
                )
            }
            Self::TextTooLong { field, bytes, bytes_max } => {
                write!(f, "`{}` has {bytes} bytes; at most {bytes_max} are allowed", HarmlessText(field))
            }
            Self::TooManyParams { found } => {
                write!(f, "{found} parameters; at most {PARAMS_MAX} are allowed")
            }
            Self::BadParamName { name } => write!(
                f,
                "`{}` is not a parameter name: it must have 1 to {PARAM_NAME_BYTES_MAX} bytes and no control characters",
                HarmlessText(name)
            ),
            Self::BadKindName { name } => write!(
                f,
                "`{}` is not a kind: its name must have 1 to {KIND_BYTES_MAX} bytes and no control characters",
                HarmlessText(name)
            ),
            Self::MisspeltKind { name, meant } => {
                write!(
                    f,
                    "there is no kind of order called `{}`: did you mean `{meant}`?",
                    HarmlessText(name)
                )
            }
            Self::MisspeltValue { name, meant } => write!(
                f,
                "`{}` has an unknown value: did you mean `{}`?",
                HarmlessText(name),
                HarmlessText(meant)
            ),
            Self::MisspeltParam { kind, name, meant } => write!(
                f,
                "orders of kind {} have no parameter `{}`: did you mean `{meant}`?",
                HarmlessText(kind),
                HarmlessText(name)
            ),
            Self::NoSuchVersion { name, known } => {
                write!(
                    f,
                    "`{}` is none of the versions that there are: write {known}, or leave it out",
                    HarmlessText(name)
                )
            }
            Self::OtherKind { kind, name } => write!(
                f,
                "`{}` asks for another kind than {}: order that kind, or leave `{}` out",
                HarmlessText(name),
                HarmlessText(kind),
                HarmlessText(name)
            ),
            Self::ContradictoryNames { one, other } => write!(
                f,
                "`{}` and `{}` are two names of one parameter, and their values differ: send one of them",
                HarmlessText(one),
                HarmlessText(other)
            ),
            Self::BadTenant { bytes } => {
                write!(
                    f,
                    "a tenant's name has 1 to {TENANT_BYTES_MAX} bytes and no control characters, and this one has {bytes} bytes"
                )
            }
            Self::IdempotencyKeyLength { bytes } => write!(
                f,
                "an idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes, and this one {bytes}"
            ),
            Self::LifeNotToBeHad { wanted, most } => write!(
                f,
                "`min_life` asks for {} s of life in the answer; of this kind at most {} s can be promised",
                wanted.as_secs_f32(),
                most.as_secs_f32()
            ),
            Self::BadTimeout { wanted } => write!(
                f,
                "the deadline of an order is from 1 s to {} s after its placement, and the request has {} s",
                TIMEOUT_MAX.as_secs(),
                wanted.as_secs_f32()
            ),
        }
    }
}

/// A name from a request, with control characters escaped, and cut short.
struct HarmlessText<'a>(&'a str);

impl fmt::Display for HarmlessText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().take(60).try_for_each(|c| write!(f, "{}", c.escape_debug()))
    }
}

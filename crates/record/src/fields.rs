//! The base of all records: mirrors of the lifecycle's types, in which any field may be absent, and the names of
//! variants. A mirror is what a store may contain; only reading it shows whether it is valid.

use crate::VERSION;
use crate::error::RecordError;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{FaultClass, Key, Priority, Reuse, Signal, Timestamp, Via};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::time::Duration;

/// A text that is borrowed for writing and owned after reading.
pub(crate) type Text<'a> = Cow<'a, str>;

/// A record that a store keeps by itself, so it contains the version of its format.
pub(crate) trait WholeRecord: DeserializeOwned {
    fn version(&self) -> Option<u64>;
}

/// Declares a mirror. Every field is optional, so that a missing field is reported by name. A mirror that begins with
/// `v` is a [whole record](WholeRecord).
macro_rules! mirror {
    ($name:ident $(<$life:lifetime>)? { v: u64, $($rest:tt)* }) => {
        $crate::fields::mirror! { @fields $name $(<$life>)? { v: u64, $($rest)* } }

        impl $(<$life>)? $crate::fields::WholeRecord for $name $(<$life>)? {
            fn version(&self) -> Option<u64> {
                self.v
            }
        }
    };
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)? { $($fields:tt)* }) => {
        $crate::fields::mirror! { @fields $(#[$meta])* $name $(<$life>)? { $($fields)* } }
    };
    (@fields $(#[$meta:meta])* $name:ident $(<$life:lifetime>)? { $($field:ident: $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Default, serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name $(<$life>)? {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(crate) $field: Option<$ty>,
            )*
        }
    };
}
pub(crate) use mirror;

/// Variants that are written by name. A name never changes, even if the variant moves or is renamed in code.
pub(crate) trait NamedVariant: Sized {
    const NAMES: &'static [&'static str];
    fn name_on_record(self) -> &'static str;
    fn named(name: &str) -> Option<Self>;

    fn text<'a>(self) -> Option<Text<'a>> {
        Some(Cow::Borrowed(self.name_on_record()))
    }

    fn read(raw: Option<Text<'_>>, field: &'static str) -> Result<Self, RecordError> {
        let raw = need(raw, field)?;
        Self::named(&raw).ok_or_else(|| RecordError::unknown_name(field, &raw, Self::NAMES))
    }
}

/// Gives names to the variants of an enum: `for` one of the lifecycle, or of an `enum` that the macro declares.
macro_rules! names {
    (for $ty:ty { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $crate::fields::NamedVariant for $ty {
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn name_on_record(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
    (enum $ty:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        #[derive(Clone, Copy)]
        pub(crate) enum $ty { $($variant),* }

        $crate::fields::names! { for $ty { $($variant = $name),* } }
    };
}
pub(crate) use names;

names! { for FaultClass {
    Busy = "busy",
    Unreachable = "unreachable",
    Unsolvable = "unsolvable",
    NoFunds = "no_funds",
    AccountBlocked = "account_blocked",
    Caller = "caller",
    NotSold = "not_sold",
    UnlistedCode = "unlisted_code",
} }

/// The class that stands for an attempt in doubt in place of a fault.
pub(crate) const IN_DOUBT: &str = "in_doubt";

impl NamedVariant for Signal {
    const NAMES: &'static [&'static str] = &[
        "busy",
        "unreachable",
        IN_DOUBT,
        "unsolvable",
        "no_funds",
        "account_blocked",
        "caller",
        "not_sold",
        "unlisted_code",
    ];

    fn name_on_record(self) -> &'static str {
        match self {
            Self::Fault(class) => class.name_on_record(),
            Self::InDoubt => IN_DOUBT,
        }
    }

    fn named(name: &str) -> Option<Self> {
        if name == IN_DOUBT { Some(Self::InDoubt) } else { FaultClass::named(name).map(Self::Fault) }
    }
}

names! { for Via { Submit = "submit", Callback = "callback", Poll = "poll" } }

names! { for Priority { Interactive = "interactive", Normal = "normal", Bulk = "bulk" } }

/// Writes a priority, unless it is normal.
pub(crate) fn write_priority<'a>(priority: Priority) -> Option<Text<'a>> {
    unless_default(priority).and_then(Priority::text)
}

pub(crate) fn read_priority(raw: Option<Text<'_>>) -> Result<Priority, RecordError> {
    raw.map_or(Ok(Priority::Normal), |raw| Priority::read(Some(raw), "priority"))
}

names! { for Reuse { Shared = "shared", Exclusive = "exclusive" } }

mirror! { Head { v: u64 } }

/// Parses a record of this version. A record of this format, which nearly all are, is read once. If that fails, only
/// its version is read, because nothing else of another format can be trusted.
pub(crate) fn parse<T: WholeRecord>(bytes: &[u8]) -> Result<T, RecordError> {
    let raw = serde_json::from_slice::<T>(bytes);
    if raw.as_ref().is_ok_and(|whole| whole.version() == Some(VERSION)) {
        return Ok(raw?);
    }
    let head: Head = serde_json::from_slice(bytes)?;
    match need(head.v, "v")? {
        VERSION => Ok(raw?),
        other => Err(RecordError::UnknownVersion { found: other, understood: VERSION }),
    }
}

pub(crate) fn write(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record)
        .expect("a mirror has only names for keys, and memory does not fail to be written")
}

pub(crate) fn need<T>(raw: Option<T>, field: &'static str) -> Result<T, RecordError> {
    raw.ok_or_else(|| RecordError::Missing { field: field.into() })
}

pub(crate) fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

pub(crate) const fn text(text: &str) -> Option<Text<'_>> {
    Some(Cow::Borrowed(text))
}

pub(crate) fn need_text(raw: Option<Text<'_>>, field: &'static str) -> Result<String, RecordError> {
    need(raw, field).map(Cow::into_owned)
}

pub(crate) const fn moment(moment: Timestamp) -> Option<u64> {
    Some(moment.as_millis())
}

pub(crate) fn need_moment(raw: Option<u64>, field: &'static str) -> Result<Timestamp, RecordError> {
    need(raw, field).map(Timestamp::from_millis)
}

pub(crate) fn span(span: Duration) -> Option<u64> {
    Some(millis(span))
}

pub(crate) fn need_span(raw: Option<u64>, field: &'static str) -> Result<Duration, RecordError> {
    need(raw, field).map(Duration::from_millis)
}

/// Writes a 256-bit digest in the hexadecimal form in which keys are shown.
pub(crate) fn digest<'a>(bytes: [u8; 32]) -> Option<Text<'a>> {
    Some(Cow::Owned(Key(bytes).to_string()))
}

pub(crate) fn need_digest(raw: Option<Text<'_>>, field: &'static str) -> Result<[u8; 32], RecordError> {
    let digits = need(raw, field)?;
    Key::parse(&digits).map(|key| key.0).map_err(|_| RecordError::malformed(field, "64 hexadecimal digits"))
}

/// Reads a key that may be missing.
pub(crate) fn read_key(raw: Option<Text<'_>>, field: &'static str) -> Result<Option<Key>, RecordError> {
    raw.map(|raw| need_digest(Some(raw), field).map(Key)).transpose()
}

/// Writes a number that uses all 64 bits as text, because most tools would round a JSON number.
pub(crate) fn stamp<'a>(stamp: u64) -> Option<Text<'a>> {
    Some(Cow::Owned(format!("{stamp:016x}")))
}

pub(crate) fn need_stamp(raw: Option<Text<'_>>, field: &'static str) -> Result<u64, RecordError> {
    let digits = need(raw, field)?;
    let is_hex = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u64::from_str_radix(&digits, 16).ok())
        .flatten()
        .ok_or_else(|| RecordError::malformed(field, "16 hexadecimal digits"))
}

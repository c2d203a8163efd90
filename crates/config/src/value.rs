//! The value of a setting in three forms: as written, as understood, and as a field of ours.

use crate::setting_name::toml_text;
use crate::{duration, rate};
use quittance_engine::targets::HostPattern;
use quittance_engine::{AtLimit, BudgetPeriod, HedgeAfter};
use quittance_gateway::{Allowed, Rate};
use quittance_lifecycle::{Jitter, Money, Priority, Reuse, RoutingRule, WebhookPauses, WhenInDoubt};
use quittance_ports::Hours;
use quittance_protocol::Dialect;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A value as written in the file. The text of a variable or a flag becomes what it would be in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Text(String),
    /// A number, written in decimal digits.
    Number(String),
    Flag(bool),
    List(Vec<String>),
    /// A value that no setting accepts, described in words.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingValue {
    Text(String),
    Flag(bool),
    Count(u64),
    /// A ratio, in thousandths.
    Ratio(u32),
    Duration(Duration),
    Money(Money),
    List(Vec<String>),
}

/// The type of a field that a setting can set.
pub(crate) trait SettingField: Sized {
    /// The value that sets a field to this content. `None` if an absent setting does this, or the word of its shape
    /// (`deadline`, `auto`).
    fn value(&self) -> Option<SettingValue> {
        None
    }

    /// The field's content for this value; `None` if the value has another type.
    fn of(value: &SettingValue) -> Option<Self>;
}

impl<T: SettingField> SettingField for Option<T> {
    fn value(&self) -> Option<SettingValue> {
        self.as_ref().and_then(SettingField::value)
    }

    fn of(value: &SettingValue) -> Option<Self> {
        Some(T::of(value))
    }
}

impl<T: SettingField> SettingField for Vec<T> {
    fn value(&self) -> Option<SettingValue> {
        let text = |entry: &T| match entry.value() {
            Some(SettingValue::Text(text)) => Some(text),
            _ => None,
        };
        Some(SettingValue::List(self.iter().filter_map(text).collect()))
    }

    fn of(value: &SettingValue) -> Option<Self> {
        let SettingValue::List(entries) = value else { return None };
        entries.iter().map(|entry| T::of(&SettingValue::Text(entry.clone()))).collect()
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl SettingField for $type {
            fn value(&self) -> Option<SettingValue> {
                Some(SettingValue::Count(*self as u64))
            }

            fn of(value: &SettingValue) -> Option<Self> {
                match value {
                    SettingValue::Count(count) => Self::try_from(*count).ok(),
                    SettingValue::Ratio(ratio) => Self::try_from(*ratio).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
whole_numbers!(u8 u32 u64 usize);

macro_rules! plain_values {
    ($($type:ty = $variant:ident;)*) => {$(
        impl SettingField for $type {
            fn value(&self) -> Option<SettingValue> {
                Some(SettingValue::$variant(self.clone()))
            }

            fn of(value: &SettingValue) -> Option<Self> {
                match value {
                    SettingValue::$variant(content) => Some(content.clone()),
                    _ => None,
                }
            }
        }
    )*};
}
plain_values!(bool = Flag; Duration = Duration; Money = Money; String = Text;);

/// Types that are read from a text, with the text of their default if they have one.
macro_rules! texts {
    ($($type:ty: |$text:ident| $read:expr, |$field:pat_param| $value:expr;)*) => {$(
        impl SettingField for $type {
            fn value(&self) -> Option<SettingValue> {
                let $field = self;
                let value: Option<String> = $value;
                value.map(SettingValue::Text)
            }

            fn of(value: &SettingValue) -> Option<Self> {
                let SettingValue::Text($text) = value else { return None };
                $read
            }
        }
    )*};
}
texts! {
    PathBuf: |text| Some(text.into()), |_| None;
    HostPattern: |text| Self::parse(text).ok(), |_| None;
    Allowed: |text| Self::parse(text).ok(), |_| None;
    Hours: |text| Self::parse(text).ok(), |_| None;
    Rate: |text| rate::parse(text), |_| None;
    Dialect: |text| text.parse().ok(), |_| None;
    Reuse: |text| [Self::Shared, Self::Exclusive].into_iter().find(|reuse| reuse.name() == text), |_| None;
    Priority: |text| Self::parse(text), |_| None;
    SocketAddr: |text| text.parse().ok(), |address| Some(address.to_string());
    tracing::Level: |text| text.parse().ok(), |level| Some(level.to_string().to_ascii_lowercase());
    BudgetPeriod: |text| BudgetPeriod::parse(text), |_| None;
    AtLimit: |text| AtLimit::parse(text), |at_limit| Some(at_limit.name().into());
    RoutingRule: |text| Self::parse(text), |rule| Some(rule.name().into());
    HedgeAfter: |text| Self::parse(text), |after| Some(after.name().into());
    WhenInDoubt: |text| DOUBTS.into_iter().find(|(_, word)| word == text).map(|(doubt, _)| doubt),
        |doubt| DOUBTS.into_iter().find(|(known, _)| known == doubt).map(|(_, word)| word.into());
}

const DOUBTS: [(WhenInDoubt, &str); 2] =
    [(WhenInDoubt::Resubmit, "resubmit"), (WhenInDoubt::DeadLetter, "dead_letter")];

impl SettingField for WebhookPauses {
    fn value(&self) -> Option<SettingValue> {
        Some(SettingValue::List(self.as_slice().iter().map(|pause| duration::render(*pause)).collect()))
    }

    fn of(value: &SettingValue) -> Option<Self> {
        let SettingValue::List(entries) = value else { return None };
        let pauses: Option<Vec<Duration>> = entries.iter().map(|entry| duration::parse(entry)).collect();
        Self::new(&pauses?)
    }
}

impl SettingField for Jitter {
    fn value(&self) -> Option<SettingValue> {
        match self {
            Self::UpTo(longest) => longest.value(),
            Self::Full => None,
        }
    }

    fn of(value: &SettingValue) -> Option<Self> {
        Some(Duration::of(value).map_or(Self::Full, Self::UpTo))
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&toml_text(text)),
            Self::Number(digits) => f.write_str(digits),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(_) => f.write_str("this list"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// Writes the value as TOML.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&toml_text(text)),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Ratio(ratio) => write!(f, "{:?}", f64::from(*ratio) / 1000.0),
            Self::Duration(duration) => write!(f, "\"{}\"", duration::render(*duration)),
            Self::Money(amount) => write!(f, "{amount}"),
            Self::List(list) => {
                let list: Vec<String> = list.iter().map(|text| toml_text(text)).collect();
                write!(f, "[{}]", list.join(", "))
            }
        }
    }
}

impl SettingValue {
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Count(count) => (*count).into(),
            Self::Ratio(ratio) => (f64::from(*ratio) / 1000.0).into(),
            Self::Duration(duration) => duration::render(*duration).into(),
            Self::Money(amount) => amount.to_string().into(),
            Self::List(list) => list.as_slice().into(),
        }
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<bool> for SettingValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

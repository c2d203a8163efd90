//! The shapes of values. A shape reads, checks and describes values, so that an error always says what would be
//! valid.

use crate::address::{Scheme, without_password};
use crate::setting_name::toml_text;
use crate::value::{Raw, SettingValue};
use crate::{decimal, duration, rate};
use quittance_engine::targets::HostPattern;
use quittance_gateway::{Allowed, KeyDigest};
use quittance_lifecycle::follow_up::WEBHOOK_PAUSES_MAX;
use quittance_lifecycle::terms::{TENANT_BYTES_MAX, page_host};
use quittance_lifecycle::{FaultClass, Signal};
use quittance_ports::Hours;
use quittance_protocol::Dialect;
use quittance_protocol::classic::code::class_named;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(crate) const HOSTS: SettingShape = SettingShape::List(&SettingShape::Host);
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// The longest name of a node. The name is part of the node's status in the store.
const NODE_NAME_BYTES_MAX: usize = 64;
const LABEL_BYTES_MAX: usize = TENANT_BYTES_MAX;
const HOST_FORM: &str = "\"shop.example.org\", \"*.example.org\" (that host and all below it), or \"*\"";

macro_rules! shapes {
    ($($name:ident |$text:ident, $folder:pat_param| $read:expr, $form:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum SettingShape {
            Flag,
            /// A whole number, or the word that the field `or` holds.
            Count { least: u64, most: u64, or: Option<&'static str> },
            /// A ratio from 0 to 1.
            Ratio,
            /// A duration, or the word that the field `or` holds.
            Duration { least: Duration, most: Duration, or: Option<&'static str> },
            Money,
            OneOf(&'static [&'static str]),
            List(&'static SettingShape),
            /// A program and its arguments.
            Command,
            $($name,)*
        }

        impl SettingShape {
            /// Reads a text as a value of this shape. Relative paths are relative to `folder`.
            fn read_text(self, text: &str, folder: &Path) -> Option<String> {
                match self {
                    $(Self::$name => { let ($text, $folder) = (text, folder); $read })*
                    Self::OneOf(words) => same(text, words.contains(&text)),
                    _ => None,
                }
            }

            fn text_form(self) -> String {
                match self {
                    $(Self::$name => $form.into(),)*
                    _ => String::new(),
                }
            }
        }
    };
}
// Each shape of a text: its name, the text to keep if a text has this shape, and what would be right.
shapes! {
    Text |text, _| same(text, true), "a text";
    Dialect |text, _| same(text, text.parse::<Dialect>().is_ok()), either(Dialect::ALL.iter());
    FaultClass |text, _| same(text, class_named(text).is_some()),
        either(FaultClass::ALL.iter().map(|class| signal_word(*class)));
    Label |text, _| same(text, is_label(text)),
        format!("a name of at most {LABEL_BYTES_MAX} letters, digits, `-` and `_`");
    Kind |text, _| same(text, is_label(text)), "a kind, as `quittance kinds` names them";
    NodeName |text, _| same(text, is_name(text, NODE_NAME_BYTES_MAX, "-_.:")),
        format!("a name of at most {NODE_NAME_BYTES_MAX} letters, digits and `-`, `_`, `.`, `:`");
    Host |text, _| same(text, HostPattern::parse(text).is_ok()), format!("a host: {HOST_FORM}");
    Network |text, _| same(text, Allowed::parse(text).is_ok()),
        "a host, an address or a network, such as \"10.0.0.0/8\"";
    Pause |text, _| duration::parse(text).filter(|pause| !pause.is_zero() && *pause <= DURATION_MAX).map(duration::render),
        "a duration, such as \"30s\"";
    Hours |text, _| Hours::parse(text).ok().map(|hours| hours.to_string()),
        "a part of the day in UTC, such as \"08:00-20:30\"";
    Currency |text, _| same(text, text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())),
        "a currency of three letters, such as \"USD\" or \"RUB\"";
    Rate |text, _| same(text, rate::parse(text).is_some()), rate::FORM;
    KeyHash |text, _| same(text, KeyDigest::parse(text).is_some()),
        "64 hexadecimal digits, the SHA-256 of a key and never the key: `quittance tenant hash` makes it";
    ListenAddress |text, _| same(text, text.parse::<SocketAddr>().is_ok()),
        "an address and a port, such as \"127.0.0.1:8780\" or \"[::]:8780\"";
    WebAddress |text, _| same(text, page_host(text).is_ok() && !text.contains(['?', '#', '@'])),
        "an address that begins with http:// or https:// and has no user, `?` or `#` in it";
    StoreUrl |text, folder| Scheme::of(text.trim()).and_then(|_| match text.strip_prefix("embedded:") {
            Some(path) => in_folder(path, folder).map(|path| format!("embedded:{path}")),
            None => Some(without_password(text.trim())),
        }),
        "\"embedded:FOLDER\", \"redis://HOST:PORT\" (or rediss, valkey, redis+cluster, redis+sentinel), \
         \"postgres://USER@HOST:PORT/DATABASE\", or \"memory:\" to keep nothing after the end";
    PostgresUrl |text, _| (Scheme::of(text.trim()) == Some(Scheme::Postgres)).then(|| without_password(text.trim())),
        "the address of PostgreSQL itself, such as \"postgres://USER@HOST:PORT/DATABASE\"";
    File |text, folder| in_folder(text, folder), "the path of a file";
    Folder |text, folder| in_folder(text, folder), "the path of a folder";
    Variable |text, _| same(text, is_variable(text)),
        "the name of an environment variable that holds the secret, never the secret itself";
}

impl SettingShape {
    /// This shape, or one word instead of a value.
    pub(crate) const fn or(self, word: &'static str) -> Self {
        match self {
            Self::Count { least, most, .. } => Self::Count { least, most, or: Some(word) },
            Self::Duration { least, most, .. } => Self::Duration { least, most, or: Some(word) },
            other => other,
        }
    }

    /// The word that stands for an absent value.
    pub(crate) const fn word(self) -> Option<&'static str> {
        match self {
            Self::Count { or, .. } | Self::Duration { or, .. } => or,
            _ => None,
        }
    }

    /// Describes what would be valid, to follow "must be".
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Count { most: 0, .. } => "0, because a permanent error is never retried".into(),
            Self::Count { least, most, or } => {
                format!("{}a whole number from {least} to {most}", word_or(or))
            }
            Self::Ratio => "a ratio from 0 to 1, with at most three digits, such as 0.25".into(),
            Self::Duration { least, most, or: None } => {
                let (least, most) = (duration::render(least), duration::render(most));
                format!("a duration from {least} to {most}: {}", duration::FORM)
            }
            Self::Duration { or, .. } => format!("{}a duration: {}", word_or(or), duration::FORM),
            Self::Money => decimal::MONEY_FORM.into(),
            Self::OneOf(words) => either(words.iter()),
            Self::List(Self::Host) => format!("a list of hosts: {HOST_FORM}"),
            Self::List(Self::Kind) => "a list of kinds, as `quittance kinds` names them".into(),
            Self::List(Self::Network) => "a list of hosts, addresses or networks: \"hooks.example.org\", \
                                          \"*.example.org\", \"10.0.0.7\", \"10.0.0.0/8\""
                .into(),
            Self::List(Self::Pause) => {
                "a list of at most 16 durations, such as [\"2s\", \"1m\", \"2h\"]".into()
            }
            Self::List(Self::Label) => "a list of names, such as [\"team-a\"]".into(),
            Self::List(_) => "a list of parts of the day in UTC, such as [\"08:00-20:30\"]".into(),
            Self::Command => {
                "a list of a program and its arguments, such as [\"/usr/local/bin/page-me\", \"--now\"]; \
                              no shell reads it"
                    .into()
            }
            text => text.text_form(),
        }
    }

    /// The wrong value, as far as it may be shown: a misplaced secret must not be repeated. For a list, the wrong
    /// entries.
    pub(crate) fn found(self, raw: &Raw) -> String {
        match (self, raw) {
            (Self::WebAddress, Raw::Text(text)) if !text.contains(['@', '?', '#']) => raw.to_string(),
            (
                Self::Variable
                | Self::WebAddress
                | Self::StoreUrl
                | Self::PostgresUrl
                | Self::File
                | Self::KeyHash,
                _,
            ) => "not valid (it is not shown, because it may hold a secret)".into(),
            (Self::List(item), Raw::List(entries)) => {
                let why = |entry: &str| if self == HOSTS { why_no_host(entry) } else { "" };
                let wrong = entries.iter().filter(|entry| item.read_text(entry, Path::new("")).is_none());
                let named: Vec<String> = wrong.map(|entry| toml_text(entry) + why(entry)).collect();
                format!("a list with {} in it", named.join(" and "))
            }
            _ => raw.to_string(),
        }
    }

    /// Whether the value is an address that may contain a password.
    pub(crate) const fn is_store_address(self) -> bool {
        matches!(self, Self::StoreUrl | Self::PostgresUrl)
    }

    /// The text of a variable or a flag, as a value in the file.
    pub(crate) fn raw(self, text: &str) -> Raw {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        match (self, text) {
            (Self::Flag, "true") => Raw::Flag(true),
            (Self::Flag, "false") => Raw::Flag(false),
            (Self::Count { .. } | Self::Ratio | Self::Money, _) if text.chars().all(is_number) => {
                Raw::Number(text.into())
            }
            (Self::List(_) | Self::Command, _) => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                Raw::List(entries.map(Into::into).collect())
            }
            _ => Raw::Text(text.into()),
        }
    }

    /// Reads a value of this shape. Relative paths are relative to `folder`.
    pub(crate) fn read(self, raw: &Raw, folder: &Path) -> Option<SettingValue> {
        match (self, raw) {
            (Self::Flag, Raw::Flag(flag)) => Some(SettingValue::Flag(*flag)),
            (Self::Count { least, most, .. }, Raw::Number(digits)) => {
                digits.parse().ok().filter(|count| (least..=most).contains(count)).map(SettingValue::Count)
            }
            (Self::Ratio, Raw::Number(digits)) => decimal::ratio(digits).map(SettingValue::Ratio),
            (shape, Raw::Text(text)) if shape.word() == Some(text.as_str()) => {
                Some(SettingValue::Text(text.clone()))
            }
            (Self::Duration { least, most, .. }, Raw::Text(text)) => {
                duration::parse(text).filter(|time| (least..=most).contains(time)).map(SettingValue::Duration)
            }
            (Self::List(item), Raw::List(entries)) => {
                let read = entries.iter().map(|entry| item.read_text(entry, folder));
                let is_short = *item != Self::Pause || entries.len() <= WEBHOOK_PAUSES_MAX;
                read.collect::<Option<_>>().filter(|_| is_short).map(SettingValue::List)
            }
            (Self::Command, Raw::List(words)) => words
                .first()
                .is_none_or(|program| !program.is_empty())
                .then(|| SettingValue::List(words.clone())),
            (Self::Money, Raw::Number(text) | Raw::Text(text)) => {
                decimal::money(text).map(SettingValue::Money)
            }
            (Self::Text, Raw::Number(text)) => Some(SettingValue::Text(text.clone())),
            (Self::Text, Raw::Flag(flag)) => Some(SettingValue::Text(u8::from(*flag).to_string())),
            (_, Raw::Text(text)) => self.read_text(text, folder).map(SettingValue::Text),
            _ => None,
        }
    }
}

fn same(text: &str, is_right: bool) -> Option<String> {
    is_right.then(|| text.to_owned())
}

fn in_folder(path: &str, folder: &Path) -> Option<String> {
    match folder.to_str() {
        _ if path.is_empty() => None,
        Some("") => Some(path.to_owned()),
        _ => folder.join(path.trim_start_matches("./")).to_str().map(str::to_owned),
    }
}

/// The name of a fault class, or of an attempt in doubt, in settings.
pub(crate) fn signal_word(signal: impl Into<Signal>) -> String {
    match signal.into() {
        Signal::Fault(class) => class.name().replace(' ', "_"),
        Signal::InDoubt => "in_doubt".into(),
    }
}

fn word_or(word: Option<&str>) -> String {
    word.map_or_else(String::new, |word| format!("\"{word}\", or "))
}

fn either(words: impl Iterator<Item = impl fmt::Display>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}

/// Whether a text can be the name of a provider, a tenant or a pool.
pub fn is_label(text: &str) -> bool {
    is_name(text, LABEL_BYTES_MAX, "-_")
}

fn is_name(text: &str, bytes_max: usize, signs: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    (1..=bytes_max).contains(&text.len()) && text.chars().all(is_right)
}

/// Whether a text can be the name of a variable. 32 hexadecimal digits cannot: they are a provider's key.
fn is_variable(text: &str) -> bool {
    let is_key = text.len() >= 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    is_name(text, usize::MAX, "_") && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_key
}

/// Why an entry of a list of hosts is not a host, to follow the entry.
fn why_no_host(entry: &str) -> &'static str {
    let host = entry.strip_prefix("*.").unwrap_or(entry);
    match host {
        "" => " (which is empty)",
        _ if host.contains("://") => " (an address: write only its host)",
        _ if host.contains('/') => " (a host with a path: write only the host)",
        _ if host.contains(':') => " (a host with a port: write only the host, which holds for every port)",
        _ if host.contains(char::is_whitespace) => " (there is a blank in it)",
        _ if host.contains('*') => " (a `*` stands only at the beginning, before a dot)",
        _ => " (no host has such a name)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_no_host_is_reported_with_the_reason() {
        for (entry, why) in [
            ("https://shop.example.org/", "an address"),
            ("shop.example.org/login", "a path"),
            ("shop.example.org:443", "a port"),
            ("*.shop example.org", "a blank"),
            ("shop.*.org", "at the beginning"),
            ("", "empty"),
            ("shop..example", "no host"),
        ] {
            assert!(why_no_host(entry).contains(why), "{entry}: {}", why_no_host(entry));
        }
    }
}

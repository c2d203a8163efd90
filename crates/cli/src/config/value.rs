//! What a setting may look like, as typed and as meant. The shape of each setting is part of its row in the registry;
//! it reads, checks and describes values, so that an error always says what would have been right.

use super::address::{Scheme, without_password};
use super::name::toml_text;
use super::{money, rate, span};
use quittance_engine::targets::HostPattern;
use quittance_gateway::{Allowed, KeyDigest};
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{FaultClass, Money, Signal};
use quittance_ports::Hours;
use quittance_protocol::classic::Profile;
use quittance_protocol::classic::code::class_named;
use quittance_protocol::json::Flavour;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// As it was typed in the file, or as what the words of the environment and of flags would be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Text(String),
    /// In decimal digits.
    Number(String),
    Flag(bool),
    List(Vec<String>),
    /// Something that no setting takes.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Flag(bool),
    Count(u64),
    /// In thousandths.
    Share(u32),
    Span(Duration),
    Money(Money),
    List(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Flag,
    Count {
        least: u64,
        most: u64,
    },
    /// A part of the whole, from 0 to 1.
    Share,
    Span {
        least: Duration,
        most: Duration,
    },
    /// A span, or this word.
    /// A number from 0 up to `most`, or this word.
    CountOr {
        word: &'static str,
        most: u64,
    },
    SpanOr {
        word: &'static str,
        least: Duration,
    },
    OneOf(&'static [&'static str]),
    /// Whom a provider speaks like.
    Profile,
    /// A class of fault.
    Class,
    /// What providers and tenants are called.
    Label,
    Host,
    Hosts,
    /// Hosts, addresses and networks.
    Networks,
    Kind,
    Kinds,
    /// Parts of the day.
    Hours,
    /// A program and what it is given.
    Program,
    Money,
    /// A currency, by ISO 4217.
    Currency,
    /// Any text.
    Words,
    Rate,
    /// The hash of a key.
    Digest,
    Listen,
    /// An http or https address to build others on.
    WebAddress,
    Store,
    /// Where PostgreSQL is reached without a pooler.
    DirectUrl,
    File,
    Folder,
    /// What people call a node.
    NodeName,
    /// The name of an environment variable that holds a secret.
    Variable,
}

pub(crate) const SPAN_MOST: Duration = Duration::from_secs(366 * 24 * 3600);
/// It stands on every card that the node leaves.
pub(crate) const NODE_NAME_BYTES_MAX: usize = 64;
pub(crate) const LABEL_BYTES_MAX: usize = quittance_lifecycle::terms::TENANT_BYTES_MAX;

impl Shape {
    /// What would be right, to follow "must be".
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Count { most: 0, .. } => "0: what is permanent is never tried again".into(),
            Self::Count { least, most } => format!("a whole number from {least} to {most}"),
            Self::Share => "a part from 0 to 1, with at most three digits, such as 0.25".into(),
            Self::Span { least, most } => {
                let (least, most) = (span::render(least), span::render(most));
                format!("a span from {least} to {most}: {}", span::FORM)
            }
            Self::CountOr { word, most } => format!("\"{word}\", or a whole number from 0 to {most}"),
            Self::SpanOr { word, .. } => format!("\"{word}\", or a span: {}", span::FORM),
            Self::OneOf(words) => either(words.iter()),
            Self::Profile => either(profiles()),
            Self::Class => either(FaultClass::ALL.iter().map(|class| signal_word(*class))),
            Self::Label => {
                format!("a name of at most {LABEL_BYTES_MAX} letters, digits, `-` and `_`")
            }
            Self::Host => {
                "a host: \"shop.example.org\", \"*.example.org\" (that host and all below it), or \"*\"".into()
            }
            Self::Hosts => {
                "a list of hosts: \"shop.example.org\", \"*.example.org\" (that host and all below it), or \"*\""
                    .into()
            }
            Self::Networks => {
                "a list of hosts, addresses or networks: \"hooks.example.org\", \"*.example.org\", \"10.0.0.7\", \"10.0.0.0/8\""
                    .into()
            }
            Self::Kind => "a kind, as `quittance kinds` names them".into(),
            Self::Hours => "a list of parts of the day in UTC, such as [\"08:00-20:30\"]".into(),
            Self::Money => money::FORM.into(),
            Self::Currency => "a currency of three letters, such as \"USD\" or \"RUB\"".into(),
            Self::Program => {
                "a list of a program and its arguments, such as [\"/usr/local/bin/page-me\", \"--now\"]; no shell reads it".into()
            }
            Self::Words => "a text".into(),
            Self::Kinds => "a list of kinds, as `quittance kinds` names them".into(),
            Self::Rate => rate::FORM.into(),
            Self::Digest => {
                "64 hexadecimal digits, the SHA-256 of a key and never the key: `quittance tenant hash` makes it".into()
            }
            Self::Listen => "an address and a port, such as \"127.0.0.1:8780\" or \"[::]:8780\"".into(),
            Self::WebAddress => {
                "an address that begins with http:// or https:// and has no user, `?` or `#` in it".into()
            }
            Self::Store => "\"embedded:FOLDER\", \"redis://HOST:PORT\" (or rediss, valkey, redis+cluster, redis+sentinel), \
                            \"postgres://USER@HOST:PORT/DATABASE\", or \"memory:\" to keep nothing after the end"
                .into(),
            Self::DirectUrl => "the address of PostgreSQL itself, such as \"postgres://USER@HOST:PORT/DATABASE\"".into(),
            Self::File => "the path of a file".into(),
            Self::Folder => "the path of a folder".into(),
            Self::NodeName => {
                format!("a name of at most {NODE_NAME_BYTES_MAX} letters, digits and `-`, `_`, `.`, `:`")
            }
            Self::Variable => {
                "the name of an environment variable that holds the secret, never the secret itself".into()
            }
        }
    }

    /// Whether a wrong value may be a secret that was put in the wrong place, and must not be repeated.
    pub(crate) const fn is_delicate(self) -> bool {
        matches!(
            self,
            Self::Variable | Self::WebAddress | Self::Store | Self::DirectUrl | Self::File | Self::Digest
        )
    }

    /// What was written instead of a right value, as far as it may be shown; of a list, the entry that is wrong.
    pub(crate) fn found(self, raw: &Raw) -> String {
        match raw {
            Raw::Text(text) if self == Self::WebAddress && !text.contains(['@', '?', '#']) => raw.to_string(),
            _ if self.is_delicate() => "a value that is not shown, because it may hold a secret".into(),
            Raw::List(entries) => {
                let is_right =
                    |entry: &&String| self.read(&Raw::List(vec![(*entry).clone()]), Path::new("")).is_some();
                let why =
                    |entry: &str| if self == Self::Hosts { super::nearest::why_no_host(entry) } else { "" };
                let wrong = entries.iter().filter(|entry| !is_right(entry));
                let named: Vec<String> =
                    wrong.map(|entry| format!("{}{}", toml_text(entry), why(entry))).collect();
                match named.is_empty() {
                    true => raw.to_string(),
                    false => format!("a list with {} in it", named.join(" and ")),
                }
            }
            _ => raw.to_string(),
        }
    }

    /// Whether a password may stand in it.
    pub(crate) const fn is_address(self) -> bool {
        matches!(self, Self::Store | Self::DirectUrl)
    }

    /// The words of the environment and of flags as the file would have them.
    pub(crate) fn typed(self, words: &str) -> Raw {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        match (self, words) {
            (Self::Flag, "true") => Raw::Flag(true),
            (Self::Flag, "false") => Raw::Flag(false),
            (Self::Count { .. } | Self::CountOr { .. } | Self::Share | Self::Money, _)
                if words.chars().all(is_number) =>
            {
                Raw::Number(words.into())
            }
            (Self::Hosts | Self::Networks | Self::Kinds | Self::Hours | Self::Program, _) => {
                Raw::List(words.split(',').map(str::trim).filter(|w| !w.is_empty()).map(Into::into).collect())
            }
            _ => Raw::Text(words.into()),
        }
    }

    /// Relative paths are meant from `folder`.
    pub(crate) fn read(self, raw: &Raw, folder: &Path) -> Option<Value> {
        match (self, raw) {
            (Self::Flag, Raw::Flag(flag)) => Some(Value::Flag(*flag)),
            (Self::Count { least, most }, Raw::Number(digits)) => {
                digits.parse().ok().filter(|n| (least..=most).contains(n)).map(Value::Count)
            }
            (Self::Share, Raw::Number(digits)) => thousandths(digits).map(Value::Share),
            (Self::Span { least, most }, Raw::Text(text)) => {
                span::parse(text).filter(|span| (least..=most).contains(span)).map(Value::Span)
            }
            (Self::CountOr { most, .. }, Raw::Number(digits)) => {
                digits.parse().ok().filter(|n| (0..=most).contains(n)).map(Value::Count)
            }
            (Self::CountOr { word, .. } | Self::SpanOr { word, .. }, Raw::Text(text)) if text == word => {
                Some(Value::Text(text.clone()))
            }
            (Self::SpanOr { least, .. }, Raw::Text(text)) => {
                span::parse(text).filter(|span| (least..=SPAN_MOST).contains(span)).map(Value::Span)
            }
            (Self::Hosts, Raw::List(hosts)) => {
                let is_right = hosts.iter().all(|host| HostPattern::parse(host).is_ok());
                is_right.then(|| Value::List(hosts.clone()))
            }
            (Self::Networks, Raw::List(networks)) => {
                let is_right = networks.iter().all(|text| Allowed::parse(text).is_ok());
                is_right.then(|| Value::List(networks.clone()))
            }
            (Self::Kinds, Raw::List(kinds)) => {
                let is_right = kinds.iter().all(|kind| is_label(kind));
                is_right.then(|| Value::List(kinds.clone()))
            }
            (Self::Program, Raw::List(words)) => {
                let is_right = words.first().is_none_or(|program| !program.is_empty());
                is_right.then(|| Value::List(words.clone()))
            }
            (Self::Hours, Raw::List(hours)) => {
                let read: Option<Vec<String>> =
                    hours.iter().map(|text| Hours::parse(text).ok().map(|hours| hours.to_string())).collect();
                read.map(Value::List)
            }
            (Self::Money, Raw::Number(text) | Raw::Text(text)) => money::parse(text).map(Value::Money),
            (Self::Words, Raw::Number(text)) => Some(Value::Text(text.clone())),
            (Self::Words, Raw::Flag(flag)) => Some(Value::Text(u8::from(*flag).to_string())),
            (_, Raw::Text(text)) => self.read_text(text, folder).map(Value::Text),
            _ => None,
        }
    }

    fn read_text(self, text: &str, folder: &Path) -> Option<String> {
        let placed = |path: &str| match folder.to_str() {
            Some("") => Some(path.to_owned()),
            _ => folder.join(path.trim_start_matches("./")).to_str().map(str::to_owned),
        };
        let is_right = match self {
            Self::OneOf(words) => words.contains(&text),
            Self::Profile => profiles().any(|name| name == text),
            Self::Class => class_named(text).is_some(),
            Self::Label | Self::Kind => is_label(text),
            Self::Host => HostPattern::parse(text).is_ok(),
            Self::Words => true,
            Self::Currency => text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
            Self::Rate => rate::parse(text).is_some(),
            Self::Digest => KeyDigest::parse(text).is_some(),
            Self::Listen => text.parse::<SocketAddr>().is_ok(),
            Self::WebAddress => is_web_address(text),
            Self::Variable => is_variable(text),
            Self::File | Self::Folder if !text.is_empty() => return placed(text),
            Self::NodeName => is_node_name(text),
            Self::Store => match (Scheme::of(text.trim())?, text.strip_prefix("embedded:")) {
                (_, Some(path)) => return placed(path).map(|path| format!("embedded:{path}")),
                _ => return Some(without_password(text.trim())),
            },
            Self::DirectUrl if Scheme::of(text.trim()) == Some(Scheme::Postgres) => {
                return Some(without_password(text.trim()));
            }
            _ => false,
        };
        is_right.then(|| text.to_owned())
    }
}

/// For a limit of retries: there is none but the order's deadline.
pub(crate) const UNTIL_DEADLINE: &str = "deadline";

/// What a class of fault, or an attempt in doubt, is called here.
pub(crate) fn signal_word(signal: impl Into<Signal>) -> String {
    match signal.into() {
        Signal::Fault(class) => class.name().replace(' ', "_"),
        Signal::InDoubt => "in_doubt".into(),
    }
}

/// Whoever speaks one of the protocols, each once.
fn profiles() -> impl Iterator<Item = &'static str> {
    let classic = Profile::ALL.iter().map(|profile| profile.name());
    let json = Flavour::ALL.iter().map(|flavour| flavour.name());
    classic.chain(json.filter(|name| Profile::named(name).is_none()))
}

fn either(words: impl Iterator<Item = impl fmt::Display>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}

pub(crate) fn is_label(text: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LABEL_BYTES_MAX).contains(&text.len()) && text.chars().all(is_right)
}

fn is_node_name(text: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    (1..=NODE_NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_right)
}

fn is_web_address(text: &str) -> bool {
    page_host(text).is_ok() && !text.contains(['?', '#', '@'])
}

/// A provider's key is 32 hexadecimal digits, and no variable is called like that.
fn is_variable(text: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_key = text.len() >= 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(is_right)
        && !is_key
}

fn thousandths(digits: &str) -> Option<u32> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.trim_end_matches('0').len() > 3 {
        return None;
    }
    let part: u32 = format!("{part:0<3}")[..3].parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(part).filter(|share| *share <= 1000)
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

/// As TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&toml_text(text)),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => {
                let digits = format!("{}.{:03}", share / 1000, share % 1000);
                let short = digits.trim_end_matches('0');
                write!(f, "{short}{}", if short.ends_with('.') { "0" } else { "" })
            }
            Self::Span(span) => write!(f, "\"{}\"", span::render(*span)),
            Self::Money(amount) => f.write_str(&money::render(*amount)),
            Self::List(list) => {
                let list: Vec<String> = list.iter().map(|text| toml_text(text)).collect();
                write!(f, "[{}]", list.join(", "))
            }
        }
    }
}

impl Value {
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Count(count) => (*count).into(),
            Self::Share(share) => (f64::from(*share) / 1000.0).into(),
            Self::Span(span) => span::render(*span).into(),
            Self::Money(amount) => money::render(*amount).into(),
            Self::List(list) => list.as_slice().into(),
        }
    }
}

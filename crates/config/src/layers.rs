//! The layers, from the weakest to the strongest: defaults, the file, the environment, flags. Each gives entries;
//! a later one overrules an earlier one of the same name.

use super::address::has_password;
use super::error::{ConfigError, Wrong};
use super::file::{FileReader, LISTS, POOLS, unknown};
use super::name::Name;
use super::origin::Origin;
use super::setting::{PREFIX, Setting, by_variable, meant_variable, setting};
use super::value::{Raw, Shape, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// One value that somebody set.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Name,
    pub setting: &'static Setting,
    pub value: Value,
    pub origin: Origin,
}

impl Entry {
    pub fn new(name: Name, raw: &Raw, origin: Origin, folder: &Path) -> Result<Self, ConfigError> {
        let Some(setting) = setting(&name) else { return Err(unknown(&name, origin)) };
        Self::of(setting, name, raw, origin, folder)
    }

    fn of(
        setting: &'static Setting,
        name: Name,
        raw: &Raw,
        origin: Origin,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        match setting.shape.read(raw, folder) {
            Some(_) if setting.shape.is_address() && is_written_down(raw, &origin) => {
                Err(ConfigError::PasswordInPlace { name: name.to_string(), at: origin })
            }
            Some(value) => Ok(Self { name, setting, value, origin }),
            None => Err(ConfigError::BadValue {
                name: name.to_string(),
                at: origin,
                found: setting.shape.found(raw),
                expected: setting.shape.describe(),
            }),
        }
    }
}

/// A password that others can read: in the file, or among the words of a command.
fn is_written_down(raw: &Raw, origin: &Origin) -> bool {
    !matches!(origin, Origin::Variable(_)) && matches!(raw, Raw::Text(text) if has_password(text))
}

/// What the process was started in: its environment, taken as an argument so that no test needs to change the real one.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The real one. What is not Unicode can be neither a setting's name nor its value.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Names the file; every command knows it.
pub const FILE_VARIABLE: &str = "QUITTANCE_CONFIG";
pub const FILE_DEFAULT: &str = "quittance.toml";
/// The passwords of two stores between which orders are copied.
pub const FROM_PASSWORD: &str = "QUITTANCE_FROM_PASSWORD";
pub const TO_PASSWORD: &str = "QUITTANCE_TO_PASSWORD";
/// The operator's key, for commands that ask the daemon.
pub const ADMIN_KEY: &str = "QUITTANCE_ADMIN_KEY";
/// The key of a tenant, for orders that go through a daemon with tenants.
pub const TENANT_KEY: &str = "QUITTANCE_TENANT_KEY";

/// Where the config file is, if there is one. One that was named must exist.
pub fn find_file(
    flag: Option<&Path>,
    environment: &Environment,
    folder: &Path,
) -> Result<Option<PathBuf>, ConfigError> {
    let named = flag.map(|path| (path.to_owned(), "--config"));
    let named = named.or_else(|| environment.get(FILE_VARIABLE).map(|path| (path.into(), FILE_VARIABLE)));
    match named {
        Some((path, _)) if folder.join(&path).exists() => Ok(Some(folder.join(path))),
        Some((path, named_by)) => Err(ConfigError::NoFile { path, named_by }),
        None => Ok(Some(folder.join(FILE_DEFAULT)).filter(|path| path.exists())),
    }
}

pub fn from_file(path: &Path, wrong: &mut Wrong) -> Result<Vec<Entry>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    FileReader::read(&text, path, wrong)
}

/// The overrides of `--set NAME=VALUE`.
pub fn from_flags(overrides: &[String], wrong: &mut Wrong) -> Vec<Entry> {
    let read = |words: &String| {
        let parts = split_override(words);
        let (name, value) = parts.ok_or_else(|| ConfigError::BadOverride { words: named_only(words) })?;
        let Some(setting) = setting(&name) else { return Err(unknown(&name, Origin::Flag)) };
        Entry::of(setting, name, &setting.shape.typed(value), Origin::Flag, Path::new(""))
    };
    overrides.iter().filter_map(|words| wrong.keep(read(words))).collect()
}

/// A quoted part of a name may hold an equals sign.
fn split_override(words: &str) -> Option<(Name, &str)> {
    let mut is_quoted = false;
    let at = words.find(|c| {
        is_quoted ^= c == '"';
        c == '=' && !is_quoted
    })?;
    Some((Name::parse(&words[..at])?, words[at + 1..].trim()))
}

/// What was set may be a secret; its name is not.
fn named_only(words: &str) -> String {
    words.split_once('=').map_or_else(|| words.to_owned(), |(name, _)| format!("{name}=..."))
}

/// The variables that begin with our prefix. `others` are the entries of the other layers: they say what providers
/// and tenants are called, and which variables hold secrets.
pub fn from_environment(
    environment: &Environment,
    others: &[&[Entry]],
    wrong: &mut Wrong,
) -> (Vec<Entry>, Vec<String>) {
    let labels = labels(others.iter().copied().flatten());
    let known: Vec<String> = labels.iter().map(|(_, label)| label.clone()).collect();
    let (mut entries, mut strangers) = (Vec::new(), Vec::new());
    for (variable, words) in environment.0.iter().filter(|(variable, _)| is_ours(variable)) {
        if is_kubernetes(variable, words) {
            continue;
        }
        match by_variable(variable, &known) {
            Some((setting, name)) => {
                let origin = Origin::Variable(variable.clone());
                let entry = Entry::of(setting, name, &setting.shape.typed(words), origin, Path::new(""));
                entries.extend(wrong.keep(entry));
            }
            None => strangers.push(variable),
        }
    }
    let all = || others.iter().copied().flatten().chain(&entries);
    let is_secret = |variable: &str| {
        all().any(|entry| {
            entry.setting.shape == Shape::Variable && entry.value == Value::Text(variable.to_owned())
        })
    };
    let warnings = strangers.into_iter().filter(|variable| !is_secret(variable)).map(|variable| {
        let hint = match meant_variable(variable, &labels) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`quittance config show` lists all settings".into(),
        };
        format!("the environment variable `{variable}` is not a setting, and does nothing; {hint}")
    });
    let warnings = warnings.collect();
    (entries, warnings)
}

fn is_ours(variable: &str) -> bool {
    variable.starts_with(PREFIX)
        && ![FILE_VARIABLE, FROM_PASSWORD, TO_PASSWORD, ADMIN_KEY, TENANT_KEY].contains(&variable)
}

/// Kubernetes puts variables into every container for each Service of its namespace. For one called `quittance` or
/// `quittance-x` they have our prefix: `QUITTANCE_X_SERVICE_HOST`, `QUITTANCE_X_PORT_8780_TCP_ADDR` and so on. They are not
/// ours even where they look like a setting, such as `QUITTANCE_PRICES_PORT`; no setting of ours ends like them.
fn is_kubernetes(variable: &str, words: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| words.starts_with(scheme));
    let is_port = variable.match_indices("_PORT_").any(|(at, part)| {
        let mut rest = variable[at + part.len()..].split('_');
        let (port, protocol, last) = (rest.next().unwrap_or_default(), rest.next(), rest.next());
        port.parse::<u16>().is_ok()
            && matches!(protocol, Some("TCP" | "UDP" | "SCTP"))
            && matches!(last, None | Some("ADDR" | "PORT" | "PROTO"))
            && rest.next().is_none()
    });
    let is_service_port = variable.ends_with("_SERVICE_PORT") || variable.contains("_SERVICE_PORT_");
    (variable.ends_with("_SERVICE_HOST") && words.parse::<IpAddr>().is_ok())
        || (is_service_port && words.parse::<u16>().is_ok())
        || (variable.ends_with("_PORT") && is_address)
        || is_port
}

/// What providers, tenants and pools are called, in the order in which they were first named.
pub fn labels<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<(&'static str, String)> {
    let mut labels = Vec::new();
    for entry in entries {
        let mut segments = entry.name.segments();
        let (head, label) = (segments.next(), segments.next());
        let list = LISTS.into_iter().chain([POOLS]).find(|list| head == Some(list));
        if let (Some(list), Some(label)) = (list, label)
            && !labels.iter().any(|(of, known)| *of == list && known == label)
        {
            labels.push((list, label.to_owned()));
        }
    }
    labels
}

//! The layers, from the weakest to the strongest: defaults, the file, the environment, flags. Each layer gives
//! entries. A stronger layer overrides a weaker one's entry of one name.

use crate::address::has_password;
use crate::config_file::{FileReader, LISTS, POOLS, unknown};
use crate::error::{ConfigError, Errors};
use crate::named_files::read_file;
use crate::origin::SettingOrigin;
use crate::setting::{PREFIX, Setting, by_variable, meant_variable, setting};
use crate::setting_name::Name;
use crate::setting_shape::SettingShape;
use crate::value::{Raw, SettingValue};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// One value that is set.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) setting: &'static Setting,
    pub(crate) value: SettingValue,
    pub(crate) origin: SettingOrigin,
}

impl Entry {
    pub(crate) fn new(
        name: Name,
        raw: &Raw,
        origin: SettingOrigin,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        let Some(setting) = setting(&name) else { return Err(unknown(&name, &origin)) };
        Self::of(setting, name, raw, origin, folder)
    }

    fn of(
        setting: &'static Setting,
        name: Name,
        raw: &Raw,
        origin: SettingOrigin,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        match setting.shape.read(raw, folder) {
            Some(_) if setting.shape.is_store_address() && is_written_down(raw, &origin) => {
                let what =
                    "has a password in it, where backups, colleagues and the list of processes show it";
                Err(ConfigError::in_place(&origin, &name, what, "store.password", "password"))
            }
            Some(value) => Ok(Self { name, setting, value, origin }),
            None => {
                let (found, expected) = (setting.shape.found(raw), setting.shape.describe());
                Err(ConfigError::bad_value(&origin, &name, &found, &expected))
            }
        }
    }
}

/// Whether the value is a password that others can read: in the file, or on the command line.
fn is_written_down(raw: &Raw, origin: &SettingOrigin) -> bool {
    !matches!(origin, SettingOrigin::Variable(_)) && matches!(raw, Raw::Text(text) if has_password(text))
}

/// The environment variables. They are passed as an argument, so that no test changes the real ones.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

/// Values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

impl Environment {
    /// The variables of this process. A variable that is not Unicode is left out: it cannot be a setting.
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

/// The variable that names the config file.
pub(crate) const FILE_VARIABLE: &str = "QUITTANCE_CONFIG";
pub(crate) const FILE_DEFAULT: &str = "quittance.toml";
/// The variables with the passwords of the two stores of `store copy`.
pub const FROM_PASSWORD: &str = "QUITTANCE_FROM_PASSWORD";
pub const TO_PASSWORD: &str = "QUITTANCE_TO_PASSWORD";
/// The variable with the operator's key, for commands that ask the daemon.
pub const ADMIN_KEY: &str = "QUITTANCE_ADMIN_KEY";
/// The variable with the key of a tenant, for orders that go through a daemon with tenants.
pub const TENANT_KEY: &str = "QUITTANCE_TENANT_KEY";

/// The path of the config file, if there is one. A file that is named must exist.
pub(crate) fn find_file(
    flag: Option<&Path>,
    environment: &Environment,
    folder: &Path,
) -> Result<Option<PathBuf>, ConfigError> {
    let named = flag.map(|path| (path.to_owned(), "--config"));
    let named = named.or_else(|| environment.get(FILE_VARIABLE).map(|path| (path.into(), FILE_VARIABLE)));
    match named {
        Some((path, _)) if folder.join(&path).exists() => Ok(Some(folder.join(path))),
        Some((path, named_by)) => Err(ConfigError::general(format!(
            "the config file {} does not exist: check the path given by {named_by}, or leave it out to use the defaults",
            path.display()
        ))),
        None => Ok(Some(folder.join(FILE_DEFAULT)).filter(|path| path.exists())),
    }
}

pub(crate) fn from_file(path: &Path, errors: &mut Errors) -> Result<Vec<Entry>, ConfigError> {
    let text = read_file(path)
        .and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
        })
        .map_err(|why| {
            ConfigError::general(format!("the config file {} cannot be read: {why}", path.display()))
        })?;
    FileReader::read(&text, path, errors)
}

/// The overrides of `--set NAME=VALUE`.
pub(crate) fn from_flags(overrides: &[String], errors: &mut Errors) -> Vec<Entry> {
    let read = |words: &String| {
        let parts = split_override(words);
        let (name, value) = parts.ok_or_else(|| not_understood(words))?;
        let Some(setting) = setting(&name) else { return Err(unknown(&name, &SettingOrigin::Flag)) };
        Entry::of(setting, name, &setting.shape.raw(value), SettingOrigin::Flag, Path::new(""))
    };
    overrides.iter().filter_map(|words| errors.keep(read(words))).collect()
}

/// Splits `NAME=VALUE`. A quoted part of the name may contain an equals sign.
fn split_override(words: &str) -> Option<(Name, &str)> {
    let mut is_quoted = false;
    let at = words.find(|c| {
        is_quoted ^= c == '"';
        c == '=' && !is_quoted
    })?;
    Some((Name::parse(&words[..at])?, words[at + 1..].trim()))
}

/// The error about a flag that cannot be read. It shows the name only, because the value may be a secret.
fn not_understood(words: &str) -> ConfigError {
    let shown = words.split_once('=').map_or_else(|| words.to_owned(), |(name, _)| format!("{name}=..."));
    let form = "write `--set NAME=VALUE`, such as `--set timing.deadline=120s`";
    ConfigError::general(format!("`--set {shown}` is not understood: {form}"))
}

/// The variables with our prefix, and warnings about those that are no settings. `others` are the entries of the
/// other layers: they contain the names of providers and tenants, and of variables with secrets.
pub(crate) fn from_environment(
    environment: &Environment,
    others: &[&[Entry]],
    errors: &mut Errors,
) -> (Vec<Entry>, Vec<String>) {
    let labels = labels(others.iter().copied().flatten());
    let (mut entries, mut unknown) = (Vec::new(), Vec::new());
    for (variable, words) in environment.0.iter().filter(|(variable, _)| is_ours(variable)) {
        if is_kubernetes(variable, words) {
            continue;
        }
        match by_variable(variable, &labels) {
            Some((setting, name)) => {
                let origin = SettingOrigin::Variable(variable.clone());
                let entry = Entry::of(setting, name, &setting.shape.raw(words), origin, Path::new(""));
                entries.extend(errors.keep(entry));
            }
            None => unknown.push(variable),
        }
    }
    let all = || others.iter().copied().flatten().chain(&entries);
    let is_secret = |variable: &str| {
        all().any(|entry| {
            entry.setting.shape == SettingShape::Variable
                && entry.value == SettingValue::Text(variable.to_owned())
        })
    };
    let warnings = unknown.into_iter().filter(|variable| !is_secret(variable)).map(|variable| {
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

/// Whether Kubernetes has set the variable. It sets variables in every container for each Service of its namespace.
/// For a Service called `quittance` or `quittance-x` they have our prefix: `QUITTANCE_X_SERVICE_HOST`,
/// `QUITTANCE_X_PORT_8780_TCP_ADDR` and so on. They are not ours even if they look like a setting, such as
/// `QUITTANCE_PRICES_PORT`. No setting of ours ends like them.
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

/// The names of providers, tenants and pools, each with its list, in the order in which they first appear.
pub(crate) fn labels<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<(&'static str, String)> {
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

//! What can be wrong with a configuration. Every message names the setting, where its value came from, what is wrong with it,
//! and what to do.

use crate::name::Name;
use crate::origin::Origin;
use std::path::PathBuf;

/// Everything that is wrong with a configuration, in the order in which it was found: one line each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// Collects errors, so that reading goes on and all of them are reported at once.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<ConfigError>);

impl Errors {
    pub(crate) fn push(&mut self, error: ConfigError) {
        self.0.push(error);
    }

    /// The value; `None` if it is wrong.
    pub(crate) fn keep<T>(&mut self, read: Result<T, ConfigError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// All errors, without those that only follow from one of the first `read_errors`: a provider whose address is wrong has
    /// an address.
    pub(crate) fn into_errors(self, read_errors: usize) -> Vec<ConfigError> {
        let mut errors = self.0;
        let later = errors.split_off(read_errors);
        let follows = |error: &ConfigError| {
            let text = error.to_string();
            errors.iter().any(|first| first.explains(&text, error.about()))
        };
        let later: Vec<ConfigError> = later.into_iter().filter(|error| !follows(error)).collect();
        errors.extend(later);
        errors
    }

    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }
}

/// One thing that is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the config file {} does not exist: check the path given by {named_by}, or leave it out to use the defaults", path.display())]
    NoFile { path: PathBuf, named_by: &'static str },
    #[error("the config file {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{at}: this is not TOML: {what}")]
    NotToml { at: Origin, what: String },
    #[error("{at}: there is no setting `{name}`{}", hint(.meant.as_deref()))]
    UnknownKey { name: String, at: Origin, meant: Option<String> },
    #[error("{at}: `{name}` is a table: write its settings below `[{name}]`")]
    IsATable { name: String, at: Origin },
    #[error("{at}: `{name}` takes a value and is no table: write `{name} = ...`")]
    IsNoTable { name: String, at: Origin },
    #[error(
        "{at}: `{name}` is a list of tables: begin each with `[[{name}]]`{}", named(.name)
    )]
    IsAList { name: String, at: Origin },
    #[error("{at}: this `[[{table}]]` has no name: add `name = \"...\"`")]
    NoName { table: String, at: Origin },
    #[error(
        "{at}: there is a second `[[{table}]]` called `{name}` (the first: {first}): give each a name of its own"
    )]
    SameName { table: String, name: String, first: Origin, at: Origin },
    #[error("{at}: `{name}` is {found}, and must be {expected}")]
    BadValue { name: String, at: Origin, found: String, expected: String },
    #[error(
        "{at}: `{name}` would put a secret into the configuration, where backups and colleagues read it: put it into \
         an environment variable and name that with `{name}_env = \"...\"`, or into a file and name that with \
         `{name}_file = \"...\"`; then replace the secret, because it has been written down"
    )]
    SecretInPlace { name: String, at: Origin },
    #[error("{at}: `{name}` {problem}: {remedy}")]
    Unsound { name: String, at: Origin, problem: String, remedy: String },
    #[error("`{table}` has no `{key}`: {remedy}")]
    Incomplete { table: String, key: &'static str, remedy: String },
    #[error(
        "{at}: `{name}` has a password in it, where backups, colleagues and the list of processes show it: put it into \
         an environment variable and name that with `store.password_env = \"...\"`, or into a file and name that with \
         `store.password_file = \"...\"`; then replace the password, because it has been written down"
    )]
    PasswordInPlace { name: String, at: Origin },
    #[error("{at}: `{name}` cannot be used: {why}")]
    BadUrl { name: String, at: Origin, why: String },
    #[error(
        "`--set {words}` is not understood: write `--set NAME=VALUE`, such as `--set timing.deadline=120s`"
    )]
    BadOverride { words: String },
    #[error("the secret for `{name}` is missing: {why}")]
    NoSecret { name: String, why: String },
    #[error("the secret for `{name}` is there and cannot be used: {why}")]
    BadSecret { name: String, why: String },
    #[error("`{setting}` names the folder {}, {why}", folder.display())]
    Folder { setting: &'static str, folder: PathBuf, why: String },
    #[error(
        "the key for `{name}` ({keeper}) has {found} characters, and must have 32, because clients take no other: \
         `quittance tenant new` makes one"
    )]
    KeyLength { name: String, keeper: String, found: usize },
}

impl ConfigError {
    /// The error about a table without a setting that it needs.
    pub(crate) fn incomplete(table: &Name, key: &'static str, remedy: &str) -> Self {
        Self::Incomplete { table: table.to_string(), key, remedy: remedy.into() }
    }

    /// The setting or the table that it is about, if it is about one.
    fn about(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { name, .. }
            | Self::IsATable { name, .. }
            | Self::IsNoTable { name, .. }
            | Self::IsAList { name, .. }
            | Self::BadValue { name, .. }
            | Self::SecretInPlace { name, .. }
            | Self::Unsound { name, .. }
            | Self::PasswordInPlace { name, .. }
            | Self::BadUrl { name, .. }
            | Self::NoSecret { name, .. }
            | Self::BadSecret { name, .. }
            | Self::KeyLength { name, .. } => Some(name),
            Self::Folder { setting, .. } => Some(setting),
            Self::NoName { table, .. } | Self::SameName { table, .. } | Self::Incomplete { table, .. } => {
                Some(table)
            }
            Self::NoFile { .. }
            | Self::Unreadable { .. }
            | Self::NotToml { .. }
            | Self::BadOverride { .. } => None,
        }
    }

    /// Whether a later error only follows from this one: it names the same setting, or the table that this one is in.
    pub fn explains(&self, later: &str, about: Option<&str>) -> bool {
        let Some(own) = self.about() else { return false };
        let is_below = |table: &str| own.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        let is_provider = own.starts_with("provider") && later.starts_with("there is no provider");
        later.contains(&format!("`{own}`")) || about.is_some_and(is_below) || is_provider
    }
}

fn named(list: &str) -> &'static str {
    if list == crate::file::LIFETIMES { "" } else { " and give it a `name = \"...\"`" }
}

fn hint(meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => "; `quittance config show` lists all there are".into(),
    }
}

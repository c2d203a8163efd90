//! What can be wrong with a configuration. Every message names the setting, the origin of its value, what is wrong
//! with it, and what to do.

use crate::origin::SettingOrigin;
use crate::setting_name::Name;
use std::fmt::Display;

/// Everything that is wrong with a configuration, in the order in which it was found: one line each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// Collects errors, so that reading continues and all of them are reported at once.
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

    /// All errors, without those that only follow from one of the first `read_errors`. For example, a provider with a
    /// wrong address does not also miss its address.
    pub(crate) fn into_errors(self, read_errors: usize) -> Vec<ConfigError> {
        let mut errors = self.0;
        let later = errors.split_off(read_errors);
        let follows = |error: &ConfigError| {
            let text = error.to_string();
            errors.iter().any(|first| first.explains(&text, error.about.as_deref()))
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
#[error("{message}")]
pub struct ConfigError {
    /// The setting or the table of the error; `None` if the error is not about a setting or a table.
    about: Option<String>,
    message: String,
}

impl ConfigError {
    /// An error that is about no setting.
    pub(crate) const fn general(message: String) -> Self {
        Self { about: None, message }
    }

    /// An error about this setting or this table.
    pub(crate) fn about(name: &(impl ToString + ?Sized), message: String) -> Self {
        Self { about: Some(name.to_string()), message }
    }

    /// An error about a value or a table, with the place where it was set. `what` follows its name.
    pub(crate) fn at(at: &SettingOrigin, name: &(impl ToString + ?Sized), what: impl Display) -> Self {
        let name = name.to_string();
        let message = format!("{at}: `{name}` {what}");
        Self { about: Some(name), message }
    }

    /// The error about a value of the wrong form.
    pub(crate) fn bad_value(at: &SettingOrigin, name: &Name, found: &str, expected: &str) -> Self {
        Self::at(at, name, format!("is {found}, and must be {expected}"))
    }

    /// The error about a secret or a password in a place where others can read it.
    pub(crate) fn in_place(at: &SettingOrigin, name: &Name, what: &str, setting: &str, secret: &str) -> Self {
        let what = format!(
            "{what}: put it into an environment variable and name that with `{setting}_env = \"...\"`, or into a file and \
             name that with `{setting}_file = \"...\"`; then replace the {secret}, because it has been written down"
        );
        Self::at(at, name, what)
    }

    /// The error about a table without a setting that it needs.
    pub(crate) fn incomplete(table: &Name, key: &str, remedy: &str) -> Self {
        Self::about(table, format!("`{table}` has no `{key}`: {remedy}"))
    }

    /// Whether a later error only follows from this one: it names this error's setting, or the table that this
    /// setting is in.
    pub fn explains(&self, later: &str, about: Option<&str>) -> bool {
        let Some(own) = &self.about else { return false };
        let is_below = |table: &str| own.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        let is_provider = own.starts_with("provider") && later.starts_with("there is no provider");
        later.contains(&format!("`{own}`")) || about.is_some_and(is_below) || is_provider
    }
}

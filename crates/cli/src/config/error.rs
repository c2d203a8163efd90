//! What can be wrong with a configuration. Every message names the setting, says where its value came from, what is
//! wrong with it and what to do.

use super::origin::Origin;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
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
    #[error(
        "the key for `{name}` ({keeper}) has {found} characters, and must have 32, because clients take no other: \
         `quittance tenant new` makes one"
    )]
    KeyLength { name: String, keeper: String, found: usize },
}

fn named(list: &str) -> &'static str {
    if list == super::file::LIFETIMES { "" } else { " and give it a `name = \"...\"`" }
}

fn hint(meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => "; `quittance config show` lists all there are".into(),
    }
}

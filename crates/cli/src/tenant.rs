//! `quittance tenant`: our own keys for callers. A key is shown once, when it is created. Only its hash is kept,
//! which may be in the config file.

use crate::exit::{CliError, Exit};
use crate::output::{self, harmless};
use clap::{Args, Subcommand};
use quittance_config::{Config, Credential, TenantConfig};
use quittance_daemon::api_client::draw_key;
use quittance_gateway::{KEY_BYTES, KeyDigest};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{IsTerminal, Read};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance tenant new team-a           a key, and the lines for the config file
  quittance tenant new --admin          the operator's own key
  quittance tenant hash < key.txt       the hash of an existing key
  quittance tenant list

A key has 32 characters, because clients accept no other length, and is shown
once. The config file contains only its hash. Callers without a tenant's key are
accepted only if no tenant is configured, and then only from this machine.

Exit codes: 0 done, 2 the command or the key is invalid, 3 not written,
4 the configuration is wrong.";

#[derive(Args, Debug)]
pub(crate) struct TenantArgs {
    #[command(subcommand)]
    command: TenantCommand,
}

#[derive(Subcommand, Debug)]
enum TenantCommand {
    /// Create a key, and print it with the lines for the config file
    New {
        /// Name of the tenant, in the config and in the usage
        #[arg(required_unless_present = "admin", conflicts_with = "admin")]
        name: Option<String>,
        /// Create the operator's key, for the admin endpoints
        #[arg(long)]
        admin: bool,
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Read a key from standard input, and print its hash
    Hash {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// List the tenants and their limits
    List {
        /// Print a JSON array instead
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: TenantArgs, config: &Config) -> Result<Exit, CliError> {
    match args.command {
        TenantCommand::New { name, json, .. } => {
            let new = NewKey::draw(name, config)?;
            output::show(json, &new, || new.text())
        }
        TenantCommand::Hash { json } => {
            if std::io::stdin().is_terminal() {
                output::tell("the key, and then Enter and Ctrl-D:\n");
            }
            let mut typed = String::new();
            std::io::stdin().take(1024).read_to_string(&mut typed).map_err(|error| {
                CliError::new(Exit::Usage, format!("standard input cannot be read: {error}"))
            })?;
            let digest = hash(typed.trim())?.to_string();
            output::show(json, &json!({ "key_sha256": digest }), || format!("{digest}\n"))
        }
        TenantCommand::List { json } => {
            let all: Vec<Value> = config.tenants.iter().map(|tenant| object(config, tenant)).collect();
            output::show(json, &all, || table(config))
        }
    }
}

fn hash(key: &str) -> Result<KeyDigest, CliError> {
    if key.len() == KEY_BYTES {
        return Ok(KeyDigest::of(key));
    }
    let what = format!(
        "this key has {} characters, and must have {KEY_BYTES}, because clients take no other: `quittance tenant new` \
         makes one",
        key.chars().count()
    );
    Err(CliError::new(Exit::Usage, what))
}

/// A new key of a tenant, or of the operator, which has no name.
#[derive(Serialize)]
struct NewKey {
    name: Option<String>,
    admin: bool,
    key: String,
    key_sha256: String,
    /// The lines for the config file.
    toml: String,
}

impl NewKey {
    fn draw(name: Option<String>, config: &Config) -> Result<Self, CliError> {
        let refused = |what: String| Err(CliError::new(Exit::Usage, what));
        match &name {
            Some(name) if !quittance_config::is_label(name) => {
                return refused("a tenant's name has at most 64 letters, digits, `-` and `_`".into());
            }
            Some(name) if config.tenants.iter().any(|tenant| tenant.name() == name) => {
                return refused(format!(
                    "there is a tenant called {name} already: choose another name, or take it out of the configuration first"
                ));
            }
            _ => {}
        }
        let key = draw_key()?;
        let key_sha256 = KeyDigest::of(&key).to_string();
        let heading = match &name {
            Some(name) => format!("[[tenant]]\nname = \"{name}\""),
            None => "[admin]".into(),
        };
        let toml = format!("{heading}\nkey_sha256 = \"{key_sha256}\"\n");
        Ok(Self { admin: name.is_none(), name, key, key_sha256, toml })
    }

    fn text(&self) -> String {
        let Self { name, key, toml, .. } = self;
        let whose = name.as_ref().map_or_else(|| "the operator".into(), |name| format!("the tenant {name}"));
        format!(
            "The key of {whose}, shown once and kept nowhere:\n\n{key}\n\nAdd to the config file, then restart:\n\n{toml}"
        )
    }
}

fn object(config: &Config, tenant: &TenantConfig) -> Value {
    let rate =
        tenant.limits().rate.map(|rate| json!({ "every_ms": rate.every.as_millis(), "burst": rate.burst }));
    let own = [
        ("name", json!(tenant.name())),
        ("key", json!(tenant.key.state())),
        ("webhook_secret", json!(tenant.webhook_secret.as_ref().map(Credential::state))),
        ("rate", json!(rate)),
    ];
    let settings = config.settings_of_tenant(tenant.name()).map(|(name, value)| (name, json!(value)));
    settings.chain(own).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn table(config: &Config) -> String {
    let mut text = String::new();
    for tenant in &config.tenants {
        _ = writeln!(text, "{:<20} key {}", tenant.name(), harmless(&tenant.key.state()));
        let settings = config.settings_of_tenant(tenant.name());
        let is_set = |value: &Value| *value != Value::Bool(false);
        let settings = settings.filter_map(|(name, value)| Some((name, in_words(&value.filter(is_set)?))));
        let secret = tenant.webhook_secret.as_ref().map(|secret| ("webhook secret", secret.state()));
        for (name, value) in settings.chain(secret) {
            _ = writeln!(text, "{:<20} {name} {}", "", harmless(&value));
        }
    }
    if config.tenants.is_empty() {
        text += "There is no tenant: no key is needed, and only this machine may connect. `quittance tenant new NAME` makes \
                 a key.\n";
    }
    let admin = config.admin.as_ref().map_or_else(
        || if config.tenants.is_empty() { "every user of this machine".into() } else { "no key".into() },
        |key| format!("key {}", key.state()),
    );
    _ = writeln!(text, "{:<20} {}", "(the operator)", harmless(&admin));
    text
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".into(),
        Value::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::{TestFolder, config_with};

    fn made(name: Option<&str>) -> Value {
        json!(NewKey::draw(name.map(str::to_owned), &config_with(&[])).unwrap())
    }

    #[test]
    fn a_new_key_is_what_clients_take_and_its_lines_know_it() {
        let object = made(Some("team-a"));
        let key = object["key"].as_str().unwrap();
        assert_eq!(key.len(), 32);
        assert_ne!(made(Some("team-a"))["key"], object["key"], "each is new");
        let config = TestFolder::with_file(object["toml"].as_str().unwrap()).load().unwrap();
        assert_eq!(config.tenants[0].key.digest().unwrap(), KeyDigest::of(key));
        assert!(!object["toml"].as_str().unwrap().contains(key));

        let admin = made(None);
        let config = TestFolder::with_file(admin["toml"].as_str().unwrap()).load().unwrap();
        assert_eq!(config.admin.unwrap().digest().unwrap(), KeyDigest::of(admin["key"].as_str().unwrap()));
    }

    #[test]
    fn a_name_that_is_taken_or_is_none_gets_no_key() {
        let config = config_with(&["tenant.team-a.key_env=A"]);
        for name in ["team-a", "a b", "", "a\"\nkey = \"x"] {
            assert_eq!(NewKey::draw(Some(name.into()), &config).err().unwrap().exit, Exit::Usage, "{name}");
        }
    }

    #[test]
    fn only_a_key_of_the_right_length_has_a_hash() {
        let key = "0123456789abcdef0123456789abcdef";
        assert_eq!(hash(key).unwrap(), KeyDigest::of(key));
        let short = hash("s3cr3t").unwrap_err().what;
        assert!(short.contains("6 characters") && !short.contains("s3cr3t"), "{short}");
    }

    #[test]
    fn the_list_says_who_may_what_and_no_key() {
        let place = TestFolder::with_file(
            r#"
[[tenant]]
name = "team-a"
key_env = "A"
hosts = ["*.example.org"]
kinds = ["turnstile"]
rate = "100/min"
open_max = 50
dialect = "capsolver"
webhook_secret_env = "W"
[[tenant]]
name = "team-b"
key_sha256 = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
"#,
        );
        let key = "0123456789abcdef0123456789abcdef";
        let config = place.env(&[("A", key), ("W", &"0f".repeat(32))]).load().unwrap();
        let text = table(&config);
        for word in [
            "team-a",
            "set (from env A)",
            "*.example.org",
            "turnstile",
            "100/min",
            "50",
            "capsolver",
            "0f0f0f0f...",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let objects: Vec<Value> = config.tenants.iter().map(|tenant| object(&config, tenant)).collect();
        assert_eq!(objects[0]["rate"]["every_ms"], 600);
        for shown in [text, Value::Array(objects).to_string()] {
            assert!(!shown.contains(key) && !shown.contains(&"0f".repeat(32)), "{shown}");
        }
    }
}

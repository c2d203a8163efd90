//! `config show`: what holds, and why. The text is itself a config file that means the same, so that it can be kept,
//! compared and edited; where each value came from stands behind it as a comment.

use super::effective::Held;
use super::file::{LISTS, POOLS};
use super::name::{Name, quoted};
use super::registry::settings;
use super::secret::{CallerKey, Credential, Keeper};
use super::value::Value;
use super::{ADMIN_KEY, Config, TENANT_KEY, alerts};
use crate::exit::{CliError, Exit};
use crate::output;
use anstyle::Style;
use clap::Subcommand;
use quittance_admin::settings::ShownSetting;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;
use std::path::PathBuf;

const NOTE: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
/// Where the comments begin, if the value leaves room.
const NOTE_COLUMN: usize = 44;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, and where its value came from
    ///
    /// The output is an equivalent config file. It contains no secrets: only whether each is set, and where.
    #[command(after_help = AFTER_SHOW)]
    Show {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration, and change nothing
    ///
    /// Finds every error that would stop `quittance serve` and that shows without a store and a provider: names, values and
    /// their relations, keys and passwords, certificates, the provider's address, pools and their targets, the addresses to
    /// listen on, and the folder for this node's files. `quittance doctor` checks the rest.
    #[command(after_help = AFTER_CHECK)]
    Check {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
}

const AFTER_CHECK: &str = "\
Examples:
  quittance config check --config new.toml && systemctl restart quittance
  quittance config check --json | jq -r '.notes[]'

Errors go to standard error, each with its line and what to do. Secrets,
addresses and folders are checked as the daemon would use them: run the command
as the daemon's user and with its environment. An address in use is only a note,
because the daemon that you are about to restart may use it. Notes are about
settings that are valid but may surprise you.

Exit codes: 0 valid, 3 not written, 4 wrong.";

const AFTER_SHOW: &str = "\
Examples:
  quittance config show                      every setting and its origin
  quittance config show > new.toml           a file to start with; never write
                                             to the file that is read
  quittance config show --set retry.preset=aggressive
  quittance config show --json | jq '.settings[\"timing.deadline\"]'

The file overrides the defaults, QUITTANCE_... in the environment overrides the
file, and --set overrides both.

Exit codes: 0 shown, 3 not written, 4 the configuration is wrong.";

pub(crate) fn run(as_json: bool, config: &Config) -> String {
    if as_json { format!("{:#}\n", object(config)) } else { text(config) }
}

/// `config show > quittance.toml` would replace the file that it reads: the shell empties it first, and `>>` makes it the file
/// and its copy.
pub(crate) fn refuse_to_overwrite(config: &Config) -> Result<(), CliError> {
    let Some(path) = config.effective.file.as_ref().filter(|path| output::goes_to(path)) else {
        return Ok(());
    };
    let what = format!(
        "standard output is the config file itself, {}: write to another file. Nothing was written; {}",
        path.display(),
        match std::fs::metadata(path).map(|file| file.len()) {
            Ok(0) =>
                "the file is empty, because `>` empties it before this command reads it: restore it from a copy",
            _ => "the file is as it was",
        }
    );
    Err(CliError::new(Exit::Config, what))
}

/// Whatever secrets were named.
fn credentials(config: &Config) -> impl Iterator<Item = &Credential> {
    let providers = config.providers.iter().map(|provider| &provider.key);
    let callers = config.tenants.iter().map(|tenant| &tenant.key).chain(&config.admin);
    let callers = callers.filter_map(|key| match key {
        CallerKey::Kept(credential) => Some(credential),
        CallerKey::Hash { .. } => None,
    });
    let webhooks = config.tenants.iter().filter_map(|tenant| tenant.webhook_secret.as_ref());
    config
        .callback_secret
        .iter()
        .chain(&config.store.password)
        .chain(providers)
        .chain(callers)
        .chain(webhooks)
        .chain(&config.alerts.webhook_secret)
}

/// The variables that hold a secret, so that nobody hands them on.
pub(crate) fn secret_variables(config: &Config) -> Vec<String> {
    let kept = credentials(config).filter_map(|credential| match &credential.keeper {
        Keeper::Variable(variable) => Some(variable.clone()),
        Keeper::File(_) => None,
    });
    kept.chain([ADMIN_KEY, TENANT_KEY].map(str::to_owned)).collect()
}

/// The files that hold a secret.
pub(crate) fn secret_files(config: &Config) -> Vec<PathBuf> {
    let kept = credentials(config).filter_map(|credential| match &credential.keeper {
        Keeper::File(path) => Some(path.clone()),
        Keeper::Variable(_) => None,
    });
    kept.collect()
}

/// Every setting that holds, for the operator's page.
pub(crate) fn in_force(config: &Config) -> Vec<ShownSetting> {
    let settings = config.effective.all().map(|(name, setting, held)| {
        let value = match (setting.path, &held.value) {
            // Whoever knows it can speak there.
            (alerts::WEBHOOK, Value::Text(url)) => alerts::without_path(url),
            (_, value) => value.to_string(),
        };
        ShownSetting { name: name.to_string(), value, origin: held.origin.to_string() }
    });
    let secrets = credentials(config).map(|credential| ShownSetting {
        name: credential.name.clone(),
        value: if credential.is_set() { "set" } else { "missing" }.into(),
        origin: credential.keeper.to_string(),
    });
    settings.chain(secrets).collect()
}

fn object(config: &Config) -> Json {
    let settings: Map<String, Json> = config
        .effective
        .all()
        .map(|(name, _, held)| {
            let (from, place) = (held.origin.word(), held.origin.to_string());
            (name.to_string(), json!({ "value": held.value.json(), "from": from, "where": place }))
        })
        .collect();
    let secrets: Map<String, Json> = credentials(config)
        .map(|credential| {
            let state = if credential.is_set() { "set" } else { "missing" };
            (credential.name.clone(), json!({ "state": state, "from": credential.keeper.to_string() }))
        })
        .collect();
    let file = config.effective.file.as_ref().map(|path| path.display().to_string());
    json!({ "file": file, "settings": settings, "secrets": secrets })
}

fn text(config: &Config) -> String {
    let mut page = Page { config, text: String::new(), table: Name::top() };
    page.opening();
    page.closed();
    page.open();
    for list in LISTS.into_iter().chain([POOLS]) {
        page.list(list);
    }
    page.text
}

struct Page<'a> {
    config: &'a Config,
    text: String,
    /// The table that the last line stands in.
    table: Name,
}

impl Page<'_> {
    fn note(&mut self, note: &str) {
        _ = writeln!(self.text, "{NOTE}# {note}{NOTE:#}");
    }

    fn opening(&mut self) {
        let file = self.config.effective.file.as_ref();
        let file = file.map_or_else(
            || "no config file was found".into(),
            |path| format!("read from {}", path.display()),
        );
        self.note(&format!("The configuration that holds; {file}."));
    }

    fn heading(&mut self, heading: &str) {
        _ = writeln!(self.text, "\n{HEADING}{heading}{HEADING:#}");
    }

    fn enter(&mut self, table: &Name) {
        if self.table != *table {
            self.table = table.clone();
            self.heading(&format!("[{table}]"));
        }
    }

    fn line(&mut self, key: &str, held: &Held) {
        let setting = format!("{} = {}", quoted(key), held.value);
        _ = writeln!(self.text, "{setting:<NOTE_COLUMN$} {NOTE}# {}{NOTE:#}", held.origin);
    }

    /// Whether the secret `name` is there, below the line that says where.
    fn secret(&mut self, name: &str) {
        let found =
            credentials(self.config).find(|credential| credential.name == name).map(Credential::state);
        if let Some(state) = found {
            let key = name.rsplit('.').next().unwrap_or(name);
            self.note(&format!("{key}: {state}"));
        }
    }

    /// The store's own, which may also stand in its address.
    fn password(&mut self) {
        self.secret("store.password");
        if self.config.store.url_has_password() {
            self.note("password: set (in the address, from the environment)");
        }
    }

    /// The settings that everybody has, in the order of the registry.
    fn closed(&mut self) {
        for setting in settings().filter(|setting| !setting.is_open()) {
            let above: Vec<&str> = setting.segments().collect();
            self.enter(&Name::of(above[..above.len() - 1].iter().copied()));
            match self.config.effective.get(&setting.name()) {
                Some(held) => self.line(setting.leaf(), held),
                None => self.note(&format!("{} is not set: {}", setting.leaf(), setting.help)),
            }
            match setting.path {
                "callback_secret_file" => self.secret("callback_secret"),
                "store.password_file" => self.password(),
                "admin.key_file" => self.secret("admin.key"),
                "alerts.webhook_secret_file" => self.secret("alerts.webhook_secret"),
                _ => {}
            }
        }
    }

    /// What the operator has added to the open tables that are no lists, and no pools.
    fn open(&mut self) {
        let config = self.config;
        let is_list =
            |name: &Name| LISTS.iter().chain([&POOLS]).any(|list| name.segments().next() == Some(list));
        for (name, setting, held) in config.effective.all() {
            if setting.is_open() && !is_list(name) {
                self.enter(&above(name));
                self.line(name.last(), held);
            }
        }
    }

    fn list(&mut self, list: &str) {
        let config = self.config;
        for label in config.effective.of_list(list) {
            let table = Name::of([list, &label]);
            let (heading, nested): (_, &[&str]) = match list {
                POOLS => (format!("[{table}]"), &["params"]),
                _ => (format!("[[{list}]]"), &["faults", "prices"]),
            };
            self.heading(&heading);
            for setting in settings().filter(|setting| setting.segments().next() == Some(list)) {
                if let Some(held) = config.effective.get(&table.below(setting.leaf())) {
                    self.line(setting.leaf(), held);
                }
                if let Some(secret @ ("key" | "webhook_secret")) = setting.leaf().strip_suffix("_file") {
                    self.secret(&table.below(secret).to_string());
                }
            }
            nested.iter().for_each(|key| self.nested(list, &table.below(key)));
        }
    }

    fn nested(&mut self, list: &str, table: &Name) {
        let config = self.config;
        if config.effective.below(table).next().is_some() {
            // Below an entry of a list it is the last one that is meant.
            let above = if list == POOLS { table.to_string() } else { format!("{list}.{}", table.last()) };
            self.heading(&format!("[{above}]"));
        }
        for (name, held) in config.effective.below(table) {
            self.line(name.last(), held);
        }
    }
}

fn above(name: &Name) -> Name {
    let segments: Vec<&str> = name.segments().collect();
    Name::of(segments[..segments.len() - 1].iter().copied())
}

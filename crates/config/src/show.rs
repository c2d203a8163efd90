//! `config show`: every setting that holds, with its origin as a comment. The text is a config file that means the same.

use crate::effective::Held;
use crate::file::{LISTS, POOLS};
use crate::name::{Name, quoted};
use crate::secret::{CallerKey, Credential, Keeper};
use crate::table::settings;
use crate::value::Value;
use crate::{ADMIN_KEY, Config, TENANT_KEY, alerts};
use quittance_admin::settings::ShownSetting;
use serde_json::{Map, Value as Json, json};
use std::fmt;
use std::path::PathBuf;

/// Where the comments begin, if the value leaves room.
pub const ORIGIN_COLUMN: usize = 44;

/// One line of `config show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The name of a table, in its brackets; an empty line goes before it.
    Heading(String),
    Comment(String),
    Setting {
        setting: String,
        origin: String,
    },
}

/// As TOML.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heading(heading) => write!(f, "\n{heading}"),
            Self::Comment(comment) => write!(f, "# {comment}"),
            Self::Setting { setting, origin } => write!(f, "{setting:<ORIGIN_COLUMN$} # {origin}"),
        }
    }
}

/// The secrets that the configuration names.
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

/// The variables that hold a secret, which no child process may get.
pub fn secret_variables(config: &Config) -> Vec<String> {
    let kept = credentials(config).filter_map(|credential| match &credential.keeper {
        Keeper::Variable(variable) => Some(variable.clone()),
        Keeper::File(_) => None,
    });
    kept.chain([ADMIN_KEY, TENANT_KEY].map(str::to_owned)).collect()
}

/// The files that hold a secret.
pub fn secret_files(config: &Config) -> Vec<PathBuf> {
    let kept = credentials(config).filter_map(|credential| match &credential.keeper {
        Keeper::File(path) => Some(path.clone()),
        Keeper::Variable(_) => None,
    });
    kept.collect()
}

/// Every setting that holds, for the operator's page.
pub fn in_force(config: &Config) -> Vec<ShownSetting> {
    let settings = config.effective.all().map(|(name, setting, held)| {
        let value = match (setting.path, &held.value) {
            // The path of a webhook may be a secret.
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

/// What `config show --json` prints.
pub fn object(config: &Config) -> Json {
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

/// What `config show` prints.
pub fn lines(config: &Config) -> Vec<Line> {
    let mut page = Page { config, lines: Vec::new(), table: Name::top() };
    page.opening();
    page.closed();
    page.open();
    for list in LISTS.into_iter().chain([POOLS]) {
        page.list(list);
    }
    page.lines
}

struct Page<'a> {
    config: &'a Config,
    lines: Vec<Line>,
    /// The table that the last line stands in.
    table: Name,
}

impl Page<'_> {
    fn note(&mut self, note: &str) {
        self.lines.push(Line::Comment(note.to_owned()));
    }

    fn opening(&mut self) {
        let file = self.config.effective.file.as_ref();
        let file = file.map_or_else(
            || "no config file was found".into(),
            |path| format!("read from {}", path.display()),
        );
        self.note(&format!("The settings that hold; {file}."));
    }

    fn heading(&mut self, heading: &str) {
        self.lines.push(Line::Heading(heading.to_owned()));
    }

    fn enter(&mut self, table: &Name) {
        if self.table != *table {
            self.table = table.clone();
            self.heading(&format!("[{table}]"));
        }
    }

    fn line(&mut self, key: &str, held: &Held) {
        let setting = format!("{} = {}", quoted(key), held.value);
        self.lines.push(Line::Setting { setting, origin: held.origin.to_string() });
    }

    /// Whether the secret `name` is there, after the line that names it.
    fn secret(&mut self, name: &str) {
        let found =
            credentials(self.config).find(|credential| credential.name == name).map(Credential::state);
        if let Some(state) = found {
            let key = name.rsplit('.').next().unwrap_or(name);
            self.note(&format!("{key}: {state}"));
        }
    }

    /// Whether the store has a password, which may be part of its address.
    fn password(&mut self) {
        self.secret("store.password");
        if self.config.store.url_has_password() {
            self.note("password: set (in the address, from the environment)");
        }
    }

    /// The settings that always exist, in the order of the table.
    fn closed(&mut self) {
        for setting in settings().filter(|setting| !setting.is_open()) {
            self.enter(&setting.name().above());
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

    /// What the operator has added to other open tables than lists and pools.
    fn open(&mut self) {
        let config = self.config;
        let is_list =
            |name: &Name| LISTS.iter().chain([&POOLS]).any(|list| name.segments().next() == Some(list));
        for (name, setting, held) in config.effective.all() {
            if setting.is_open() && !is_list(name) {
                self.enter(&name.above());
                self.line(name.last(), held);
            }
        }
    }

    fn list(&mut self, list: &str) {
        let config = self.config;
        for label in config.effective.labels(list) {
            let table = Name::of([list, &label]);
            let (heading, nested): (_, &[&str]) = match list {
                POOLS => (format!("[{table}]"), &["params"]),
                _ => (format!("[[{list}]]"), &["faults", "prices"]),
            };
            self.heading(&heading);
            for setting in settings().filter(|setting| setting.is_in(list)) {
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
            // In TOML, `[provider.prices]` belongs to the last `[[provider]]`.
            let above = if list == POOLS { table.to_string() } else { format!("{list}.{}", table.last()) };
            self.heading(&format!("[{above}]"));
        }
        for (name, held) in config.effective.below(table) {
            self.line(name.last(), held);
        }
    }
}

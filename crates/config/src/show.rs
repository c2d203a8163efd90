//! `config show`: every setting in force, with its origin as a comment. The output is a config file with the same
//! meaning.

use crate::config_file::{LISTS, POOLS};
use crate::effective::Held;
use crate::named_secret::{CallerKey, Credential, Keeper};
use crate::setting::Setting;
use crate::setting_name::{Name, quoted};
use crate::setting_table::settings;
use crate::value::SettingValue;
use crate::{ADMIN_KEY, Config, TENANT_KEY, alerts};
use quittance_admin::settings::ShownSetting;
use serde_json::{Map, Value as Json, json};
use std::fmt;
use std::path::PathBuf;

/// The column of comments, if the value leaves room.
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

/// Writes one line of the output as TOML.
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
pub(crate) fn credentials(config: &Config) -> impl Iterator<Item = &Credential> {
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

/// A value as people may see it.
pub(crate) fn shown_value(setting: &Setting, value: &SettingValue) -> String {
    match (setting.path, value) {
        // The path of a webhook may be a secret.
        (alerts::WEBHOOK, SettingValue::Text(url)) => alerts::without_path(url),
        (_, value) => value.to_string(),
    }
}

/// Every setting in force, for the operator's page.
pub fn in_force(config: &Config) -> Vec<ShownSetting> {
    let settings = config.effective.all().map(|(name, setting, held)| {
        let value = shown_value(setting, &held.value);
        ShownSetting { name: name.to_string(), value, origin: held.origin.to_string() }
    });
    let secrets = credentials(config).map(|credential| ShownSetting {
        name: credential.name.clone(),
        value: credential.word().into(),
        origin: credential.keeper.to_string(),
    });
    settings.chain(secrets).collect()
}

/// What `config show --json` prints.
pub fn object(config: &Config) -> Json {
    let settings = config.effective.all().map(|(name, _, Held { value, origin })| {
        let shown = json!({ "value": value.json(), "from": origin.word(), "where": origin.to_string() });
        (name.to_string(), shown)
    });
    let secrets = credentials(config).map(|credential| {
        let shown = json!({ "state": credential.word(), "from": credential.keeper.to_string() });
        (credential.name.clone(), shown)
    });
    let (settings, secrets): (Map<_, _>, Map<_, _>) = (settings.collect(), secrets.collect());
    json!({ "file": config.file().map(|path| path.display().to_string()), "settings": settings, "secrets": secrets })
}

/// What `config show` prints.
pub fn lines(config: &Config) -> Vec<Line> {
    let file = config
        .file()
        .map_or_else(|| "no config file was found".into(), |path| format!("read from {}", path.display()));
    let first = Line::Comment(format!("The settings that hold; {file}."));
    let mut page = Page { config, lines: vec![first], table: Name::top() };
    page.closed();
    page.open();
    LISTS.into_iter().chain([POOLS]).for_each(|list| page.list(list));
    page.lines
}

struct Page<'a> {
    config: &'a Config,
    lines: Vec<Line>,
    /// The table of the last line.
    table: Name,
}

impl Page<'_> {
    fn comment(&mut self, comment: String) {
        self.lines.push(Line::Comment(comment));
    }

    fn enter(&mut self, table: &Name, heading: String) {
        if self.table != *table {
            self.table = table.clone();
            self.lines.push(Line::Heading(heading));
        }
    }

    /// The line of a setting, if it has a value, and after the name of a secret's file whether the secret is there.
    fn setting(&mut self, name: &Name) {
        let config = self.config;
        if let Some(Held { value, origin }) = config.effective.get(name) {
            let setting = format!("{} = {value}", quoted(name.last()));
            self.lines.push(Line::Setting { setting, origin: origin.to_string() });
        }
        let Some(key) = name.last().strip_suffix("_file") else { return };
        let secret = name.above().below(key).to_string();
        if let Some(credential) = credentials(config).find(|credential| credential.name == secret) {
            self.comment(format!("{key}: {}", credential.state()));
        }
        if secret == "store.password" && config.store.url.has_password() {
            self.comment("password: set (in the address, from the environment)".into());
        }
    }

    /// The settings that always exist, in the order of the table.
    fn closed(&mut self) {
        for setting in settings().filter(|setting| !setting.is_open()) {
            let (name, table) = (setting.name(), setting.name().above());
            self.enter(&table, format!("[{table}]"));
            if self.config.effective.get(&name).is_none() {
                self.comment(format!("{} is not set: {}", setting.leaf(), setting.help));
            }
            self.setting(&name);
        }
    }

    /// The settings that the operator has added to open tables, except lists and pools.
    fn open(&mut self) {
        let is_list = |setting: &Setting| LISTS.iter().chain([&POOLS]).any(|list| setting.is_in(list));
        for (name, setting, _) in self.config.effective.all() {
            if setting.is_open() && !is_list(setting) {
                self.enter(&name.above(), format!("[{}]", name.above()));
                self.setting(name);
            }
        }
    }

    fn list(&mut self, list: &str) {
        for label in self.config.effective.labels(list) {
            let entry = Name::of([list, &label]);
            // In TOML, `[provider.prices]` belongs to the last `[[provider]]`.
            let heading = |table: &Name| match (list == POOLS, *table == entry) {
                (true, _) => format!("[{table}]"),
                (false, true) => format!("[[{list}]]"),
                (false, false) => format!("[{list}.{}]", table.last()),
            };
            self.enter(&entry, heading(&entry));
            for setting in settings().filter(|setting| setting.is_in(list) && setting.leaf() != "*") {
                self.setting(&entry.below(setting.leaf()));
            }
            if list == "provider" && self.config.effective.get(&entry.below("currency")).is_none() {
                self.comment(format!("currency is not set: {}", self.config.currency()));
            }
            for (name, ..) in self.config.effective.all().filter(|(name, ..)| name.above().is_below(&entry)) {
                self.enter(&name.above(), heading(&name.above()));
                self.setting(name);
            }
        }
    }
}

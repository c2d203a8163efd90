//! Where orders are kept. A setting that does not fit the chosen store is an error, unless the store was chosen in a
//! stronger layer. Then the setting was written for another store, and is ignored.

use crate::address::{Scheme, ServerUrl, without_password};
use crate::effective::{Effective, Held};
use crate::error::{ConfigError, Errors};
use crate::layers::Environment;
use crate::named_files::certificates;
use crate::named_secret::Credential;
use crate::origin::SettingOrigin;
use crate::setting_name::Name;
use quittance::embedded::DATABASE;
use quittance::{Place, PostgresSettings, RedisSettings};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    Embedded(PathBuf),
    /// In memory, for trials: orders are lost when the process ends.
    Memory,
    Redis(ServerUrl),
    Postgres(ServerUrl),
}

impl StoreUrl {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        Some(match Scheme::of(text)? {
            Scheme::Embedded => Self::Embedded(text.trim_start_matches("embedded:").into()),
            Scheme::Memory => Self::Memory,
            Scheme::Redis => Self::Redis(ServerUrl::new(text)),
            Scheme::Postgres => Self::Postgres(ServerUrl::new(text)),
        })
    }

    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Embedded(_) => Scheme::Embedded,
            Self::Memory => Scheme::Memory,
            Self::Redis(_) => Scheme::Redis,
            Self::Postgres(_) => Scheme::Postgres,
        }
    }

    pub fn has_password(&self) -> bool {
        matches!(self, Self::Redis(url) | Self::Postgres(url) if url.has_password())
    }

    /// The address without its password.
    pub fn shown(&self) -> String {
        match self {
            Self::Embedded(folder) => format!("embedded:{}", folder.display()),
            Self::Memory => "memory:".into(),
            Self::Redis(url) | Self::Postgres(url) => without_password(url.reveal()),
        }
    }
}

/// The store and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    pub url: StoreUrl,
    /// The password, if it is not part of the address.
    pub password: Option<Credential>,
    /// More authorities to trust, as PEM.
    ca: Vec<u8>,
    /// The address of PostgreSQL without a pooler.
    pub listen_url: Option<ServerUrl>,
    pub migrate: bool,
    /// The folder for callbacks that come while a shared store is down.
    pub home: Option<PathBuf>,
}

impl StoreConfig {
    pub(crate) const fn new(url: StoreUrl) -> Self {
        Self { url, password: None, ca: Vec::new(), listen_url: None, migrate: true, home: None }
    }

    pub(crate) fn of(effective: &Effective, environment: &Environment, errors: &mut Errors) -> Self {
        let held = effective.held("store.url");
        let shown = effective.text("store.url");
        let url = StoreUrl::parse(with_password(held, environment).unwrap_or(&shown))
            .or_else(|| StoreUrl::parse(&shown))
            .expect("its shape is that of a store");
        let chosen = Chosen { effective, scheme: url.scheme(), strength: held.origin.strength() };
        let mut has = |key, fits| errors.keep(chosen.has(key, fits)) == Some(true);
        let is_postgres = |scheme| scheme == Scheme::Postgres;
        let has_password = has("password_env", Scheme::is_shared) | has("password_file", Scheme::is_shared);
        let (has_ca, has_home) = (has("ca_file", Scheme::is_shared), has("home", Scheme::is_shared));
        let has_listen_url = has("listen_url", is_postgres);
        let migrate: bool = effective.read("store.migrate");
        // Only `false` is a choice: `true` is the default.
        if !migrate {
            has("migrate", is_postgres);
        }
        let mut store = Self { migrate, ..Self::new(url) };
        if has_password {
            let password = Credential::find(effective, &Name::of(["store"]), "password", environment);
            let password = errors.keep(password).flatten();
            store.password = password
                .and_then(|password| errors.keep(chosen.one_password(&store.url, password)).flatten());
        }
        if has_ca {
            store.ca = errors.keep(chosen.authorities(&store.url)).unwrap_or_default();
        }
        if has_listen_url && let Some(held) = chosen.held("listen_url") {
            let shown = effective.text_at(&Name::of(["store", "listen_url"])).unwrap_or_default();
            store.listen_url = Some(ServerUrl::new(with_password(held, environment).unwrap_or(&shown)));
        }
        if has_home {
            store.home = effective.read_at(&Name::of(["store", "home"]));
        }
        let checked = store.check_address();
        errors.keep(checked.map_err(|bad| bad.at(&effective.origin(&Name::of(["store", bad.key])))));
        store
    }

    /// Another store, named on the command line, with the settings of this one that fit it. Fails if the store's
    /// address cannot be used.
    pub fn named(&self, url: StoreUrl, password: Option<Credential>) -> Result<Self, String> {
        let store = Self { password, ca: self.ca.clone(), migrate: self.migrate, ..Self::new(url) };
        store.check_address().map(|()| store).map_err(|bad| bad.why)
    }

    /// The store for a command that reads: it creates and changes no tables.
    pub fn as_it_is(&self) -> Self {
        Self { migrate: false, ..self.clone() }
    }

    /// Whether this user can look into the folder of an embedded store, or the store can be created because its parent
    /// folder exists.
    pub fn can_be_made(&self) -> bool {
        let StoreUrl::Embedded(dir) = &self.url else { return true };
        dir.join(DATABASE).try_exists().is_ok() && dir.is_dir()
            || (!dir.exists() && dir.parent().is_none_or(|parent| parent == Path::new("") || parent.is_dir()))
    }

    /// Where orders are kept, for the library. Fails if the password is named and missing.
    pub fn place(&self) -> Result<Place, ConfigError> {
        let password = self.password.as_ref().map(|password| password.get()).transpose()?;
        let password = password.map(|password| password.reveal());
        let place = match &self.url {
            StoreUrl::Memory => Ok(Place::Memory),
            StoreUrl::Embedded(folder) => Ok(Place::Embedded(folder.clone())),
            StoreUrl::Redis(url) => self.redis(url).map(|settings| {
                let settings = if self.migrate { settings } else { settings.as_it_is() };
                Place::Redis(Box::new(match password {
                    Some(password) => settings.with_password(password),
                    None => settings,
                }))
            }),
            StoreUrl::Postgres(url) => self.postgres_at(url).map(|settings| {
                Place::Postgres(Box::new(match password {
                    Some(password) => settings.with_password(password),
                    None => settings,
                }))
            }),
        };
        place.map_err(|bad| bad.at(&SettingOrigin::Flag))
    }

    /// The schema of PostgreSQL's tables. It needs no password.
    pub fn schema(&self) -> Result<String, ConfigError> {
        let StoreUrl::Postgres(url) = &self.url else { return Ok(SCHEMA_DEFAULT.into()) };
        Ok(self.postgres_at(url).map_err(|bad| bad.at(&SettingOrigin::Flag))?.schema().to_owned())
    }

    /// Settings for PostgreSQL's own commands; `None` for another store.
    pub fn postgres(&self) -> Result<Option<PostgresSettings>, ConfigError> {
        match self.place()? {
            Place::Postgres(settings) => Ok(Some(*settings)),
            _ => Ok(None),
        }
    }

    fn redis(&self, url: &ServerUrl) -> Result<RedisSettings, BadAddress> {
        let settings = RedisSettings::parse(url.reveal()).map_err(|error| BadAddress::of("url", &error))?;
        Ok(if self.ca.is_empty() { settings } else { settings.with_ca(self.ca.clone()) })
    }

    fn postgres_at(&self, url: &ServerUrl) -> Result<PostgresSettings, BadAddress> {
        let mut settings =
            PostgresSettings::parse(url.reveal()).map_err(|error| BadAddress::of("url", &error))?;
        if let Some(listen) = &self.listen_url {
            settings = settings
                .with_listen_url(listen.reveal())
                .map_err(|error| BadAddress::of("listen_url", &error))?;
        }
        if !self.ca.is_empty() {
            settings = settings.with_ca(self.ca.clone());
        }
        Ok(settings.with_migrate(self.migrate))
    }

    /// Checks that the store accepts its addresses. An error about a bad address never quotes it.
    fn check_address(&self) -> Result<(), BadAddress> {
        match &self.url {
            StoreUrl::Memory | StoreUrl::Embedded(_) => Ok(()),
            StoreUrl::Redis(url) => self.redis(url).map(drop),
            StoreUrl::Postgres(url) => self.postgres_at(url).map(drop),
        }
    }
}

/// The schema of PostgreSQL's tables if the address names none.
const SCHEMA_DEFAULT: &str = "quittance";

/// A wrong address, and what is wrong with it.
struct BadAddress {
    key: &'static str,
    why: String,
}

impl BadAddress {
    fn of(key: &'static str, error: &dyn std::error::Error) -> Self {
        Self { key, why: error.to_string() }
    }

    fn at(&self, at: &SettingOrigin) -> ConfigError {
        ConfigError::at(at, &format!("store.{}", self.key), format!("cannot be used: {}", self.why))
    }
}

/// An address from the environment, with its password: the stored value, which may be shown, has none.
fn with_password<'a>(held: &Held, environment: &'a Environment) -> Option<&'a str> {
    match &held.origin {
        SettingOrigin::Variable(variable) => environment.get(variable),
        _ => None,
    }
}

/// The chosen store, and the strength of the layer that chose it.
struct Chosen<'a> {
    effective: &'a Effective,
    scheme: Scheme,
    strength: u8,
}

impl Chosen<'_> {
    fn held(&self, key: &str) -> Option<&Held> {
        self.effective.get(&Name::of(["store", key]))
    }

    fn unsound(&self, key: &str, problem: impl Display, remedy: &str) -> ConfigError {
        self.effective.unsound(&Name::of(["store", key]), problem, remedy)
    }

    /// Whether this setting is set and applies. A setting for another store is ignored if its layer is weaker.
    fn has(&self, key: &str, fits: fn(Scheme) -> bool) -> Result<bool, ConfigError> {
        let Some(held) = self.held(key) else { return Ok(false) };
        if fits(self.scheme) {
            return Ok(true);
        }
        if held.origin.strength() < self.strength {
            return Ok(false);
        }
        let with = if fits(Scheme::Redis) { "a store that is shared" } else { "PostgreSQL" };
        let problem = format!("is for {with}, and `store.url` names {}", self.scheme.name());
        Err(self.unsound(key, problem, "leave it out, or choose another store"))
    }

    /// The authorities of `store.ca_file`. With an address without TLS they are an error, because they would have no
    /// effect.
    fn authorities(&self, url: &StoreUrl) -> Result<Vec<u8>, ConfigError> {
        if matches!(url, StoreUrl::Redis(url) if !url.is_secure()) {
            let problem = "is for TLS, and `store.url` names none";
            return Err(self.unsound("ca_file", problem, "write rediss:// there, or leave this out"));
        }
        certificates(self.effective, &Name::of(["store", "ca_file"]))
    }

    /// The password, unless the address of a stronger layer contains one.
    fn one_password(&self, url: &StoreUrl, password: Credential) -> Result<Option<Credential>, ConfigError> {
        if !url.has_password() {
            return Ok(Some(password));
        }
        let keys = ["password_env", "password_file"];
        match keys.into_iter().find_map(|key| Some((key, self.held(key)?))) {
            Some((key, held)) if held.origin.strength() >= self.strength => {
                let problem = "says where the password is, and there is one in the address, too";
                Err(self.unsound(key, problem, "keep one of the two"))
            }
            _ => Ok(None),
        }
    }
}

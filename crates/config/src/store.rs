//! Where orders are kept, as the operator says it, and what goes with it. A setting that makes no sense with the store
//! that was chosen is an error, unless the store was chosen nearer to the prompt than the setting.

use super::address::{Scheme, ServerUrl, without_password};
use super::effective::{Effective, Held};
use super::entries::certificates;
use super::error::{ConfigError, Wrong};
use super::layers::Environment;
use super::name::Name;
use super::origin::Origin;
use super::secret::Credential;
use super::value::Value;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    Embedded(PathBuf),
    /// For trials: what is in flight is lost when the process ends.
    Memory,
    Redis(ServerUrl),
    Postgres(ServerUrl),
}

impl StoreUrl {
    pub fn parse(typed: &str) -> Option<Self> {
        let typed = typed.trim();
        Some(match Scheme::of(typed)? {
            Scheme::Embedded => Self::Embedded(typed.trim_start_matches("embedded:").into()),
            Scheme::Memory => Self::Memory,
            Scheme::Redis => Self::Redis(ServerUrl::new(typed)),
            Scheme::Postgres => Self::Postgres(ServerUrl::new(typed)),
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

    /// Without its password.
    pub fn shown(&self) -> String {
        match self {
            Self::Embedded(folder) => format!("embedded:{}", folder.display()),
            Self::Memory => "memory:".into(),
            Self::Redis(url) | Self::Postgres(url) => without_password(url.reveal()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    pub url: StoreUrl,
    /// If it does not stand in the address.
    pub password: Option<Credential>,
    /// More roots to trust, as PEM.
    pub ca: Vec<u8>,
    /// Where PostgreSQL is reached without a pooler.
    pub listen_url: Option<ServerUrl>,
    pub migrate: bool,
    /// For what comes in while a shared store is away.
    pub home: Option<PathBuf>,
}

impl StoreConfig {
    pub(crate) fn of(effective: &Effective, environment: &Environment, wrong: &mut Wrong) -> Self {
        let held = effective.held("store.url");
        let shown = effective.text("store.url");
        let url = StoreUrl::parse(full(held, environment).unwrap_or(&shown))
            .or_else(|| StoreUrl::parse(&shown))
            .expect("its shape is that of a store");
        let chosen = Chosen { effective, scheme: url.scheme(), origin: held.origin.clone() };
        let mut has = |key, makes_sense| wrong.keep(chosen.has(key, makes_sense)) == Some(true);
        let is_postgres = |scheme| scheme == Scheme::Postgres;
        let has_password = has("password_env", Scheme::is_shared) | has("password_file", Scheme::is_shared);
        let (has_ca, has_home) = (has("ca_file", Scheme::is_shared), has("home", Scheme::is_shared));
        let has_listen_url = has("listen_url", is_postgres);
        let migrate = effective.flag("store.migrate");
        // Only `false` says anything: the other is what everybody does.
        if !migrate {
            has("migrate", is_postgres);
        }
        let password = match has_password {
            true => Credential::find(effective, &Name::of(["store"]), "password", environment),
            false => Ok(None),
        };
        let password = wrong.keep(password).flatten();
        let password =
            password.and_then(|password| wrong.keep(chosen.one_password(&url, password)).flatten());
        let ca = match has_ca {
            true if matches!(&url, StoreUrl::Redis(url) if !url.is_secure()) => Err(chosen.no_tls()),
            true => certificates(effective, &Name::of(["store", "ca_file"])),
            false => Ok(Vec::new()),
        };
        let ca = wrong.keep(ca).unwrap_or_default();
        let listen_url = chosen.held("listen_url").filter(|_| has_listen_url).and_then(|held| {
            let Value::Text(shown) = &held.value else { return None };
            Some(ServerUrl::new(full(held, environment).unwrap_or(shown)))
        });
        let home = effective.text_at(&Name::of(["store", "home"])).filter(|_| has_home).map(Into::into);
        let store = Self { url, password, ca, listen_url, migrate, home };
        wrong.keep(store.check(effective));
        store
    }

    /// Another one, named at the prompt; what holds for the configured one holds for it, too, where that makes sense.
    pub fn named(&self, url: StoreUrl, password: Option<Credential>) -> Self {
        Self { url, password, ca: self.ca.clone(), listen_url: None, migrate: self.migrate, home: None }
    }

    /// The store for a command that reads: it makes and changes no tables.
    pub fn as_it_is(&self) -> Self {
        Self { migrate: false, ..self.clone() }
    }

    /// Whether an embedded store that is not there has a folder to be made in.
    pub fn can_be_made(&self) -> bool {
        let StoreUrl::Embedded(dir) = &self.url else { return true };
        dir.is_dir()
            || (!dir.exists() && dir.parent().is_none_or(|parent| parent == Path::new("") || parent.is_dir()))
    }

    pub fn url_has_password(&self) -> bool {
        self.url.has_password()
    }
}

/// An address from the environment as it stands there: what is kept of it to be shown has no password.
fn full<'a>(held: &Held, environment: &'a Environment) -> Option<&'a str> {
    match &held.origin {
        Origin::Variable(variable) => environment.get(variable),
        _ => None,
    }
}

/// The store that was chosen, and by whom.
struct Chosen<'a> {
    effective: &'a Effective,
    scheme: Scheme,
    origin: Origin,
}

impl Chosen<'_> {
    fn held(&self, key: &str) -> Option<&Held> {
        self.effective.get(&Name::of(["store", key]))
    }

    /// Whether this setting is there and is to be used. One that was written beside another store, before that was
    /// overruled, is left alone.
    fn has(&self, key: &str, makes_sense: fn(Scheme) -> bool) -> Result<bool, ConfigError> {
        let Some(held) = self.held(key) else { return Ok(false) };
        if makes_sense(self.scheme) {
            return Ok(true);
        }
        if held.origin.strength() < self.origin.strength() {
            return Ok(false);
        }
        let with = if makes_sense(Scheme::Redis) { "a store that is shared" } else { "PostgreSQL" };
        Err(ConfigError::Unsound {
            name: format!("store.{key}"),
            at: held.origin.clone(),
            problem: format!("is for {with}, and `store.url` names {}", self.scheme.name()),
            remedy: "leave it out, or choose another store".into(),
        })
    }

    /// Whoever names an authority thinks that the connection is secure.
    fn no_tls(&self) -> ConfigError {
        ConfigError::Unsound {
            name: "store.ca_file".into(),
            at: self.held("ca_file").map_or(Origin::Default, |held| held.origin.clone()),
            problem: "is for TLS, and `store.url` names none".into(),
            remedy: "write rediss:// there, or leave this out".into(),
        }
    }

    /// The password, unless one that is nearer to the prompt stands in the address.
    fn one_password(&self, url: &StoreUrl, password: Credential) -> Result<Option<Credential>, ConfigError> {
        if !url.has_password() {
            return Ok(Some(password));
        }
        let keys = ["password_env", "password_file"];
        let Some((key, held)) = keys.into_iter().find_map(|key| Some((key, self.held(key)?))) else {
            return Ok(None);
        };
        if held.origin.strength() < self.origin.strength() {
            return Ok(None);
        }
        Err(ConfigError::Unsound {
            name: format!("store.{key}"),
            at: held.origin.clone(),
            problem: "says where the password is, and there is one in the address, too".into(),
            remedy: "keep one of the two".into(),
        })
    }
}

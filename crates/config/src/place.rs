//! From what the operator says about the store to what the library takes. The stores themselves read their addresses;
//! what they say of a bad one never quotes it.

use super::address::ServerUrl;
use super::effective::Effective;
use super::error::ConfigError;
use super::origin::Origin;
use super::store::{StoreConfig, StoreUrl};
use quittance::{Place, PostgresSettings, RedisSettings};

/// Which of the addresses is wrong, and why.
struct Bad {
    key: &'static str,
    why: String,
}

/// Where the tables would be, if nothing says otherwise.
const USUAL_SCHEMA: &str = "quittance";

fn typed(Bad { key, why }: Bad) -> ConfigError {
    ConfigError::BadUrl { name: format!("store.{key}"), at: Origin::Flag, why }
}

fn bad(key: &'static str) -> impl FnOnce(&dyn std::error::Error) -> Bad {
    move |error| Bad { key, why: error.to_string() }
}

fn redis(url: &ServerUrl, store: &StoreConfig) -> Result<RedisSettings, Bad> {
    let settings = RedisSettings::parse(url.reveal()).map_err(|error| bad("url")(&error))?;
    Ok(if store.ca.is_empty() { settings } else { settings.with_ca(store.ca.clone()) })
}

fn postgres(url: &ServerUrl, store: &StoreConfig) -> Result<PostgresSettings, Bad> {
    let mut settings = PostgresSettings::parse(url.reveal()).map_err(|error| bad("url")(&error))?;
    if let Some(listen) = &store.listen_url {
        settings = settings.with_listen_url(listen.reveal()).map_err(|error| bad("listen_url")(&error))?;
    }
    if !store.ca.is_empty() {
        settings = settings.with_ca(store.ca.clone());
    }
    Ok(settings.with_migrate(store.migrate))
}

impl StoreConfig {
    /// Where orders are kept; an error if the password is named and not there.
    pub fn place(&self) -> Result<Place, ConfigError> {
        let password = self.password.as_ref().map(|password| password.get()).transpose()?;
        let password = password.map(|password| password.reveal());
        let place = match &self.url {
            StoreUrl::Memory => Ok(Place::Memory),
            StoreUrl::Embedded(folder) => Ok(Place::Embedded(folder.clone())),
            StoreUrl::Redis(url) => redis(url, self).map(|settings| {
                let settings = if self.migrate { settings } else { settings.as_it_is() };
                Place::Redis(Box::new(match password {
                    Some(password) => settings.with_password(password),
                    None => settings,
                }))
            }),
            StoreUrl::Postgres(url) => {
                self.postgres_at(url, password).map(|settings| Place::Postgres(Box::new(settings)))
            }
        };
        place.map_err(typed)
    }

    /// Where PostgreSQL's tables are, or would be. It needs no password.
    pub fn schema(&self) -> Result<String, ConfigError> {
        let StoreUrl::Postgres(url) = &self.url else { return Ok(USUAL_SCHEMA.into()) };
        Ok(postgres(url, self).map_err(typed)?.schema().to_owned())
    }

    /// What PostgreSQL's own chores take; none for another store.
    pub fn postgres(&self) -> Result<Option<PostgresSettings>, ConfigError> {
        match self.place()? {
            Place::Postgres(settings) => Ok(Some(*settings)),
            _ => Ok(None),
        }
    }

    fn postgres_at(&self, url: &ServerUrl, password: Option<&str>) -> Result<PostgresSettings, Bad> {
        let settings = postgres(url, self)?;
        Ok(match password {
            Some(password) => settings.with_password(password),
            None => settings,
        })
    }

    /// That its addresses make sense: whoever only shows the configuration wants to hear of it, too.
    pub(crate) fn check(&self, effective: &Effective) -> Result<(), ConfigError> {
        let checked = match &self.url {
            StoreUrl::Memory | StoreUrl::Embedded(_) => Ok(()),
            StoreUrl::Redis(url) => redis(url, self).map(drop),
            StoreUrl::Postgres(url) => postgres(url, self).map(drop),
        };
        checked.map_err(|Bad { key, why }| {
            let name = super::name::Name::of(["store", key]);
            let at = effective.get(&name).map_or(Origin::Default, |held| held.origin.clone());
            ConfigError::BadUrl { name: name.to_string(), at, why }
        })
    }
}

//! Where orders are kept: in memory, on this machine's disk, or with a server that many nodes share. Opening a place gives
//! the store, and the roster of those who work on it.

use crate::secret;
use quittance_lifecycle::Key;
#[cfg(feature = "embedded")]
use quittance_ports::Which;
use quittance_ports::{MemoryRoster, MemoryStore, Roster, Store, StoreError, StoreMark};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "embedded")]
use quittance_store_embedded::EmbeddedStore;
#[cfg(feature = "postgres")]
use quittance_store_postgres::{PostgresStore, Settings as PostgresSettings};
#[cfg(feature = "redis")]
use quittance_store_redis::{RedisStore, Settings as RedisSettings};

/// Where orders are kept.
#[derive(Clone, Debug)]
pub enum Place {
    /// Nothing is kept after the end.
    Memory,
    /// In this directory, by one process.
    #[cfg(feature = "embedded")]
    Embedded(PathBuf),
    #[cfg(feature = "redis")]
    Redis(Box<RedisSettings>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresSettings>),
}

/// Why a place cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Embedded(#[from] quittance_store_embedded::OpenError),
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] quittance_store_redis::OpenError),
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] quittance_store_postgres::OpenError),
}

/// The callback secret cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the callback secret cannot be read or kept")]
    File(#[from] io::Error),
    #[error("the callback secret that nodes share cannot be read or kept")]
    Store(#[from] StoreError),
}

/// An open place.
#[derive(Clone)]
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub roster: Arc<dyn Roster>,
    keeper: Keeper,
}

/// Who keeps the secret by which we know our own callback addresses: whoever keeps the orders that they are about.
#[derive(Clone)]
enum Keeper {
    Nobody,
    #[cfg(feature = "embedded")]
    Folder(PathBuf, EmbeddedStore),
    #[cfg(feature = "redis")]
    Redis(RedisStore),
    #[cfg(feature = "postgres")]
    Postgres(PostgresStore),
}

impl Place {
    /// Whether other nodes may work on the same orders.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        match self {
            Self::Memory => false,
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => false,
            #[cfg(feature = "redis")]
            Self::Redis(_) => true,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
        }
    }

    /// What people call it; never with a password.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Memory => "memory:".into(),
            #[cfg(feature = "embedded")]
            Self::Embedded(dir) => format!("embedded:{}", dir.display()),
            #[cfg(feature = "redis")]
            Self::Redis(settings) => settings.address(),
            #[cfg(feature = "postgres")]
            Self::Postgres(settings) => settings.address(),
        }
    }

    /// Needs a tokio runtime.
    pub async fn open(&self) -> Result<Opened, OpenError> {
        Ok(match self {
            Self::Memory => Opened {
                store: Arc::new(MemoryStore::default()),
                roster: Arc::new(MemoryRoster::default()),
                keeper: Keeper::Nobody,
            },
            #[cfg(feature = "embedded")]
            Self::Embedded(dir) => {
                let folder = dir.clone();
                // A large store takes seconds to open, and nothing else should wait for it.
                let opening = tokio::task::spawn_blocking(move || EmbeddedStore::open(&folder));
                let store = match opening.await {
                    Ok(store) => store?,
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                };
                let keeper = Keeper::Folder(dir.clone(), store.clone());
                Opened { store: Arc::new(store.clone()), roster: Arc::new(store), keeper }
            }
            #[cfg(feature = "redis")]
            Self::Redis(settings) => {
                let store = RedisStore::open((**settings).clone()).await?;
                let keeper = Keeper::Redis(store.clone());
                Opened { store: Arc::new(store.clone()), roster: Arc::new(store), keeper }
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(settings) => {
                let store = PostgresStore::open((**settings).clone()).await?;
                let keeper = Keeper::Postgres(store.clone());
                Opened { store: Arc::new(store.clone()), roster: Arc::new(store), keeper }
            }
        })
    }
}

impl Opened {
    /// The secret by which nodes know their own callback addresses: the one that stands, or `drawn` if there is none yet.
    pub async fn secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], SecretError> {
        Ok(match &self.keeper {
            Keeper::Nobody => drawn,
            #[cfg(feature = "embedded")]
            Keeper::Folder(dir, store) => {
                if !secret::is_kept_in(dir) && !store.list(Which::ALL, None, 1).await?.is_empty() {
                    tracing::warn!(
                        folder = %dir.display(),
                        "the store has orders and its file `callback-secret` is gone, so a new secret is drawn: orders that are \
                         placed again are not recognised and are bought again; restore the file from a backup"
                    );
                }
                secret::kept_in(dir, drawn)?
            }
            #[cfg(feature = "redis")]
            Keeper::Redis(store) => store.shared_secret(drawn).await?,
            #[cfg(feature = "postgres")]
            Keeper::Postgres(store) => store.shared_secret(drawn).await?,
        })
    }

    /// Puts this secret in the place of the one that stands. The keys of orders follow from it, so it is only for a store without
    /// orders.
    pub(crate) async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), SecretError> {
        match &self.keeper {
            Keeper::Nobody => {}
            #[cfg(feature = "embedded")]
            Keeper::Folder(dir, _) => secret::replace_in(dir, &secret)?,
            #[cfg(feature = "redis")]
            Keeper::Redis(store) => store.replace_secret(secret).await?,
            #[cfg(feature = "postgres")]
            Keeper::Postgres(store) => store.replace_secret(secret).await?,
        }
        Ok(())
    }
}

impl Opened {
    /// Who the store is and how far it has come, if others share it; see [`StoreMark`].
    pub(crate) async fn mark(
        &self,
        drawn: [u8; 16],
        secrets: &[[u8; 32]],
    ) -> Result<Option<StoreMark>, StoreError> {
        #[cfg(not(any(feature = "redis", feature = "postgres")))]
        let _ = (drawn, secrets);
        match &self.keeper {
            Keeper::Nobody => Ok(None),
            #[cfg(feature = "embedded")]
            Keeper::Folder(..) => Ok(None),
            #[cfg(feature = "redis")]
            Keeper::Redis(store) => store.mark(drawn, secrets).await.map(Some),
            #[cfg(feature = "postgres")]
            Keeper::Postgres(store) => store.mark(drawn, secrets).await.map(Some),
        }
    }

    /// What happened to the files of a store on this machine, if anything did.
    pub(crate) fn damage(&self) -> Option<String> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            Keeper::Folder(_, store) => store.damage(),
            _ => None,
        }
    }

    /// The orders whose last steps a store on this machine has lost.
    pub(crate) fn stale(&self) -> Vec<Key> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            Keeper::Folder(_, store) => store.stale(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

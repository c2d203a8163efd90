//! Where orders are kept: in memory, on this machine's disk, or with a server that many nodes share. Opening a place
//! gives the store, and the membership of those who work on it.

use crate::secret;
use quittance_lifecycle::Key;
#[cfg(feature = "embedded")]
use quittance_ports::Which;
use quittance_ports::{
    Leases, MarkRequest, Membership, MemoryMembership, MemoryStore, Store, StoreError, StoreMark,
};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

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
    pub membership: Arc<dyn Membership>,
    /// Where nodes keep limits together, if other nodes may work on the same orders.
    pub leases: Option<Arc<dyn Leases>>,
    keeper: SecretHome,
}

/// Where the secret is kept by which we know our own callback addresses: in the store of the orders that they are
/// about.
#[derive(Clone)]
enum SecretHome {
    Absent,
    #[cfg(feature = "embedded")]
    /// With the secret, once it is known: the folder may be lost.
    Folder(PathBuf, EmbeddedStore, Arc<OnceLock<[u8; 32]>>),
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
                membership: Arc::new(MemoryMembership::default()),
                leases: None,
                keeper: SecretHome::Absent,
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
                let keeper = SecretHome::Folder(dir.clone(), store.clone(), Arc::default());
                Opened { store: Arc::new(store.clone()), membership: Arc::new(store), leases: None, keeper }
            }
            #[cfg(feature = "redis")]
            Self::Redis(settings) => {
                let store = RedisStore::open((**settings).clone()).await?;
                let keeper = SecretHome::Redis(store.clone());
                let leases: Option<Arc<dyn Leases>> = Some(Arc::new(store.clone()));
                Opened { store: Arc::new(store.clone()), membership: Arc::new(store), leases, keeper }
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(settings) => {
                let store = PostgresStore::open((**settings).clone()).await?;
                let keeper = SecretHome::Postgres(store.clone());
                let leases: Option<Arc<dyn Leases>> = Some(Arc::new(store.clone()));
                Opened { store: Arc::new(store.clone()), membership: Arc::new(store), leases, keeper }
            }
        })
    }
}

impl Opened {
    /// The secret for a look: the one that stands. If there is none, `drawn` is kept in the folder of an embedded
    /// store, and nowhere in a shared one: that may be empty because it was flushed, and its nodes bring theirs back.
    pub(crate) async fn secret_as_it_is(&self, drawn: [u8; 32]) -> Result<[u8; 32], SecretError> {
        let record = match &self.keeper {
            SecretHome::Absent => None,
            #[cfg(feature = "embedded")]
            SecretHome::Folder(..) => Some(self.secret(drawn).await?),
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.secret_as_it_is().await?,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.secret_as_it_is().await?,
        };
        Ok(record.unwrap_or(drawn))
    }

    /// The secret by which nodes know their own callback addresses: the one that stands, or `drawn` if there is none
    /// yet.
    pub async fn secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], SecretError> {
        Ok(match &self.keeper {
            SecretHome::Absent => drawn,
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, store, known) => {
                if !secret::is_kept_in(dir) && !store.list(Which::ALL, None, 1).await?.is_empty() {
                    tracing::warn!(
                        folder = %dir.display(),
                        "the store has orders and its file `callback-secret` is gone, so a new secret is drawn: orders that are \
                         placed again are not recognised and are bought again; restore the file from a backup"
                    );
                }
                let secret = secret::kept_in(dir, drawn)?;
                *known.get_or_init(|| secret)
            }
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.shared_secret(drawn).await?,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.shared_secret(drawn).await?,
        })
    }

    /// Puts this secret in the place of the one that stands. The keys of orders follow from it, so it is only for a
    /// store without orders.
    pub(crate) async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), SecretError> {
        match &self.keeper {
            SecretHome::Absent => {}
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, ..) => secret::replace_in(dir, &secret)?,
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.replace_secret(secret).await?,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.replace_secret(secret).await?,
        }
        Ok(())
    }
}

impl Opened {
    /// Who the store is and how far it has come, if others share it; see [`StoreMark`].
    pub(crate) async fn mark(&self, request: MarkRequest<'_>) -> Result<Option<StoreMark>, StoreError> {
        #[cfg(not(any(feature = "redis", feature = "postgres")))]
        let _ = request;
        match &self.keeper {
            SecretHome::Absent => Ok(None),
            #[cfg(feature = "embedded")]
            SecretHome::Folder(..) => Ok(None),
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.mark(request).await.map(Some),
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.mark(request).await.map(Some),
        }
    }

    /// From now on commits are for the store with this mark: any other refuses them.
    pub(crate) fn trust(&self, mark: &StoreMark) {
        #[cfg(not(any(feature = "redis", feature = "postgres")))]
        let _ = mark;
        match &self.keeper {
            SecretHome::Absent => {}
            #[cfg(feature = "embedded")]
            SecretHome::Folder(..) => {}
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.trust(mark.identity, mark.epoch),
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.trust(mark.identity, mark.epoch),
        }
    }

    /// What happened to the files of a store on this machine, if anything did.
    pub(crate) fn damage(&self) -> Option<String> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.damage(),
            _ => None,
        }
    }

    /// A sentence about a store on this machine that cannot know whether its log has lost its end.
    pub(crate) fn trail_note(&self) -> Option<String> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.trail_note(),
            _ => None,
        }
    }

    /// Writes the secret again if the folder that it was in is lost.
    pub(crate) fn keep_secret_again(&self) -> io::Result<()> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, _, known) => {
                known.get().map_or(Ok(()), |secret| secret::keep_again(dir, *secret))
            }
            _ => Ok(()),
        }
    }

    /// Whether a store on this machine goes on with the copy that was saved when its files were gone.
    pub(crate) fn is_restored(&self) -> bool {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.is_restored(),
            _ => false,
        }
    }

    /// All orders of a store that goes on with a copy are listed for a person.
    pub(crate) fn forget_restored(&self) {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.forget_restored(),
            _ => {}
        }
    }

    /// The orders whose last steps a store on this machine has lost.
    pub(crate) fn stale(&self) -> Vec<Key> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.stale(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

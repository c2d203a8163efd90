//! Where orders are kept: in memory, on this machine's disk, or on a server that many nodes share. Opening a place
//! gives the store and its membership.

#[cfg(feature = "embedded")]
use crate::callback_secret;
use quittance_lifecycle::Key;
#[cfg(feature = "embedded")]
use quittance_ports::Which;
use quittance_ports::{
    Leases, MarkRequest, Membership, MemoryMembership, MemoryStore, Store, StoreError, StoreMark,
};
use std::fmt;
use std::io;
#[cfg(feature = "embedded")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "embedded")]
use std::sync::{Mutex, OnceLock, PoisonError};

#[cfg(feature = "embedded")]
use quittance_store_embedded::{self as embedded, EmbeddedStore};
#[cfg(feature = "postgres")]
use quittance_store_postgres::{PostgresStore, Settings as PostgresSettings};
#[cfg(feature = "redis")]
use quittance_store_redis::{RedisStore, Settings as RedisSettings};

/// Where orders are kept.
#[derive(Clone, Debug)]
pub enum Place {
    /// In memory: nothing is kept after the process ends.
    Memory,
    /// In SQLite in this directory, used by one process.
    #[cfg(feature = "embedded")]
    Embedded(PathBuf),
    #[cfg(feature = "redis")]
    Redis(Box<RedisSettings>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresSettings>),
}

/// Why a place cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Embedded(#[from] quittance_store_embedded::EmbeddedOpenError),
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] quittance_store_redis::RedisOpenError),
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] quittance_store_postgres::PostgresOpenError),
}

/// Why the callback secret cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the callback secret cannot be read or kept")]
    File(#[from] io::Error),
    #[error("the callback secret that nodes share cannot be read or kept")]
    Store(#[from] StoreError),
    #[error(
        "the file {path} is not the secret that the orders of this store were made with: delete it, and the next \
         start writes the right one again, from the database. With this one, orders that are placed again are not recognised \
         and are bought again, and true callbacks count as forged"
    )]
    Foreign { path: PathBuf },
}

/// An open place.
#[derive(Clone)]
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub membership: Arc<dyn Membership>,
    /// The leases of limits that nodes keep together; `None` if no other node can work on these orders.
    pub leases: Option<Arc<dyn Leases>>,
    keeper: SecretHome,
}

/// Where the callback secret is kept: with the store of the orders.
#[derive(Clone)]
enum SecretHome {
    Absent,
    #[cfg(feature = "embedded")]
    /// The folder of an embedded store. The secret is kept in memory, too, because the folder may be lost.
    Folder(PathBuf, EmbeddedStore, Arc<FolderSecret>),
    #[cfg(feature = "redis")]
    Redis(RedisStore),
    #[cfg(feature = "postgres")]
    Postgres(PostgresStore),
}

/// The secret of an embedded store.
#[cfg(feature = "embedded")]
#[derive(Default)]
struct FolderSecret {
    known: OnceLock<[u8; 32]>,
    /// A report that the file was missing when the store was opened, to be sent once.
    was_gone: Mutex<Option<String>>,
    /// A report that the database was missing beside this file when the store was opened.
    emptied: Option<String>,
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

    /// The address without its password.
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

    /// Opens the place. Needs a tokio runtime.
    pub async fn open(&self) -> Result<Opened, StoreOpenError> {
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
                let had_database = dir.join(embedded::DATABASE).exists();
                // A large store takes seconds to open, and nothing else should wait for it.
                let opening = tokio::task::spawn_blocking(move || EmbeddedStore::open(&folder));
                let store = match opening.await {
                    Ok(store) => store?,
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                };
                let is_emptied = !had_database
                    && matches!(callback_secret::found_in(dir), Ok(Some(_)))
                    && store.damage().is_none();
                let secret = FolderSecret {
                    emptied: is_emptied.then(|| words_for_emptied(dir)),
                    ..FolderSecret::default()
                };
                let keeper = SecretHome::Folder(dir.clone(), store.clone(), Arc::new(secret));
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
    /// The secret for a node that only reads. If there is none, an embedded store keeps `drawn` in its folder, but a
    /// shared store does not: it may have been flushed, and its nodes put their secret back.
    pub(crate) async fn secret_as_it_is(&self, drawn: [u8; 32]) -> Result<[u8; 32], SecretError> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, store, _) => match callback_secret::found_in(dir)? {
                Some(secret) => Ok(secret),
                // A look must not hide from the next start that the file is gone.
                None => match store.secrets().last() {
                    Some(secret) => Ok(*secret),
                    None if has_orders(store).await? => Ok(drawn),
                    None => self.secret(drawn).await,
                },
            },
            _ => Ok(self.standing_secret().await?.unwrap_or(drawn)),
        }
    }

    /// The secret in a shared store, if there is one.
    pub(crate) async fn standing_secret(&self) -> Result<Option<[u8; 32]>, StoreError> {
        match &self.keeper {
            SecretHome::Absent => Ok(None),
            #[cfg(feature = "embedded")]
            SecretHome::Folder(..) => Ok(None),
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.secret_as_it_is().await,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.secret_as_it_is().await,
        }
    }

    /// The callback secret of the store. If there is none yet, stores `drawn` and returns it.
    pub async fn secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], SecretError> {
        Ok(match &self.keeper {
            SecretHome::Absent => drawn,
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, store, known) => {
                let found = callback_secret::found_in(dir)?;
                let noted = store.secrets();
                let is_noted = |secret: &[u8; 32]| noted.is_empty() || noted.contains(secret);
                if !found.as_ref().is_some_and(is_noted) && has_orders(store).await? {
                    if found.is_some() {
                        return Err(SecretError::Foreign { path: dir.join(callback_secret::SECRET_NAME) });
                    }
                    let words = words_for_gone(dir, !noted.is_empty());
                    *known.was_gone.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
                }
                let secret = callback_secret::kept_in(dir, noted.last().copied().unwrap_or(drawn))?;
                // A disk that is full must not keep a node from starting; it is noted the next time.
                if let Err(error) = store.note_secret(secret).await {
                    tracing::warn!(%error, "the callback secret cannot be noted in the store");
                }
                *known.known.get_or_init(|| secret)
            }
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.shared_secret(drawn).await?,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.shared_secret(drawn).await?,
        })
    }

    /// Replaces the secret. The keys of orders depend on it, so use this only for a store without orders.
    pub(crate) async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), SecretError> {
        #[cfg(not(any(feature = "embedded", feature = "redis", feature = "postgres")))]
        let _ = secret;
        match &self.keeper {
            SecretHome::Absent => {}
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, store, _) => {
                callback_secret::replace_in(dir, &secret)?;
                store.note_secret(secret).await?;
            }
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.replace_secret(secret).await?,
            #[cfg(feature = "postgres")]
            SecretHome::Postgres(store) => store.replace_secret(secret).await?,
        }
        Ok(())
    }
}

impl Opened {
    /// The identity and epoch of a shared store: see [`StoreMark`]. `None` for other stores.
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

    /// From now on, commits are only for the store with this mark. Any other store refuses them.
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

    /// What happened to the files of an embedded store, if anything did.
    pub(crate) fn damage(&self) -> Option<String> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, secret) => store.damage().or_else(|| secret.emptied.clone()),
            _ => None,
        }
    }

    /// How many lost timers of orders a shared store has restored.
    pub(crate) fn timers_restored(&self) -> u64 {
        match &self.keeper {
            #[cfg(feature = "redis")]
            SecretHome::Redis(store) => store.timers_restored(),
            _ => 0,
        }
    }

    /// How many records cannot be read and need an operator; `None` if the store does not count them.
    pub(crate) fn unreadable(&self) -> Option<u64> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => Some(store.unreadable_count()),
            _ => None,
        }
    }

    /// A sentence about an embedded store that cannot know whether the end of its log was lost.
    pub(crate) fn trail_note(&self) -> Option<String> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.trail_note(),
            _ => None,
        }
    }

    /// Checks the secret's file of an embedded store, and writes it again if it has changed. Returns what happened to
    /// the file.
    pub(crate) fn look_at_secret(&self) -> io::Result<Option<String>> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(dir, store, known) => {
                let was_gone = known.was_gone.lock().unwrap_or_else(PoisonError::into_inner).take();
                if was_gone.is_some() {
                    return Ok(was_gone);
                }
                let Some(secret) = known.known.get() else { return Ok(None) };
                // A folder that is gone is made again once that was noticed.
                if !dir.exists() && store.damage().is_none() {
                    return Ok(None);
                }
                let what = match callback_secret::look_at(dir, secret) {
                    callback_secret::Kept::Unchanged => return Ok(None),
                    callback_secret::Kept::Deleted => "deleted",
                    callback_secret::Kept::Replaced => "replaced",
                };
                callback_secret::keep_again(dir, *secret)?;
                Ok(Some(format!(
                    "{} was {what} while the node used it, and was written again: find out what changed it, and keep it with \
                     every backup of the store; then mark this alert as seen",
                    dir.join(callback_secret::SECRET_NAME).display()
                )))
            }
            _ => Ok(None),
        }
    }

    /// Whether an embedded store runs on the copy that was saved when its files were gone.
    pub(crate) fn is_restored(&self) -> bool {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.is_restored(),
            _ => false,
        }
    }

    /// Notes that all orders of a store that runs on a copy are listed for an operator.
    pub(crate) fn forget_restored(&self) {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.forget_restored(),
            _ => {}
        }
    }

    /// The orders whose last steps an embedded store has lost.
    pub(crate) fn stale(&self) -> Vec<Key> {
        match &self.keeper {
            #[cfg(feature = "embedded")]
            SecretHome::Folder(_, store, _) => store.stale(),
            _ => Vec::new(),
        }
    }
}

#[cfg(feature = "embedded")]
async fn has_orders(store: &EmbeddedStore) -> Result<bool, StoreError> {
    Ok(!store.list(Which::ALL, None, 1).await?.is_empty())
}

#[cfg(feature = "embedded")]
fn words_for_emptied(dir: &Path) -> String {
    format!(
        "{} was gone at the start, although a node has worked in this folder: it was deleted or moved while no node ran. Its orders are \
         not known any more: they are bought again if they are placed again. Stop the node and restore a backup, or compare the \
         provider's list; then mark this alert as seen",
        dir.join(embedded::DATABASE).display()
    )
}

#[cfg(feature = "embedded")]
fn words_for_gone(dir: &Path, is_noted: bool) -> String {
    let file = dir.join(callback_secret::SECRET_NAME);
    if is_noted {
        return format!(
            "{} was gone at the start, and was written again from the database: find out what removed it, and keep it with every \
             backup of the store; then mark this alert as seen",
            file.display()
        );
    }
    format!(
        "the store has orders, and neither its file {} nor its database has the secret, so a new one was drawn: orders that are placed \
         again are not recognised and are bought again, and true callbacks count as forged; stop the node and restore the file \
         from a backup, or mark this alert as seen",
        file.display()
    )
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

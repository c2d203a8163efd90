//! Why the store cannot answer at the moment, and why a store does not open.

use quittance_ports::{StoreError, StoreForgot};
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::error::Error;

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RedisFailure {
    #[error("Redis did not answer in time")]
    NoAnswer,
    #[error("there is no connection to Redis: {0}")]
    Away(String),
    #[error("Redis sent a reply that does not fit the command: check that the address is a Redis server")]
    Garbled,
    #[error("the store is sealed: {0}")]
    Sealed(String),
    #[error("{StoreForgot}")]
    Forgot,
    #[error(transparent)]
    Redis(#[from] RedisError),
}

impl RedisFailure {
    /// Converts the failure into an error of a call. Callers expect [`StoreForgot`] directly as the source of the
    /// error.
    pub(crate) fn unavailable(self, doing: &'static str) -> StoreError {
        let source: Box<dyn Error + Send + Sync> = match self {
            Self::Forgot => Box::new(StoreForgot),
            other => Box::new(other),
        };
        StoreError::Unavailable { doing, source }
    }

    /// Whether the record itself is the cause: its key holds another type.
    pub(crate) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::Redis(error) if error.code() == Some("WRONGTYPE"))
    }

    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Redis(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
    }

    /// Whether the connection is the cause, so that a new one may help. A server that became a replica counts as
    /// gone: its sentinels know which server replaced it.
    pub(crate) fn is_of_the_connection(&self) -> bool {
        match self {
            Self::NoAnswer => true,
            Self::Redis(error) => {
                error.is_unrecoverable_error()
                    || error.is_io_error()
                    || error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
            }
            Self::Away(_) | Self::Garbled | Self::Sealed(_) | Self::Forgot => false,
        }
    }

    /// Whether the connection to the whole cluster is lost. The client repairs connections to single servers by
    /// itself. A new connection is needed only if it has none left, or has stopped.
    pub(crate) fn is_of_the_whole_cluster(&self) -> bool {
        let Self::Redis(error) = self else { return false };
        error.kind() == ErrorKind::ClusterConnectionNotFound || error.is_connection_dropped()
    }

    fn is_refusal(&self) -> bool {
        let Self::Redis(error) = self else { return false };
        error.kind() == ErrorKind::AuthenticationFailed
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
    }
}

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum RedisOpenError {
    #[error("{address} cannot be reached: {why}; see that Redis runs there and lets this machine in")]
    Unreachable { address: String, why: String },
    #[error(
        "{address} refuses the user or the password ({why}); the user needs all keys of the prefix, EVAL and pub/sub"
    )]
    Refused { address: String, why: String },
    #[error("{address} is Redis {found}, and Quittance needs 6.2 or later, or Valkey")]
    TooOld { address: String, found: String },
    #[error(
        "the store in {address} has layout {found}, and this version of Quittance knows layouts up to {known}: open it \
         with the version that made it or a later one"
    )]
    Newer { address: String, found: u64, known: u64 },
    #[error(
        "the store in {address} has layout {found}, and this version of Quittance needs layout {known}: let the version that \
         made it finish its orders, and choose another prefix with ?prefix="
    )]
    Older { address: String, found: u64, known: u64 },
    #[error(
        "{address} holds something under our prefix that is no store of ours: choose another with ?prefix="
    )]
    NotOurs { address: String },
    #[error(
        "there is no store of Quittance at {address}: it was flushed, or no node has started there yet, or it is another address, \
         database or ?prefix= than that of `quittance serve`. Nothing was created"
    )]
    Missing { address: String },
    #[error("{address} answers, but cannot be used: {why}")]
    Unusable { address: String, why: String },
}

impl RedisOpenError {
    pub(crate) fn of(address: &str, failure: &RedisFailure) -> Self {
        let (address, why) = (address.to_owned(), failure.to_string());
        match failure {
            failure if failure.is_refusal() => Self::Refused { address, why },
            failure if failure.is_wrong_type() => Self::NotOurs { address },
            RedisFailure::NoAnswer | RedisFailure::Away(_) => Self::Unreachable { address, why },
            RedisFailure::Redis(error) if error.is_io_error() => Self::Unreachable { address, why },
            _ => Self::Unusable { address, why },
        }
    }
}

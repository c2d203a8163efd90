//! Why the store cannot answer at the moment. Every cause can pass. Whether a write happened is not known, unless the
//! server reports that it did not.

use quittance_ports::{StoreError, StoreForgot};
use std::error::Error;
use std::time::Duration;
use tokio_postgres::error::{ErrorPosition, SqlState};

/// The store was sealed because its orders have moved; the note says where. It can still be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is sealed: {note}")]
pub struct Sealed {
    pub note: String,
}

/// The advice for tables that are partly missing.
pub(crate) const PARTS_ADVICE: &str = "nothing is accepted until the database is restored, or the whole schema is dropped (`DROP SCHEMA \
     ... CASCADE`). Then the nodes make the tables again and put back the orders that they have in hand: leave them running";

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum PostgresError {
    #[error("{waiting} others wait already")]
    Crowded { waiting: usize },
    #[error("the server has not answered within {0:?}")]
    Slow(Duration),
    #[error("the server cannot be reached: {0}")]
    Away(String),
    #[error("the connection to the server has ended")]
    Cut,
    #[error("the server says {code}: {message}")]
    Server { code: String, message: String },
    #[error("the answer of the server cannot be understood: {0}")]
    Garbled(String),
    #[error(transparent)]
    Sealed(#[from] Sealed),
    #[error("other writers change the same order again and again: try again later")]
    Contended,
    #[error("{StoreForgot}")]
    Forgot,
    #[error(
        "the tables of Quittance are gone: `quittance store migrate` makes them, and so does a node whose `store.migrate` is true"
    )]
    Gone,
    #[error("some tables of Quittance are gone and others stand ({missing}): {PARTS_ADVICE}")]
    Incomplete { missing: String },
}

impl PostgresError {
    /// The failure for an error of the driver. The server's message is shown without its details, which quote rows
    /// that hold secrets.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        if let Some(db_error) = error.as_db_error() {
            let place = match db_error.position() {
                Some(ErrorPosition::Original(at)) => format!(" (character {at})"),
                _ => String::new(),
            };
            let message = format!("{}{place}", db_error.message());
            return Self::Server { code: db_error.code().code().to_owned(), message };
        }
        if error.is_closed() {
            return Self::Cut;
        }
        match error.source() {
            Some(source) => Self::Away(format!("{error}: {source}")),
            None => Self::Garbled(error.to_string()),
        }
    }

    /// Whether the server aborted the statement because of concurrent statements. Then nothing was written, and a
    /// retry is useful.
    pub(crate) fn is_in_the_way(&self) -> bool {
        let again = [
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::LOCK_NOT_AVAILABLE,
        ];
        matches!(self, Self::Server { code, .. } if again.iter().any(|state| state.code() == code))
    }

    /// Whether the server may have rejected the data of one write: a value, a size or a constraint.
    pub(crate) fn may_be_of_one(&self) -> bool {
        matches!(self, Self::Server { code, .. } if ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
    }

    /// Whether the connection is useless although it looks open. A server that has become read-only or stops may have
    /// a successor under the same name.
    pub(crate) fn ends_the_connection(&self) -> bool {
        match self {
            Self::Slow(_) | Self::Away(_) | Self::Cut | Self::Garbled(_) => true,
            Self::Server { code, .. } => {
                code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
                    || ["57P", "08", "53"].iter().any(|class| code.starts_with(class))
            }
            Self::Crowded { .. }
            | Self::Sealed(_)
            | Self::Contended
            | Self::Forgot
            | Self::Gone
            | Self::Incomplete { .. } => false,
        }
    }

    /// Converts the failure into an error of a call. Callers expect [`Sealed`] and [`StoreForgot`] directly as the
    /// source of the error.
    pub(crate) fn while_doing(self, doing: &'static str) -> StoreError {
        let source: Box<dyn Error + Send + Sync> = match self {
            Self::Sealed(sealed) => Box::new(sealed),
            Self::Forgot => Box::new(StoreForgot),
            other => Box::new(other),
        };
        StoreError::Unavailable { doing, source }
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::of(&error)
    }
}

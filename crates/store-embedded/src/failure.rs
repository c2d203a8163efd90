//! Why the store cannot answer at the moment. Every cause can pass. Whether a write happened is not known, unless the
//! error says so.

use quittance_ports::StoreError;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_WRITE;
use std::sync::Arc;

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum EmbeddedError {
    #[error("{waiting} others wait already")]
    Crowded { waiting: usize },
    #[error("the disk hangs: nothing has come back from it for a long time")]
    Stuck,
    #[error("the store is closed")]
    Closed,
    #[error("the disk failed in the middle of a write, and the store reads its files again")]
    Down,
    #[error("the files of the store were deleted, moved or replaced while it was open")]
    Moved,
    #[error("the files of the store were emptied, cut or overwritten while it was open")]
    Overwritten,
    #[error("the orders of this store have moved elsewhere")]
    Sealed,
    #[error("the note that the orders have moved cannot be read or kept")]
    Note(#[source] Arc<std::io::Error>),
    #[error(transparent)]
    Sqlite(Arc<rusqlite::Error>),
}

impl From<rusqlite::Error> for EmbeddedError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl EmbeddedError {
    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            _ => None,
        }
    }

    /// Whether the record is the cause, and not the disk.
    pub(crate) fn is_damage(&self) -> bool {
        is_damage(self.code())
    }

    /// Whether nothing was written for certain. A lock of another process is noticed before the transaction begins,
    /// and a full disk before the frame that ends it. After any other failure it is not known.
    pub(crate) fn wrote_nothing(&self) -> bool {
        let is_full = match self {
            // A file that may not grow any more, or a quota, is an error of the write and not a full disk.
            Self::Sqlite(error) => {
                error.sqlite_error().is_some_and(|e| e.extended_code == SQLITE_IOERR_WRITE)
            }
            _ => false,
        };
        let code = self.code();
        is_full
            || matches!(code, Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }
}

pub(crate) fn is_damage(code: Option<ErrorCode>) -> bool {
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

pub(crate) fn unavailable(doing: &'static str, failure: EmbeddedError) -> StoreError {
    StoreError::Unavailable { doing, source: Box::new(failure) }
}

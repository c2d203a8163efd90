//! The threads that read what is not in memory, each with its own connection, so that a caller's thread does not wait
//! for the disk.

use crate::documents;
use crate::failure::{EmbeddedError, unavailable};
use crate::row::{EmbeddedRow, RowReader};
use crate::shared::EmbeddedShared;
use crate::usage;
use quittance_lifecycle::Counters;
use quittance_ports::{Day, StoreError, StoredDocument, UsageRow};
use rusqlite::Connection;
use std::sync::Arc;

pub(crate) enum Question {
    /// The rows with these ids.
    Rows(Vec<i64>),
    /// The usage of these days, both included.
    Usage(Day, Day),
    Documents,
}

pub(crate) enum ReadAnswer {
    /// The rows in the order of the requests. A row that the disk cannot read does not delay the other rows.
    Rows(Vec<Result<EmbeddedRow, StoreError>>),
    Usage(Vec<(UsageRow, Counters)>),
    Documents(Vec<StoredDocument>),
}

const DOING: &str = "reading from the disk";

/// Answers questions until the store closes.
pub(crate) fn run(shared: &Arc<EmbeddedShared>, thread: usize) {
    let mut conn = None;
    while let Some(questions) = shared.questions.take(thread, None, |_| false) {
        let answers = questions.iter().map(|question| answer(shared, &mut conn, question)).collect();
        shared.questions.give(thread, answers);
    }
    if let Some(conn) = &conn {
        shared.leave(conn);
    }
}

/// Answers a question. After a failure the connection is dropped, and the next question gets a new one.
fn answer(
    shared: &EmbeddedShared,
    conn: &mut Option<Connection>,
    question: &Question,
) -> Result<ReadAnswer, StoreError> {
    let open = match conn.take() {
        Some(open) => open,
        None => shared.home.connect_to_read().map_err(failed)?,
    };
    let answer = match question {
        Question::Rows(ids) => rows(&open, ids).map(ReadAnswer::Rows),
        Question::Usage(from, to) => usage::read(&open, *from, *to).map(ReadAnswer::Usage),
        Question::Documents => documents::read(&open).map(ReadAnswer::Documents),
    };
    let answer = answer.map_err(failed)?;
    if !matches!(&answer, ReadAnswer::Rows(rows) if rows.iter().any(Result::is_err)) {
        *conn = Some(open);
    }
    Ok(answer)
}

fn rows(conn: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<Result<EmbeddedRow, StoreError>>> {
    let mut reading = RowReader::new(conn)?;
    Ok(ids.iter().map(|id| reading.row(*id).map_err(failed)).collect())
}

fn failed(error: rusqlite::Error) -> StoreError {
    unavailable(DOING, EmbeddedError::from(error))
}

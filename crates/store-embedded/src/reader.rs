//! The threads that read what is not in memory, each with a connection of its own: a caller's thread never waits for
//! the disk.

use crate::documents;
use crate::row::{Found, Reading};
use crate::shared::Shared;
use crate::trouble::{EmbeddedError, unavailable};
use crate::usage;
use quittance_lifecycle::Counters;
use quittance_ports::{Day, DocumentFound, StoreError, UsageRow};
use rusqlite::Connection;
use std::sync::Arc;

pub(crate) enum Question {
    /// The rows with these ids.
    Rows(Vec<i64>),
    /// The usage of these days, both included.
    Usage(Day, Day),
    Documents,
}

pub(crate) enum Answer {
    /// In the order in which they were asked for. One that the disk cannot read does not keep the others back.
    Rows(Vec<Result<Found, StoreError>>),
    Usage(Vec<(UsageRow, Counters)>),
    Documents(Vec<DocumentFound>),
}

const DOING: &str = "reading from the disk";

/// Reads until the store closes.
pub(crate) fn run(shared: &Arc<Shared>, thread: usize) {
    let mut conn = None;
    while let Some(questions) = shared.questions.take(thread, None, |_| false) {
        let answers = questions.iter().map(|question| answer(shared, &mut conn, question)).collect();
        shared.questions.give(thread, answers);
    }
    if let Some(conn) = &conn {
        shared.leave(conn);
    }
}

/// After a failure the connection is not trusted either; the next question gets a new one.
fn answer(shared: &Shared, conn: &mut Option<Connection>, question: &Question) -> Result<Answer, StoreError> {
    let open = match conn.take() {
        Some(open) => open,
        None => shared.home.connect_to_read().map_err(failed)?,
    };
    let answer = match question {
        Question::Rows(ids) => rows(&open, ids).map(Answer::Rows),
        Question::Usage(from, to) => usage::read(&open, *from, *to).map(Answer::Usage),
        Question::Documents => documents::read(&open).map(Answer::Documents),
    };
    let answer = answer.map_err(failed)?;
    if !matches!(&answer, Answer::Rows(rows) if rows.iter().any(Result::is_err)) {
        *conn = Some(open);
    }
    Ok(answer)
}

fn rows(conn: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<Result<Found, StoreError>>> {
    let mut reading = Reading::new(conn)?;
    Ok(ids.iter().map(|id| reading.row(*id).map_err(failed)).collect())
}

fn failed(error: rusqlite::Error) -> StoreError {
    unavailable(DOING, EmbeddedError::from(error))
}

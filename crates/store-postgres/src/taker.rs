//! Serves all waiting takers with one statement, again and again. The server gives the answers away by itself. An
//! answer that this node cannot parse is put back and passed over.

use crate::batch;
use crate::failure::PostgresError;
use crate::lane::SqlParams;
use crate::row::{self, BrokenWrite, PostgresRow, column};
use crate::shared::PostgresShared;
use crate::takings::{StockTake, WaitingTake};
use crate::write_queue::WriteReply;
use futures_util::future::BoxFuture;
use quittance_ports::{Day, StoreError, Versioned};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

pub(crate) const TAKING: &str = "taking an answer from the stock";

/// How often a statement is tried that was aborted because of others, and how often a request is served again.
const TRIES_MAX: usize = 5;

pub(crate) struct Taker {
    pub(crate) shared: Arc<PostgresShared>,
    pub(crate) number: usize,
}

/// The outcome of one request.
enum TakeOutcome {
    Repeat(PostgresRow),
    /// The claimant gets this answer for the first time.
    Fresh(PostgresRow),
    Nothing,
    /// Other statements hold all answers of the stock at the moment.
    Again,
}

/// The parameters of the statement, each a column.
#[derive(Default)]
struct TakeColumns<'a> {
    number: Vec<i32>,
    target: Vec<&'a [u8]>,
    good_until: Vec<i64>,
    by: Vec<&'a [u8]>,
    lock: Vec<i64>,
    at: Vec<i64>,
    day: Vec<i64>,
    book_number: Vec<i32>,
    line: Vec<&'static str>,
    amount: Vec<i64>,
}

impl<'a> TakeColumns<'a> {
    fn of(requests: &'a [WaitingTake]) -> Self {
        let mut columns = Self::default();
        for (number, (request, _)) in (0..).zip(requests) {
            columns.number.push(number);
            columns.target.push(&request.target.0);
            columns.good_until.push(row::moment(request.good_until));
            columns.by.push(&request.by.0);
            columns.lock.push(request.lock());
            columns.at.push(row::moment(request.at));
            columns.day.push(row::count(Day::of(request.at).0));
            for (line, amount) in booked(request) {
                columns.book_number.push(number);
                columns.line.push(line);
                columns.amount.push(amount);
            }
        }
        columns
    }
}

fn booked(request: &StockTake) -> impl Iterator<Item = (&'static str, i64)> {
    request
        .counters
        .lines()
        .filter(|(_, amount)| *amount > 0)
        .map(|(line, amount)| (line, row::count(amount)))
}

impl Taker {
    pub(crate) async fn run(self) {
        loop {
            // Registered before looking, so that nothing is left between the two.
            let bell = self.shared.takings.bell.notified();
            let requests = self.shared.takings.next();
            if requests.is_empty() {
                bell.await;
                continue;
            }
            self.settle(requests).await;
        }
    }

    /// Serves and answers all requests.
    fn settle(&self, mut requests: Vec<WaitingTake>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for _again in 0..TRIES_MAX {
                match self.take(&requests).await {
                    Ok(outcomes) => requests = self.answer_all(requests, outcomes).await,
                    // Of many, one may be what the server cannot take; the others must not fail with it for ever.
                    Err(failure) if failure.may_be_of_one() && requests.len() > 1 => {
                        let others = requests.split_off(requests.len() / 2);
                        self.settle(requests).await;
                        return self.settle(others).await;
                    }
                    Err(failure) => return fail(requests, &failure),
                }
                if requests.is_empty() {
                    return;
                }
            }
            // Whatever is left is held by others, or cannot be understood: there is nothing for this request.
            for (_, reply) in requests {
                answer(reply, Ok(None));
            }
        })
    }

    async fn take(&self, requests: &[WaitingTake]) -> Result<Vec<TakeOutcome>, PostgresError> {
        let shared = &self.shared;
        shared.check_whole()?;
        let columns = TakeColumns::of(requests);
        let (shard, broken) = (shared.shard(self.number), shared.takings.passed_over());
        let params: SqlParams<'_> = &[
            (&columns.number, Type::INT4_ARRAY),
            (&columns.target, Type::BYTEA_ARRAY),
            (&columns.good_until, Type::INT8_ARRAY),
            (&columns.by, Type::BYTEA_ARRAY),
            (&columns.lock, Type::INT8_ARRAY),
            (&columns.at, Type::INT8_ARRAY),
            (&columns.day, Type::INT8_ARRAY),
            (&columns.book_number, Type::INT4_ARRAY),
            (&columns.line, Type::TEXT_ARRAY),
            (&columns.amount, Type::INT8_ARRAY),
            (&shard, Type::INT2),
            (&broken, Type::INT8_ARRAY),
        ];
        let mut tries = 0;
        let rows = loop {
            shared.round_trips.fetch_add(1, Ordering::Relaxed);
            match shared.ask(&shared.statements.take, params).await {
                Ok(rows) => break rows,
                Err(failure) if failure.is_in_the_way() && tries < TRIES_MAX => tries += 1,
                Err(failure) => return Err(failure),
            }
        };
        outcomes(&rows, requests.len())
    }

    /// Answers the requests, and returns those that must be served again.
    async fn answer_all(&self, requests: Vec<WaitingTake>, outcomes: Vec<TakeOutcome>) -> Vec<WaitingTake> {
        let mut again = Vec::new();
        for ((request, reply), outcome) in requests.into_iter().zip(outcomes) {
            let returned = match outcome {
                TakeOutcome::Repeat(Ok(record)) | TakeOutcome::Fresh(Ok(record)) => Some(record),
                TakeOutcome::Nothing => None,
                TakeOutcome::Again => {
                    again.push((request, reply));
                    continue;
                }
                TakeOutcome::Repeat(Err(broken)) => {
                    self.shared.takings.pass_over(broken.version.0.cast_signed());
                    again.push((request, reply));
                    continue;
                }
                TakeOutcome::Fresh(Err(broken)) => {
                    if let Err(failure) = self.put_back(&request, &broken).await {
                        fail(vec![(request, reply)], &failure);
                    } else {
                        again.push((request, reply));
                    }
                    continue;
                }
            };
            answer(reply, Ok(returned));
        }
        again
    }

    /// Puts an answer back for nodes that can parse it.
    async fn put_back(&self, request: &StockTake, broken: &BrokenWrite) -> Result<(), PostgresError> {
        let BrokenWrite { version, unreadable, .. } = broken;
        tracing::warn!(key = %unreadable.key, detail = %unreadable.detail, "an answer on the stock cannot be read");
        let (key, version) = (&unreadable.key.0[..], version.0.cast_signed());
        let (lines, amounts): (Vec<&str>, Vec<i64>) = booked(request).unzip();
        let shard = self.shared.shard(self.number);
        let params: SqlParams<'_> = &[
            (&key, Type::BYTEA),
            (&version, Type::INT8),
            (&lines, Type::TEXT_ARRAY),
            (&amounts, Type::INT8_ARRAY),
            (&shard, Type::INT2),
        ];
        // Also as it was taken, should its putting back not come about.
        self.shared.takings.pass_over(version);
        self.shared.round_trips.fetch_add(1, Ordering::Relaxed);
        let rows = self.shared.ask(&self.shared.statements.put_back, params).await?;
        if let Some(row) = rows.first() {
            self.shared.takings.pass_over(column(row, 0)?);
        }
        Ok(())
    }
}

fn answer(reply: WriteReply<Option<Versioned>>, answer: Result<Option<Versioned>, StoreError>) {
    // The caller may be gone.
    drop(reply.send(answer));
}

/// The outcome of each request, in order.
fn outcomes(rows: &[Row], requests: usize) -> Result<Vec<TakeOutcome>, PostgresError> {
    batch::sealed(rows)?;
    let mut outcomes: Vec<_> = (0..requests).map(|_| TakeOutcome::Nothing).collect();
    for row in rows {
        let number = usize::try_from(column::<i32>(row, 1)?).ok();
        let place = number.and_then(|number| outcomes.get_mut(number));
        let place = place.ok_or_else(|| PostgresError::Garbled("it does not fit the statement".into()))?;
        *place = match (column::<Option<&[u8]>>(row, 4)?.is_some(), column(row, 2)?, column(row, 3)?) {
            (true, true, _) => TakeOutcome::Fresh(row::stored(row, 4)?),
            (true, false, _) => TakeOutcome::Repeat(row::stored(row, 4)?),
            (false, _, true) => TakeOutcome::Again,
            (false, _, false) => TakeOutcome::Nothing,
        };
    }
    Ok(outcomes)
}

fn fail(requests: Vec<WaitingTake>, failure: &PostgresError) {
    for (_, reply) in requests {
        answer(reply, Err(failure.clone().while_doing(TAKING)));
    }
}

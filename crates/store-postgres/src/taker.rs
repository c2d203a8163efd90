//! Serves all who wait for something from a stock with one statement, again and again. The server gives the answers away by
//! itself; only here it turns out whether one can be understood, and what cannot is put back and passed over.

use crate::batch;
use crate::desk::Reply;
use crate::lane::Params;
use crate::row::{self, Broken, Found, column};
use crate::shared::Shared;
use crate::takings::{TakeRequest, Waiting};
use crate::trouble::PostgresError;
use futures_util::future::BoxFuture;
use quittance_ports::{Day, StoreError, Versioned};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

pub(crate) const TAKING: &str = "taking an answer from the stock";

/// How often a statement is tried that got into the way of others, and how often somebody is served anew.
const TRIES_MAX: usize = 5;

pub(crate) struct Taker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) number: usize,
}

/// What became of one wish.
enum Outcome {
    Given(Found),
    /// It was given to him for the first time.
    GivenNew(Found),
    Nothing,
    /// There is something, and others have it in hand just now.
    Again,
}

/// The parameters, each a column.
#[derive(Default)]
struct Columns<'a> {
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

impl<'a> Columns<'a> {
    fn of(wishes: &'a [Waiting]) -> Self {
        let mut columns = Self::default();
        for (number, (wish, _)) in (0..).zip(wishes) {
            columns.number.push(number);
            columns.target.push(&wish.target.0);
            columns.good_until.push(row::moment(wish.good_until));
            columns.by.push(&wish.by.0);
            columns.lock.push(wish.lock());
            columns.at.push(row::moment(wish.at));
            columns.day.push(row::count(Day::of(wish.at).0));
            for (line, amount) in booked(wish) {
                columns.book_number.push(number);
                columns.line.push(line);
                columns.amount.push(amount);
            }
        }
        columns
    }
}

fn booked(wish: &TakeRequest) -> impl Iterator<Item = (&'static str, i64)> {
    wish.counters.lines().filter(|(_, amount)| *amount > 0).map(|(line, amount)| (line, row::count(amount)))
}

impl Taker {
    pub(crate) async fn run(self) {
        loop {
            // Asked for before looking, so that nothing is left between the two.
            let bell = self.shared.takings.bell.notified();
            let wishes = self.shared.takings.next();
            if wishes.is_empty() {
                bell.await;
                continue;
            }
            self.settle(wishes).await;
        }
    }

    /// Serves everybody and answers everybody.
    fn settle(&self, mut wishes: Vec<Waiting>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for _again in 0..TRIES_MAX {
                match self.take(&wishes).await {
                    Ok(outcomes) => wishes = self.answer_all(wishes, outcomes).await,
                    // Of many, one may be what the server cannot take; the others must not fail with it for ever.
                    Err(trouble) if trouble.may_be_of_one() && wishes.len() > 1 => {
                        let others = wishes.split_off(wishes.len() / 2);
                        self.settle(wishes).await;
                        return self.settle(others).await;
                    }
                    Err(trouble) => return fail(wishes, &trouble),
                }
                if wishes.is_empty() {
                    return;
                }
            }
            // Whatever is left is in the hands of others, or cannot be understood: there is nothing for him.
            for (_, reply) in wishes {
                answer(reply, Ok(None));
            }
        })
    }

    async fn take(&self, wishes: &[Waiting]) -> Result<Vec<Outcome>, PostgresError> {
        let shared = &self.shared;
        shared.check_whole()?;
        let columns = Columns::of(wishes);
        let (shard, broken) = (shared.shard(self.number), shared.takings.passed_over());
        let params: Params<'_> = &[
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
                Err(trouble) if trouble.is_in_the_way() && tries < TRIES_MAX => tries += 1,
                Err(trouble) => return Err(trouble),
            }
        };
        outcomes(&rows, wishes.len())
    }

    /// Those who are to be served anew.
    async fn answer_all(&self, wishes: Vec<Waiting>, outcomes: Vec<Outcome>) -> Vec<Waiting> {
        let mut again = Vec::new();
        for ((wish, reply), outcome) in wishes.into_iter().zip(outcomes) {
            let given = match outcome {
                Outcome::Given(Ok(found)) | Outcome::GivenNew(Ok(found)) => Some(found),
                Outcome::Nothing => None,
                Outcome::Again => {
                    again.push((wish, reply));
                    continue;
                }
                Outcome::Given(Err(broken)) => {
                    self.shared.takings.pass_over(broken.version.0.cast_signed());
                    again.push((wish, reply));
                    continue;
                }
                Outcome::GivenNew(Err(broken)) => {
                    if let Err(trouble) = self.put_back(&wish, &broken).await {
                        fail(vec![(wish, reply)], &trouble);
                    } else {
                        again.push((wish, reply));
                    }
                    continue;
                }
            };
            answer(reply, Ok(given));
        }
        again
    }

    /// For those who can understand it, and not for us.
    async fn put_back(&self, wish: &TakeRequest, broken: &Broken) -> Result<(), PostgresError> {
        let Broken { version, unreadable, .. } = broken;
        tracing::warn!(key = %unreadable.key, detail = %unreadable.detail, "an answer on the stock cannot be read");
        let (key, version) = (&unreadable.key.0[..], version.0.cast_signed());
        let (lines, amounts): (Vec<&str>, Vec<i64>) = booked(wish).unzip();
        let shard = self.shared.shard(self.number);
        let params: Params<'_> = &[
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

fn answer(reply: Reply<Option<Versioned>>, answer: Result<Option<Versioned>, StoreError>) {
    // Nobody need be there any more.
    drop(reply.send(answer));
}

/// What the answer says of each wish, in their order.
fn outcomes(rows: &[Row], wishes: usize) -> Result<Vec<Outcome>, PostgresError> {
    batch::sealed(rows)?;
    let mut outcomes: Vec<_> = (0..wishes).map(|_| Outcome::Nothing).collect();
    for row in rows {
        let number = usize::try_from(column::<i32>(row, 1)?).ok();
        let place = number.and_then(|number| outcomes.get_mut(number));
        let place = place.ok_or_else(|| PostgresError::Garbled("it answers what was not asked".into()))?;
        *place = match (column::<Option<&[u8]>>(row, 4)?.is_some(), column(row, 2)?, column(row, 3)?) {
            (true, true, _) => Outcome::GivenNew(row::found(row, 4)?),
            (true, false, _) => Outcome::Given(row::found(row, 4)?),
            (false, _, true) => Outcome::Again,
            (false, _, false) => Outcome::Nothing,
        };
    }
    Ok(outcomes)
}

fn fail(wishes: Vec<Waiting>, trouble: &PostgresError) {
    for (_, reply) in wishes {
        answer(reply, Err(trouble.clone().while_doing(TAKING)));
    }
}

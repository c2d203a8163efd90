//! One batch as the columns of one statement, and the reply for each commit in it.

use crate::failure::{PostgresError, Sealed};
use crate::lane::SqlParams;
use crate::row::{self, PostgresRow, column};
use crate::write_queue::{Contest, PendingWrite, WriteBatch};
use quittance_lifecycle::{Counters, Key, Terms};
use quittance_ports::{Day, UsageRow, Version};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The outcome of one commit.
pub(crate) enum CommitOutcome {
    Done(Version),
    /// The commit lost to this row, or to none if one was expected.
    Lost(Option<PostgresRow>),
    /// The commit lost to a record that disappeared or came back before it could be read. It must be read again.
    LostUnseen,
    /// The terms have changed, and were not sent.
    WantsTerms,
}

/// The parameters of the statement, each a column.
#[derive(Default)]
pub(crate) struct CommitColumns<'a> {
    number: Vec<i32>,
    key: Vec<&'a [u8]>,
    expected: Vec<i64>,
    timer: Vec<Option<i64>>,
    target: Vec<Option<&'a [u8]>>,
    expires: Vec<Option<i64>>,
    forget_at: Vec<Option<i64>>,
    class: Vec<i16>,
    awaited: Vec<bool>,
    digest: Vec<Option<&'a [u8]>>,
    record: Vec<&'a [u8]>,
    terms: Vec<Option<&'a [u8]>>,
    taker: Vec<Option<&'a [u8]>>,
    once_timer: Vec<Option<i64>>,
    once_forget: Vec<Option<i64>>,
    tenant: Vec<&'a [u8]>,
    kind: Vec<Option<&'a [u8]>>,
    site: Vec<Option<&'a [u8]>>,
    provider: Vec<Option<&'a [u8]>>,
    usage: UsageColumns<'a>,
}

#[derive(Default)]
struct UsageColumns<'a> {
    number: Vec<Option<i32>>,
    day: Vec<i64>,
    tenant: Vec<&'a [u8]>,
    kind: Vec<&'a [u8]>,
    site: Vec<&'a [u8]>,
    provider: Vec<&'a [u8]>,
    line: Vec<&'static str>,
    amount: Vec<i64>,
}

impl<'a> CommitColumns<'a> {
    pub(crate) fn of(batch: &'a WriteBatch) -> Self {
        let mut columns = Self::default();
        for (number, Contest { write, .. }) in (0..).zip(&batch.contests) {
            columns.push(number, write);
            let Terms { tenant, kind, site, .. } = &*write.order.terms;
            let of = [tenant, kind, site, write.order.booked_account()];
            columns.usage.push(Some(number), Day::of(write.at), of, &write.counters);
        }
        for addition in &batch.additions {
            let UsageRow { day, tenant, kind, site, account } = &addition.line;
            columns.usage.push(
                None,
                *day,
                [tenant, kind, site, account].map(String::as_str),
                &addition.counters,
            );
        }
        columns
    }

    fn push(&mut self, number: i32, write: &'a PendingWrite) {
        let marks = &write.marks;
        self.number.push(number);
        self.key.push(&write.order.key.0);
        self.expected.push(write.expected.0.cast_signed());
        self.timer.push(marks.timer);
        self.target.push(marks.target.as_ref().map(|target| &target.0[..]));
        self.expires.push(marks.stocked.map(|stocked| stocked.expires));
        self.forget_at.push(marks.forget_at);
        self.class.push(marks.class);
        self.awaited.push(marks.awaited);
        self.digest.push(write.digest.as_ref().map(|digest| &digest[..]));
        self.record.push(&write.record);
        self.terms.push(write.sends_terms.then_some(&*write.terms));
        self.taker.push(marks.taker.as_ref().map(|taker| &taker.0[..]));
        self.once_timer.push(marks.stocked.and_then(|stocked| stocked.timer));
        self.once_forget.push(marks.stocked.and_then(|stocked| stocked.forget_at));
        self.tenant.push(write.order.terms.tenant.as_bytes());
        let usage = marks.stocked.map(|_| &*write.order.terms);
        self.kind.push(usage.map(|terms| terms.kind.as_bytes()));
        self.site.push(usage.map(|terms| terms.site.as_bytes()));
        self.provider.push(usage.map(|_| write.order.booked_account().as_bytes()));
    }

    /// The parameters in the order of the statement; `rest` follows the columns.
    pub(crate) fn params<'b>(&'b self, rest: SqlParams<'b>) -> Vec<(&'b (dyn ToSql + Sync), Type)> {
        let usage = &self.usage;
        let mut params: Vec<(&'b (dyn ToSql + Sync), Type)> = vec![
            (&self.number, Type::INT4_ARRAY),
            (&self.key, Type::BYTEA_ARRAY),
            (&self.expected, Type::INT8_ARRAY),
            (&self.timer, Type::INT8_ARRAY),
            (&self.target, Type::BYTEA_ARRAY),
            (&self.expires, Type::INT8_ARRAY),
            (&self.forget_at, Type::INT8_ARRAY),
            (&self.class, Type::INT2_ARRAY),
            (&self.awaited, Type::BOOL_ARRAY),
            (&self.digest, Type::BYTEA_ARRAY),
            (&self.record, Type::BYTEA_ARRAY),
            (&self.terms, Type::BYTEA_ARRAY),
            (&self.taker, Type::BYTEA_ARRAY),
            (&self.once_timer, Type::INT8_ARRAY),
            (&self.once_forget, Type::INT8_ARRAY),
            (&self.tenant, Type::BYTEA_ARRAY),
            (&self.kind, Type::BYTEA_ARRAY),
            (&self.site, Type::BYTEA_ARRAY),
            (&self.provider, Type::BYTEA_ARRAY),
            (&usage.number, Type::INT4_ARRAY),
            (&usage.day, Type::INT8_ARRAY),
            (&usage.tenant, Type::BYTEA_ARRAY),
            (&usage.kind, Type::BYTEA_ARRAY),
            (&usage.site, Type::BYTEA_ARRAY),
            (&usage.provider, Type::BYTEA_ARRAY),
            (&usage.line, Type::TEXT_ARRAY),
            (&usage.amount, Type::INT8_ARRAY),
        ];
        params.extend(rest.iter().map(|(value, of)| (*value, of.clone())));
        params
    }
}

impl<'a> UsageColumns<'a> {
    fn push(&mut self, number: Option<i32>, day: Day, of: [&'a str; 4], counters: &Counters) {
        let [tenant, kind, site, provider] = of.map(str::as_bytes);
        for (line, amount) in counters.lines().filter(|(_, amount)| *amount > 0) {
            self.number.push(number);
            self.day.push(row::count(day.0));
            self.tenant.push(tenant);
            self.kind.push(kind);
            self.site.push(site);
            self.provider.push(provider);
            self.line.push(line);
            self.amount.push(row::count(amount));
        }
    }
}

/// The outcome of each commit of the batch, in their order.
pub(crate) fn outcomes(rows: &[Row], batch: &WriteBatch) -> Result<Vec<CommitOutcome>, PostgresError> {
    sealed(rows)?;
    let mut outcomes: Vec<_> = batch.contests.iter().map(|_| CommitOutcome::LostUnseen).collect();
    for row in rows {
        let Some(number) = column::<Option<i32>>(row, 1)? else { continue };
        let at = usize::try_from(number).ok().filter(|at| *at < outcomes.len());
        let at = at.ok_or_else(|| PostgresError::Garbled("it does not fit the statement".into()))?;
        outcomes[at] = outcome(row, &batch.contests[at].write)?;
    }
    Ok(outcomes)
}

/// Checks the first column of a reply: every statement that writes returns there whether the store is sealed.
pub(crate) fn sealed(rows: &[Row]) -> Result<(), PostgresError> {
    let Some(row) = rows.first() else { return Err(PostgresError::Garbled("it answers nothing".into())) };
    match column::<Option<&[u8]>>(row, 0)? {
        Some(note) => Err(Sealed { note: String::from_utf8_lossy(note).into_owned() }.into()),
        None => Ok(()),
    }
}

fn outcome(row: &Row, write: &PendingWrite) -> Result<CommitOutcome, PostgresError> {
    if let Some(version) = column::<Option<i64>>(row, 2)? {
        return Ok(CommitOutcome::Done(row::version(version)));
    }
    if column::<Option<bool>>(row, 3)? == Some(true) {
        return Ok(CommitOutcome::WantsTerms);
    }
    let Some(version) = column::<Option<i64>>(row, 5)? else {
        let is_gone = write.expected != Version::ABSENT;
        return Ok(if is_gone { CommitOutcome::Lost(None) } else { CommitOutcome::LostUnseen });
    };
    if row::version(version) == write.expected {
        return Ok(CommitOutcome::LostUnseen);
    }
    Ok(CommitOutcome::Lost(Some(row::stored(row, 4)?)))
}

/// The orders of a batch that are no longer awaited.
pub(crate) fn news(batch: &WriteBatch, outcomes: &[CommitOutcome]) -> Vec<Key> {
    let is_news = |(contest, outcome): &(&Contest, &CommitOutcome)| {
        matches!(outcome, CommitOutcome::Done(_)) && !contest.write.marks.awaited
    };
    let pairs = batch.contests.iter().zip(outcomes);
    pairs.filter(is_news).map(|(contest, _)| contest.write.order.key).collect()
}

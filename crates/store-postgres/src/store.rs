//! The store for callers: writes go through the queue, reads go to the server at once.

use crate::PostgresStore;
use crate::batch;
use crate::failure::PostgresError;
use crate::lane::SqlParams;
use crate::row::{self, AT_REST, BrokenWrite, DEAD, OPEN, PostgresRow, column, moment};
use crate::taker::TAKING;
use crate::takings::StockTake;
use crate::write_queue::PendingWrite;
use crate::writer::{COMMITTING, COUNTING};
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderClass, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Watch, Which,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How many rows one statement lists or erases, because other calls need a turn.
const ROWS_AT_ONCE: usize = 256;
/// How many rows of usage are read at once.
const LINES_AT_ONCE: i64 = 4096;

const LOADING: &str = "loading an order";
const CLAIMING: &str = "claiming what is due";
const LISTING: &str = "listing orders";
const PURGING: &str = "purging orders";
const DISCARDING: &str = "discarding a record";
const READING: &str = "reading the usage";
const CLOSING: &str = "closing the usage";

fn number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl PostgresStore {
    /// Runs a statement for a caller, and counts it.
    async fn query(&self, statement: &str, params: SqlParams<'_>) -> Result<Vec<Row>, PostgresError> {
        self.shared().round_trips.fetch_add(1, Ordering::Relaxed);
        self.shared().ask(statement, params).await
    }

    /// Waits for a writer, with a timeout.
    async fn written<T>(
        &self,
        left: Result<oneshot::Receiver<Result<T, StoreError>>, PostgresError>,
        doing: &'static str,
    ) -> Result<T, StoreError> {
        let answer = left.map_err(|failure| failure.while_doing(doing))?;
        let wait = self.shared().settings.call_wait;
        match timeout(wait, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(PostgresError::Cut.while_doing(doing)),
            Err(_) => Err(PostgresError::Slow(wait).while_doing(doing)),
        }
    }

    /// Limits a call of several statements to the time of one.
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, PostgresError>> + Send,
        doing: &'static str,
    ) -> Result<T, StoreError> {
        let wait = self.shared().settings.call_wait;
        let answer = timeout(wait, call).await.unwrap_or(Err(PostgresError::Slow(wait)));
        answer.map_err(|failure| failure.while_doing(doing))
    }

    /// Lists records that cannot be parsed with the dead letters, for operators. A failure is ignored, because
    /// nothing depends on it. A record of a later version is left alone, because the nodes that wrote it can read it.
    async fn set_aside(&self, broken: &[BrokenWrite]) {
        let damaged = || broken.iter().filter(|broken| !broken.is_later);
        let keys: Vec<&[u8]> = damaged().map(|broken| &broken.unreadable.key.0[..]).collect();
        let versions: Vec<i64> = damaged().map(|broken| broken.version.0.cast_signed()).collect();
        if keys.is_empty() {
            return;
        }
        let params: SqlParams<'_> = &[(&keys, Type::BYTEA_ARRAY), (&versions, Type::INT8_ARRAY)];
        if let Err(failure) = self.query(&self.shared().statements.set_aside, params).await {
            tracing::debug!(%failure, "a record that cannot be read could not be set aside");
        }
    }

    async fn row(&self, key: &Key) -> Result<Option<Row>, PostgresError> {
        let keys = [&key.0[..]];
        let rows = self.query(&self.shared().statements.load, &[(&&keys[..], Type::BYTEA_ARRAY)]).await?;
        Ok(rows.into_iter().next())
    }

    async fn find(&self, key: &Key) -> Result<Option<PostgresRow>, PostgresError> {
        self.row(key).await?.map(|row| row::stored(&row, 0)).transpose()
    }

    /// Removes an unreadable record. Returns whether there was one, or the record that is left for a node that can
    /// read it.
    async fn discarded(&self, key: &Key) -> Result<Result<bool, BrokenWrite>, PostgresError> {
        loop {
            let Some(row) = self.row(key).await? else { return Ok(Ok(false)) };
            let broken = match row::stored(&row, 0)? {
                Ok(_) => return Ok(Ok(false)),
                Err(broken) if broken.is_later => return Ok(Err(broken)),
                Err(broken) => broken,
            };
            let (key, version) = (&key.0[..], broken.version.0.cast_signed());
            let (record, terms) = (column::<&[u8]>(&row, 2)?, column::<&[u8]>(&row, 3)?);
            let params: SqlParams<'_> =
                &[(&key, Type::BYTEA), (&version, Type::INT8), (&record, Type::BYTEA), (&terms, Type::BYTEA)];
            let rows = self.query(&self.shared().statements.discard, params).await?;
            batch::sealed(&rows)?;
            // Else it was written meanwhile, and it is looked at again.
            if column(&rows[0], 1)? {
                return Ok(Ok(true));
            }
        }
    }

    async fn claim(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, PostgresError> {
        let params: SqlParams<'_> =
            &[(&moment(now), Type::INT8), (&moment(until), Type::INT8), (&number(limit), Type::INT8)];
        let rows = self.query(&self.shared().statements.claim, params).await?;
        batch::sealed(&rows)?;
        let mut due = Due::default();
        let mut broken = Vec::new();
        for row in &rows {
            due.next = column::<Option<i64>>(row, 1)?.map(row::read_moment);
            if column::<Option<&[u8]>>(row, 2)?.is_none() {
                continue;
            }
            match row::stored(row, 2)? {
                Ok(versioned) => due.orders.push(versioned),
                Err(stored) => broken.push(stored),
            }
        }
        let shared = self.shared();
        broken.retain(|BrokenWrite { version, unreadable, .. }| {
            shared.is_first_broken(&unreadable.key, *version)
        });
        self.set_aside(&broken).await;
        due.unreadable = broken.into_iter().map(|broken| broken.unreadable).collect();
        Ok(due)
    }

    async fn page(&self, which: Which<'_>, after: &[u8], limit: usize) -> Result<Vec<Row>, PostgresError> {
        let statements = &self.shared().statements;
        let limit = number(limit);
        if let Some(tenant) = which.tenant {
            let standings = match which.class {
                None => vec![OPEN, DEAD, AT_REST],
                Some(class) => vec![row::class(class)],
            };
            let tenant = tenant.as_bytes();
            let params: SqlParams<'_> = &[
                (&after, Type::BYTEA),
                (&limit, Type::INT8),
                (&tenant, Type::BYTEA),
                (&standings, Type::INT2_ARRAY),
            ];
            return self.query(&statements.list_tenant, params).await;
        }
        // Those at rest are most of all, and have no index of their own.
        let listed = which.class.filter(|class| *class != OrderClass::AtRest);
        let Some(class) = listed.map(row::class) else {
            let params: SqlParams<'_> = &[(&after, Type::BYTEA), (&limit, Type::INT8)];
            return self.query(&statements.list_all, params).await;
        };
        let params: SqlParams<'_> = &[(&after, Type::BYTEA), (&limit, Type::INT8), (&class, Type::INT2)];
        self.query(&statements.list_class, params).await
    }

    async fn listed(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, PostgresError> {
        // A node that has nothing to write reads lists only, and must not call itself ready while tables are gone.
        self.shared().check_whole()?;
        let mut listed = Vec::new();
        let mut damaged = Vec::new();
        let mut after = after.map_or(Vec::new(), |key| key.0.to_vec());
        while listed.len() < limit {
            let limit_now = (limit - listed.len()).min(ROWS_AT_ONCE);
            let rows = self.page(which, &after, limit_now).await?;
            for row in &rows {
                match row::stored(row, 0)? {
                    Ok(versioned) if which.includes(&versioned.order) => listed.push(Ok(versioned)),
                    // Another node could not read it, and we can.
                    Ok(_) => {}
                    Err(broken) => {
                        listed.extend(which.includes_unreadable().then(|| Err(broken.unreadable.clone())));
                        damaged.push(broken);
                    }
                }
            }
            match rows.last() {
                Some(last) if rows.len() == limit_now => after = column::<&[u8]>(last, 0)?.to_vec(),
                _ => break,
            }
        }
        self.set_aside(&damaged).await;
        Ok(listed)
    }

    async fn purged(&self, now: Timestamp, limit: usize) -> Result<usize, PostgresError> {
        let mut purged = 0;
        while purged < limit {
            let limit_now = (limit - purged).min(ROWS_AT_ONCE);
            let params: SqlParams<'_> = &[(&moment(now), Type::INT8), (&number(limit_now), Type::INT8)];
            let rows = self.query(&self.shared().statements.purge, params).await?;
            batch::sealed(&rows)?;
            let gone = column::<i64>(&rows[0], 1)?;
            purged += usize::try_from(gone).unwrap_or(0);
            if gone < number(limit_now) {
                break;
            }
        }
        Ok(purged)
    }

    async fn read_usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, PostgresError> {
        let params: SqlParams<'_> = &[(&row::count(from.0), Type::INT8), (&row::count(to.0), Type::INT8)];
        let rows = self.query(&self.shared().statements.usage, params).await?;
        let mut usage: Vec<(UsageRow, Counters)> = Vec::new();
        for row in &rows {
            let text = |at| {
                let bytes = column::<&[u8]>(row, at)?.to_vec();
                String::from_utf8(bytes)
                    .map_err(|_| PostgresError::Garbled("a name in the usage is not text".into()))
            };
            let day = Day(column::<i64>(row, 0)?.cast_unsigned());
            let (tenant, kind, site, account) = (text(1)?, text(2)?, text(3)?, text(4)?);
            let line = UsageRow { day, tenant, kind, site, account };
            let mut amount = Counters::default();
            // What a later version counts is none of ours.
            let Some(place) = amount.line_mut(column(row, 5)?) else { continue };
            *place = column::<i64>(row, 6)?.cast_unsigned();
            match usage.last_mut() {
                Some((last, counters)) if *last == line => *counters += amount,
                _ => usage.push((line, amount)),
            }
        }
        Ok(usage)
    }

    async fn closed(&self, detail: Day, sums: Day) -> Result<(), PostgresError> {
        let params: SqlParams<'_> = &[
            (&row::count(detail.0), Type::INT8),
            (&row::count(sums.0), Type::INT8),
            (&LINES_AT_ONCE, Type::INT8),
        ];
        loop {
            let rows = self.query(&self.shared().statements.compact_usage, params).await?;
            batch::sealed(&rows)?;
            if column(&rows[0], 1)? {
                return Ok(());
            }
        }
    }

    async fn counted(&self) -> Result<OrderCounts, PostgresError> {
        let (headcount, now) = (&self.shared().headcount, Instant::now());
        if let Some(order_counts) = headcount.recent(now) {
            return Ok(order_counts);
        }
        let rows = self.query(&self.shared().statements.order_counts, &[]).await?;
        let row = rows.first().ok_or_else(|| PostgresError::Garbled("it answers nothing".into()))?;
        let (open, dead): (i64, i64) = (column(row, 0)?, column(row, 1)?);
        let order_counts = OrderCounts { open: open.cast_unsigned(), dead: dead.cast_unsigned() };
        headcount.note(now, order_counts);
        Ok(order_counts)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        match self.find(key).await.map_err(|failure| failure.while_doing(LOADING))? {
            None => Ok(None),
            Some(Ok(versioned)) => Ok(Some(versioned)),
            Some(Err(broken)) => {
                if self.shared().is_first_broken(key, broken.version) {
                    self.set_aside(std::slice::from_ref(&broken)).await;
                }
                Err(StoreError::Corrupt { key: *key, detail: broken.unreadable.detail })
            }
        }
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let left = self.shared().queue.commit(PendingWrite::new(expected, next, counters, at));
        self.written(left, COMMITTING).await
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.claim(now, until, limit).await.map_err(|failure| failure.while_doing(CLAIMING))
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        let request = StockTake { target: *target, good_until, by: *by, at, counters: *counters };
        self.written(self.shared().takings.ask(request), TAKING).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let target = &target.0[..];
        let params: SqlParams<'_> =
            &[(&target, Type::BYTEA), (&moment(now), Type::INT8), (&number(limit), Type::INT8)];
        let rows = self.query(&self.shared().statements.stock, params).await;
        let keys = rows.and_then(|rows| rows.iter().map(|row| row::key(column(row, 0)?)).collect());
        keys.map_err(|failure| failure.while_doing(LISTING))
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        Ok(self.shared().watchers.watch(key))
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.in_time(self.listed(which, after, limit), LISTING).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.in_time(self.purged(now, limit), PURGING).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        let discarded = self.in_time(self.discarded(key), DISCARDING).await?;
        discarded.map_err(|broken| StoreError::Corrupt { key: *key, detail: broken.unreadable.detail })
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        if *counters == Counters::default() {
            return Ok(());
        }
        let left = self.shared().queue.add(line.clone(), *counters);
        self.written(left, COUNTING).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.read_usage(from, to).await.map_err(|failure| failure.while_doing(READING))
    }

    /// Compacts old usage. If the time is over, the finished part stays done.
    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.in_time(self.closed(detail, sums), CLOSING).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.counted().await.map_err(|failure| failure.while_doing(LISTING))
    }
}

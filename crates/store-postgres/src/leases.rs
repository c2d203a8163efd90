//! The leases of limits that nodes hold, by the clock of the server. Each call is one statement, like every other
//! step.

use crate::PostgresStore;
use crate::failure::PostgresError;
use crate::lane::SqlParams;
use crate::row::{self, column};
use async_trait::async_trait;
use quittance_ports::leases::LEASES_FORGOTTEN_AFTER;
use quittance_ports::{LeaseOutcome, LeaseTotal, Leases, StoreError, Version};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

fn amount_of(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn first(rows: &[Row]) -> Result<&Row, PostgresError> {
    rows.first().ok_or_else(|| PostgresError::Garbled("it has no row about the leases".into()))
}

fn read_outcome(rows: &[Row]) -> Result<LeaseOutcome, PostgresError> {
    let row = first(rows)?;
    if let Some(version) = column::<Option<i64>>(row, 0)? {
        return Ok(LeaseOutcome::Done(row::version(version)));
    }
    let (version, by_others) = (row::version(column(row, 1)?), amount_of(column(row, 2)?));
    Ok(LeaseOutcome::Conflict(LeaseTotal { version, by_others }))
}

fn read_leased(rows: &[Row]) -> Result<LeaseTotal, PostgresError> {
    let row = first(rows)?;
    Ok(LeaseTotal { version: row::version(column(row, 0)?), by_others: amount_of(column(row, 1)?) })
}

#[async_trait]
impl Leases for PostgresStore {
    async fn leased(&self, limit: &str, node: u64) -> Result<LeaseTotal, StoreError> {
        let (limit, node) = (limit.as_bytes(), node.cast_signed());
        let params: SqlParams<'_> = &[(&limit, Type::BYTEA), (&node, Type::INT8)];
        let rows = self.shared().ask(&self.shared().statements.leased, params).await;
        let leased = rows.and_then(|rows| read_leased(&rows));
        leased.map_err(|failure| failure.while_doing("reading what is leased"))
    }

    async fn lease(
        &self,
        limit: &str,
        expected: Version,
        node: u64,
        amount: u64,
        life: Duration,
    ) -> Result<LeaseOutcome, StoreError> {
        let (limit, expected, node) = (limit.as_bytes(), expected.0.cast_signed(), node.cast_signed());
        let (amount, life, forgotten_after) =
            (row::count(amount), millis(life), millis(LEASES_FORGOTTEN_AFTER));
        let params: SqlParams<'_> = &[
            (&limit, Type::BYTEA),
            (&expected, Type::INT8),
            (&node, Type::INT8),
            (&amount, Type::INT8),
            (&life, Type::INT8),
            (&forgotten_after, Type::INT8),
        ];
        let rows = self.shared().ask(&self.shared().statements.lease, params).await;
        let outcome = rows.and_then(|rows| read_outcome(&rows));
        outcome.map_err(|failure| failure.while_doing("leasing a part of a limit"))
    }

    async fn give_back(
        &self,
        limit: &str,
        node: u64,
        version: Version,
        amount: u64,
    ) -> Result<(), StoreError> {
        let (limit, node) = (limit.as_bytes(), node.cast_signed());
        let (version, amount) = (version.0.cast_signed(), row::count(amount));
        let params: SqlParams<'_> =
            &[(&limit, Type::BYTEA), (&node, Type::INT8), (&version, Type::INT8), (&amount, Type::INT8)];
        let rows = self.shared().ask(&self.shared().statements.give_back, params).await;
        rows.map(drop).map_err(|failure| failure.while_doing("giving back a part of a lease"))
    }
}

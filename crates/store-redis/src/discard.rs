//! Removes unreadable records on an operator's request. A record is read first, and removed only if it has not
//! changed since. A record that was repaired meanwhile is an order, and a record of a later version is left for that
//! version.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::layout::VERSIONS;
use crate::row::{self, BrokenRecord, FIELDS, RedisFields, RedisRow, read_row};
use quittance_lifecycle::Key;
use redis::Value;

/// How often a record is read again because it changed.
const LOOKS_MAX: usize = 8;

pub(crate) enum DiscardResult {
    /// Whether there was an unreadable record.
    Done(bool),
    /// The record of a later version, which is left for nodes that can read it.
    Later(BrokenRecord),
}

impl RedisInner {
    pub(crate) async fn discard(&self, key: &Key) -> Result<DiscardResult, RedisFailure> {
        for _ in 0..LOOKS_MAX {
            let row = self.row_as_it_is(key).await?;
            let stored = match &row {
                Some(row) => row::read_class(key, row.clone(), None),
                None => RedisRow::Broken(row::not_a_record(key)),
            };
            match stored {
                RedisRow::Whole(_) | RedisRow::Gone => return Ok(DiscardResult::Done(false)),
                RedisRow::Broken(broken) if broken.is_later => return Ok(DiscardResult::Later(broken)),
                RedisRow::Broken(_) => {}
            }
            match &self.strike_off(key, row.as_ref()).await?[..] {
                b"done" => return Ok(DiscardResult::Done(true)),
                b"gone" => return Ok(DiscardResult::Done(false)),
                _ => {}
            }
        }
        Err(RedisFailure::Garbled)
    }

    /// All fields of a record, or `None` if its key holds no record.
    async fn row_as_it_is(&self, key: &Key) -> Result<Option<RedisFields>, RedisFailure> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.layout.record(key)).arg(&FIELDS);
        match self.ask(&command).await {
            Ok(Value::Array(values)) => Ok(Some(read_row(values)?)),
            Ok(_) => Err(RedisFailure::Garbled),
            Err(failure) if failure.is_wrong_type() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn strike_off(&self, key: &Key, row: Option<&RedisFields>) -> Result<Vec<u8>, RedisFailure> {
        let partition = self.layout.partition(key);
        let name = |what| self.layout.name(partition, what);
        let keys = [
            self.layout.record(key),
            name(VERSIONS),
            name("due"),
            name("forget"),
            name("open"),
            name("rest"),
            name("dead"),
            name("stocks"),
            name("tenants"),
        ];
        let (digits, takings) = (key.to_string(), self.layout.takings(partition));
        let of = self.layout.lists_of_tenants(partition);
        let is_hash: &[u8] = if row.is_some() { b"1" } else { b"0" };
        let mut args: Vec<&[u8]> = vec![digits.as_bytes(), takings.as_bytes(), of.as_bytes(), is_hash];
        // What is missing and what is empty are both unreadable, and need no distinction.
        args.extend(row.into_iter().flatten().map(|field| field.as_deref().unwrap_or_default()));
        Ok(self.run(&self.scripts.discard, &keys, &args).await?.word)
    }
}

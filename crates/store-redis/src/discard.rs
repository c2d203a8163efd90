//! Removing what nobody can read, when a person says so. It is read first, and goes only if it still is the same: what was
//! mended meanwhile is an order, and what a later version wrote is left for it.

use crate::Inner;
use crate::row::{self, Broken, FIELDS, Found, Row, read_row};
use crate::trouble::RedisFailure;
use quittance_lifecycle::Key;
use redis::Value;

/// How often it is read again, because somebody has changed it meanwhile.
const LOOKS_MAX: usize = 8;

pub(crate) enum Discarded {
    /// Whether there was one.
    Done(bool),
    /// It is left for whoever can read it.
    Later(Broken),
}

impl Inner {
    pub(crate) async fn discard(&self, key: &Key) -> Result<Discarded, RedisFailure> {
        for _ in 0..LOOKS_MAX {
            let row = self.row_as_it_is(key).await?;
            let found = match &row {
                Some(row) => row::read_class(key, row.clone(), None),
                None => Found::Broken(row::not_a_record(key)),
            };
            match found {
                Found::Whole(_) | Found::Gone => return Ok(Discarded::Done(false)),
                Found::Broken(broken) if broken.is_later => return Ok(Discarded::Later(broken)),
                Found::Broken(_) => {}
            }
            match &self.strike_off(key, row.as_ref()).await?[..] {
                b"done" => return Ok(Discarded::Done(true)),
                b"gone" => return Ok(Discarded::Done(false)),
                _ => {}
            }
        }
        Err(RedisFailure::Garbled)
    }

    /// All that its record says; nothing, if it is no record at all.
    async fn row_as_it_is(&self, key: &Key) -> Result<Option<Row>, RedisFailure> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.layout.record(key)).arg(&FIELDS);
        match self.ask(&command).await {
            Ok(Value::Array(values)) => Ok(Some(read_row(values)?)),
            Ok(_) => Err(RedisFailure::Garbled),
            Err(trouble) if trouble.is_wrong_type() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    async fn strike_off(&self, key: &Key, row: Option<&Row>) -> Result<Vec<u8>, RedisFailure> {
        let partition = self.layout.partition(key);
        let name = |what| self.layout.name(partition, what);
        let keys = [
            self.layout.record(key),
            name("desk"),
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
        // What is missing and what is empty are both unreadable, and need not be told apart.
        args.extend(row.into_iter().flatten().map(|field| field.as_deref().unwrap_or_default()));
        Ok(self.run(&self.scripts.discard, &keys, &args).await?.word)
    }
}

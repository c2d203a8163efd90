//! Compacts the usage of old days: all sites of a row become one, and still older days are forgotten. It works in
//! steps through the fields of a day, in each partition separately, so that other calls do not wait.

use crate::RedisInner;
use crate::commit::ScriptAnswer;
use crate::failure::RedisFailure;
use crate::layout::VERSIONS;
use crate::row::text;
use crate::usage::{keep_until, line_name, read_days, read_field};
use futures_util::future::try_join_all;
use quittance_ports::{Day, UsageRow};
use redis::Value;
use std::collections::BTreeSet;

/// About how many fields one script sums up. Redis serves no other call while it runs.
const FIELDS_AT_ONCE: usize = 256;

/// The field of the sum for a field of a day that is kept in detail. `None` for a field that is a sum or cannot be
/// parsed; it stays.
fn sum_of(day: Day, field: &[u8]) -> Option<String> {
    let (mut line, name) = read_field(day, std::str::from_utf8(field).ok()?)?;
    if line.site == UsageRow::ALL_SITES {
        return None;
    }
    line.site = UsageRow::ALL_SITES.to_owned();
    Some(format!("{}{name}", line_name(&line)))
}

impl RedisInner {
    pub(crate) async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), RedisFailure> {
        try_join_all(self.layout.all().map(|partition| self.close_part(partition, detail, sums))).await?;
        Ok(())
    }

    async fn close_part(&self, partition: u16, detail: Day, sums: Day) -> Result<(), RedisFailure> {
        for day in self.days_to_close(partition, detail, sums).await? {
            if day < sums {
                self.step(partition, day, "forget", &[]).await?;
            } else {
                self.sum_up(partition, day).await?;
            }
        }
        Ok(())
    }

    async fn days_to_close(
        &self,
        partition: u16,
        detail: Day,
        sums: Day,
    ) -> Result<BTreeSet<Day>, RedisFailure> {
        let keys = [VERSIONS, "days", "closed"].map(|what| self.layout.name(partition, what));
        let (detail, sums) = (detail.max(sums).0.to_string(), sums.0.to_string());
        let args = [&b"look"[..], detail.as_bytes(), sums.as_bytes()];
        let ScriptAnswer { rest, .. } = self.run(&self.scripts.close, &keys, &args).await?;
        let mut days = BTreeSet::new();
        for some in rest {
            days.extend(read_days(some)?);
        }
        Ok(days)
    }

    /// Sums up the fields of a day. A field that is added meanwhile is summed up the next time.
    async fn sum_up(&self, partition: u16, day: Day) -> Result<(), RedisFailure> {
        self.step(partition, day, "begin", &[]).await?;
        let mut cursor = b"0".to_vec();
        loop {
            let fields = match self.some_fields(partition, day, &mut cursor).await {
                Ok(fields) => fields,
                // It is no usage at all, and stays as it is until it is forgotten.
                Err(failure) if failure.is_wrong_type() => return Ok(()),
                Err(failure) => return Err(failure),
            };
            let moves: Vec<(Vec<u8>, String)> =
                fields.into_iter().filter_map(|field| sum_of(day, &field).map(|sum| (field, sum))).collect();
            let args: Vec<&[u8]> =
                moves.iter().flat_map(|(field, sum)| [&field[..], sum.as_bytes()]).collect();
            if !args.is_empty() {
                self.step(partition, day, "sum up", &args).await?;
            }
            if cursor == b"0" {
                break;
            }
        }
        self.step(partition, day, "end", &[keep_until(day).as_bytes()]).await
    }

    async fn some_fields(
        &self,
        partition: u16,
        day: Day,
        cursor: &mut Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, RedisFailure> {
        let mut command = redis::cmd("HSCAN");
        command.arg(self.usage_of(partition, day)).arg(&cursor[..]).arg("COUNT").arg(FIELDS_AT_ONCE);
        let Value::Array(record) = self.ask(&command).await? else { return Err(RedisFailure::Garbled) };
        let [next, fields] = <[Value; 2]>::try_from(record).map_err(|_| RedisFailure::Garbled)?;
        *cursor = text(next)?.ok_or(RedisFailure::Garbled)?;
        let Value::Array(fields) = fields else { return Err(RedisFailure::Garbled) };
        // Each is followed by its count, which the script reads for itself.
        fields.into_iter().step_by(2).map(|field| text(field).map(Option::unwrap_or_default)).collect()
    }

    async fn step(&self, partition: u16, day: Day, step: &str, rest: &[&[u8]]) -> Result<(), RedisFailure> {
        let name = |what| self.layout.name(partition, what);
        let keys = [name(VERSIONS), name("days"), name("closed"), self.usage_of(partition, day)];
        let digits = day.0.to_string();
        let mut args = vec![step.as_bytes(), digits.as_bytes()];
        args.extend(rest);
        self.run(&self.scripts.close, &keys, &args).await?;
        Ok(())
    }
}

//! Claims due orders and purges old ones, in all partitions by time. With several partitions it first looks at each,
//! so that the earliest orders of the whole store are taken, not the earliest of each partition.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::layout::{FIRST, VERSIONS, score};
use crate::row::{self, RedisRow, read_row, text};
use futures_util::future::{join_all, try_join_all};
use quittance_lifecycle::{Key, Timestamp};
use quittance_ports::Due;
use redis::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most orders that one script returns or removes. Redis serves no other call while it runs.
const SCRIPT_ORDERS_MAX: usize = 256;

/// When to try again if a part of the store did not answer.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A member of a sorted set with its time.
type Timer = (u64, String);

fn number(value: &Value) -> Result<usize, RedisFailure> {
    match value {
        Value::Int(number) => usize::try_from(*number).map_err(|_| RedisFailure::Garbled),
        _ => Err(RedisFailure::Garbled),
    }
}

/// Parses a score, which Redis sends as the text of a floating-point number.
pub(crate) fn moment(value: Value) -> Result<Option<u64>, RedisFailure> {
    let Some(digits) = text(value)? else { return Ok(None) };
    let digits = std::str::from_utf8(&digits).map_err(|_| RedisFailure::Garbled)?;
    if let Ok(whole) = digits.parse() {
        return Ok(Some(whole));
    }
    let score: f64 = digits.parse().map_err(|_| RedisFailure::Garbled)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "scores are whole, and none is negative"
    )]
    Ok(Some(score as u64))
}

fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// How many of the earliest orders of the store each partition has.
struct DueShares {
    of: BTreeMap<u16, usize>,
    next: Option<u64>,
    /// The error of partitions that could not be read.
    failure: Option<RedisFailure>,
}

/// The orders that one partition has claimed.
struct PartitionClaims {
    next: Option<u64>,
    /// The orders, sorted by their timers from before the claim.
    rows: Vec<(u64, Key, row::RedisFields)>,
}

impl RedisInner {
    /// The first members of a sorted set by time: one more than the limit.
    async fn look(&self, partition: u16, set: &str, limit: usize) -> Result<Vec<Timer>, RedisFailure> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(self.layout.name(partition, set)).arg(0).arg(limit).arg("WITHSCORES");
        let Value::Array(values) = self.ask(&command).await? else { return Err(RedisFailure::Garbled) };
        let mut values = values.into_iter();
        let mut timers = Vec::new();
        while let (Some(member), Some(at)) = (values.next(), values.next()) {
            let member =
                String::from_utf8(text(member)?.unwrap_or_default()).map_err(|_| RedisFailure::Garbled)?;
            timers.push((moment(at)?.ok_or(RedisFailure::Garbled)?, member));
        }
        Ok(timers)
    }

    /// How many of the earliest orders up to `now` each partition has, and the time of the first that is not among
    /// them. Partitions that cannot be read are left out. Fails only if none can be read.
    async fn shares(&self, set: &str, now: u64, limit: usize) -> Result<DueShares, RedisFailure> {
        if self.layout.partitions == 1 {
            return Ok(DueShares { of: BTreeMap::from([(FIRST, limit)]), next: None, failure: None });
        }
        let looks = join_all(self.layout.all().map(|partition| self.look(partition, set, limit))).await;
        let mut timers: Vec<(Timer, u16)> = Vec::new();
        // The first is always read, if for nothing: a store that is closed says so.
        let mut shares = DueShares { of: BTreeMap::from([(FIRST, 0)]), next: None, failure: None };
        let mut answers = 0;
        for (partition, look) in self.layout.all().zip(looks) {
            match look {
                Ok(record) => {
                    answers += 1;
                    timers.extend(record.into_iter().map(|timer| (timer, partition)));
                }
                Err(failure) => shares.failure = Some(failure),
            }
        }
        if let Some(failure) = shares.failure.take_if(|_| answers == 0) {
            return Err(failure);
        }
        timers.sort_unstable();
        for (n, ((at, _), partition)) in timers.into_iter().enumerate() {
            if n >= limit || at > now {
                shares.next = Some(at);
                break;
            }
            *shares.of.entry(partition).or_default() += 1;
        }
        Ok(shares)
    }

    /// Claims due orders. If some servers of a cluster are down, the orders of the others are still claimed.
    pub(crate) async fn claim_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Due, RedisFailure> {
        let limit = limit.min(SCRIPT_ORDERS_MAX);
        let DueShares { of, mut next, mut failure } = self.shares("due", score(now), limit).await?;
        let claims = of.iter().map(|(partition, share)| self.claim(*partition, now, until, *share));
        let (mut record, mut answers) = (Vec::new(), 0);
        for claims in join_all(claims).await {
            match claims {
                Ok(claims) => {
                    answers += 1;
                    next = sooner(next, claims.next);
                    record.extend(claims.rows);
                }
                Err(sealed @ RedisFailure::Sealed(_)) => return Err(sealed),
                Err(other) => failure = Some(other),
            }
        }
        if let Some(failure) = failure {
            if answers == 0 {
                return Err(failure);
            }
            tracing::warn!(%failure, "what is due in a part of the store cannot be claimed");
            next = sooner(next, Some(score(now + LOOK_AGAIN)));
        }
        record.sort_unstable_by_key(|(at, key, _)| (*at, *key));
        let mut due = Due { next: next.map(Timestamp::from_millis), ..Due::default() };
        for (_, key, row) in record {
            match row::read_class(&key, row, None) {
                RedisRow::Whole(versioned) => due.orders.push(versioned),
                RedisRow::Gone => {}
                RedisRow::Broken(broken) => {
                    // If it cannot be set aside now, it is reported again when this claim lapses.
                    if let Err(failure) = self.set_aside(&broken, true).await {
                        tracing::warn!(%failure, key = %broken.key, "it could not be set aside");
                    }
                    due.unreadable.push(broken.unreadable());
                }
            }
        }
        Ok(due)
    }

    async fn claim(
        &self,
        partition: u16,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<PartitionClaims, RedisFailure> {
        let keys = [self.layout.name(partition, VERSIONS), self.layout.name(partition, "due")];
        let (now, until, limit) = (score(now).to_string(), score(until).to_string(), limit.to_string());
        let records = self.layout.records(partition);
        let args = [records.as_bytes(), now.as_bytes(), until.as_bytes(), limit.as_bytes()];
        let answer = self.run(&self.scripts.claim, &keys, &args).await?;
        let mut rest = answer.rest.into_iter();
        let next = rest.next().map(moment).transpose()?.flatten();
        let rows = rest.map(|row| {
            let Value::Array(mut row) = row else { return Err(RedisFailure::Garbled) };
            if row.len() < 2 {
                return Err(RedisFailure::Garbled);
            }
            let fields = row.split_off(2);
            let at = row.pop().map(moment).transpose()?.flatten().ok_or(RedisFailure::Garbled)?;
            let key = row.pop().map(text).transpose()?.flatten().unwrap_or_default();
            let key = std::str::from_utf8(&key).ok().and_then(|key| Key::parse(key).ok());
            Ok((at, key.ok_or(RedisFailure::Garbled)?, read_row(fields)?))
        });
        Ok(PartitionClaims { next, rows: rows.collect::<Result<_, _>>()? })
    }

    pub(crate) async fn purge(&self, now: u64, limit: usize) -> Result<usize, RedisFailure> {
        let mut purged = 0;
        while purged < limit {
            let some = (limit - purged).min(SCRIPT_ORDERS_MAX);
            let DueShares { of, .. } = self.shares("forget", now, some).await?;
            let parts = of.iter().map(|(partition, share)| self.purge_part(*partition, now, *share));
            let mut looked_at = 0;
            for (removed, cleaned) in try_join_all(parts).await? {
                purged += removed;
                looked_at += removed + cleaned;
            }
            if looked_at == 0 {
                break;
            }
        }
        Ok(purged)
    }

    /// Purges orders of one partition. Returns how many were removed, and how many other entries were dropped from
    /// the index.
    async fn purge_part(
        &self,
        partition: u16,
        now: u64,
        limit: usize,
    ) -> Result<(usize, usize), RedisFailure> {
        let name = |what| self.layout.name(partition, what);
        let (now, limit, records) = (now.to_string(), limit.to_string(), self.layout.records(partition));
        let takings = self.layout.takings(partition);
        let of = self.layout.lists_of_tenants(partition);
        let args = [records.as_bytes(), now.as_bytes(), limit.as_bytes(), takings.as_bytes(), of.as_bytes()];
        let keys =
            [name(VERSIONS), name("forget"), name("open"), name("rest"), name("dead"), name("tenants")];
        let answer = self.run(&self.scripts.purge, &keys, &args).await?;
        let [removed, cleaned] = <[Value; 2]>::try_from(answer.rest).map_err(|_| RedisFailure::Garbled)?;
        Ok((number(&removed)?, number(&cleaned)?))
    }
}

//! The calls that write, and the read of one order.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::layout::VERSIONS;
use crate::row::{
    self, BrokenRecord, FIELDS, RedisFields, RedisMarks, RedisRow, read_row, read_version, text,
};
use crate::scripts::Lua;
use crate::usage::{GRACE_MS, UsageEntry, line_name};
use quittance_lifecycle::{Counters, Key, Order, Timestamp};
use quittance_ports::{Day, UsageRow, Version};
use quittance_record::{encode_order, encode_terms};
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;

/// How long after its purge time an order expires, if it was not purged.
pub(crate) const EXPIRY_GRACE_MS: &[u8] = b"3600000";

pub(crate) enum CommitResult {
    Done(Version),
    Lost(RedisRow),
}

/// The reply of a script: a word, and values.
pub(crate) struct ScriptAnswer {
    pub(crate) word: Vec<u8>,
    pub(crate) rest: Vec<Value>,
}

impl RedisInner {
    /// Runs a script, with the common handling of a sealed store.
    pub(crate) async fn run(
        &self,
        script: &Lua,
        keys: &[impl AsRef<str> + Sync],
        args: &[&[u8]],
    ) -> Result<ScriptAnswer, RedisFailure> {
        let Value::Array(values) = self.run_plain(script, keys, args).await? else {
            return Err(RedisFailure::Garbled);
        };
        let mut values = values.into_iter();
        let word = values.next().map(text).transpose()?.flatten().ok_or(RedisFailure::Garbled)?;
        let answer = ScriptAnswer { word, rest: values.collect() };
        if answer.word == b"sealed" {
            let note = answer.rest.into_iter().next().map(text).transpose()?.flatten().unwrap_or_default();
            return Err(RedisFailure::Sealed(String::from_utf8_lossy(&note).into_owned()));
        }
        if answer.word == b"forgot" {
            return Err(RedisFailure::Forgot);
        }
        Ok(answer)
    }

    pub(crate) async fn run_plain(
        &self,
        script: &Lua,
        keys: &[impl AsRef<str> + Sync],
        args: &[&[u8]],
    ) -> Result<Value, RedisFailure> {
        match self.ask(&script.known(keys, args)).await {
            Err(failure) if failure.is_unknown_script() => self.ask(&script.in_full(keys, args)).await,
            answer => answer,
        }
    }

    pub(crate) async fn find(&self, key: &Key) -> Result<RedisRow, RedisFailure> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.layout.record(key)).arg(&FIELDS);
        match self.ask(&command).await {
            Ok(Value::Array(values)) => Ok(row::read(key, read_row(values)?, None)),
            Ok(_) => Err(RedisFailure::Garbled),
            Err(failure) if failure.is_wrong_type() => Ok(RedisRow::Broken(row::not_a_record(key))),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn commit(
        &self,
        expected: Version,
        next: &Order,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<CommitResult, RedisFailure> {
        let terms = encode_terms(&next.terms);
        // They can be a picture of a megabyte, and seldom change: a write over a record first sends only their
        // checksum.
        let is_new = expected == Version::ABSENT;
        match self.send_commit(expected, next, (&terms, is_new), counters, at).await? {
            Some(outcome) => Ok(outcome),
            None => self
                .send_commit(expected, next, (&terms, true), counters, at)
                .await?
                .ok_or(RedisFailure::Garbled),
        }
    }

    /// Sends a commit. `None` if the script needs the terms, which were not sent.
    async fn send_commit(
        &self,
        expected: Version,
        next: &Order,
        (terms, with_terms): (&[u8], bool),
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Option<CommitResult>, RedisFailure> {
        let key = next.key.to_string();
        let partition = self.layout.partition(&next.key);
        let (entry, line) = (UsageEntry::new(Day::of(at), counters), line_name(&UsageRow::of(next, at)));
        let record_name = self.layout.record(&next.key);
        let usage = self.layout.name(partition, format_args!("usage:{}", entry.day));
        let [versions, due, forget, open, rest, dead, stocks, days, tenants, identity] =
            self.layout.of_a_commit(partition);
        let keys: [&str; 12] =
            [&record_name, versions, due, forget, open, rest, dead, stocks, days, &usage, tenants, identity];
        let (marks, takings) = (RedisMarks::of(next), self.layout.takings(partition));
        let lists_of_tenants = self.layout.lists_of_tenants(partition);
        let expected = expected.0.to_string();
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let by = self.own.mark(number);
        let record = encode_order(next);
        let sum = Sha256::digest(terms);
        let (known, known_epoch) = self.known();
        let mut args: Vec<&[u8]> = vec![
            expected.as_bytes(),
            key.as_bytes(),
            by.as_bytes(),
            &record,
            if with_terms { terms } else { b"" },
            &sum,
            marks.due.as_bytes(),
            marks.forget.as_bytes(),
            marks.stock.as_bytes(),
            marks.once_taken.as_bytes(),
            marks.taker.as_bytes(),
            takings.as_bytes(),
            marks.class.as_bytes(),
            marks.awaited.as_bytes(),
            self.channel.as_bytes(),
            EXPIRY_GRACE_MS,
            line.as_bytes(),
            entry.day.as_bytes(),
            entry.keep_until.as_bytes(),
            lists_of_tenants.as_bytes(),
            next.terms.tenant.as_bytes(),
            &known,
            known_epoch.as_bytes(),
        ];
        args.extend(entry.args());
        let answer = match self.run(&self.scripts.commit, &keys, &args).await {
            Err(failure) if failure.is_wrong_type() => {
                return Ok(Some(CommitResult::Lost(RedisRow::Broken(row::not_a_record(&next.key)))));
            }
            answer => answer?,
        };
        let outcome = read_commit(next, terms, answer)?;
        if matches!(outcome, Some(CommitResult::Done(_)))
            && !next.is_awaited()
            && self.own.is_first_word(number)
        {
            self.watchers.wake(&next.key);
        }
        Ok(outcome)
    }

    /// Puts an unreadable record among the dead letters, for an operator. A record of a later version is left alone,
    /// because other nodes can read it.
    pub(crate) async fn set_aside(
        &self,
        broken: &BrokenRecord,
        is_reported: bool,
    ) -> Result<(), RedisFailure> {
        if broken.is_later {
            return Ok(());
        }
        tracing::warn!(key = %broken.key, detail = broken.detail, "a record cannot be read");
        let partition = self.layout.partition(&broken.key);
        let name = |what| self.layout.name(partition, what);
        let keys = [
            self.layout.record(&broken.key),
            name("due"),
            name("forget"),
            name("open"),
            name("rest"),
            name("dead"),
            name("stocks"),
            name("tenants"),
        ];
        let (key, of) = (broken.key.to_string(), self.layout.lists_of_tenants(partition));
        let is_reported: &[u8] = if is_reported { b"1" } else { b"0" };
        let args: [&[u8]; 4] = [key.as_bytes(), &broken.version, is_reported, of.as_bytes()];
        self.run_plain(&self.scripts.set_aside, &keys, &args).await?;
        Ok(())
    }

    pub(crate) async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), RedisFailure> {
        let partition = self.layout.partition_of_line(line);
        let (entry, name) = (UsageEntry::new(line.day, counters), line_name(line));
        let keys = [
            self.layout.name(partition, VERSIONS),
            self.layout.name(partition, "days"),
            self.layout.name(partition, format_args!("usage:{}", entry.day)),
        ];
        let mut args: Vec<&[u8]> =
            vec![name.as_bytes(), entry.day.as_bytes(), entry.keep_until.as_bytes(), GRACE_MS];
        args.extend(entry.args());
        self.run(&self.scripts.count, &keys, &args).await?;
        Ok(())
    }
}

fn read_commit(
    next: &Order,
    terms: &[u8],
    answer: ScriptAnswer,
) -> Result<Option<CommitResult>, RedisFailure> {
    match &answer.word[..] {
        b"terms" => Ok(None),
        b"broken" => Ok(Some(CommitResult::Lost(row::read_class(&next.key, RedisFields::default(), None)))),
        b"conflict" => {
            let known = Some((terms, &next.terms));
            Ok(Some(CommitResult::Lost(row::read(&next.key, read_row(answer.rest)?, known))))
        }
        b"done" => {
            let version = answer.rest.into_iter().next().map(text).transpose()?.flatten();
            let version = version.as_deref().and_then(read_version).ok_or(RedisFailure::Garbled)?;
            Ok(Some(CommitResult::Done(version)))
        }
        _ => Err(RedisFailure::Garbled),
    }
}

//! Takes answers from a stock. A node that cannot read an answer puts it back and takes the next. With several
//! partitions a stock is spread over all of them. A look at each shows whether the claimant has an answer already,
//! and which answer expires first. If one claimant takes at two nodes at the same instant while others take too, it
//! may get one answer from each, but never another claimant's.

use crate::RedisInner;
use crate::commit::{EXPIRY_GRACE_MS, ScriptAnswer};
use crate::failure::RedisFailure;
use crate::layout::{FIRST, VERSIONS, stock_range_from, taker_mark};
use crate::row::{self, BrokenRecord, RedisRow, read_row, text};
use crate::usage::UsageEntry;
use futures_util::future::try_join_all;
use quittance_lifecycle::{Counters, Key, Target, Timestamp};
use quittance_ports::{Day, Versioned};
use redis::Value;

/// How often all partitions are looked at. If others are faster every time, the stock counts as empty.
const LOOKS_MAX: usize = 4;

/// A claimant and a stock, as arguments of the scripts.
pub(crate) struct RedisTake {
    taker: String,
    from: String,
    to: String,
    at: String,
    entry: UsageEntry,
}

impl RedisTake {
    pub(crate) fn new(
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Self {
        let (from, to) = stock_range_from(target, good_until);
        let at_ms = at.as_millis().to_string();
        Self {
            taker: taker_mark(target, by),
            from,
            to,
            at: at_ms,
            entry: UsageEntry::new(Day::of(at), counters),
        }
    }
}

/// The part of a stock to take from, and how.
#[derive(Clone, Copy)]
struct StockReach<'a> {
    from: &'a str,
    to: &'a str,
    only_look: bool,
    /// Whether answers that this claimant already took are passed over.
    skips_own: bool,
}

/// The reply of one partition to a take.
enum TakeReply {
    Nothing,
    /// The first entry of the stock, for a call that only looks.
    There(String),
    Whole(Versioned),
    /// The claimant already took an answer, and its record cannot be read.
    OwnAnswerBroken,
    Broken(BrokenRecord, Undo),
}

/// The index entries of a record before its answer was taken, to undo the take.
struct Undo {
    member: Vec<u8>,
    due: Vec<u8>,
    forget: Vec<u8>,
}

impl RedisInner {
    pub(crate) async fn take(&self, request: &RedisTake) -> Result<Option<Versioned>, RedisFailure> {
        if self.layout.partitions == 1 {
            return self.take_from(FIRST, request, &request.to, false).await;
        }
        let mut skips_own = false;
        for look in 0..LOOKS_MAX {
            let heads = match self.look_along(request, skips_own).await? {
                Along::OwnAnswer(own) => return Ok(Some(own)),
                Along::OwnAnswerBroken => {
                    skips_own = true;
                    continue;
                }
                Along::Heads(heads) => heads,
            };
            if heads.is_empty() {
                return Ok(None);
            }
            for (n, (_, partition)) in heads.iter().enumerate() {
                // Not beyond what stands first elsewhere; but a taker that was too late everywhere takes any.
                let next = heads.get(n + 1).filter(|_| look == 0).map(|(member, _)| format!("({member}"));
                let to = next.as_ref().unwrap_or(&request.to);
                let taken = self.take_from(*partition, request, to, skips_own).await?;
                if taken.is_some() {
                    return Ok(taken);
                }
            }
        }
        Ok(None)
    }

    /// Looks at all partitions. Fails if one does not answer, because it may have the claimant's own answer.
    async fn look_along(&self, request: &RedisTake, skips_own: bool) -> Result<Along, RedisFailure> {
        let reach = StockReach { from: &request.from, to: &request.to, only_look: true, skips_own };
        let looks = self.layout.all().map(|partition| self.ask_stock(partition, request, reach));
        let mut heads = Vec::new();
        for (partition, handed) in self.layout.all().zip(try_join_all(looks).await?) {
            match handed {
                TakeReply::Nothing => {}
                TakeReply::There(member) => heads.push((member, partition)),
                TakeReply::Whole(own) => return Ok(Along::OwnAnswer(own)),
                TakeReply::OwnAnswerBroken => return Ok(Along::OwnAnswerBroken),
                TakeReply::Broken(..) => return Err(RedisFailure::Garbled),
            }
        }
        heads.sort_unstable();
        Ok(Along::Heads(heads))
    }

    async fn take_from(
        &self,
        partition: u16,
        request: &RedisTake,
        to: &str,
        mut skips_own: bool,
    ) -> Result<Option<Versioned>, RedisFailure> {
        let mut from = request.from.clone();
        loop {
            let reach = StockReach { from: &from, to, only_look: false, skips_own };
            match self.ask_stock(partition, request, reach).await? {
                TakeReply::Nothing => return Ok(None),
                TakeReply::There(_) => return Err(RedisFailure::Garbled),
                TakeReply::Whole(versioned) => return Ok(Some(versioned)),
                TakeReply::OwnAnswerBroken => skips_own = true,
                TakeReply::Broken(broken, undo) => {
                    self.untake(partition, request, &broken, &undo).await?;
                    self.set_aside(&broken, false).await?;
                    from = format!("({}", String::from_utf8_lossy(&undo.member));
                }
            }
        }
    }

    async fn ask_stock(
        &self,
        partition: u16,
        request: &RedisTake,
        reach: StockReach<'_>,
    ) -> Result<TakeReply, RedisFailure> {
        let RedisTake { taker, at, entry, .. } = request;
        let name = |what| self.layout.name(partition, what);
        let usage = self.layout.name(partition, format_args!("usage:{}", entry.day));
        let keys = [name(VERSIONS), name("due"), name("forget"), name("stocks"), name("days"), usage];
        let (records, takings) = (self.layout.records(partition), self.layout.takings(partition));
        let flag = |is_set: bool| if is_set { &b"1"[..] } else { b"0" };
        let mut args: Vec<&[u8]> = vec![
            records.as_bytes(),
            takings.as_bytes(),
            taker.as_bytes(),
            reach.from.as_bytes(),
            reach.to.as_bytes(),
            flag(reach.only_look),
            flag(reach.skips_own),
            at.as_bytes(),
            EXPIRY_GRACE_MS,
            entry.day.as_bytes(),
            entry.keep_until.as_bytes(),
        ];
        args.extend(entry.args());
        read_handed(self.run(&self.scripts.take, &keys, &args).await?)
    }

    async fn untake(
        &self,
        partition: u16,
        request: &RedisTake,
        broken: &BrokenRecord,
        undo: &Undo,
    ) -> Result<(), RedisFailure> {
        let name = |what| self.layout.name(partition, what);
        let usage = self.layout.name(partition, format_args!("usage:{}", request.entry.day));
        let keys = [self.layout.record(&broken.key), name("due"), name("forget"), name("stocks"), usage];
        let (key, takings) = (broken.key.to_string(), self.layout.takings(partition));
        let Undo { member, due, forget } = undo;
        let mut args: Vec<&[u8]> =
            vec![key.as_bytes(), &broken.version, member, due, forget, EXPIRY_GRACE_MS, takings.as_bytes()];
        args.extend(request.entry.args());
        self.run_plain(&self.scripts.untake, &keys, &args).await?;
        Ok(())
    }
}

/// The result of a look at all partitions.
enum Along {
    OwnAnswer(Versioned),
    OwnAnswerBroken,
    /// The first entry of each partition that has one, sorted by expiry.
    Heads(Vec<(String, u16)>),
}

fn read_handed(answer: ScriptAnswer) -> Result<TakeReply, RedisFailure> {
    let ScriptAnswer { word, mut rest } = answer;
    if word == b"none" {
        return Ok(TakeReply::Nothing);
    }
    let mut row = rest.split_off(1.min(rest.len()));
    let name = String::from_utf8(read_text(rest.pop())?).map_err(|_| RedisFailure::Garbled)?;
    if word == b"there" {
        return Ok(TakeReply::There(name));
    }
    let key = Key::parse(&name).map_err(|_| RedisFailure::Garbled)?;
    let before = row.split_off(row::FIELDS.len().min(row.len()));
    match (&word[..], row::read_class(&key, read_row(row)?, None)) {
        (b"own" | b"taken", RedisRow::Whole(versioned)) => Ok(TakeReply::Whole(versioned)),
        (b"own", RedisRow::Broken(_)) => Ok(TakeReply::OwnAnswerBroken),
        (b"taken", RedisRow::Broken(broken)) => {
            let mut before = before.into_iter();
            let mut next = || read_text(before.next());
            let undo = Undo { member: next()?, due: next()?, forget: next()? };
            Ok(TakeReply::Broken(broken, undo))
        }
        _ => Err(RedisFailure::Garbled),
    }
}

fn read_text(value: Option<Value>) -> Result<Vec<u8>, RedisFailure> {
    value.map(text).transpose()?.flatten().ok_or(RedisFailure::Garbled)
}

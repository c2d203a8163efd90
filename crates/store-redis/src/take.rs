//! Giving away what stands on a stock. Whoever finds that he cannot read what he was given puts it back and takes the next.
//! With more than one partition a stock is spread over all of them: a look at each tells whether the taker has one
//! already, and where the soonest to expire stands. If he asks at two nodes in the same instant, and others take from the
//! same stock just then, he may be given one by each: never the same as somebody else.

use crate::Inner;
use crate::commit::{Answer, EXPIRY_GRACE_MS};
use crate::layout::{FIRST, stock_range_from, taker_mark};
use crate::row::{self, Broken, Found, read_row, text};
use crate::trouble::RedisFailure;
use crate::usage::Entry;
use futures_util::future::try_join_all;
use quittance_lifecycle::{Counters, Key, Target, Timestamp};
use quittance_ports::{Day, Versioned};
use redis::Value;

/// How often all partitions are looked at. Each time others were quicker everywhere, and a stock that so many take from
/// may as well be empty.
const LOOKS_MAX: usize = 4;

/// Who wants something from which stock, as the scripts want it.
pub(crate) struct TakeRequest {
    taker: String,
    from: String,
    to: String,
    at: String,
    entry: Entry,
}

impl TakeRequest {
    pub(crate) fn new(
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Self {
        let (from, to) = stock_range_from(target, good_until);
        let at_ms = at.as_millis().to_string();
        Self { taker: taker_mark(target, by), from, to, at: at_ms, entry: Entry::new(Day::of(at), counters) }
    }
}

/// Which part of a stock to take from, and how.
#[derive(Clone, Copy)]
struct Reach<'a> {
    from: &'a str,
    to: &'a str,
    only_look: bool,
    /// What the taker has already is known, and does not count.
    passes_his_over: bool,
}

/// What a partition answered.
enum Handed {
    Nothing,
    /// How the first stands there, for whoever only looks.
    There(String),
    Whole(Versioned),
    /// What he has already cannot be read.
    HisBroken,
    Broken(Broken, Undo),
}

/// What stood beside a record before it was taken.
struct Undo {
    member: Vec<u8>,
    due: Vec<u8>,
    forget: Vec<u8>,
}

impl Inner {
    pub(crate) async fn take(&self, wish: &TakeRequest) -> Result<Option<Versioned>, RedisFailure> {
        if self.layout.partitions == 1 {
            return self.take_from(FIRST, wish, &wish.to, false).await;
        }
        let mut passes_his_over = false;
        for look in 0..LOOKS_MAX {
            let heads = match self.look_along(wish, passes_his_over).await? {
                Along::His(his) => return Ok(Some(his)),
                Along::HisBroken => {
                    passes_his_over = true;
                    continue;
                }
                Along::Heads(heads) => heads,
            };
            if heads.is_empty() {
                return Ok(None);
            }
            for (n, (_, partition)) in heads.iter().enumerate() {
                // Not beyond what stands first elsewhere; but whoever has been too late everywhere is not that choosy.
                let next = heads.get(n + 1).filter(|_| look == 0).map(|(member, _)| format!("({member}"));
                let to = next.as_ref().unwrap_or(&wish.to);
                let taken = self.take_from(*partition, wish, to, passes_his_over).await?;
                if taken.is_some() {
                    return Ok(taken);
                }
            }
        }
        Ok(None)
    }

    /// A partition that does not answer may have what is his, so then there is no answer at all.
    async fn look_along(&self, wish: &TakeRequest, passes_his_over: bool) -> Result<Along, RedisFailure> {
        let reach = Reach { from: &wish.from, to: &wish.to, only_look: true, passes_his_over };
        let looks = self.layout.all().map(|partition| self.ask_stock(partition, wish, reach));
        let mut heads = Vec::new();
        for (partition, handed) in self.layout.all().zip(try_join_all(looks).await?) {
            match handed {
                Handed::Nothing => {}
                Handed::There(member) => heads.push((member, partition)),
                Handed::Whole(his) => return Ok(Along::His(his)),
                Handed::HisBroken => return Ok(Along::HisBroken),
                Handed::Broken(..) => return Err(RedisFailure::Garbled),
            }
        }
        heads.sort_unstable();
        Ok(Along::Heads(heads))
    }

    async fn take_from(
        &self,
        partition: u16,
        wish: &TakeRequest,
        to: &str,
        mut passes_his_over: bool,
    ) -> Result<Option<Versioned>, RedisFailure> {
        let mut from = wish.from.clone();
        loop {
            let reach = Reach { from: &from, to, only_look: false, passes_his_over };
            match self.ask_stock(partition, wish, reach).await? {
                Handed::Nothing => return Ok(None),
                Handed::There(_) => return Err(RedisFailure::Garbled),
                Handed::Whole(versioned) => return Ok(Some(versioned)),
                Handed::HisBroken => passes_his_over = true,
                Handed::Broken(broken, undo) => {
                    self.untake(partition, wish, &broken, &undo).await?;
                    self.set_aside(&broken, false).await?;
                    from = format!("({}", String::from_utf8_lossy(&undo.member));
                }
            }
        }
    }

    async fn ask_stock(
        &self,
        partition: u16,
        wish: &TakeRequest,
        reach: Reach<'_>,
    ) -> Result<Handed, RedisFailure> {
        let TakeRequest { taker, at, entry, .. } = wish;
        let name = |what| self.layout.name(partition, what);
        let usage = self.layout.name(partition, format_args!("usage:{}", entry.day));
        let keys = [name("desk"), name("due"), name("forget"), name("stocks"), name("days"), usage];
        let (records, takings) = (self.layout.records(partition), self.layout.takings(partition));
        let flag = |is_set: bool| if is_set { &b"1"[..] } else { b"0" };
        let mut args: Vec<&[u8]> = vec![
            records.as_bytes(),
            takings.as_bytes(),
            taker.as_bytes(),
            reach.from.as_bytes(),
            reach.to.as_bytes(),
            flag(reach.only_look),
            flag(reach.passes_his_over),
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
        wish: &TakeRequest,
        broken: &Broken,
        undo: &Undo,
    ) -> Result<(), RedisFailure> {
        let name = |what| self.layout.name(partition, what);
        let usage = self.layout.name(partition, format_args!("usage:{}", wish.entry.day));
        let keys = [self.layout.record(&broken.key), name("due"), name("forget"), name("stocks"), usage];
        let (key, takings) = (broken.key.to_string(), self.layout.takings(partition));
        let Undo { member, due, forget } = undo;
        let mut args: Vec<&[u8]> =
            vec![key.as_bytes(), &broken.version, member, due, forget, EXPIRY_GRACE_MS, takings.as_bytes()];
        args.extend(wish.entry.args());
        self.run_plain(&self.scripts.untake, &keys, &args).await?;
        Ok(())
    }
}

/// What a look at all partitions says.
enum Along {
    His(Versioned),
    HisBroken,
    /// How the first of each partition that has one stands there, soonest to expire first.
    Heads(Vec<(String, u16)>),
}

fn read_handed(answer: Answer) -> Result<Handed, RedisFailure> {
    let Answer { word, mut rest } = answer;
    if word == b"none" {
        return Ok(Handed::Nothing);
    }
    let mut row = rest.split_off(1.min(rest.len()));
    let name = String::from_utf8(read_text(rest.pop())?).map_err(|_| RedisFailure::Garbled)?;
    if word == b"there" {
        return Ok(Handed::There(name));
    }
    let key = Key::parse(&name).map_err(|_| RedisFailure::Garbled)?;
    let before = row.split_off(row::FIELDS.len().min(row.len()));
    match (&word[..], row::read_class(&key, read_row(row)?, None)) {
        (b"his" | b"taken", Found::Whole(versioned)) => Ok(Handed::Whole(versioned)),
        (b"his", Found::Broken(_)) => Ok(Handed::HisBroken),
        (b"taken", Found::Broken(broken)) => {
            let mut before = before.into_iter();
            let mut next = || read_text(before.next());
            let undo = Undo { member: next()?, due: next()?, forget: next()? };
            Ok(Handed::Broken(broken, undo))
        }
        _ => Err(RedisFailure::Garbled),
    }
}

fn read_text(value: Option<Value>) -> Result<Vec<u8>, RedisFailure> {
    value.map(text).transpose()?.flatten().ok_or(RedisFailure::Garbled)
}

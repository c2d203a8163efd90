//! How an order is written, without its terms. The terms can be large and change only with a new life, but this part
//! is written at every step.

use crate::VERSION;
use crate::attempt::AttemptRecord;
use crate::attempt_account::HeldOffRecord;
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, need, need_digest, need_moment, parse, read_key,
    read_priority, unless_default, write, write_priority,
};
use crate::follow_up::WebhookRecord;
use crate::phase::PhaseRecord;
use crate::timeline::EntryRecord;
use quittance_lifecycle::{Attempt, Key, Order, Signal, Terms, Timeline, TimelineEntry, Timestamp, Webhook};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

mirror! { OrderRecord<'a> {
    v: u64,
    key: Text<'a>,
    priority: Text<'a>,
    born: u64,
    life: u32,
    placed: u64,
    deadline: u64,
    wanted: bool,
    uncollected: bool,
    phase: PhaseRecord<'a>,
    attempts: Vec<AttemptRecord<'a>>,
    last_attempt: u32,
    retries: BTreeMap<Text<'a>, u8>,
    life_attempts: u32,
    possible_doubles: u32,
    timeline: Vec<EntryRecord<'a>>,
    timeline_left_out: u32,
    webhooks: Vec<WebhookRecord<'a>>,
    last_webhook: u32,
    put_back: u64,
    steps_lost: bool,
    followed_by: Text<'a>,
    used_up: Vec<Text<'a>>,
    held_off: HeldOffRecord<'a>,
    booked_on: u32,
} }

/// Writes an order without its terms, which [`encode_terms`](crate::encode_terms) writes.
#[must_use]
pub fn encode_order(order: &Order) -> Vec<u8> {
    let Order {
        key,
        priority,
        terms: _,
        born,
        life,
        placed,
        deadline,
        wanted,
        uncollected,
        phase,
        attempts,
        last_attempt,
        retries,
        life_attempts,
        possible_doubles,
        webhooks,
        last_webhook,
        put_back,
        steps_lost,
        followed_by,
        used_up,
        held_off,
        booked_on,
        timeline: Timeline { entries, left_out },
    } = order;
    write(&OrderRecord {
        v: Some(VERSION),
        key: digest(key.0),
        priority: write_priority(*priority),
        born: moment(*born),
        life: Some(*life),
        placed: moment(*placed),
        deadline: moment(*deadline),
        wanted: Some(*wanted),
        uncollected: unless_default(*uncollected),
        phase: Some(PhaseRecord::of(phase)),
        attempts: Some(attempts.iter().map(AttemptRecord::of).collect()),
        last_attempt: Some(*last_attempt),
        retries: unless_default(write_retries(retries)),
        life_attempts: unless_default(*life_attempts),
        possible_doubles: unless_default(*possible_doubles),
        timeline: (!entries.is_empty()).then(|| entries.iter().map(EntryRecord::of).collect()),
        timeline_left_out: unless_default(*left_out),
        webhooks: (!webhooks.is_empty()).then(|| webhooks.iter().map(WebhookRecord::of).collect()),
        last_webhook: unless_default(*last_webhook),
        put_back: put_back.and_then(moment),
        steps_lost: unless_default(*steps_lost),
        followed_by: followed_by.and_then(|key| digest(key.0)),
        used_up: (!used_up.is_empty()).then(|| used_up.iter().map(|account| Cow::from(&**account)).collect()),
        held_off: held_off.as_ref().map(HeldOffRecord::of),
        booked_on: *booked_on,
    })
}

/// Reads an order. `terms` must be those of the life that the record is about, because the record does not contain
/// them.
pub fn decode_order(bytes: &[u8], terms: Arc<Terms>) -> Result<Order, RecordError> {
    let record: OrderRecord<'_> = parse(bytes)?;
    Ok(Order {
        key: Key(need_digest(record.key, "key")?),
        priority: read_priority(record.priority)?,
        terms,
        born: need_moment(record.born, "born")?,
        life: need(record.life, "life")?,
        placed: need_moment(record.placed, "placed")?,
        deadline: need_moment(record.deadline, "deadline")?,
        wanted: need(record.wanted, "wanted")?,
        uncollected: record.uncollected.unwrap_or_default(),
        phase: PhaseRecord::read(record.phase)?,
        attempts: read_attempts(need(record.attempts, "attempts")?)?,
        last_attempt: need(record.last_attempt, "last_attempt")?,
        retries: read_retries(record.retries.unwrap_or_default())?,
        life_attempts: record.life_attempts.unwrap_or_default(),
        possible_doubles: record.possible_doubles.unwrap_or_default(),
        webhooks: read_webhooks(record.webhooks.unwrap_or_default())?,
        last_webhook: record.last_webhook.unwrap_or_default(),
        put_back: record.put_back.map(Timestamp::from_millis),
        steps_lost: record.steps_lost.unwrap_or_default(),
        followed_by: read_key(record.followed_by, "followed_by")?,
        used_up: record.used_up.unwrap_or_default().into_iter().map(Cow::into_owned).collect(),
        held_off: record.held_off.map(HeldOffRecord::read).transpose().within("held_off")?,
        booked_on: record.booked_on,
        timeline: Timeline {
            entries: read_entries(record.timeline.unwrap_or_default())?,
            left_out: record.timeline_left_out.unwrap_or_default(),
        },
    })
}

pub(crate) fn read_attempts(record: Vec<AttemptRecord<'_>>) -> Result<Vec<Attempt>, RecordError> {
    let read = |(index, attempt): (usize, AttemptRecord<'_>)| attempt.read().within_item("attempts", index);
    record.into_iter().enumerate().map(read).collect()
}

fn read_webhooks(record: Vec<WebhookRecord<'_>>) -> Result<Vec<Webhook>, RecordError> {
    let read = |(index, webhook): (usize, WebhookRecord<'_>)| webhook.read().within_item("webhooks", index);
    record.into_iter().enumerate().map(read).collect()
}

fn read_entries(record: Vec<EntryRecord<'_>>) -> Result<Vec<TimelineEntry>, RecordError> {
    let read = |(index, entry): (usize, EntryRecord<'_>)| entry.read().within_item("timeline", index);
    record.into_iter().enumerate().map(read).collect()
}

/// Writes retries by class name and not by position, so that a new class moves nothing.
fn write_retries<'a>(retries: &[u8; Signal::ALL.len()]) -> BTreeMap<Text<'a>, u8> {
    let count = |signal: Signal| unless_default(retries[signal.index()]);
    Signal::ALL
        .into_iter()
        .filter_map(|signal| Some((Cow::Borrowed(signal.name_on_record()), count(signal)?)))
        .collect()
}

/// Reads retries. An unknown class is an error: if its count were dropped, its limit would begin again.
fn read_retries(record: BTreeMap<Text<'_>, u8>) -> Result<[u8; Signal::ALL.len()], RecordError> {
    let mut retries = [0; Signal::ALL.len()];
    for (name, count) in record {
        retries[Signal::read(Some(name), "retries")?.index()] = count;
    }
    Ok(retries)
}

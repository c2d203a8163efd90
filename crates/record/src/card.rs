//! How a node's card is written. What a reader does not know is passed over, so that nodes of two versions see each other.

use crate::VERSION;
use crate::error::RecordError;
use crate::fields::{Text, mirror, moment, need, need_moment, need_stamp, need_text, parse, stamp, text, write};
use quittance_ports::{Card, Vitals};

mirror! { CardRecord<'a> {
    v: u64,
    node: Text<'a>,
    name: Text<'a>,
    version: Text<'a>,
    format: u64,
    started: u64,
    at: u64,
    skew_ms: i64,
    vitals: VitalsRecord,
} }

mirror! { VitalsRecord {
    placed: u64,
    joined: u64,
    attended: u64,
    submitted: u64,
    polled: u64,
    answered: u64,
    in_hand: u64,
    store_errors: u64,
    unreadable: u64,
    panics: u64,
    is_paused: bool,
    store_was_away: bool,
    has_spilled: bool,
} }

#[must_use]
pub fn encode_card(card: &Card) -> Vec<u8> {
    let Card { node, name, version, format, started, at, skew_ms, vitals } = card;
    write(&CardRecord {
        v: Some(VERSION),
        node: stamp(*node),
        name: text(name),
        version: text(version),
        format: Some(*format),
        started: moment(*started),
        at: moment(*at),
        skew_ms: *skew_ms,
        vitals: Some(write_vitals(vitals)),
    })
}

pub fn decode_card(bytes: &[u8]) -> Result<Card, RecordError> {
    let found: CardRecord<'_> = parse(bytes)?;
    Ok(Card {
        node: need_stamp(found.node, "node")?,
        name: need_text(found.name, "name")?,
        version: need_text(found.version, "version")?,
        format: need(found.format, "format")?,
        started: need_moment(found.started, "started")?,
        at: need_moment(found.at, "at")?,
        skew_ms: found.skew_ms,
        vitals: read_vitals(&found.vitals.unwrap_or_default()),
    })
}

fn write_vitals(vitals: &Vitals) -> VitalsRecord {
    VitalsRecord {
        placed: Some(vitals.placed),
        joined: Some(vitals.joined),
        attended: Some(vitals.attended),
        submitted: Some(vitals.submitted),
        polled: Some(vitals.polled),
        answered: Some(vitals.answered),
        in_hand: Some(vitals.in_hand),
        store_errors: Some(vitals.store_errors),
        unreadable: Some(vitals.unreadable),
        panics: Some(vitals.panics),
        is_paused: Some(vitals.is_paused),
        store_was_away: Some(vitals.store_was_away),
        has_spilled: Some(vitals.has_spilled),
    }
}

/// What another version does not count is nothing.
fn read_vitals(found: &VitalsRecord) -> Vitals {
    Vitals {
        placed: found.placed.unwrap_or_default(),
        joined: found.joined.unwrap_or_default(),
        attended: found.attended.unwrap_or_default(),
        submitted: found.submitted.unwrap_or_default(),
        polled: found.polled.unwrap_or_default(),
        answered: found.answered.unwrap_or_default(),
        in_hand: found.in_hand.unwrap_or_default(),
        store_errors: found.store_errors.unwrap_or_default(),
        unreadable: found.unreadable.unwrap_or_default(),
        panics: found.panics.unwrap_or_default(),
        is_paused: found.is_paused.unwrap_or_default(),
        store_was_away: found.store_was_away.unwrap_or_default(),
        has_spilled: found.has_spilled.unwrap_or_default(),
    }
}

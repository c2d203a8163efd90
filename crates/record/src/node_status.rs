//! How the status of a node is written. A reader ignores unknown fields, so that nodes of two versions see each
//! other.

use crate::VERSION;
use crate::error::{RecordError, Within};
use crate::fields::{
    Text, digest, mirror, moment, need, need_digest, need_moment, need_stamp, need_text, parse, stamp, text,
    unless_default, write,
};
use crate::receipt::{OutageRecord, read_outages, write_outages};
use quittance_lifecycle::{Key, Outage};
use quittance_ports::{Demand, NodeStats, NodeStatus, Reach};
use std::borrow::Cow;
use std::collections::BTreeMap;

mirror! { NodeStatusRecord<'a> {
    v: u64,
    node: Text<'a>,
    name: Text<'a>,
    version: Text<'a>,
    format: u64,
    started: u64,
    at: u64,
    ahead_ms: u64,
    behind_ms: u64,
    node_stats: NodeStatsRecord<'a>,
    demand: BTreeMap<Text<'a>, DemandRecord>,
    reach: ReachRecord<'a>,
} }

mirror! { ReachRecord<'a> {
    address: Text<'a>,
    until: u64,
    outages: Vec<OutageRecord>,
    unanswered: Vec<UnansweredRecord<'a>>,
} }

mirror! { UnansweredRecord<'a> { order: Text<'a>, from: u64, to: u64 } }

mirror! { DemandRecord { served: u64, missed: u64 } }

mirror! { NodeStatsRecord<'a> {
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
    pause_code: Text<'a>,
    store_was_away: bool,
    has_spilled: bool,
} }

#[must_use]
pub fn encode_node_status(node_status: &NodeStatus) -> Vec<u8> {
    let NodeStatus { node, name, version, format, started, at, skew_ms, node_stats, reach, demand } =
        node_status;
    write(&NodeStatusRecord {
        v: Some(VERSION),
        node: stamp(*node),
        name: text(name),
        version: text(version),
        format: Some(*format),
        started: moment(*started),
        at: moment(*at),
        ahead_ms: skew_ms.filter(|skew| *skew >= 0).map(i64::unsigned_abs),
        behind_ms: skew_ms.filter(|skew| *skew < 0).map(i64::unsigned_abs),
        node_stats: (*node_stats != NodeStats::default()).then(|| write_node_stats(node_stats)),
        demand: (!demand.is_empty()).then(|| demand.iter().map(write_demand).collect()),
        reach: reach.as_ref().map(write_reach),
    })
}

pub fn decode_node_status(bytes: &[u8]) -> Result<NodeStatus, RecordError> {
    let record: NodeStatusRecord<'_> = parse(bytes)?;
    Ok(NodeStatus {
        node: need_stamp(record.node, "node")?,
        name: need_text(record.name, "name")?,
        version: need_text(record.version, "version")?,
        format: need(record.format, "format")?,
        started: need_moment(record.started, "started")?,
        at: need_moment(record.at, "at")?,
        skew_ms: read_skew(record.ahead_ms, record.behind_ms),
        node_stats: read_node_stats(record.node_stats.unwrap_or_default()),
        demand: record.demand.unwrap_or_default().into_iter().map(read_demand).collect(),
        reach: record.reach.map(read_reach).transpose()?,
    })
}

fn write_reach(reach: &Reach) -> ReachRecord<'_> {
    let Reach { address, until, outages, unanswered } = reach;
    let write_unanswered = |(key, Outage { from, to }): (&Key, &Outage)| UnansweredRecord {
        order: digest(key.0),
        from: moment(*from),
        to: moment(*to),
    };
    ReachRecord {
        address: text(address),
        until: moment(*until),
        outages: write_outages(outages),
        unanswered: (!unanswered.is_empty()).then(|| unanswered.iter().map(write_unanswered).collect()),
    }
}

fn read_reach(record: ReachRecord<'_>) -> Result<Reach, RecordError> {
    let unanswered = record.unanswered.unwrap_or_default();
    Ok(Reach {
        address: need_text(record.address, "address")?,
        until: need_moment(record.until, "until")?,
        outages: read_outages(record.outages)?,
        unanswered: unanswered.into_iter().enumerate().map(read_unanswered).collect::<Result<_, _>>()?,
    })
}

fn read_unanswered((index, record): (usize, UnansweredRecord<'_>)) -> Result<(Key, Outage), RecordError> {
    let read = |UnansweredRecord { order, from, to }: UnansweredRecord<'_>| {
        let outage = Outage { from: need_moment(from, "from")?, to: need_moment(to, "to")? };
        Ok((Key(need_digest(order, "order")?), outage))
    };
    read(record).within_item("unanswered", index)
}

fn write_demand<'a>((pool, seen): (&'a String, &Demand)) -> (Text<'a>, DemandRecord) {
    let Demand { served, missed } = *seen;
    (Cow::Borrowed(pool), DemandRecord { served: unless_default(served), missed: unless_default(missed) })
}

fn read_demand((pool, seen): (Text<'_>, DemandRecord)) -> (String, Demand) {
    let DemandRecord { served, missed } = seen;
    (pool.into_owned(), Demand { served: served.unwrap_or_default(), missed: missed.unwrap_or_default() })
}

fn read_skew(ahead_ms: Option<u64>, behind_ms: Option<u64>) -> Option<i64> {
    let number = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    ahead_ms.map(number).or_else(|| behind_ms.map(number).map(i64::wrapping_neg))
}

fn write_node_stats(node_stats: &NodeStats) -> NodeStatsRecord<'_> {
    NodeStatsRecord {
        placed: unless_default(node_stats.placed),
        joined: unless_default(node_stats.joined),
        attended: unless_default(node_stats.attended),
        submitted: unless_default(node_stats.submitted),
        polled: unless_default(node_stats.polled),
        answered: unless_default(node_stats.answered),
        in_hand: unless_default(node_stats.in_hand),
        store_errors: unless_default(node_stats.store_errors),
        unreadable: unless_default(node_stats.unreadable),
        panics: unless_default(node_stats.panics),
        is_paused: unless_default(node_stats.is_paused),
        pause_code: node_stats.pause_code.as_deref().and_then(text),
        store_was_away: unless_default(node_stats.store_was_away),
        has_spilled: unless_default(node_stats.has_spilled),
    }
}

/// Reads the stats of a node. A counter that another version does not have is 0.
fn read_node_stats(record: NodeStatsRecord<'_>) -> NodeStats {
    NodeStats {
        placed: record.placed.unwrap_or_default(),
        joined: record.joined.unwrap_or_default(),
        attended: record.attended.unwrap_or_default(),
        submitted: record.submitted.unwrap_or_default(),
        polled: record.polled.unwrap_or_default(),
        answered: record.answered.unwrap_or_default(),
        in_hand: record.in_hand.unwrap_or_default(),
        store_errors: record.store_errors.unwrap_or_default(),
        unreadable: record.unreadable.unwrap_or_default(),
        panics: record.panics.unwrap_or_default(),
        is_paused: record.is_paused.unwrap_or_default(),
        pause_code: record.pause_code.map(Cow::into_owned),
        store_was_away: record.store_was_away.unwrap_or_default(),
        has_spilled: record.has_spilled.unwrap_or_default(),
    }
}

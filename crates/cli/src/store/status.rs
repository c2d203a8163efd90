//! What is in a store, who works on it, and what its own settings promise.

use super::must_exist;
use crate::exit::{CliError, Exit};
use crate::nodes::is_silent;
use crate::output::harmless;
use crate::{output, place};
use quittance::{Members, Opened, Store, StoreError, Verdict, Which, membership};
use quittance_config::StoreConfig;
use serde_json::json;
use std::fmt::Write;

/// How many records are read at once.
const PAGE: usize = 1000;

/// All records, each read once.
#[derive(Clone, Copy, Debug, Default)]
struct OrderCounts {
    all: usize,
    open: usize,
    dead: usize,
    unreadable: usize,
}

impl OrderCounts {
    async fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let (mut order_counts, mut after) = (Self::default(), None);
        loop {
            let page = store.list(Which::ALL, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(order_counts) };
            after = Some(last.as_ref().map_or_else(|broken| broken.key, |found| found.order.key));
            order_counts.all += page.len();
            for found in &page {
                match found {
                    Ok(found) => {
                        order_counts.open += usize::from(Which::OPEN.includes(&found.order));
                        order_counts.dead += usize::from(Which::DEAD.includes(&found.order));
                    }
                    Err(_) => order_counts.unreadable += 1,
                }
            }
        }
    }
}

/// All that is told.
struct Status {
    note: Option<String>,
    filling: Option<String>,
    order_counts: OrderCounts,
    members: Members,
    findings: Vec<membership::Finding>,
}

impl Status {
    async fn of(opened: &Opened) -> Result<Self, StoreError> {
        Ok(Self {
            note: opened.membership.sealed().await?,
            filling: opened.membership.filling().await?,
            order_counts: OrderCounts::of(&*opened.store).await?,
            members: opened.membership.members().await?,
            findings: opened.membership.checkup().await?,
        })
    }

    fn silent(&self) -> usize {
        self.members.nodes.iter().filter(|signed| is_silent(&self.members, signed)).count()
    }
}

pub(super) async fn run(store: &StoreConfig, as_json: bool) -> Result<Exit, CliError> {
    must_exist(store)?;
    let opened = place::open(store).await?;
    let status = Status::of(&opened).await.map_err(|error| CliError::of(Exit::Store, &error))?;
    let shown = store.url.shown();
    output::print(&if as_json { json_of(&shown, &status) } else { text_of(&shown, &status) })?;
    Ok(Exit::Done)
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Note => "note",
        Verdict::Bad => "bad",
    }
}

fn json_of(shown: &str, status: &Status) -> String {
    let OrderCounts { all, open, dead, unreadable } = status.order_counts;
    let findings =
        status.findings.iter().map(|found| json!({ "state": word(found.verdict), "what": found.what }));
    let nodes = status.members.nodes.len();
    let object = json!({
        "store": shown, "sealed": status.note, "filling": status.filling,
        "orders": { "all": all, "open": open, "dead": dead, "unreadable": unreadable },
        "nodes": { "at_work": nodes - status.silent(), "silent": status.silent() },
        "checkup": findings.collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn text_of(shown: &str, status: &Status) -> String {
    let OrderCounts { all, open, dead, unreadable } = status.order_counts;
    let mut text = format!("store    {}\n", harmless(shown));
    _ = match (&status.note, &status.filling) {
        (Some(note), _) => writeln!(text, "state    closed: {}", harmless(note)),
        (None, Some(note)) => writeln!(text, "state    being filled ({})", harmless(note)),
        (None, None) => writeln!(text, "state    open"),
    };
    _ = writeln!(
        text,
        "orders   {all} in all: {open} open, {dead} dead letters, {unreadable} that cannot be read"
    );
    let silent = status.silent();
    _ = writeln!(text, "nodes    {} at work, {silent} silent", status.members.nodes.len() - silent);
    for found in &status.findings {
        _ = writeln!(text, "checkup  {:<5} {}", word(found.verdict), harmless(&found.what));
    }
    text
}

//! What is in a store, who works on it, and what its own settings promise.

use super::must_exist;
use crate::config::StoreConfig;
use crate::exit::{Exit, Trouble};
use crate::nodes::is_silent;
use crate::output::harmless;
use crate::{output, place};
use quittance::{Opened, Roll, Store, StoreError, Verdict, Which, roster};
use serde_json::json;
use std::fmt::Write;

/// How many records are read at once.
const PAGE: usize = 1000;

/// All records, each read once.
#[derive(Clone, Copy, Debug, Default)]
struct Census {
    all: usize,
    open: usize,
    dead: usize,
    unreadable: usize,
}

impl Census {
    async fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let (mut census, mut after) = (Self::default(), None);
        loop {
            let page = store.list(Which::ALL, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(census) };
            after = Some(last.as_ref().map_or_else(|broken| broken.key, |found| found.order.key));
            census.all += page.len();
            for found in &page {
                match found {
                    Ok(found) => {
                        census.open += usize::from(Which::OPEN.includes(&found.order));
                        census.dead += usize::from(Which::DEAD.includes(&found.order));
                    }
                    Err(_) => census.unreadable += 1,
                }
            }
        }
    }
}

/// All that is told.
struct Status {
    note: Option<String>,
    filling: Option<String>,
    census: Census,
    roll: Roll,
    findings: Vec<roster::Finding>,
}

impl Status {
    async fn of(opened: &Opened) -> Result<Self, StoreError> {
        Ok(Self {
            note: opened.roster.sealed().await?,
            filling: opened.roster.filling().await?,
            census: Census::of(&*opened.store).await?,
            roll: opened.roster.roll().await?,
            findings: opened.roster.checkup().await?,
        })
    }

    fn silent(&self) -> usize {
        self.roll.nodes.iter().filter(|signed| is_silent(&self.roll, signed)).count()
    }
}

pub(super) async fn run(store: &StoreConfig, as_json: bool) -> Result<Exit, Trouble> {
    must_exist(store)?;
    let opened = place::open(store).await?;
    let status = Status::of(&opened).await.map_err(|error| Trouble::of(Exit::Store, &error))?;
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
    let Census { all, open, dead, unreadable } = status.census;
    let findings =
        status.findings.iter().map(|found| json!({ "state": word(found.verdict), "what": found.what }));
    let nodes = status.roll.nodes.len();
    let object = json!({
        "store": shown, "sealed": status.note, "filling": status.filling,
        "orders": { "all": all, "open": open, "dead": dead, "unreadable": unreadable },
        "nodes": { "at_work": nodes - status.silent(), "silent": status.silent() },
        "checkup": findings.collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn text_of(shown: &str, status: &Status) -> String {
    let Census { all, open, dead, unreadable } = status.census;
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
    _ = writeln!(text, "nodes    {} at work, {silent} silent", status.roll.nodes.len() - silent);
    for found in &status.findings {
        _ = writeln!(text, "checkup  {:<5} {}", word(found.verdict), harmless(&found.what));
    }
    text
}

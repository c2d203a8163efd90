//! Moves the orders of one store to another.

use super::must_exist;
use crate::exit::{CliError, Exit};
use crate::output;
use quittance::Key;
use quittance::copy::{Copied, CopyError, CopyStep, copy, survey};
use quittance_config::{StoreConfig, StoreUrl};
use quittance_daemon::configured_store;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How often a line of progress is printed if the output is not a terminal.
const PRINTED_SPAN: Duration = Duration::from_secs(5);
/// How often the line of progress is updated on a terminal.
const MOVED_SPAN: Duration = Duration::from_millis(100);
/// How many orders are named to a user; a script gets them all.
const NAMED_MAX: usize = 20;

pub(super) const AFTER_HELP: &str = "\
The copy seals FROM first, so that it cannot change meanwhile. Nodes that still
run on FROM ask callers to retry later, and keep callbacks of the provider in
their spill. Then orders, pools, usage and the callback secret are copied and
compared. A pool that TO already has is overwritten. FROM stays sealed, with a
note that names TO; it can be read, and nothing in it is changed. Until the copy
is complete, no node starts on TO.

  1  quittance store copy --dry-run FROM TO     count what there is to copy
  2  quittance store copy FROM TO               with no nodes on TO
  3  set store.url to TO, and restart every node, each with its old `store.home`

Fails if nodes are running on TO: they would buy orders again that have not been
copied yet. Stop the daemon of an embedded store before you copy it. After an
interruption, run the same command again: it resumes. An order that both stores
have is left as it is in TO.

Exit codes:
  0  all orders are copied
  1  some orders are missing; each is listed
  2  the command was not understood
  5  a store cannot be opened or used, or nodes are running on TO";

pub(super) async fn run(
    from: &StoreConfig,
    to: &StoreConfig,
    dry_run: bool,
    as_json: bool,
) -> Result<Exit, CliError> {
    must_exist(from)?;
    if to.url == StoreUrl::Memory {
        return Err(CliError::new(
            Exit::Usage,
            "a store in memory is gone when this command ends: copy to another",
        ));
    }
    if from.url.shown() == to.url.shown() {
        return Err(CliError::new(Exit::Usage, "both are the same store"));
    }
    let source = configured_store::open(from).await?;
    let mut shown = CopyProgress::start();
    let copied = match dry_run {
        true => survey(&source, &mut |progress| shown.show(progress)).await.map_err(CopyError::from),
        false => {
            let target = configured_store::open_to_fill(to).await?;
            copy(&source, &target, &to.url.shown(), &mut |progress| shown.show(progress)).await
        }
    };
    drop(shown);
    let copied = copied.map_err(|error| {
        let exit = if matches!(error, CopyError::SameStore) { Exit::Usage } else { Exit::Store };
        CliError::of(exit, &error)
    })?;
    let outcome = Outcome { from, to, dry_run, copied };
    output::show(as_json, &outcome.json(), || outcome.text())?;
    Ok(if dry_run || outcome.copied.is_complete() { Exit::Done } else { Exit::Bad })
}

/// Shows the progress, at limited intervals.
struct CopyProgress {
    line: output::ProgressLine,
    last: Instant,
}

impl CopyProgress {
    fn start() -> Self {
        Self { line: output::ProgressLine::start("copy"), last: Instant::now() }
    }

    fn show(&mut self, progress: CopyStep) {
        let span = if output::moves() { MOVED_SPAN } else { PRINTED_SPAN };
        if self.last.elapsed() < span {
            return;
        }
        self.last = Instant::now();
        self.line.tell(&match progress {
            CopyStep::Copying { orders } => format!("{orders} orders"),
            CopyStep::Usage { lines, of } => format!("line {lines} of {of} of the usage"),
            CopyStep::Comparing { orders } => format!("{orders} orders compared"),
        });
    }
}

struct Outcome<'a> {
    from: &'a StoreConfig,
    to: &'a StoreConfig,
    dry_run: bool,
    copied: Copied,
}

fn keys(keys: &[Key]) -> Vec<String> {
    keys.iter().map(Key::to_string).collect()
}

impl Outcome<'_> {
    /// The spill of an embedded store, if it contains events that came while the store was away. They are not in the
    /// copy.
    fn spill_left(&self) -> Option<PathBuf> {
        let folder = match (&self.from.url, &self.from.home) {
            (StoreUrl::Embedded(folder), _) | (_, Some(folder)) => folder,
            _ => return None,
        };
        configured_store::spilled(folder)
    }

    fn json(&self) -> Value {
        let copied = &self.copied;
        json!({
            "from": self.from.url.shown(), "to": self.to.url.shown(), "dry_run": self.dry_run,
            "written": copied.written, "there": copied.there, "documents": copied.documents, "usage_rows": copied.lines,
            "differ": keys(&copied.differ), "unreadable": keys(&copied.unreadable), "missing": keys(&copied.missing),
            "documents_missing": copied.documents_missing,
            "nodes_left_behind": copied.left_behind, "other_secret": copied.other_secret,
            "spill_left": self.spill_left(), "moved_before": copied.is_repeat, "complete": copied.is_complete(),
        })
    }

    fn text(&self) -> String {
        let copied = &self.copied;
        let Copied { written, there, lines, documents, .. } = copied;
        let (from, to) = (self.from.url.shown(), self.to.url.shown());
        if copied.is_repeat {
            return format!("all orders of {from} have moved to {to} before: nothing was done\n");
        }
        let mut text = match self.dry_run {
            true => format!(
                "to move from {from} to {to}: {written} orders; pools and lifetimes learned from reports: {documents}; \
                 lines of the usage: {lines}\nnothing was changed\n"
            ),
            false => format!(
                "copied from {from} to {to}: {written} orders; there already: {there}; pools and lifetimes learned from \
                 reports: {documents}; lines of the usage: {lines}\n{from} is sealed; the seal names the new store\n"
            ),
        };
        for (orders, why) in [
            (&copied.differ, "another order stands in the new store under the same key, and was left alone"),
            (&copied.unreadable, "the record cannot be read; see docs/operating.md"),
            (&copied.missing, "the order is not in the new store: run the same command again"),
        ] {
            for key in orders.iter().take(NAMED_MAX) {
                _ = writeln!(text, "NOT COPIED  {key}  {why}");
            }
            if orders.len() > NAMED_MAX {
                _ = writeln!(text, "NOT COPIED  and {} more; --json names them", orders.len() - NAMED_MAX);
            }
        }
        for name in &copied.documents_missing {
            let name = output::harmless(name);
            _ = writeln!(
                text,
                "NOT COPIED  {name}  the new store has too many pools: remove some there (`quittance pool remove`), and run the \
                 same command again"
            );
        }
        if !copied.left_behind.is_empty() {
            let nodes = output::harmless(&copied.left_behind.join(", "));
            _ = match self.dry_run {
                true => writeln!(
                    text,
                    "nodes work on the old store: {nodes}; after the copy they ask callers to retry, until they are restarted on the \
                     new store"
                ),
                false => writeln!(
                    text,
                    "nodes still run on the old store: {nodes}; set store.url to the new one, and restart them"
                ),
            };
        }
        if copied.other_secret {
            text.push_str(
                "the new store has a secret of its own: callbacks for orders in flight are not recognised there, so their answers are \
                 polled; and a repeat of a copied order is not recognised as a repeat, so it is bought again\n",
            );
        }
        if let Some(spill) = self.spill_left() {
            let folder = spill.parent().unwrap_or(&spill).display().to_string();
            _ = writeln!(
                text,
                "callbacks or replies that are not yet in a store wait in {}: start a node with `store.home` = \"{folder}\"",
                spill.display()
            );
        }
        text
    }
}

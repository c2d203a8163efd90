//! Whether the store can be opened, what waits in it, and what its own settings promise.

use super::{Finding, State, nodes, reach};
use crate::exit::Exit;
use crate::place;
use quittance::{FORGOT_NAME, IDENTITY_NAME, Opened, StoreError, Which, embedded};
use quittance_config::{Config, StoreUrl};
use quittance_ports::{Store, membership};
use std::path::Path;

/// What the error of a store that is not there begins with.
const NO_STORE: &str = "there is no store of Quittance at";
/// How many records are read at once.
const PAGE: usize = 1000;

fn of(state: State, what: impl Into<String>) -> Finding {
    Finding::new("store", state, what)
}

pub(super) async fn store(config: &Config) -> Vec<Finding> {
    let not_ready = reach::not_ready(config.listen).await;
    let not_ready = not_ready.map(|why| format!("the daemon on {} is not ready: {why}", config.listen));
    let mut findings: Vec<Finding> = not_ready.map(|what| of(State::Bad, what)).into_iter().collect();
    // One process has an embedded store to itself, and this one has said what is wrong.
    let is_told = !findings.is_empty() && !config.store.url.scheme().is_shared();
    findings.extend(noticed(config).filter(|_| !is_told));
    if !is_told {
        findings.extend(look_by_itself(config).await);
    }
    findings
}

/// What a node with this folder has noticed about its store, and no person has seen yet.
fn noticed(config: &Config) -> Option<Finding> {
    let note = std::fs::read_to_string(folder(config)?.join(FORGOT_NAME)).ok()?;
    (!note.trim().is_empty()).then(|| of(State::Bad, format!("a node has noticed that {}", note.trim())))
}

fn folder(config: &Config) -> Option<&Path> {
    match &config.store.url {
        StoreUrl::Embedded(dir) => Some(dir),
        _ => config.store.home.as_deref(),
    }
}

async fn look_by_itself(config: &Config) -> Vec<Finding> {
    if let Some(missing) = place::missing(&config.store) {
        let what = format!("{} (`quittance serve` and `quittance solve` make one)", missing.what);
        // One that cannot be made either is wrong.
        let is_possible = config.store.can_be_made();
        return vec![of(if is_possible { State::Note } else { State::Bad }, what)];
    }
    let opened = match place::open(&config.store).await {
        Ok(opened) => opened,
        Err(trouble) if trouble.exit == Exit::Store && trouble.what.contains("in use by") => {
            // Whoever has it may be the daemon, and then all is well.
            if reach::is_daemon_at(config.listen).await {
                let what = format!("it is in use by the daemon on {}, which looks after it", config.listen);
                let note = folder(config).and_then(embedded::trail_note);
                let note = note.map(|what| of(State::Note, what));
                return [of(State::Good, what)].into_iter().chain(note).collect();
            }
            return vec![of(State::Bad, trouble.what)];
        }
        // It was there once, if a node remembers it.
        Err(trouble) if trouble.what.contains(NO_STORE) && !is_remembered(config) => {
            return vec![of(State::Note, format!("{} (`quittance serve` makes one)", trouble.what))];
        }
        Err(trouble) if trouble.what.contains(NO_STORE) => {
            let what = format!(
                "{}. A node here knows it: it was flushed, or lost. Start the nodes that had orders in hand, or leave them running: they \
                 put back what they know; then see `quittance dead list --cause store_forgot`",
                trouble.what
            );
            return vec![of(State::Bad, what)];
        }
        Err(trouble) => return vec![of(State::Bad, trouble.what)],
    };
    match look(config, &opened).await {
        Ok(findings) => findings,
        Err(error) => vec![of(State::Bad, crate::exit::CliError::of(Exit::Store, &error).what)],
    }
}

fn is_remembered(config: &Config) -> bool {
    config.store.home.as_ref().is_some_and(|home| home.join(IDENTITY_NAME).exists())
}

async fn look(config: &Config, opened: &Opened) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    if let Some(note) = opened.membership.sealed().await? {
        let what = format!(
            "it is closed, and takes nothing from anybody ({note}): point `store.url` to where its orders are now, or open \
             it again with `quittance store unseal`"
        );
        findings.push(of(State::Bad, what));
    }
    if let Some(note) = opened.membership.filling().await? {
        let what = format!(
            "it is being filled ({note}), and no node starts on it until all orders have come: let `quittance store copy` \
             end, or run the same command again if it was interrupted"
        );
        findings.push(of(State::Bad, what));
    }
    let counts = Counts::of(opened.store.as_ref()).await?;
    findings
        .push(of(State::Good, format!("{} opens; open orders: {}", config.store.url.shown(), counts.open)));
    if counts.dead > 0 {
        let what = format!("dead letters that wait for a person: {}; see `quittance dead list`", counts.dead);
        findings.push(of(State::Note, what));
    }
    if counts.unreadable > 0 {
        let what = format!(
            "records that cannot be read, and are set aside: {}; see `quittance dead list --cause unreadable` and docs/operating.md",
            counts.unreadable
        );
        findings.push(of(State::Bad, what));
    }
    findings.extend(opened.membership.checkup().await?.into_iter().map(told));
    if config.store.url.scheme().is_shared() {
        findings.extend(home(config));
        findings.extend(nodes::nodes(opened.membership.as_ref()).await?);
    }
    Ok(findings)
}

fn told(found: membership::Finding) -> Finding {
    let state = match found.verdict {
        membership::Verdict::Good => State::Good,
        membership::Verdict::Note => State::Note,
        membership::Verdict::Bad => State::Bad,
    };
    of(state, found.what)
}

/// What comes in while the store is away must have somewhere to stay.
fn home(config: &Config) -> Option<Finding> {
    let home = config.store.home.as_ref()?;
    // Whoever starts a node makes it, for himself alone; until then it is the folder above that must let him.
    let there = home.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let why = tempfile::tempfile_in(there).err()?;
    let what = format!(
        "nothing can be written to `store.home` ({}: {why}): what the provider says while the store is away would be lost; \
         name a folder that this user may write to",
        home.display()
    );
    Some(of(State::Bad, what))
}

/// How many records of each sort there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    open: usize,
    dead: usize,
    unreadable: usize,
}

impl Counts {
    async fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let mut counts = Self::default();
        for which in [Which::OPEN, Which::DEAD] {
            let mut after = None;
            loop {
                let page = store.list(which, after.as_ref(), PAGE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.as_ref().map_or_else(|found| found.key, |found| found.order.key));
                for found in page {
                    match (found, which) {
                        (Err(_), _) => counts.unreadable += 1,
                        (Ok(_), Which::OPEN) => counts.open += 1,
                        (Ok(_), _) => counts.dead += 1,
                    }
                }
            }
        }
        Ok(counts)
    }
}

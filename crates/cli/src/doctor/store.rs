//! Checks whether the store can be opened, what waits in it, and what its own settings promise.

use super::{Findings, State, nodes};
use crate::exit::{CliError, Exit};
use crate::store::status;
use quittance::{FORGOT_NAME, IDENTITY_NAME, SystemClock, embedded};
use quittance_admin::nodes::ShownNodes;
use quittance_admin::store_status::{StoreStatus, StoredOrders};
use quittance_config::{ADMIN_KEY, Config, StoreUrl};
use quittance_daemon::ApiClient;
use quittance_daemon::{configured_store, reach, with_causes};
use quittance_ports::{Clock, Membership};
use std::path::Path;

/// The beginning of the error about a missing store.
const NO_STORE: &str = "there is no store of Quittance at";

const STORE: &str = "store";

pub(super) async fn store(findings: &mut Findings, config: &Config) {
    let not_ready = reach::not_ready(config.listen).await;
    if let Some(why) = &not_ready {
        findings.bad(STORE, format!("the daemon on {} is not ready: {why}", config.listen));
    }
    // One process has an embedded store to itself, and this one has reported what is wrong.
    if not_ready.is_none() || config.store.url.scheme().is_shared() {
        noticed(findings, config);
        look(findings, config).await;
    }
}

/// What a node with this folder has noticed about its store, and no operator has acknowledged yet.
fn noticed(findings: &mut Findings, config: &Config) {
    let note = folder(config).and_then(|folder| std::fs::read_to_string(folder.join(FORGOT_NAME)).ok());
    if let Some(note) = note.as_deref().map(str::trim).filter(|note| !note.is_empty()) {
        findings.bad(STORE, format!("a node has noticed that {note}"));
    }
}

fn folder(config: &Config) -> Option<&Path> {
    match &config.store.url {
        StoreUrl::Embedded(dir) => Some(dir),
        _ => config.store.home.as_deref(),
    }
}

async fn look(findings: &mut Findings, config: &Config) {
    if let Some(missing) = configured_store::missing(&config.store) {
        // One that cannot be made either is wrong.
        let state = if config.store.can_be_made() { State::Note } else { State::Bad };
        return findings.add(STORE, state, missing.what);
    }
    match ApiClient::of_daemon(&config.store, config, ADMIN_KEY) {
        Ok(Some(client)) => return ask(findings, config, &client).await,
        Ok(None) => {}
        Err(error) => return findings.bad(STORE, error.what),
    }
    let opened = match configured_store::open(&config.store).await {
        Ok(opened) => opened,
        // It was there once, if a node remembers it.
        Err(error) if error.what.contains(NO_STORE) && !is_remembered(config) => {
            return findings.note(STORE, format!("{} (`quittance serve` makes one)", error.what));
        }
        Err(error) if error.what.contains(NO_STORE) => {
            let what = format!(
                "{}. A node on this machine has used this store, so the store was flushed or lost. Start the nodes that had \
                 orders in hand, or leave them running: they put back what they know. Then see `quittance dead list --cause \
                 store_forgot`",
                error.what
            );
            return findings.bad(STORE, what);
        }
        Err(error) => return findings.bad(STORE, error.what),
    };
    match status::read(&opened).await {
        Ok(status) => judge(findings, &format!("{} opens", config.store.url.shown()), status),
        Err(error) => return findings.bad(STORE, error.what),
    }
    if config.store.url.scheme().is_shared() {
        home(findings, config);
        members(findings, opened.membership.as_ref()).await;
    }
}

/// Asks the daemon that uses an embedded store for its status.
async fn ask(findings: &mut Findings, config: &Config, client: &ApiClient) {
    match client.get::<StoreStatus>("/v1/admin/store").await.map_err(CliError::from) {
        Ok(status) => judge(findings, &format!("{} is in use by a daemon", config.store.url.shown()), status),
        Err(error) if error.exit == Exit::Config => {
            findings.note(STORE, format!("it is in use by a daemon, and was not checked: {}", error.what));
        }
        Err(error) => findings.bad(STORE, error.what),
    }
    folder(config).and_then(embedded::trail_note).into_iter().for_each(|what| findings.note(STORE, what));
}

async fn members(findings: &mut Findings, membership: &dyn Membership) {
    let before = SystemClock.now();
    match membership.members().await {
        Ok(members) => {
            nodes::judge(findings, &ShownNodes::of(&members), members.now, before, SystemClock.now());
        }
        Err(error) => findings.bad(STORE, with_causes(&error)),
    }
}

fn is_remembered(config: &Config) -> bool {
    config.store.home.as_ref().is_some_and(|home| home.join(IDENTITY_NAME).exists())
}

fn judge(findings: &mut Findings, state: &str, status: StoreStatus) {
    if let Some(note) = status.sealed {
        let what = format!(
            "it is sealed, and accepts no changes ({note}): set `store.url` to the store that has its orders now, or unseal it with \
             `quittance store unseal --yes`"
        );
        findings.bad(STORE, what);
    }
    if let Some(note) = status.filling {
        let what = format!(
            "it is being filled ({note}), and no node starts on it until all orders have come: let `quittance store copy` \
             end, or run the same command again if it was interrupted"
        );
        findings.bad(STORE, what);
    }
    let StoredOrders { open, dead, unreadable, .. } = status.orders;
    findings.good(STORE, format!("{state}; open orders: {open}"));
    if dead > 0 {
        findings.note(STORE, format!("dead letters: {dead}; see `quittance dead list`"));
    }
    if unreadable > 0 {
        let what = format!(
            "records that cannot be read, and are set aside: {unreadable}; see `quittance dead list --cause unreadable` and \
             docs/operating.md"
        );
        findings.bad(STORE, what);
    }
    status.checkup.into_iter().for_each(|finding| findings.add(STORE, finding.state, finding.what));
}

/// Whether callbacks that come while the store is away can be written to `store.home`.
fn home(findings: &mut Findings, config: &Config) {
    let Some(home) = &config.store.home else { return };
    // A node creates the folder when it starts; until then, the folder above must be writable.
    let there = home.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    if let Err(why) = tempfile::tempfile_in(there) {
        let what = format!(
            "nothing can be written to `store.home` ({}: {why}): callbacks would be lost while the store is away; \
             name a folder that this user may write to",
            home.display()
        );
        findings.bad(STORE, what);
    }
}

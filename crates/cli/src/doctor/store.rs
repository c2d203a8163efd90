//! Checks whether the store can be opened, what waits in it, and what its own settings promise.

use super::{Finding, State, callback_reach, nodes};
use crate::api_client::ApiClient;
use crate::exit::{CliError, Exit, OrExit};
use crate::place;
use crate::store::status;
use quittance::{FORGOT_NAME, IDENTITY_NAME, SystemClock, embedded};
use quittance_admin::nodes::ShownNodes;
use quittance_admin::store_status::{CheckupState, StoreStatus, StoredOrders};
use quittance_config::{ADMIN_KEY, Config, Environment, StoreUrl};
use quittance_ports::{Clock, Membership};
use std::path::Path;

/// The beginning of the error about a missing store.
const NO_STORE: &str = "there is no store of Quittance at";

fn of(state: State, what: impl Into<String>) -> Finding {
    Finding::new("store", state, what)
}

pub(super) async fn store(config: &Config, environment: &Environment) -> Vec<Finding> {
    let not_ready = callback_reach::not_ready(config.listen).await;
    let not_ready = not_ready.map(|why| format!("the daemon on {} is not ready: {why}", config.listen));
    let mut findings: Vec<Finding> = not_ready.map(|what| of(State::Bad, what)).into_iter().collect();
    // One process has an embedded store to itself, and this one has reported what is wrong.
    let is_reported = !findings.is_empty() && !config.store.url.scheme().is_shared();
    findings.extend(noticed(config).filter(|_| !is_reported));
    if !is_reported {
        findings.extend(look(config, environment).await);
    }
    findings
}

/// What a node with this folder has noticed about its store, and no operator has acknowledged yet.
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

async fn look(config: &Config, environment: &Environment) -> Vec<Finding> {
    if let Some(missing) = place::missing(&config.store) {
        // One that cannot be made either is wrong.
        let is_possible = config.store.can_be_made();
        return vec![of(if is_possible { State::Note } else { State::Bad }, missing.what)];
    }
    match ApiClient::of_daemon(&config.store, config, environment, ADMIN_KEY) {
        Ok(Some(client)) => return ask(config, &client).await,
        Ok(None) => {}
        Err(error) => return vec![of(State::Bad, error.what)],
    }
    let opened = match place::open(&config.store).await {
        Ok(opened) => opened,
        // It was there once, if a node remembers it.
        Err(error) if error.what.contains(NO_STORE) && !is_remembered(config) => {
            return vec![of(State::Note, format!("{} (`quittance serve` makes one)", error.what))];
        }
        Err(error) if error.what.contains(NO_STORE) => {
            let what = format!(
                "{}. A node on this machine has used this store, so the store was flushed or lost. Start the nodes that had \
                 orders in hand, or leave them running: they put back what they know. Then see `quittance dead list --cause \
                 store_forgot`",
                error.what
            );
            return vec![of(State::Bad, what)];
        }
        Err(error) => return vec![of(State::Bad, error.what)],
    };
    let mut findings = match status::read(&opened).await {
        Ok(status) => judge(&format!("{} opens", config.store.url.shown()), status),
        Err(error) => return vec![of(State::Bad, error.what)],
    };
    if config.store.url.scheme().is_shared() {
        findings.extend(home(config));
        match members(opened.membership.as_ref()).await {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(of(State::Bad, error.what)),
        }
    }
    findings
}

/// Asks the daemon that uses an embedded store for its status.
async fn ask(config: &Config, client: &ApiClient) -> Vec<Finding> {
    let mut findings = match client.get::<StoreStatus>("/v1/admin/store").await.map_err(CliError::from) {
        Ok(status) => judge(&format!("{} is in use by a daemon", config.store.url.shown()), status),
        Err(error) if error.exit == Exit::Config => {
            vec![of(State::Note, format!("it is in use by a daemon, and was not checked: {}", error.what))]
        }
        Err(error) => vec![of(State::Bad, error.what)],
    };
    findings.extend(folder(config).and_then(embedded::trail_note).map(|what| of(State::Note, what)));
    findings
}

async fn members(membership: &dyn Membership) -> Result<Vec<Finding>, CliError> {
    let before = SystemClock.now();
    let members = membership.members().await.or_exit(Exit::Store)?;
    Ok(nodes::judge(&ShownNodes::of(&members), members.now, before, SystemClock.now()))
}

fn is_remembered(config: &Config) -> bool {
    config.store.home.as_ref().is_some_and(|home| home.join(IDENTITY_NAME).exists())
}

fn judge(state: &str, status: StoreStatus) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(note) = status.sealed {
        let what = format!(
            "it is sealed, and accepts no changes ({note}): set `store.url` to the store that has its orders now, or unseal it with \
             `quittance store unseal --yes`"
        );
        findings.push(of(State::Bad, what));
    }
    if let Some(note) = status.filling {
        let what = format!(
            "it is being filled ({note}), and no node starts on it until all orders have come: let `quittance store copy` \
             end, or run the same command again if it was interrupted"
        );
        findings.push(of(State::Bad, what));
    }
    let StoredOrders { open, dead, unreadable, .. } = status.orders;
    findings.push(of(State::Good, format!("{state}; open orders: {open}")));
    if dead > 0 {
        findings.push(of(State::Note, format!("dead letters: {dead}; see `quittance dead list`")));
    }
    if unreadable > 0 {
        let what = format!(
            "records that cannot be read, and are set aside: {unreadable}; see `quittance dead list --cause unreadable` and \
             docs/operating.md"
        );
        findings.push(of(State::Bad, what));
    }
    findings.extend(status.checkup.into_iter().map(|finding| {
        let state = match finding.state {
            CheckupState::Good => State::Good,
            CheckupState::Note => State::Note,
            CheckupState::Bad => State::Bad,
        };
        of(state, finding.what)
    }));
    findings
}

/// Whether callbacks that come while the store is away can be written to `store.home`.
fn home(config: &Config) -> Option<Finding> {
    let home = config.store.home.as_ref()?;
    // A node creates the folder when it starts; until then, the folder above must be writable.
    let there = home.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let why = tempfile::tempfile_in(there).err()?;
    let what = format!(
        "nothing can be written to `store.home` ({}: {why}): callbacks would be lost while the store is away; \
         name a folder that this user may write to",
        home.display()
    );
    Some(of(State::Bad, what))
}

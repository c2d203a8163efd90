//! `quittance store status`: the contents of a store, its nodes, and what its settings promise.

use super::must_exist;
use crate::exit::{CliError, Exit, OrExit};
use crate::output;
use crate::output::harmless;
use quittance::lifecycle::Key;
use quittance::{Opened, Which};
use quittance_admin::store_status::{PAGE, StoreStatus, StoredOrders};
use quittance_config::{ADMIN_KEY, Config, StoreConfig};
use quittance_daemon::ApiClient;
use quittance_daemon::configured_store;
use std::fmt::Write;

pub(super) async fn run(store: &StoreConfig, config: &Config, as_json: bool) -> Result<Exit, CliError> {
    must_exist(store)?;
    let status = match ApiClient::of_daemon(store, config, ADMIN_KEY)? {
        Some(client) => client.get("/v1/admin/store").await?,
        None => read(&configured_store::open(store).await?).await?,
    };
    let url = store.url.shown();
    let mut object = output::to_json(&status)?;
    object["store"] = url.as_str().into();
    output::show(as_json, &object, || text(&url, &status))
}

/// The status of a store that this process has opened.
pub(crate) async fn read(opened: &Opened) -> Result<StoreStatus, CliError> {
    let store = &*opened.store;
    let list = |after: Option<Key>| async move { store.list(Which::ALL, after.as_ref(), PAGE).await };
    let status = StoreStatus::read(list, opened.membership.as_ref()).await;
    status.or_exit(Exit::Store)
}

fn text(url: &str, status: &StoreStatus) -> String {
    let StoredOrders { all, open, dead, unreadable } = status.orders;
    let mut text = format!("store    {}\n", harmless(url));
    _ = match (&status.sealed, &status.filling) {
        (Some(note), _) => writeln!(text, "state    sealed: {}", harmless(note)),
        (None, Some(note)) => writeln!(text, "state    being filled ({})", harmless(note)),
        (None, None) => writeln!(text, "state    open"),
    };
    _ = writeln!(
        text,
        "orders   {all} in total: {open} open, {dead} dead letters, {unreadable} that cannot be read"
    );
    _ = writeln!(text, "nodes    {} at work, {} silent", status.nodes.at_work, status.nodes.silent);
    for finding in &status.checkup {
        _ = writeln!(text, "checkup  {:<5} {}", finding.state.name(), harmless(&finding.what));
    }
    text
}

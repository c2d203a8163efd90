//! Waits for the outcomes of replayed orders, and adds them up. The wait ends if the provider does not accept the
//! account, because only an operator can fix that.

use crate::exit::{CliError, Exit};
use crate::output::{self, harmless};
use quittance_admin::live::Snapshot;
use quittance_admin::replay_outcome::ReplayOutcome;
use quittance_daemon::ApiClient;
use std::time::Duration;

/// How often the open orders are read in this process.
const LOOK: Duration = Duration::from_secs(1);
/// How often the open orders are read by a daemon, which has other work.
const DAEMON_LOOK: Duration = Duration::from_secs(2);

/// The outcomes of all orders of this bulk action with this status. A response covers a limited number of records.
pub(super) async fn read(client: &ApiClient, bulk: u64, status: &str) -> Result<ReplayOutcome, CliError> {
    let path = format!("/v1/admin/dead/bulk/{bulk}/outcome?status={status}");
    let (mut sum, mut after) = (ReplayOutcome::default(), String::new());
    loop {
        let page: ReplayOutcome = client.get(&format!("{path}{after}")).await?;
        sum.open += page.open;
        sum.working += page.working;
        sum.answered += page.answered;
        sum.failed += page.failed;
        sum.dead += page.dead;
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(sum),
        }
    }
}

/// Waits until each replayed order has an outcome. An earlier end loses nothing: the orders are in the store.
pub(super) async fn settle(
    client: &ApiClient,
    bulk: u64,
    progress: &mut output::ProgressLine,
) -> Result<ReplayOutcome, CliError> {
    loop {
        let now = read(client, bulk, "open").await?;
        if now.open == 0 {
            return read(client, bulk, "all").await;
        }
        // Tasks that the provider has accepted are answered also while the account is not accepted.
        if now.working == 0 {
            is_accepted(client).await?;
        }
        progress.show(&format!("{} replays in progress; Ctrl-C is safe", now.open));
        tokio::time::sleep(if matches!(client, ApiClient::InProcess(_)) { LOOK } else { DAEMON_LOOK }).await;
    }
}

/// An error if the provider does not accept the account.
pub(super) async fn is_accepted(client: &ApiClient) -> Result<(), CliError> {
    let (code, then) = match client {
        ApiClient::InProcess(local) => {
            let then = "then run the same command again, or `quittance serve`";
            (local.node.paused().map(|fault| fault.code), then)
        }
        ApiClient::Daemon(_) => {
            let now: Snapshot = client.get("/v1/admin/now").await?;
            // While one of several providers has an account that works, orders go there.
            let mut codes = now.providers.into_iter().map(|provider| provider.fault.map(|fault| fault.code));
            let first = codes.next().flatten().filter(|_| codes.all(|code| code.is_some()));
            (first, "then the daemon continues")
        }
    };
    let Some(code) = code.map(|code| harmless(&code)) else { return Ok(()) };
    let what = format!(
        "the provider does not accept the account: {code}; see `quittance errors {code}`. The orders are kept, and nothing is \
         bought meanwhile: fix the account, {then}"
    );
    Err(CliError::new(Exit::Provider, what))
}

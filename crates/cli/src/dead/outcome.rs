//! What becomes of orders that were replayed, in this process or in the daemon: waited for, counted, and given up on while the
//! provider does not accept the account, because only a person can mend that.

use super::filter::{number, text};
use crate::client::ApiClient;
use crate::exit::{CliError, Exit};
use crate::output::{self, harmless};
use serde_json::Value;
use std::time::Duration;

/// How often somebody looks at orders that are on their way: all open ones are read for it.
const LOOK: Duration = Duration::from_secs(1);
/// A daemon has others to see to.
const DAEMON_LOOK: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) open: u64,
    working: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) dead: u64,
}

impl Outcome {
    /// A request reads so many records and no more: the sums are ours to add up.
    async fn read(client: &ApiClient, bulk: u64, status: &str) -> Result<Self, CliError> {
        let path = format!("/v1/admin/dead/bulk/{bulk}/outcome?status={status}");
        let (mut sum, mut after) = (Self::default(), String::new());
        loop {
            let told: Value = client.read(&format!("{path}{after}")).await?;
            sum.open += number(&told, "open");
            sum.working += number(&told, "working");
            sum.answered += number(&told, "answered");
            sum.failed += number(&told, "failed");
            sum.dead += number(&told, "dead");
            match told["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(sum),
            }
        }
    }

    /// Those that have not come to anything.
    pub(super) async fn open(client: &ApiClient, bulk: u64) -> Result<u64, CliError> {
        Ok(Self::read(client, bulk, "open").await?.open)
    }

    pub(super) const fn is_good(&self) -> bool {
        self.failed == 0 && self.dead == 0
    }
}

/// Waits until what was replayed has come to something. To end it before loses nothing: the orders stand in the store.
pub(super) async fn settle(
    client: &ApiClient,
    bulk: u64,
    progress: &mut output::Progress,
) -> Result<Outcome, CliError> {
    loop {
        let now = Outcome::read(client, bulk, "open").await?;
        if now.open == 0 {
            return Outcome::read(client, bulk, "all").await;
        }
        // What the provider has is paid for, and comes back even now.
        if now.working == 0 {
            is_accepted(client).await?;
        }
        progress.show(&format!("{} on their way; it is safe to interrupt", now.open));
        tokio::time::sleep(if matches!(client, ApiClient::Here(_)) { LOOK } else { DAEMON_LOOK }).await;
    }
}

/// Trouble, if the provider does not accept the account: whoever waits would wait for a person.
pub(super) async fn is_accepted(client: &ApiClient) -> Result<(), CliError> {
    let code = match client {
        ApiClient::Here(node) => node.paused().map(|fault| fault.code),
        ApiClient::There(_) => {
            let now: Value = client.read("/v1/admin/now").await?;
            let providers = now["providers"].as_array().map(Vec::as_slice).unwrap_or_default();
            let paused = providers.iter().find(|provider| text(provider, "state") == "paused");
            paused.map(|provider| text(&provider["fault"], "code").to_owned())
        }
    };
    let Some(code) = code.map(|code| harmless(&code)) else { return Ok(()) };
    let then = match client {
        ApiClient::Here(_) => "then the same command again, or `quittance serve`, goes on with it",
        ApiClient::There(_) => "then the daemon goes on with it",
    };
    let what = format!(
        "the provider does not accept the account: {code}; see `quittance errors {code}`. The orders are kept, and nothing is \
         bought meanwhile: mend the account, {then}"
    );
    Err(CliError::new(Exit::Provider, what))
}

//! The accounts of the providers, if no daemon reports them: this process asks the providers itself.

use quittance::lifecycle::Money;
use quittance::{Account, SystemClock};
use quittance_admin::providers::{ProviderDetail, ShownWorking, balance_ends};
use quittance_config::Config;
use quittance_daemon::{ApiClient, configured_node};
use quittance_ports::Clock;
use quittance_ports::moment::rfc3339;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a provider may take.
const ACCOUNT_WAIT: Duration = Duration::from_secs(3);

/// Fills in what each provider reports about its account. What it does not report in time stays unknown.
pub(super) async fn complete(providers: &mut [ProviderDetail], client: &ApiClient, config: &Config) {
    if !matches!(client, ApiClient::InProcess(_)) {
        return;
    }
    let mut reads = JoinSet::new();
    for (place, shown) in providers.iter().enumerate() {
        let Some(found) = config.providers.iter().find(|known| known.name == shown.provider.name) else {
            continue;
        };
        let found = found.clone();
        reads.spawn(async move {
            let account = tokio::time::timeout(ACCOUNT_WAIT, configured_node::account(&found)).await;
            (place, account.ok().and_then(Result::ok))
        });
    }
    while let Some(read) = reads.join_next().await {
        if let Ok((place, Some(account))) = read {
            fill_in(&mut providers[place], &account);
        }
    }
}

fn fill_in(shown: &mut ProviderDetail, account: &Account) {
    shown.balance = account.balance.map(|balance| balance.to_string());
    let spent = shown.spent_last_day_micros.map(Money);
    shown.balance_ends = balance_ends(account.balance, spent, SystemClock.now()).map(rfc3339);
    shown.provider.balance_micros = account.balance.map(|balance| balance.0);
    let working =
        |threads: quittance_ports::Threads| ShownWorking { total: threads.total, working: threads.working };
    shown.provider.threads = account.threads.map(working);
}

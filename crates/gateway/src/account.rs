//! The provider's account, asked for seldom: clients ask for their balance all the time, and providers ban whoever passes
//! that on.

use quittance_lifecycle::Timestamp;
use quittance_ports::{Account, Provider};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The account is asked for no more often than this; some providers want no more than two questions a minute.
const ASK_PAUSE: Duration = Duration::from_secs(30);
/// How long whoever asks waits for a provider that is slow; then he gets what was known before.
const ASK_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(crate) struct AccountCache {
    /// Whoever holds it is asking; the others wait for what he learns.
    seen: Mutex<Option<(Timestamp, Option<Account>)>>,
}

impl AccountCache {
    pub(crate) async fn read(&self, provider: &Arc<dyn Provider>, now: Timestamp) -> Option<Account> {
        let mut seen = self.seen.lock().await;
        if let Some((asked, account)) = *seen
            && asked <= now
            && now.since(asked) < ASK_PAUSE
        {
            return account;
        }
        let known = seen.and_then(|(_, account)| account);
        let told = tokio::time::timeout(ASK_WAIT, provider.account()).await.ok().flatten();
        let account = told.or(known);
        *seen = Some((now, account));
        account
    }
}

//! Reads the provider's account at most every half minute. Clients ask for their balance all the time, and providers
//! ban accounts that pass that on.

use quittance_lifecycle::Timestamp;
use quittance_ports::{Account, Provider};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The least time between two reads of the account. Some providers allow two requests a minute.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// How long a caller waits for a slow provider; then it gets the last known account.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The last known account. Clones share it.
#[derive(Clone)]
pub struct AccountCache {
    provider: Arc<dyn Provider>,
    /// One caller reads at a time; the other callers wait for the result.
    last: Arc<Mutex<Option<LastRead>>>,
}

/// When the account was last read, and what it was.
#[derive(Clone, Copy, Debug)]
struct LastRead {
    at: Timestamp,
    account: Option<Account>,
}

impl fmt::Debug for AccountCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountCache")
    }
}

impl AccountCache {
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, last: Arc::default() }
    }

    /// The account, at most half a minute old if the provider answers; `None` if it was never known.
    pub async fn read(&self, now: Timestamp) -> Option<Account> {
        let mut last = self.last.lock().await;
        if let Some(read) = *last
            && read.at <= now
            && now.since(read.at) < READ_INTERVAL
        {
            return read.account;
        }
        let known = last.and_then(|read| read.account);
        let reported = tokio::time::timeout(READ_TIMEOUT, self.provider.account()).await.ok().flatten();
        let account = reported.or(known);
        *last = Some(LastRead { at: now, account });
        account
    }
}

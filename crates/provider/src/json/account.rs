//! Reads the account at the provider, for `quittance doctor` and for callers of our own API that ask for their
//! balance.

use crate::json::JsonProvider;
use crate::provider_call::account_unanswered;
use quittance_ports::{Account, AskError};
use quittance_protocol::json::{JsonAccountReply, code, read_balance};
use serde_json::Map;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last balance, kept as long as the provider wants no new request.
pub(crate) struct CachedAccount {
    interval: Duration,
    /// The task that holds the lock makes the call; the other tasks wait for its result.
    last: Mutex<Option<(Instant, Result<Account, AskError>)>>,
}

impl CachedAccount {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::new(None) }
    }
}

impl JsonProvider {
    /// The balance: read now, or cached if the last read is less than `interval` ago.
    pub async fn look_at_account(&self) -> Result<Account, AskError> {
        let mut last = self.cached_account.last.lock().await;
        if let Some((when, account)) = &*last
            && when.elapsed() < self.cached_account.interval
        {
            return account.clone();
        }
        let when = Instant::now();
        let account = self.ask_account().await;
        *last = Some((when, account.clone()));
        account
    }

    async fn ask_account(&self) -> Result<Account, AskError> {
        let reply =
            self.post("getBalance", Map::new(), self.frame.poll_timeout).await.map_err(account_unanswered)?;
        match (reply.status.as_u16(), read_balance(&reply.body, &self.codes)) {
            (200..=299, JsonAccountReply::Is(balance)) => {
                Ok(Account { balance: Some(balance), threads: None })
            }
            (_, JsonAccountReply::Fault(fault)) => {
                let advice = code::row(&fault.code).map(|row| row.description);
                Err(self.frame.account_rejected(fault, advice))
            }
            (200..=299, JsonAccountReply::Puzzling(sight)) => {
                Err(AskError::NotTheProtocol { what: sight.to_string() })
            }
            (status, _) => Err(AskError::Status { status }),
        }
    }
}

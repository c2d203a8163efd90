//! What the provider says about the account. `quittance doctor` reads it, and so does our own API, for clients that
//! ask for their balance.

use crate::json::JsonProvider;
use quittance_ports::{Account, AskError};
use quittance_protocol::json::{JsonAccountReply, code, read_balance};
use quittance_wire::WireError;
use serde_json::Map;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last balance, for as long as the provider does not want another request.
pub(crate) struct CachedAccount {
    interval: Duration,
    /// The task that holds it makes the call; the others wait for its result.
    last: Mutex<Option<(Instant, Result<Account, AskError>)>>,
}

impl CachedAccount {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::new(None) }
    }
}

impl JsonProvider {
    /// The balance, as the provider reports it now, or reported it less than its own pause ago.
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
        let reply = match self.post("getBalance", Map::new(), self.poll_timeout).await {
            Ok(reply) => reply,
            Err(WireError::NeverSent(why)) => return Err(AskError::Unreachable { why }),
            Err(WireError::WhoKnows(why)) => return Err(AskError::NoAnswer { why }),
        };
        match (reply.status.as_u16(), read_balance(&reply.body, &self.codes)) {
            (200..=299, JsonAccountReply::Is(balance)) => {
                Ok(Account { balance: Some(balance), threads: None })
            }
            (_, JsonAccountReply::Fault(fault)) => {
                let known = code::row(&fault.code).map(|row| row.description);
                let advice = known.unwrap_or("this code is not in the table: look it up at the provider");
                Err(AskError::Refused {
                    fault: self.fault(fault.class, fault.code),
                    advice: advice.to_owned(),
                })
            }
            (200..=299, JsonAccountReply::Puzzling(sight)) => {
                Err(AskError::NotTheProtocol { what: sight.to_string() })
            }
            (status, _) => Err(AskError::Status { status }),
        }
    }
}

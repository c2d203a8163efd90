//! What the provider says about the account. People ask for it (`quittance doctor`), and so does our own door, on behalf of
//! clients who ask for theirs.

use crate::json::JsonProvider;
use quittance_ports::{Account, AskError};
use quittance_protocol::json::{AccountReply, code, read_balance};
use quittance_wire::WireError;
use serde_json::Map;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// What was last told, for as long as the provider does not want to be asked again.
pub(crate) struct CachedAccount {
    interval: Duration,
    /// Whoever holds it is asking; the others wait for what he learns.
    last: Mutex<Option<(Instant, Result<Account, AskError>)>>,
}

impl CachedAccount {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::new(None) }
    }
}

impl JsonProvider {
    /// The balance, as the provider tells it, or told it less than its own pause ago.
    pub async fn look_at_account(&self) -> Result<Account, AskError> {
        let mut last = self.told.last.lock().await;
        if let Some((when, account)) = &*last
            && when.elapsed() < self.told.interval
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
            (200..=299, AccountReply::Is(balance)) => Ok(Account { balance: Some(balance), threads: None }),
            (_, AccountReply::Fault(fault)) => {
                let known = code::row(&fault.code).map(|row| row.description);
                let advice = known.unwrap_or("nobody has seen this code: look it up at the provider");
                Err(AskError::Refused {
                    fault: self.fault(fault.class, fault.code),
                    advice: advice.to_owned(),
                })
            }
            (200..=299, AccountReply::Puzzling(sight)) => {
                Err(AskError::NotTheProtocol { what: sight.to_string() })
            }
            (status, _) => Err(AskError::Status { status }),
        }
    }
}

//! Reads the account at the provider: its money and its threads. `quittance doctor` reads it. So does a submit that
//! was rejected because no thread was free: the threads may be busy, or the plan has ended.

use crate::classic::ClassicProvider;
use crate::provider_call::account_unanswered;
use quittance_ports::{Account, AskError};
use quittance_protocol::classic::answer::{ClassicAccountReply, ThreadsReply, read_balance, read_threads};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two reads of the threads.
const THREADS_PAUSE: Duration = Duration::from_secs(3);
/// How long a rejected submit waits to learn the reason.
const THREADS_TIMEOUT: Duration = Duration::from_secs(3);

/// The last known state of the threads.
#[derive(Default)]
pub(crate) struct ThreadsWatch {
    /// The task that holds the lock makes the call; the other tasks wait for its result.
    cache: tokio::sync::Mutex<Option<(Instant, Option<ThreadsReply>)>>,
    /// Since when all threads have been idle, with no task taken in between.
    idle_since: Mutex<Option<Instant>>,
}

impl ThreadsWatch {
    pub(crate) fn saw_work(&self) {
        *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether the threads were already idle before a rejected submit left at `sent`.
    fn were_idle_before(&self, sent: Instant, read_at: Instant) -> bool {
        let mut since = self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        *since.get_or_insert(read_at) < sent
    }
}

impl ClassicProvider {
    /// Reads balance and threads from the provider.
    pub async fn look_at_account(&self) -> Result<Account, AskError> {
        let threads = match self.facts().has_threads {
            true => Some(self.ask_account("threadsinfo", |body| read_threads(body, &self.codes)).await?),
            false => None,
        };
        let threads =
            threads.map(|ThreadsReply { total, working }| quittance_ports::Threads { total, working });
        let balance = self.ask_account("getbalance", |body| read_balance(body, &self.codes)).await;
        match (balance, threads) {
            (Ok(balance), threads) => Ok(Account { balance: Some(balance), threads }),
            // Where threads are sold there need not be a balance.
            (Err(AskError::Rejected { .. } | AskError::NotTheProtocol { .. }), Some(threads)) => {
                Ok(Account { balance: None, threads: Some(threads) })
            }
            (Err(why), _) => Err(why),
        }
    }

    async fn ask_account<T>(
        &self,
        action: &str,
        read: impl Fn(&[u8]) -> ClassicAccountReply<T>,
    ) -> Result<T, AskError> {
        if let Some(allowance) = &self.allowance {
            allowance.spend();
        }
        let question = self.question(action);
        let reply =
            self.post("res.php", question, self.frame.poll_timeout).await.map_err(account_unanswered)?;
        match (reply.status.as_u16(), read(&reply.body)) {
            (200..=299, ClassicAccountReply::Is(cached_account)) => Ok(cached_account),
            (_, ClassicAccountReply::Fault(fault)) => {
                let advice =
                    self.codes.row(&fault.code).map(|row| row.advice).filter(|advice| !advice.is_empty());
                Err(self.frame.account_rejected(fault, advice))
            }
            (200..=299, ClassicAccountReply::Puzzling(sight)) => {
                Err(AskError::NotTheProtocol { what: sight.to_string() })
            }
            (status, _) => Err(AskError::Status { status }),
        }
    }

    /// Whether a submit that left at `sent` was rejected because the account has no threads at all. If that is not
    /// known, the provider counts as busy.
    ///
    /// All threads may have become free between the rejection and the read. So idle threads prove it only when a
    /// later submit is rejected as well: a race must not pause all orders until an operator comes.
    pub(crate) async fn plan_has_ended(&self, sent: Instant) -> bool {
        match self.threads_since(sent).await {
            Some((_, ThreadsReply { total: 0, .. })) => true,
            Some((read_at, ThreadsReply { working: 0, .. })) => self.threads.were_idle_before(sent, read_at),
            Some(_) => {
                self.threads.saw_work();
                false
            }
            None => false,
        }
    }

    /// The threads at some moment after `then`, and that moment. Many rejected submits share one call.
    async fn threads_since(&self, then: Instant) -> Option<(Instant, ThreadsReply)> {
        let mut cache = self.threads.cache.lock().await;
        match *cache {
            Some((when, threads)) if when >= then => return threads.map(|threads| (when, threads)),
            Some((when, _)) if when.elapsed() < THREADS_PAUSE => return None,
            _ => {}
        }
        let when = Instant::now();
        let query = self.ask_account("threadsinfo", |body| read_threads(body, &self.codes));
        let threads = tokio::time::timeout(THREADS_TIMEOUT, query).await.ok().and_then(Result::ok);
        *cache = Some((when, threads));
        threads.map(|threads| (when, threads))
    }
}

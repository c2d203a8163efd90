//! A provider with one reply, for tests and for a node that has no provider.

use crate::{Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission};
use async_trait::async_trait;
use quittance_lifecycle::{Fault, PollOutcome, ReportOutcome, SubmitOutcome};
use std::time::Duration;

/// Sends the same reply to every submit. It knows no tasks, and reads no callbacks.
#[derive(Clone, Debug)]
pub struct FixedProvider {
    pub reply: SubmitOutcome,
    pub account: Option<Account>,
}

impl FixedProvider {
    #[must_use]
    pub const fn new(reply: SubmitOutcome) -> Self {
        Self { reply, account: None }
    }
}

#[async_trait]
impl Provider for FixedProvider {
    async fn submit(&self, _submission: Submission<'_>) -> SubmitOutcome {
        self.reply.clone()
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
        Vec::new()
    }

    fn poll_batch_max(&self) -> usize {
        1
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn penalty(&self, _fault: &Fault) -> Option<Penalty> {
        None
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        None
    }

    async fn report(&self, _task: &str, _is_good: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        self.account
    }
}

//! A provider without costs, so that only our own work is measured.

use async_trait::async_trait;
use quittance_lifecycle::{Money, Payload, PollOutcome, ProviderAnswer, SubmitOutcome};
use quittance_ports::{Callback, CallbackMessage, Guard, Params, Provider, Submission};
use std::time::Duration;

/// A token of the usual size.
const ANSWER_BYTES: usize = 500;

pub(crate) fn delivery() -> ProviderAnswer {
    ProviderAnswer {
        payload: Payload::text("t".repeat(ANSWER_BYTES)),
        took_at_least: None,
        cost: Some(Money(2990)),
    }
}

/// What the provider does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskBehaviour {
    /// Takes the task, and never ends it.
    NeverEnding,
    /// Answers at once.
    AtOnce,
    /// Takes the task, and has the answer when it is polled.
    WhenAsked,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Free(pub(crate) TaskBehaviour);

#[async_trait]
impl Provider for Free {
    async fn report(&self, _task: &str, _is_good: bool) -> quittance_lifecycle::ReportOutcome {
        quittance_lifecycle::ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        None
    }

    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        match self.0 {
            TaskBehaviour::AtOnce => SubmitOutcome::Answered(delivery()),
            TaskBehaviour::NeverEnding | TaskBehaviour::WhenAsked => {
                SubmitOutcome::Accepted { task: submission.key.short() }
            }
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let outcome = || match self.0 {
            TaskBehaviour::NeverEnding => PollOutcome::Pending,
            TaskBehaviour::AtOnce | TaskBehaviour::WhenAsked => PollOutcome::Answered(delivery()),
        };
        tasks.iter().map(|task| (task.clone(), outcome())).collect()
    }

    fn poll_batch_max(&self) -> usize {
        100
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        None
    }
}

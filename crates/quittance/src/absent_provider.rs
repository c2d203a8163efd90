//! The provider of a node that only reads: it is never called, and takes nothing.

use async_trait::async_trait;
use quittance_lifecycle::{Fault, FaultClass, PollOutcome, SubmitOutcome};
use quittance_ports::{Callback, CallbackMessage, Guard, Params, Provider, Submission};
use std::time::Duration;

pub(crate) struct AbsentProvider;

#[async_trait]
impl Provider for AbsentProvider {
    async fn report(&self, _task: &str, _is_good: bool) -> quittance_lifecycle::ReportOutcome {
        quittance_lifecycle::ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        None
    }

    async fn submit(&self, _submission: Submission<'_>) -> SubmitOutcome {
        SubmitOutcome::Rejected(Fault::new(FaultClass::Unreachable, "this node has no provider"))
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

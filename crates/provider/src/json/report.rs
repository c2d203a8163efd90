//! Reports to the provider whether an answer was good. Each dialect has endpoints of its own, some for one sort of task
//! only; which sort a task was is not known here, so the next is tried where the first does not know the task.

use crate::json::JsonProvider;
use quittance_lifecycle::{Fault, FaultClass, ReportOutcome};
use quittance_protocol::json::{ReportReply, id, read_report};
use quittance_wire::WireError;
use serde_json::{Map, json};

/// The reply to a repeated report: it counts.
const COUNTED: &str = "ERROR_DUPLICATE_REPORT";

impl JsonProvider {
    pub(crate) async fn pass_report(&self, task: &str, is_good: bool) -> ReportOutcome {
        let facts = self.dialect.facts();
        let endpoints = if is_good { facts.report_good } else { facts.report_bad };
        let mut outcome = ReportOutcome::Refused { code: "not offered".to_owned() };
        for endpoint in endpoints {
            let (reply_text, is_about_task) = self.report_at(endpoint, task, is_good).await;
            outcome = reply_text;
            if !is_about_task {
                break;
            }
        }
        outcome
    }

    /// The outcome of a report, and whether another endpoint may know the task better.
    async fn report_at(&self, endpoint: &str, task: &str, is_good: bool) -> (ReportOutcome, bool) {
        let mut reply_text = Map::from_iter([("taskId".to_owned(), id::spell_task(task))]);
        if endpoint == "feedbackTask" {
            reply_text.insert("result".to_owned(), json!({"invalid": !is_good}));
        }
        let reply = match self.post(endpoint, reply_text, self.poll_timeout).await {
            Ok(reply) => reply,
            Err(WireError::NeverSent(_) | WireError::WhoKnows(_)) => return (ReportOutcome::NoReply, false),
        };
        match (reply.status.as_u16(), read_report(&reply.body, &self.codes)) {
            (429 | 500..=599, _) => (ReportOutcome::NoReply, false),
            (200..=299, ReportReply::Taken) => (ReportOutcome::Accepted, false),
            (_, ReportReply::Fault(fault)) => self.weigh_report(fault),
            (200..=299, ReportReply::Puzzling(_)) => (ReportOutcome::NoReply, false),
            (status, _) => (ReportOutcome::Refused { code: format!("HTTP {status}") }, true),
        }
    }

    fn weigh_report(&self, fault: Fault) -> (ReportOutcome, bool) {
        let is_about_task = fault.class == FaultClass::Caller;
        match fault.class {
            _ if fault.code == COUNTED => (ReportOutcome::Accepted, false),
            FaultClass::Busy | FaultClass::Unreachable => (ReportOutcome::NoReply, false),
            FaultClass::AccountBlocked
            | FaultClass::NoFunds
            | FaultClass::Caller
            | FaultClass::Unsolvable
            | FaultClass::UnlistedCode => {
                (ReportOutcome::Refused { code: self.key.conceal(fault.code) }, is_about_task)
            }
        }
    }
}

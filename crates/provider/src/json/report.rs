//! Reports to the provider whether an answer was good. Each dialect has its own endpoints, and some take only one
//! type of task. The type is not known here, so the next endpoint is tried if the first does not know the task.

use crate::json::JsonProvider;
use quittance_lifecycle::{FaultClass, ReportOutcome};
use quittance_protocol::json::{ReportReply, id, read_report};
use serde_json::{Map, json};

impl JsonProvider {
    pub(crate) async fn pass_report(&self, task: &str, is_good: bool) -> ReportOutcome {
        let facts = self.dialect.facts();
        let endpoints = if is_good { facts.report_good } else { facts.report_bad };
        let mut outcome = ReportOutcome::Refused { code: "not offered".to_owned() };
        for endpoint in endpoints {
            let (report_outcome, may_be_known_elsewhere) = self.report_at(endpoint, task, is_good).await;
            outcome = report_outcome;
            if !may_be_known_elsewhere {
                break;
            }
        }
        outcome
    }

    /// Reports at one endpoint. Returns the outcome, and whether another endpoint may know the task.
    async fn report_at(&self, endpoint: &str, task: &str, is_good: bool) -> (ReportOutcome, bool) {
        let mut body = Map::from_iter([("taskId".to_owned(), id::spell_task(task))]);
        if endpoint == "feedbackTask" {
            body.insert("result".to_owned(), json!({"invalid": !is_good}));
        }
        let Ok(reply) = self.post(endpoint, body, self.frame.poll_timeout).await else {
            return (ReportOutcome::NoReply, false);
        };
        let (body, is_about_task) = match read_report(&reply.body, &self.codes) {
            ReportReply::Taken => (Ok(()), true),
            ReportReply::Puzzling(_) => (Err(None), true),
            ReportReply::Fault(fault) => {
                let is_about_task = fault.class == FaultClass::Caller;
                (Err(Some(fault)), is_about_task)
            }
        };
        let outcome = self.frame.judge_report(&reply, body);
        let may_be_known_elsewhere = is_about_task && matches!(outcome, ReportOutcome::Refused { .. });
        (outcome, may_be_known_elsewhere)
    }
}

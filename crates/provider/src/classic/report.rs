//! Reports to the provider whether an answer was good. A report affects only the provider's statistics and perhaps a
//! refund, and it counts once. So a report in doubt is repeated.

use crate::classic::ClassicProvider;
use quittance_lifecycle::ReportOutcome;
use quittance_protocol::classic::Part;
use quittance_protocol::classic::answer::{PollReply, read_poll};

impl ClassicProvider {
    pub(crate) async fn pass_report(&self, task: &str, is_good: bool) -> ReportOutcome {
        if self.allowance.as_ref().is_some_and(|allowance| !allowance.spend()) {
            return ReportOutcome::NoReply;
        }
        let mut form = self.question(if is_good { "reportgood" } else { "reportbad" });
        form.0.insert("id".to_owned(), Part::Text(task.to_owned()));
        let Ok(reply) = self.post("res.php", form, self.frame.poll_timeout).await else {
            return ReportOutcome::NoReply;
        };
        // The reply has the shape of one to a poll: a yes with a text, or a code.
        let body = match read_poll(&reply.body, false, &self.codes) {
            PollReply::Answered { .. } => Ok(()),
            PollReply::Fault(fault) => Err(Some(fault)),
            PollReply::Pending | PollReply::Puzzling(_) => Err(None),
        };
        self.frame.judge_report(&reply, body)
    }
}

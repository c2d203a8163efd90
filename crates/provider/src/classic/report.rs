//! Reports to the provider whether an answer was good. Only the provider's own statistics and perhaps a refund depend
//! on it, so a report in doubt is repeated: it is counted once.

use crate::classic::ClassicProvider;
use quittance_lifecycle::{Fault, FaultClass, ReportOutcome};
use quittance_protocol::classic::Part;
use quittance_protocol::classic::answer::{PollReply, read_poll};
use quittance_wire::WireError;

/// Replies to a repeated report; both mean that it counts.
const COUNTED: [&str; 2] = ["OK_REPORT_RECORDED", "ERROR_DUPLICATE_REPORT"];

impl ClassicProvider {
    pub(crate) async fn pass_report(&self, task: &str, is_good: bool) -> ReportOutcome {
        if self.allowance.as_ref().is_some_and(|allowance| !allowance.spend()) {
            return ReportOutcome::NoReply;
        }
        let mut form = self.question(if is_good { "reportgood" } else { "reportbad" });
        form.0.insert("id".to_owned(), Part::Text(task.to_owned()));
        let reply = match self.exchange.post("res.php", form, self.poll_timeout).await {
            Ok(reply) => reply,
            Err(WireError::NeverSent(_) | WireError::WhoKnows(_)) => return ReportOutcome::NoReply,
        };
        // The reply has the shape of one to a poll: a yes with a text, or a code.
        match (reply.status.as_u16(), read_poll(&reply.body, false, &self.codes)) {
            (429 | 500..=599, _) => ReportOutcome::NoReply,
            (200..=299, PollReply::Answered { .. }) => ReportOutcome::Accepted,
            (_, PollReply::Fault(fault)) => self.weigh_report(fault),
            (200..=299, _) => ReportOutcome::NoReply,
            (status, _) => ReportOutcome::Refused { code: format!("HTTP {status}") },
        }
    }

    fn weigh_report(&self, fault: Fault) -> ReportOutcome {
        match fault.class {
            _ if COUNTED.contains(&fault.code.as_str()) => ReportOutcome::Accepted,
            FaultClass::Busy | FaultClass::Unreachable => ReportOutcome::NoReply,
            // An account that is not accepted now will not be within the minutes in which a report counts.
            FaultClass::AccountBlocked
            | FaultClass::NoFunds
            | FaultClass::Caller
            | FaultClass::Unsolvable
            | FaultClass::UnlistedCode => {
                ReportOutcome::Refused { code: self.exchange.key.conceal(fault.code) }
            }
        }
    }
}

//! Polls several tasks in one call, and never gives one task's answer to another.
//!
//! The reply is a row of answers with a separator that answers can contain as well. Servers are known to leave parts
//! out. So the reply only hints at which tasks are worth a poll:
//!
//! - No task gets an answer or a fault from it. Every task whose part is not *pending* is polled alone, which also
//!   gives the price.
//! - *Pending* is believed if the number of parts is right, and each other part equals the reply of the task at its
//!   place. Then no answer contained the separator and no part is missing, so the places are right. A wrong *pending*
//!   would make a token look younger than it is.
//! - In all other cases every task is polled alone.

use crate::classic::ClassicProvider;
use crate::classic::provider::by_status;
use futures_util::stream::{self, StreamExt};
use quittance_lifecycle::{FaultClass, PollOutcome};
use quittance_protocol::classic::Part;
use quittance_protocol::classic::answer::{BatchReply, read_batch};
use quittance_protocol::classic::code::is_pending;
use tokio::time::{Instant, timeout_at};

/// How many tasks are polled alone at the same time.
const ASKS_MAX: usize = 8;

impl ClassicProvider {
    /// Polls the tasks. The outcomes come in the order of `tasks`.
    pub(crate) async fn ask_for(&self, tasks: &[String]) -> Vec<PollOutcome> {
        match tasks {
            [] => Vec::new(),
            [task] => vec![self.ask(task).await],
            several if several.iter().all(|task| can_stand_in_a_list(task)) => {
                self.ask_together(several).await
            }
            several => self.ask_each(&several.iter().collect::<Vec<_>>()).await,
        }
    }

    async fn ask_together(&self, tasks: &[String]) -> Vec<PollOutcome> {
        let for_all = |outcome: PollOutcome| vec![outcome; tasks.len()];
        if self.allowance.as_ref().is_some_and(|allowance| !allowance.spend()) {
            return for_all(PollOutcome::NoReply);
        }
        let mut form = self.question("get");
        form.0.insert("ids".to_owned(), Part::Text(tasks.join(",")));
        let Ok(reply) = self.post("res.php", form, self.frame.poll_timeout).await else {
            return for_all(PollOutcome::NoReply);
        };
        if let Some(outcome) = by_status(&reply) {
            return for_all(outcome);
        }
        match read_batch(&reply.body, &self.codes) {
            BatchReply::Parts(parts) if parts.len() == tasks.len() => self.confirm(tasks, &parts).await,
            // A fault of one task says nothing about the others, and may mean that the service does not know `ids`.
            BatchReply::Fault(fault) if !is_about_a_task(fault.class) => for_all(PollOutcome::Faulted(fault)),
            BatchReply::Parts(_) | BatchReply::Unclear | BatchReply::Fault(_) => {
                self.batch_failed();
                self.ask_each(&tasks.iter().collect::<Vec<_>>()).await
            }
            BatchReply::Puzzling(_) => {
                self.batch_failed();
                for_all(PollOutcome::NoReply)
            }
        }
    }

    async fn confirm(&self, tasks: &[String], parts: &[String]) -> Vec<PollOutcome> {
        let (waiting, speaking): (Vec<usize>, Vec<usize>) =
            (0..tasks.len()).partition(|place| is_pending(&parts[*place]));
        let named = |places: &[usize]| places.iter().map(|place| &tasks[*place]).collect::<Vec<_>>();
        let replies = self.ask_each(&named(&speaking)).await;
        let is_confirmed =
            speaking.iter().zip(&replies).all(|(place, replies)| confirms(replies, &parts[*place]));
        let rest = if is_confirmed {
            vec![PollOutcome::Pending; waiting.len()]
        } else {
            self.batch_failed();
            self.ask_each(&named(&waiting)).await
        };
        let mut outcomes: Vec<_> =
            speaking.into_iter().zip(replies).chain(waiting.into_iter().zip(rest)).collect();
        outcomes.sort_by_key(|(place, _)| *place);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Polls each task alone, several at a time. A task that hangs costs the other tasks only its own timeout.
    async fn ask_each(&self, tasks: &[&String]) -> Vec<PollOutcome> {
        let deadline = Instant::now() + self.frame.poll_timeout * 2;
        let ask =
            |task| async move { timeout_at(deadline, self.ask(task)).await.unwrap_or(PollOutcome::NoReply) };
        let asks: Vec<_> = tasks.iter().map(|task| ask(task.as_str())).collect();
        stream::iter(asks).buffered(ASKS_MAX).collect().await
    }
}

/// Whether the task's own reply agrees with its part.
fn confirms(replies: &PollOutcome, part: &str) -> bool {
    match replies {
        PollOutcome::Answered(delivery) => delivery.payload.text == part,
        PollOutcome::Faulted(fault) | PollOutcome::NoSuchTask(fault) => fault.code == part,
        PollOutcome::Pending | PollOutcome::NoReply => false,
    }
}

const fn is_about_a_task(class: FaultClass) -> bool {
    matches!(class, FaultClass::Caller | FaultClass::Unsolvable | FaultClass::UnlistedCode)
}

fn can_stand_in_a_list(task: &str) -> bool {
    !task.is_empty() && task.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

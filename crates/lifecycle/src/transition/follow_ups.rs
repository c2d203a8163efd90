//! Follow-ups after an order has ended: reports to the provider, and calls to webhooks. Nothing here costs money.

use super::{Decision, NextOrder, WhyIgnored};
use crate::event::{DeliveryOutcome, Effect, ReportOutcome};
use crate::follow_up::{
    DeliveryState, FOLLOW_UP_WAIT, REPORT_PAUSES, Report, ReportState, WEBHOOKS_MAX, WHY_BYTES_MAX, Webhook,
};
use crate::order::{HandOut, Order, Phase, Progress};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::timeline::TimelineEvent;
use alloc::string::String;

/// The attempt whose answer a caller's report is about.
fn answered_attempt(order: &Order) -> Option<u32> {
    match &order.phase {
        Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => Some(answer.attempt),
        Phase::Expired { .. } => {
            let answered = order.attempts.iter().rev().find(|attempt| attempt.progress == Progress::Answered);
            answered.map(|attempt| attempt.number)
        }
        _ => None,
    }
}

impl Order {
    /// The caller's report about the present answer, if there is one.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.attempt(answered_attempt(self)?)?.report.as_ref()
    }

    /// When the next webhook must be called, if there is one.
    pub(crate) fn follow_up_due(&self) -> Option<Timestamp> {
        let reports = self.attempts.iter().filter_map(|attempt| match attempt.report.as_ref()?.state {
            ReportState::Owed { at, .. } => Some(at),
            _ => None,
        });
        let tellings = self.webhooks.iter().filter_map(|webhook| match webhook.state {
            DeliveryState::Owed { at, .. } if !self.is_awaited() => Some(at),
            _ => None,
        });
        reports.chain(tellings).min()
    }

    /// Whether the order is among the dead letters: because it is dead, because a webhook was never delivered, or
    /// because the store forgot the order.
    #[must_use]
    pub fn needs_a_person(&self) -> bool {
        matches!(self.phase, Phase::Dead { .. })
            || self.put_back.is_some()
            || (self.has_dead_webhook() && !self.phase.is_open())
    }

    /// Whether a delivery that begins at `begun` carries the answer, rather than the message that there is none for
    /// its caller.
    fn leaves_by_delivery(&self, begun: Timestamp) -> bool {
        let by = self.taker().unwrap_or(self.key);
        let is_in_stock = matches!(self.phase, Phase::Solved { .. }) && self.must_be_claimed();
        let hand_out = self.hand_out(by, self.terms.min_life, begun);
        !is_in_stock && matches!(hand_out, HandOut::Answer(_) | HandOut::Claim)
    }

    #[must_use]
    pub fn has_dead_webhook(&self) -> bool {
        self.webhooks.iter().any(|webhook| matches!(webhook.state, DeliveryState::Dead { .. }))
    }
}

impl NextOrder {
    /// Runs the first follow-up that is due, if there is one.
    pub(super) fn run_follow_up(mut self) -> Decision {
        let now = self.now;
        if let Some(number) = self.next.attempts.iter().find_map(|attempt| match attempt.report.as_ref()? {
            Report { state: ReportState::Owed { at, .. }, .. } if *at <= now => Some(attempt.number),
            _ => None,
        }) {
            return self.pass_report(number);
        }
        if self.next.is_awaited() {
            return Decision::Ignore(WhyIgnored::NotDueYet);
        }
        // The try is on record before it is made, so that a crash cannot make it for ever.
        let due = self.next.webhooks.iter_mut().find_map(|webhook| match &mut webhook.state {
            DeliveryState::Owed { at, tries } if *at <= now => {
                (*at, *tries) = (now + FOLLOW_UP_WAIT, tries.saturating_add(1));
                Some(webhook.number)
            }
            _ => None,
        });
        match due {
            Some(webhook) => {
                self.reserve_for_delivery();
                self.then(Effect::DeliverWebhook { webhook })
            }
            None => Decision::Ignore(WhyIgnored::NotDueYet),
        }
    }

    /// Reserves a single-use answer for the caller before it is delivered, so that a cancellation cannot send it to
    /// the stock as well. It counts as collected only when the delivery was accepted.
    fn reserve_for_delivery(&mut self) {
        let order = &self.next;
        let is_good = matches!(&order.phase, Phase::Solved { answer, .. }
            if answer.is_good_for(order.terms.min_life, self.now));
        if is_good && order.wanted && order.must_be_claimed() {
            self.next = order.clone().taken(order.key, self.now);
        }
    }

    // ---- reports -------------------------------------------------------------------------------------------

    /// Records a caller's report whether the answer was good. Only the first report counts.
    pub(super) fn reported(mut self, is_good: bool) -> Decision {
        let now = self.now;
        let Some(number) = answered_attempt(&self.next) else {
            return Decision::Ignore(WhyIgnored::WrongPhase);
        };
        let Some(attempt) = self.next.attempt_mut(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        if attempt.report.is_some() {
            return Decision::Ignore(WhyIgnored::OldNews);
        }
        let state = match attempt.task {
            Some(_) => ReportState::Owed { at: now, tries: 0 },
            None => ReportState::Lost,
        };
        let is_owed = state != ReportState::Lost;
        attempt.report = Some(Report { is_good, at: now, state });
        self.counters.reported_bad = u64::from(!is_good);
        self.book_on(number);
        self.tell(TimelineEvent::Reported { attempt: number, is_good });
        if is_owed { self.pass_report(number) } else { self.done() }
    }

    fn pass_report(mut self, number: u32) -> Decision {
        let at = self.now + FOLLOW_UP_WAIT;
        let Some(attempt) = self.next.attempt_mut(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        match (&mut attempt.report, &attempt.task) {
            (Some(Report { is_good, state: state @ ReportState::Owed { .. }, .. }), Some(task)) => {
                let ReportState::Owed { tries, .. } = *state else {
                    return Decision::Ignore(WhyIgnored::OldNews);
                };
                *state = ReportState::Owed { at, tries: tries.saturating_add(1) };
                let effect = Effect::Report { attempt: number, task: task.clone(), is_good: *is_good };
                self.then(effect)
            }
            _ => Decision::Ignore(WhyIgnored::OldNews),
        }
    }

    pub(super) fn report_passed(mut self, number: u32, outcome: ReportOutcome) -> Decision {
        let now = self.now;
        let Some(attempt) = self.next.attempt_mut(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        let Some(Report { state, .. }) = &mut attempt.report else {
            return Decision::Ignore(WhyIgnored::OldNews);
        };
        let ReportState::Owed { tries, .. } = *state else { return Decision::Ignore(WhyIgnored::OldNews) };
        *state = match outcome {
            ReportOutcome::Accepted => ReportState::Passed,
            ReportOutcome::Refused { code } => ReportState::Refused { code: shortened(code) },
            ReportOutcome::NoReply => match REPORT_PAUSES.get(usize::from(tries).saturating_sub(1)) {
                Some(pause) => ReportState::Owed { at: now + *pause, tries },
                None => ReportState::Lost,
            },
        };
        self.done()
    }

    // ---- listeners -----------------------------------------------------------------------------------------

    /// A caller adds a webhook. The same webhook, added twice before it was called, is called once.
    pub(super) fn webhook_added(mut self, url: String, dialect: String) -> Decision {
        let owed = |webhook: &Webhook| matches!(webhook.state, DeliveryState::Owed { .. });
        if self.next.webhooks.iter().any(|known| owed(known) && known.url == url && known.dialect == dialect)
        {
            return Decision::Ignore(WhyIgnored::OldNews);
        }
        if self.next.webhooks.len() >= WEBHOOKS_MAX {
            return Decision::Ignore(WhyIgnored::TooMany);
        }
        self.next.last_webhook += 1;
        let number = self.next.last_webhook;
        let state = DeliveryState::Owed { at: self.now, tries: 0 };
        self.next.webhooks.push(Webhook { number, url, dialect, state });
        self.done()
    }

    pub(super) fn webhook_tried(
        mut self,
        number: u32,
        outcome: DeliveryOutcome,
        policy: &Policy,
    ) -> Decision {
        let now = self.now;
        let webhooks = &mut self.next.webhooks;
        let Some(index) = webhooks.iter().position(|webhook| webhook.number == number) else {
            return Decision::Ignore(WhyIgnored::OldNews);
        };
        let DeliveryState::Owed { at, tries } = webhooks[index].state else {
            return Decision::Ignore(WhyIgnored::OldNews);
        };
        match outcome {
            DeliveryOutcome::Delivered => {
                webhooks.remove(index);
                self.next.uncollected &= !self.next.leaves_by_delivery(at - FOLLOW_UP_WAIT);
                self.tell(TimelineEvent::WebhookDelivered { webhook: number });
            }
            DeliveryOutcome::NotDelivered { why } => {
                let why = shortened(why);
                self.counters.webhooks_failed = 1;
                webhooks[index].state = policy.webhook_pauses.next(now, tries, &why);
                self.tell(TimelineEvent::WebhookFailed { webhook: number, why });
            }
            DeliveryOutcome::SwitchedOff { why } => {
                let why = shortened(why);
                webhooks[index].state = DeliveryState::Dead { at: now, why: why.clone() };
                self.tell(TimelineEvent::WebhookFailed { webhook: number, why });
            }
        }
        self.done()
    }

    /// Plans every undelivered webhook again, because an operator replays it.
    pub(super) fn tell_again(&mut self) -> bool {
        let now = self.now;
        let mut is_any = false;
        for webhook in &mut self.next.webhooks {
            if matches!(webhook.state, DeliveryState::Dead { .. }) {
                webhook.state = DeliveryState::Owed { at: now, tries: 0 };
                is_any = true;
            }
        }
        is_any
    }

    /// Removes the webhooks that were never delivered, because an operator drops them.
    pub(super) fn tell_no_more(&mut self) -> bool {
        let before = self.next.webhooks.len();
        self.next.webhooks.retain(|webhook| matches!(webhook.state, DeliveryState::Owed { .. }));
        self.next.webhooks.len() < before
    }
}

fn shortened(mut why: String) -> String {
    let mut end = WHY_BYTES_MAX.min(why.len());
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    why.truncate(end);
    why
}

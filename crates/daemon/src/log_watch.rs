//! Log lines for operators: that the provider or the store fails or works again, or that an order or a webhook needs
//! an operator. There is one line for each change, not for each affected order.

use quittance::lifecycle::{FaultClass, Key, Order, Signal, TimelineEvent};
use quittance_gateway::Gateway;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// How often changes are read that no order shows.
const LOOK: Duration = Duration::from_secs(1);
/// For how long after a failure the store counts as failing.
const STORE_FAILING: Duration = Duration::from_secs(5);

/// How long a reason stays in the log before another one may follow, because two may alternate.
const WHY_SPAN: Duration = Duration::from_secs(5);

/// How long after a line about callbacks without an order the next one may follow.
const WITHOUT_ORDER_SPAN: Duration = Duration::from_secs(60);

/// How many logged orders are remembered.
const LOGGED_MAX: usize = 256;

#[derive(Default)]
struct Known {
    is_paused: bool,
    store: KnownStore,
    failure: Option<ProviderFailure>,
    without_order: WithoutOrder,
    /// The orders that were logged lately, with the length of their timelines, the latest first.
    logged: VecDeque<(Key, usize)>,
}

/// What was last logged about the provider. While every other submit fails, it counts as failing: it works again only
/// after some time without failures.
struct ProviderFailure {
    class: Signal,
    logged: Instant,
    last: Instant,
    has_worked_since: bool,
}

/// How many callbacks without an order were logged, and when.
#[derive(Default)]
struct WithoutOrder {
    logged: u64,
    at: Option<Instant>,
}

impl WithoutOrder {
    /// How many have come since the last line, if a line is due.
    fn news(&mut self, kept: u64, now: Instant) -> Option<u64> {
        let is_due = self.at.is_none_or(|at| now.duration_since(at) >= WITHOUT_ORDER_SPAN);
        let new = kept.saturating_sub(self.logged);
        if new == 0 || !is_due {
            return None;
        }
        (self.logged, self.at) = (kept, Some(now));
        Some(new)
    }
}

/// What was last logged about the store, and when.
#[derive(Default)]
struct KnownStore {
    away: Option<(String, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
enum StoreNews {
    Away(String),
    Well,
}

impl KnownStore {
    /// The log line for the present state, if it is new; `failure` is the present error.
    fn news(&mut self, failure: Option<String>, now: Instant) -> Option<StoreNews> {
        let Some(why) = failure else { return self.away.take().map(|_| StoreNews::Well) };
        if let Some((logged, at)) = &self.away
            && (*logged == why || now.duration_since(*at) < WHY_SPAN)
        {
            return None;
        }
        self.away = Some((why.clone(), now));
        Some(StoreNews::Away(why))
    }
}

/// Logs changes for operators, as long as the daemon runs.
pub(crate) async fn log_changes(gateway: Gateway) {
    let mut commits = gateway.orders().commit_feed().watch();
    let mut look = tokio::time::interval(LOOK);
    let mut known = Known::default();
    loop {
        tokio::select! {
            committed = commits.recv() => match committed {
                Ok(order) => known.log_order(&order),
                // Too much at once to log each; what needs a person is among the dead letters all the same.
                Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "changes came faster than they are logged"),
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            _ = look.tick() => {
                known.log_state(&gateway);
                if known.is_well_again(Instant::now()) {
                    tracing::info!("the provider takes orders again");
                }
            }
        }
    }
}

impl Known {
    fn log_state(&mut self, gateway: &Gateway) {
        let engine = gateway.orders().engine();
        let paused = engine.paused();
        match (&paused, self.is_paused) {
            (Some(fault), false) => tracing::warn!(
                code = %fault.code.escape_debug(),
                class = fault.class.name(),
                "nothing more is submitted: the provider does not accept the account: fix it, then run `quittance provider resume` or start again"
            ),
            (None, true) => tracing::info!("submitting again"),
            _ => {}
        }
        self.is_paused = paused.is_some();
        if let Some(callbacks) = self.without_order.news(engine.kept_without_order(), Instant::now()) {
            tracing::warn!(
                callbacks,
                "genuine callbacks came for orders that the store does not have; they are kept, and answer the orders when they are \
                 placed again. Unless these orders were dropped, the store has lost them: was a backup restored?"
            );
        }
        let failure = engine
            .store_was_away(STORE_FAILING)
            .then(|| engine.store_error().unwrap_or_else(|| "it did not say why".into()));
        match self.store.news(failure, Instant::now()) {
            Some(StoreNews::Away(why)) => {
                let why = why.escape_debug();
                tracing::warn!(%why, "the store cannot be read or written; callers are asked to retry");
            }
            Some(StoreNews::Well) => tracing::info!("the store can be read and written again"),
            None => {}
        }
    }

    fn log_order(&mut self, order: &Order) {
        let Some(last) = order.timeline.entries.last() else { return };
        // The entry before a dead letter or a retry is the fault that led to it.
        let lately = order.timeline.entries.iter().rev().take_while(|entry| entry.at == last.at);
        let mut lately: Vec<&TimelineEvent> = lately.map(|entry| &entry.event).collect();
        let is_well = |event: &&TimelineEvent| {
            matches!(event, TimelineEvent::Accepted { .. } | TimelineEvent::Solved { .. })
        };
        if let Some(failure) = &mut self.failure
            && lately.iter().any(is_well)
        {
            failure.has_worked_since = true;
        }
        let is_logged = |event: &&TimelineEvent| {
            matches!(
                event,
                TimelineEvent::Faulted { .. }
                    | TimelineEvent::LeftInDoubt { .. }
                    | TimelineEvent::MovedToDeadLetters { .. }
                    | TimelineEvent::WebhookFailed { .. }
            )
        };
        if !lately.iter().any(is_logged) {
            return;
        }
        // An order also changes without an entry in its timeline: what was logged of it is not logged again.
        let length = order.timeline.entries.len() + order.timeline.left_out as usize;
        let before =
            self.logged.iter().position(|(key, _)| *key == order.key).and_then(|at| self.logged.remove(at));
        lately.truncate(before.map_or(usize::MAX, |(_, logged)| length.saturating_sub(logged)));
        self.logged.truncate(LOGGED_MAX - 1);
        self.logged.push_front((order.key, length));
        for event in lately.into_iter().rev() {
            self.log_event(order, event);
        }
    }

    fn log_event(&mut self, order: &Order, event: &TimelineEvent) {
        let (key, kind) = (order.key.short(), order.terms.kind.as_str());
        match event {
            TimelineEvent::Faulted { fault, .. } => self.log_failure(fault.class.into(), &fault.code),
            TimelineEvent::LeftInDoubt { evidence, .. } => {
                self.log_failure(Signal::InDoubt, &evidence.summary);
            }
            TimelineEvent::MovedToDeadLetters { cause } => tracing::warn!(
                order = key, kind, tenant = order.terms.tenant, %cause, "a dead letter: a person must look"
            ),
            TimelineEvent::WebhookFailed { webhook, why } => {
                let why = why.escape_debug();
                if order.has_dead_webhook() {
                    tracing::warn!(order = key, kind, webhook, %why, "a webhook was never delivered: a dead letter");
                } else {
                    tracing::info!(order = key, kind, webhook, %why, "a webhook could not be delivered; the delivery is \
                                                                      tried again");
                }
            }
            _ => {}
        }
    }

    fn log_failure(&mut self, class: Signal, what: &str) {
        if self.is_new_failure(class, Instant::now()) {
            tracing::warn!(class = class.name(), what = %what.escape_debug(), "the provider fails");
        }
    }

    fn is_new_failure(&mut self, class: Signal, now: Instant) -> bool {
        if matches!(class, Signal::Fault(FaultClass::Caller | FaultClass::Unsolvable)) {
            return false;
        }
        match &mut self.failure {
            Some(known) if known.class == class || now.duration_since(known.logged) < WHY_SPAN => {
                (known.last, known.has_worked_since) = (now, false);
                false
            }
            _ => {
                self.failure =
                    Some(ProviderFailure { class, logged: now, last: now, has_worked_since: false });
                true
            }
        }
    }

    fn is_well_again(&mut self, now: Instant) -> bool {
        let is_over = |known: &mut ProviderFailure| {
            known.has_worked_since && now.duration_since(known.last) >= WHY_SPAN
        };
        self.failure.take_if(is_over).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_without_an_order_are_logged_at_once_and_then_once_a_minute() {
        let (mut known, start) = (WithoutOrder::default(), Instant::now());
        let mut news = |kept: u64, after: u64| known.news(kept, start + Duration::from_secs(after));
        assert_eq!(news(0, 0), None);
        assert_eq!(news(2, 1), Some(2));
        assert_eq!(news(5, 30), None);
        assert_eq!(news(5, 61), Some(3));
        assert_eq!(news(5, 200), None);
    }

    #[test]
    fn why_the_store_is_away_is_logged_once_and_again_when_it_changes_but_not_in_a_flood() {
        let (mut known, start) = (KnownStore::default(), Instant::now());
        let mut news = |why: Option<&str>, after: u64| {
            known.news(why.map(Into::into), start + Duration::from_secs(after))
        };
        let away = |why: &str| Some(StoreNews::Away(why.into()));
        assert_eq!(news(None, 0), None);
        assert_eq!(news(Some("refused"), 1), away("refused"));
        assert_eq!(news(Some("refused"), 60), None);
        assert_eq!(news(Some("full"), 61), away("full"));
        assert_eq!(news(Some("refused"), 62), None, "reasons that take turns");
        assert_eq!(news(Some("refused"), 66), away("refused"));
        assert_eq!(news(None, 67), Some(StoreNews::Well));
        assert_eq!(news(None, 68), None);
        assert_eq!(news(Some("refused"), 69), away("refused"), "another failure, if for the same reason");
    }

    #[test]
    fn a_provider_that_fails_now_and_then_is_failing_once_until_it_has_been_well_for_a_while() {
        let (mut known, start) = (Known::default(), Instant::now());
        let at = |second: u64| start + Duration::from_secs(second);
        assert!(known.is_new_failure(FaultClass::Busy.into(), at(0)));
        for second in 1..60 {
            assert!(!known.is_new_failure(FaultClass::Busy.into(), at(second)), "it was logged");
            known.failure.as_mut().unwrap().has_worked_since = true;
            assert!(!known.is_well_again(at(second)), "a fault a second");
        }
        assert!(known.is_well_again(at(65)));
        assert!(!known.is_well_again(at(66)), "once");
        assert!(
            !known.is_new_failure(FaultClass::Caller.into(), at(67)),
            "that is nothing of the provider's"
        );
        assert!(known.is_new_failure(FaultClass::Unreachable.into(), at(68)));
        assert!(!known.is_new_failure(FaultClass::Busy.into(), at(69)), "reasons that take turns");
        assert!(!known.is_well_again(at(100)), "nothing has worked since");
    }
}

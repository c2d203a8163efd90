//! What a person on call wants to find in the log: that the provider or the store is in trouble, and that it is well again;
//! that an order, or a call to a caller, needs him. One line for each change, not for each order that it hurts.

use quittance::lifecycle::{Beat, Fault, FaultClass, Order};
use quittance_gateway::Gateway;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// How often is looked for what no order tells.
const LOOK: Duration = Duration::from_secs(1);
/// For how long after a failure the store counts as in trouble.
const STORE_TROUBLE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Known {
    is_paused: bool,
    is_store_away: bool,
    /// What the provider was last seen to be in trouble with.
    trouble: Option<FaultClass>,
}

/// Runs for as long as the daemon does.
pub(super) async fn tell_changes(gateway: Gateway) {
    let mut commits = gateway.desk().hub().watch();
    let mut look = tokio::time::interval(LOOK);
    let mut known = Known::default();
    loop {
        tokio::select! {
            committed = commits.recv() => match committed {
                Ok(order) => known.tell_order(&order),
                // Too much at once to tell each; what needs a person is among the dead letters all the same.
                Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "changes came faster than they are told"),
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            _ = look.tick() => known.tell_state(&gateway),
        }
    }
}

impl Known {
    fn tell_state(&mut self, gateway: &Gateway) {
        let engine = gateway.desk().engine();
        let paused = engine.paused();
        match (&paused, self.is_paused) {
            (Some(fault), false) => tracing::warn!(
                code = %fault.code.escape_debug(),
                class = fault.class.name(),
                "nothing more is submitted: the provider's account needs a person; mend it, then release (POST /v1/admin/release) or start again"
            ),
            (None, true) => tracing::info!("submitting again"),
            _ => {}
        }
        self.is_paused = paused.is_some();
        let is_away = engine.store_was_away(STORE_TROUBLE);
        match (is_away, self.is_store_away) {
            (true, false) => {
                tracing::warn!("the store cannot be read or written; callers are told to come again");
            }
            (false, true) => tracing::info!("the store is well again"),
            _ => {}
        }
        self.is_store_away = is_away;
    }

    fn tell_order(&mut self, order: &Order) {
        let Some(last) = order.story.entries.last() else { return };
        // The beat before a burial or a retry is the fault that led to it.
        let lately = order.story.entries.iter().rev().take_while(|entry| entry.at == last.at);
        for entry in lately.collect::<Vec<_>>().into_iter().rev() {
            self.tell_beat(order, &entry.beat);
        }
    }

    fn tell_beat(&mut self, order: &Order, beat: &Beat) {
        let (key, kind) = (order.key.short(), order.terms.kind.as_str());
        match beat {
            Beat::Faulted { fault, .. } => self.tell_fault(fault),
            Beat::Accepted { .. } | Beat::Solved { .. } if self.trouble.take().is_some() => {
                tracing::info!("the provider takes orders again");
            }
            Beat::Buried { cause } => tracing::warn!(
                order = key, kind, tenant = order.terms.tenant, %cause, "a dead letter: a person must look"
            ),
            Beat::NotTold { listener, why } => {
                let why = why.escape_debug();
                if order.has_dead_listener() {
                    tracing::warn!(order = key, kind, listener, %why, "a caller was never reached: a dead letter");
                } else {
                    tracing::info!(order = key, kind, listener, %why, "a caller could not be called; he is tried again");
                }
            }
            _ => {}
        }
    }

    fn tell_fault(&mut self, fault: &Fault) {
        let is_of_the_provider = !matches!(fault.class, FaultClass::Caller | FaultClass::Unsolvable);
        if is_of_the_provider && self.trouble != Some(fault.class) {
            self.trouble = Some(fault.class);
            tracing::warn!(class = fault.class.name(), what = %fault.code.escape_debug(), "the provider is in trouble");
        }
    }
}

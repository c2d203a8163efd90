//! Whoever calls those who asked to be called. He is given the order as it stands and says whether his word was taken;
//! when to try again is decided elsewhere.

use async_trait::async_trait;
use quittance_lifecycle::{Listener, Order, TellOutcome};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

#[async_trait]
pub trait Courier: Send + Sync {
    /// It may be told twice: whoever listens is given a name for the message, and the same one each time.
    async fn tell(&self, order: &Order, listener: &Listener) -> TellOutcome;
}

/// Takes every word and remembers to whom it went, for tests and trials. Bounded: the last ones are kept.
#[derive(Debug, Default)]
pub struct MemoryCourier(Mutex<VecDeque<Listener>>);

/// How many words are remembered.
const TOLD_MAX: usize = 1024;

impl MemoryCourier {
    /// Who was told, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Listener> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[async_trait]
impl Courier for MemoryCourier {
    async fn tell(&self, _order: &Order, listener: &Listener) -> TellOutcome {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        told.push_back(listener.clone());
        TellOutcome::Taken
    }
}

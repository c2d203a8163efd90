//! How a node shows that it is there: it signs in to the store's roster every few seconds, compares its clock with the
//! store's on the way, and says in the log when they are too far apart or when the orders have moved elsewhere.

use crate::SystemClock;
use quittance_engine::Engine;
use quittance_ports::roster::{SIGN_IN_SPAN, SKEW_MAX};
use quittance_ports::{Card, Clock, Roster, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// A reply that took longer than this says little about anybody's clock.
const REPLY_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Presence {
    roster: Arc<dyn Roster>,
    engine: Arc<Engine>,
    card: Card,
    is_skewed: bool,
    is_sealed: bool,
}

impl Presence {
    pub(crate) fn new(roster: Arc<dyn Roster>, engine: Arc<Engine>, node: u64, name: String) -> Self {
        let now = SystemClock.now();
        let card = Card {
            node,
            name,
            version: env!("CARGO_PKG_VERSION").into(),
            format: quittance_record::VERSION,
            started: now,
            at: now,
            skew_ms: None,
            vitals: engine.vitals(),
        };
        Self { roster, engine, card, is_skewed: false, is_sealed: false }
    }

    /// Until it is dropped. A store that is away hears of us when it is back.
    pub(crate) async fn keep_up(mut self) {
        loop {
            if self.sign_in().await.is_err() {
                self.look_for_seal().await;
            }
            tokio::time::sleep(SIGN_IN_SPAN).await;
        }
    }

    pub(crate) async fn sign_in(&mut self) -> Result<(), StoreError> {
        self.card.vitals = self.engine.vitals();
        let sent = SystemClock.now();
        self.card.at = sent;
        let there = self.roster.sign_in(&self.card).await?;
        let back = SystemClock.now();
        let reply = back.since(sent);
        if reply <= REPLY_MAX {
            // It was read somewhere between; the middle is wrong by half of the reply at most.
            let here = sent + reply / 2;
            let skew = i128::from(here.as_millis()) - i128::from(there.as_millis());
            self.card.skew_ms = Some(i64::try_from(skew).unwrap_or(i64::MAX));
            self.tell_skew();
        }
        if self.card.vitals.store_was_away {
            self.look_for_seal().await;
        }
        Ok(())
    }

    fn tell_skew(&mut self) {
        let Some(skew_ms) = self.card.skew_ms else { return };
        let is_skewed = u128::from(skew_ms.unsigned_abs()) > SKEW_MAX.as_millis();
        if is_skewed && !self.is_skewed {
            tracing::warn!(
                skew_ms,
                "this machine's clock and the store's are too far apart: answers may be handed out older than promised, and \
                 alarms ring at the wrong time; set the clock by NTP"
            );
        } else if self.is_skewed && !is_skewed {
            tracing::info!(skew_ms, "this machine's clock and the store's agree again");
        }
        self.is_skewed = is_skewed;
    }

    async fn look_for_seal(&mut self) {
        let Ok(note) = self.roster.sealed().await else { return };
        if let Some(note) = note.as_ref().filter(|_| !self.is_sealed) {
            tracing::error!(
                note,
                "the store is closed and takes no orders: set store.url to where they went, and restart this node; what came \
                 in meanwhile is kept in its spill"
            );
        }
        self.is_sealed = note.is_some();
    }
}

//! Callbacks from providers. The address that we give to a provider names the order, the birth of its record, the
//! attempt and the target. A MAC covers all four. So a callback identifies its attempt even if the reply to the
//! submit was lost, and no other party can forge one.
//!
//! A genuine callback stays genuine if the store forgets: a node checks addresses with every secret that its store
//! has had, and keeps callbacks that it cannot match yet.

use crate::at_the_gate::is_silent;
use crate::{ApplyOutcome, Engine};
use hmac::{Hmac, KeyInit, Mac};
use quittance_lifecycle::{
    Attempt, CallbackResult, Event, Key, Order, Progress, Target, Timestamp, WhyIgnored,
};
use quittance_ports::{IncomingEvent, SpillError, StoreError, Versioned};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// 128 bits: a MAC cannot be guessed, and the address stays short.
const MAC_BYTES: usize = 16;
/// How often a node that does not know all secrets yet looks again whether it knows an address.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Where providers can reach us, and the secrets that sign our callback addresses. Every node has the same address
/// and secrets. Clones share the secrets.
#[derive(Clone)]
pub struct CallbackAddress {
    base: String,
    secrets: Arc<CallbackSecrets>,
}

struct CallbackSecrets {
    /// The first secret signs. An address is genuine if any of them signed it.
    known: RwLock<Vec<[u8; 32]>>,
    /// Until when other nodes may still add a secret, in milliseconds.
    unsettled_until: AtomicU64,
}

impl fmt::Debug for CallbackAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackAddress").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Which attempt a genuine callback is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addressee {
    pub(crate) key: Key,
    pub(crate) born: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) target: u64,
}

impl Addressee {
    pub(crate) fn of(order: &Order, attempt: u32) -> Self {
        Self { key: order.key, born: order.born, attempt, target: beginning(&order.terms.target) }
    }
}

/// A short digest of a target, enough to distinguish it from another.
pub(crate) fn beginning(target: &Target) -> u64 {
    let b = &target.0;
    u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

impl CallbackAddress {
    /// `base` is the address without the last segment of its path, such as `https://q.example.com/callback`.
    #[must_use]
    pub fn new(base: impl Into<String>, secret: [u8; 32]) -> Self {
        let secrets =
            CallbackSecrets { known: RwLock::new(vec![secret]), unsettled_until: AtomicU64::new(0) };
        Self { base: base.into(), secrets: Arc::new(secrets) }
    }

    /// The address without the last segment of its path.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// A short digest of the address. An attempt stores it to show where its callback goes.
    pub(crate) fn mark(&self) -> u32 {
        address_mark(&self.base)
    }

    /// Replaces the secrets: the first one signs, and all of them verify.
    pub fn set_secrets(&self, secrets: Vec<[u8; 32]>) {
        if !secrets.is_empty() {
            *self.secrets.known.write().unwrap_or_else(PoisonError::into_inner) = secrets;
        }
    }

    /// Until `until`, other nodes may add a secret, so an unknown address is checked again.
    pub fn is_unsettled_until(&self, until: Timestamp) {
        self.secrets.unsettled_until.store(until.as_millis(), Ordering::Relaxed);
    }

    fn unsettled_until(&self) -> Timestamp {
        Timestamp::from_millis(self.secrets.unsettled_until.load(Ordering::Relaxed))
    }

    fn secrets(&self) -> Vec<[u8; 32]> {
        self.secrets.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn of(&self, to: &Addressee) -> String {
        let Addressee { key, born, attempt, target } = to;
        let secrets = self.secrets();
        let mac = proof(&secrets[0], to);
        format!("{}/{key}-{}-{attempt}-{target:016x}-{mac}", self.base, born.as_millis())
    }

    fn mac(secret: &[u8; 32], to: &Addressee) -> [u8; MAC_BYTES] {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret)
            .expect("HMAC takes a key of any length, and ours is 32 bytes");
        mac.update(b"quittance/callback/2");
        mac.update(&to.key.0);
        mac.update(&to.born.as_millis().to_le_bytes());
        mac.update(&to.attempt.to_le_bytes());
        mac.update(&to.target.to_le_bytes());
        let mut short = [0; MAC_BYTES];
        short.copy_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        short
    }

    /// The attempt that the last segment of a callback's path names; `None` if we did not create that segment.
    pub(crate) fn recognise(&self, segment: &str) -> Option<Addressee> {
        let mut parts = segment.split('-');
        let mut part = || parts.next();
        let key = Key::parse(part()?).ok()?;
        let born = Timestamp::from_millis(part()?.parse().ok()?);
        let attempt = part()?.parse().ok()?;
        let target = part().filter(|digits| digits.len() == 16)?;
        let target = u64::from_str_radix(target, 16).ok()?;
        let value = part()?;
        if part().is_some() {
            return None;
        }
        let to = Addressee { key, born, attempt, target };
        let is_ours = |secret: &[u8; 32]| bool::from(value.as_bytes().ct_eq(proof(secret, &to).as_bytes()));
        self.secrets().iter().any(is_ours).then_some(to)
    }
}

/// A short digest of a callback address.
pub(crate) fn address_mark(base: &str) -> u32 {
    let digest = Sha256::digest(base.as_bytes());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// The MAC of an address, as the address contains it.
fn proof(secret: &[u8; 32], to: &Addressee) -> String {
    CallbackAddress::mac(secret, to).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attempt of which we know only that it was made, some time after the birth `born`.
pub(crate) fn nameless(number: u32, born: Timestamp) -> Attempt {
    Attempt {
        number,
        sent: born,
        unsolved_at: born,
        accepted: false,
        progress: Progress::Sent,
        task: None,
        report: None,
        made_for: None,
        cost: None,
        unpriced_since: None,
        former: None,
        callback_address: None,
        account: None,
        drawn: None,
    }
}

/// Whether the event is for an attempt that the store has lost together with the last steps of the order. The MAC
/// proves that the attempt was made.
fn is_of_lost_attempt(order: &Order, event: &Event) -> bool {
    matches!(event, Event::CalledBack { attempt, .. } if *attempt > order.last_attempt)
}

/// The result of a callback. The provider gets "200" for each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackOutcome {
    Applied,
    /// The callback is genuine and changed nothing.
    Ignored(WhyIgnored),
    /// The store is away. The callback is safe in the spill.
    Spilled,
    /// The callback is genuine, but its order is no longer on record.
    Forgotten,
    /// We did not create the address of the callback.
    Forged,
}

/// Neither the store nor the spill could keep the callback: the provider must not get "200".
#[derive(Debug, thiserror::Error)]
#[error("neither the store nor the spill could keep the provider's callback or reply")]
pub struct NotSafe(#[from] pub SpillError);

impl Engine {
    /// Whether this engine created the callback address that ends in `segment`. An unknown address counts as forged.
    /// While other nodes may still add a secret, the call waits.
    pub async fn is_callback_address(&self, segment: &str) -> bool {
        let is_ours = self.recognise(segment).await.is_some();
        if !is_ours {
            self.forged.fetch_add(1, Ordering::Relaxed);
        }
        is_ours
    }

    /// The order and the attempt of a callback address that this engine created.
    pub(crate) fn addressee(&self, segment: &str) -> Option<(Key, u32)> {
        let to = self.callback.as_ref()?.recognise(segment)?;
        Some((to.key, to.attempt))
    }

    /// Handles a callback; `segment` is the last part of its path. Its request began `open_for` ago, which is when
    /// the provider called, however slowly the request arrived. When this returns, the content is durable.
    pub async fn called_back(
        &self,
        segment: &str,
        task: Option<String>,
        word: CallbackResult,
        open_for: Duration,
    ) -> Result<CallbackOutcome, NotSafe> {
        let begun = self.now() - open_for;
        let Some(Addressee { key, born, attempt, target }) = self.recognise(segment).await else {
            self.forged.fetch_add(1, Ordering::Relaxed);
            return Ok(CallbackOutcome::Forged);
        };
        let (receipt, unanswered) = self.receive_callback(key, begun);
        let event = Event::CalledBack { attempt, task, word, receipt };
        let outcome = self.arrive(IncomingEvent { key, born, target: Some(target), event }).await?;
        unanswered.answer();
        Ok(outcome)
    }

    /// Recognises a callback address. A node that has just joined a store without a secret does not know yet which
    /// secrets other nodes have used. Until they have written them, it does not count callbacks as forged.
    async fn recognise(&self, segment: &str) -> Option<Addressee> {
        let address = self.callback.as_ref()?;
        loop {
            let to = address.recognise(segment);
            if to.is_some() || self.now() >= address.unsettled_until() {
                return to;
            }
            self.world.clock.sleep_until(self.now() + LOOK_AGAIN).await;
        }
    }

    /// Writes an event from a provider to the store, or to the spill if the store is away.
    pub(crate) async fn arrive(&self, arrival: IncomingEvent) -> Result<CallbackOutcome, NotSafe> {
        match self.apply_incoming(&arrival).await {
            // It is genuine and paid for. The store may have forgotten the order, and get it back from another node
            // or a caller.
            Ok(CallbackOutcome::Forgotten) if self.may_come_back(&arrival) => {
                self.world.spill.keep(&arrival)?;
                self.note_spilled(&arrival.key);
                self.kept_without_order.fetch_add(1, Ordering::Relaxed);
                self.look_again_soon(&arrival);
                Ok(CallbackOutcome::Spilled)
            }
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                self.note_error(&error);
                self.world.spill.keep(&arrival)?;
                self.note_spilled(&arrival.key);
                self.expect_spill();
                Ok(CallbackOutcome::Spilled)
            }
        }
    }

    pub(crate) async fn apply_incoming(
        &self,
        arrival: &IncomingEvent,
    ) -> Result<CallbackOutcome, StoreError> {
        let Some(record) = self.load(&arrival.key).await? else { return Ok(CallbackOutcome::Forgotten) };
        if record.order.born == arrival.born && !is_of_lost_attempt(&record.order, &arrival.event) {
            return self.apply_event(&arrival.key, record, &arrival.event).await;
        }
        let Some((record, event)) = self.match_former(arrival, record).await? else {
            self.count_ignored(WhyIgnored::UnknownAttempt);
            return Ok(CallbackOutcome::Ignored(WhyIgnored::UnknownAttempt));
        };
        self.apply_event(&arrival.key, record, &event).await
    }

    /// What a callback means if its attempt is not on record but its target fits the order. The store has forgotten
    /// the record for which the attempt was made, or its last steps. Or the order was placed again long after.
    async fn match_former(
        &self,
        arrival: &IncomingEvent,
        record: Versioned,
    ) -> Result<Option<(Versioned, Event)>, StoreError> {
        let Event::CalledBack { attempt, task, word, receipt } = &arrival.event else { return Ok(None) };
        let target = beginning(&record.order.terms.target);
        if arrival.target != Some(target) || arrival.born > record.order.born || !self.may_come_back(arrival)
        {
            return Ok(None);
        }
        let former = Some((arrival.born, *attempt));
        let recalled =
            Event::Recalled { born: arrival.born, attempts: vec![nameless(*attempt, arrival.born)] };
        let now = match self.apply(&arrival.key, Some(record), &recalled).await? {
            ApplyOutcome::Advanced { now, .. }
            | ApplyOutcome::Act { now, .. }
            | ApplyOutcome::Ignored { now, .. } => now,
            ApplyOutcome::Missing => return Ok(None),
        };
        let number = now.order.attempts.iter().find(|known| known.former == former).map(|known| known.number);
        let event = |attempt| Event::CalledBack {
            attempt,
            task: task.clone(),
            word: word.clone(),
            receipt: receipt.clone(),
        };
        Ok(number.map(|number| (now, event(number))))
    }

    async fn apply_event(
        &self,
        key: &Key,
        record: Versioned,
        event: &Event,
    ) -> Result<CallbackOutcome, StoreError> {
        let was_open = record.order.phase.is_open();
        let was_silent = is_silent(&record.order, event);
        Ok(match self.apply(key, Some(record), event).await? {
            ApplyOutcome::Advanced { now, effect } => {
                self.learn_failure(&now.order, event);
                if was_silent {
                    self.note_settled_doubt(&now.order, event);
                }
                if was_open {
                    self.count_answer(&now.order);
                    self.learn_pace(&now.order, event);
                    self.learn_quickest(&now.order, event);
                }
                if let Some(effect) = effect {
                    self.perform_later(now, effect);
                }
                CallbackOutcome::Applied
            }
            ApplyOutcome::Act { now, effect } => {
                self.perform_later(now, effect);
                CallbackOutcome::Applied
            }
            ApplyOutcome::Ignored { why, .. } => CallbackOutcome::Ignored(why),
            ApplyOutcome::Missing => CallbackOutcome::Forgotten,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognised_as_it_was_written_and_not_with_any_character_changed() {
        let address = CallbackAddress::new("http://127.0.0.1:1/callback", [7; 32]);
        let to = Addressee {
            key: Key([0xab; 32]),
            born: Timestamp::from_millis(1_700_000_000_000),
            attempt: 3,
            target: 9,
        };
        let written = address.of(&to);
        let segment = written.rsplit('/').next().unwrap();
        assert_eq!(address.recognise(segment), Some(to));
        assert_eq!(CallbackAddress::new("", [8; 32]).recognise(segment), None, "another secret");
        for at in 0..segment.len() {
            for other in ["0", "1", "f", "-", "x", ""] {
                let changed = format!("{}{other}{}", &segment[..at], &segment[at + 1..]);
                if changed != segment {
                    assert_eq!(address.recognise(&changed), None, "{changed}");
                }
            }
        }
        for odd in
            ["", "-", "----", "é", &format!("{segment}-"), &format!("{segment}0"), &segment.to_uppercase()]
        {
            assert_eq!(address.recognise(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_address_that_was_signed_with_an_earlier_secret_is_still_ours() {
        let before = CallbackAddress::new("http://127.0.0.1:1/callback", [7; 32]);
        let to = Addressee { key: Key([1; 32]), born: Timestamp::from_millis(5), attempt: 1, target: 2 };
        let written = before.of(&to);
        let segment = written.rsplit('/').next().unwrap();
        let after = CallbackAddress::new("http://127.0.0.1:1/callback", [8; 32]);
        assert_eq!(after.recognise(segment), None);
        after.set_secrets(vec![[8; 32], [7; 32]]);
        assert_eq!(after.recognise(segment), Some(to));
        let other = after.of(&to);
        assert_eq!(before.recognise(other.rsplit('/').next().unwrap()), None, "the first of them signs");
    }

    #[test]
    fn the_secret_is_in_no_debug_output() {
        let debug = format!("{:?}", CallbackAddress::new("http://base", [0x5e; 32]));
        assert!(!debug.contains("5e") && !debug.contains("94"), "{debug}");
    }
}

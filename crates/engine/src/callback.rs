//! Callbacks in. The address that a provider is given names the order, the birth of its record, the attempt, and
//! carries a MAC over all three: so a callback identifies its attempt even if the reply to the submit was lost,
//! and nobody else can make one up.

use crate::{Applied, Engine};
use hmac::{Hmac, KeyInit, Mac};
use quittance_lifecycle::{Event, Key, Timestamp, WhyIgnored, Word};
use quittance_ports::{Arrival, SpillError, StoreError};
use sha2::Sha256;
use std::fmt;
use std::sync::atomic::Ordering;
use subtle::ConstantTimeEq;

/// 128 bits: nobody guesses them, and the address stays short.
const MAC_BYTES: usize = 16;

/// Where providers can reach us, and the secret by which we know our own addresses. Every node has the same.
#[derive(Clone)]
pub struct CallbackAddress {
    base: String,
    secret: [u8; 32],
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
}

impl CallbackAddress {
    /// `base` is what comes before the last segment of the path, such as `https://q.example.com/callback`.
    #[must_use]
    pub fn new(base: impl Into<String>, secret: [u8; 32]) -> Self {
        Self { base: base.into(), secret }
    }

    pub(crate) fn of(&self, to: &Addressee) -> String {
        let Addressee { key, born, attempt } = to;
        let mac: String = self.mac(to).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{key}-{}-{attempt}-{mac}", self.base, born.as_millis())
    }

    fn mac(&self, to: &Addressee) -> [u8; MAC_BYTES] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)
            .expect("HMAC takes a key of any length, and ours is 32 bytes");
        mac.update(b"quittance/callback/1");
        mac.update(&to.key.0);
        mac.update(&to.born.as_millis().to_le_bytes());
        mac.update(&to.attempt.to_le_bytes());
        let mut short = [0; MAC_BYTES];
        short.copy_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        short
    }

    /// Whom the last segment of a callback's path is for; nobody, if we did not write it.
    pub(crate) fn recognise(&self, segment: &str) -> Option<Addressee> {
        let mut parts = segment.split('-');
        let mut part = || parts.next();
        let key = Key::parse(part()?).ok()?;
        let born = Timestamp::from_millis(part()?.parse().ok()?);
        let attempt = part()?.parse().ok()?;
        let proof = part()?;
        if part().is_some() {
            return None;
        }
        let to = Addressee { key, born, attempt };
        let expected: String = self.mac(&to).iter().map(|byte| format!("{byte:02x}")).collect();
        bool::from(proof.as_bytes().ct_eq(expected.as_bytes())).then_some(to)
    }
}

/// What became of a callback. Whichever it is, the provider is told "200".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Applied,
    /// Genuine, and it changed nothing.
    Ignored(WhyIgnored),
    /// The store is away; it is safe in the spill.
    Spilled,
    /// Genuine, for an order that is no longer on record.
    Forgotten,
    /// Not ours.
    Forged,
}

/// Neither the store nor the spill could take it: the provider must not be told "200".
#[derive(Debug, thiserror::Error)]
#[error("neither the store nor the spill could take what came in from the provider")]
pub struct NotSafe(#[from] pub SpillError);

impl Engine {
    /// Takes in a callback; `segment` is the last part of the path that it came to. When this returns, what it
    /// said is durable.
    pub async fn called_back(
        &self,
        segment: &str,
        task: Option<String>,
        word: Word,
    ) -> Result<Heard, NotSafe> {
        let to = self.settings.callback.as_ref().and_then(|address| address.recognise(segment));
        let Some(Addressee { key, born, attempt }) = to else {
            self.forged.fetch_add(1, Ordering::Relaxed);
            return Ok(Heard::Forged);
        };
        self.arrive(Arrival { key, born, event: Event::CalledBack { attempt, task, word } }).await
    }

    /// Takes in what a provider said: into the store, or else into the spill.
    pub(crate) async fn arrive(&self, arrival: Arrival) -> Result<Heard, NotSafe> {
        match self.apply_arrival(&arrival).await {
            Ok(heard) => Ok(heard),
            Err(error) => {
                self.note_error(&error);
                self.world.spill.keep(&arrival)?;
                self.expect_spill();
                Ok(Heard::Spilled)
            }
        }
    }

    pub(crate) async fn apply_arrival(&self, arrival: &Arrival) -> Result<Heard, StoreError> {
        let Some(found) = self.world.store.load(&arrival.key).await? else { return Ok(Heard::Forgotten) };
        if found.order.born != arrival.born {
            self.count_ignored(WhyIgnored::UnknownAttempt);
            return Ok(Heard::Ignored(WhyIgnored::UnknownAttempt));
        }
        let was_open = found.order.phase.is_open();
        Ok(match self.apply(&arrival.key, Some(found), &arrival.event).await? {
            Applied::Advanced { now, effect } => {
                if was_open {
                    self.count_answer(&now.order);
                    self.learn_pace(&now.order, &arrival.event);
                }
                if let Some(effect) = effect {
                    self.perform_later(now, effect);
                }
                Heard::Applied
            }
            Applied::Act { now, effect } => {
                self.perform_later(now, effect);
                Heard::Applied
            }
            Applied::Ignored { why, .. } => Heard::Ignored(why),
            Applied::Missing => Heard::Forgotten,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognised_as_it_was_written_and_not_with_any_character_changed() {
        let address = CallbackAddress::new("http://127.0.0.1:1/callback", [7; 32]);
        let to =
            Addressee { key: Key([0xab; 32]), born: Timestamp::from_millis(1_700_000_000_000), attempt: 3 };
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
    fn the_secret_is_in_no_debug_output() {
        let shown = format!("{:?}", CallbackAddress::new("http://base", [0x5e; 32]));
        assert!(!shown.contains("5e") && !shown.contains("94"), "{shown}");
    }
}

//! Counts and logs wrong keys by address, and answers them more slowly. The key itself is not kept.

use hyper::http::Extensions;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many wrong keys of one address are answered at once. After that, one wrong key is answered in each `PACE`, and
/// none waits longer than `PAUSE_MAX`, because clients of the protocols give up after 5 s.
const FREE: u32 = 3;
const PACE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// An address without a wrong key for this time starts again.
const FORGET: Duration = Duration::from_secs(60);
/// The least time between two log lines for one address, unless its count reaches the next power of ten.
const LOG_PACE: Duration = Duration::from_secs(60);
const ADDRESSES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub struct WrongKeys {
    count: AtomicU64,
    by_address: Mutex<BTreeMap<Option<IpAddr>, Guesser>>,
}

#[derive(Debug)]
struct Guesser {
    /// How many wrong keys this address has sent in all, for the log.
    total: u64,
    count: u32,
    last: Instant,
    /// When the next wrong key of this address is answered.
    next: Instant,
    logged: Option<Instant>,
}

impl WrongKeys {
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a wrong key from this address. Returns how long its response waits.
    fn note(&self, address: Option<IpAddr>, now: Instant) -> Duration {
        self.count.fetch_add(1, Ordering::Relaxed);
        let (pause, to_log) = {
            let mut guessers = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            if guessers.len() >= ADDRESSES_MAX {
                guessers.retain(|_, guesser| now - guesser.last < FORGET);
            }
            if guessers.len() >= ADDRESSES_MAX && !guessers.contains_key(&address) {
                return PACE;
            }
            let fresh = || Guesser { total: 0, count: 0, last: now, next: now, logged: None };
            let guesser = guessers.entry(address).or_insert_with(fresh);
            if now - guesser.last >= FORGET {
                *guesser = Guesser { logged: guesser.logged, total: guesser.total, ..fresh() };
            }
            guesser.total += 1;
            guesser.count += 1;
            guesser.last = now;
            let pause = if guesser.count <= FREE {
                Duration::ZERO
            } else {
                guesser.next = (guesser.next.max(now) + PACE).min(now + PAUSE_MAX);
                guesser.next - now
            };
            // Each further power of ten at once: an attack is over before the next line would be due.
            let is_many = guesser.total >= 10 && guesser.total.ilog10() > (guesser.total - 1).ilog10();
            let is_due = is_many || guesser.logged.is_none_or(|logged| now - logged >= LOG_PACE);
            let to_log = is_due.then_some(guesser.total);
            guesser.logged = if is_due { Some(now) } else { guesser.logged };
            (pause, to_log)
        };
        if let Some(count) = to_log {
            let address = address.map_or_else(|| "an address that is not known".into(), |ip| ip.to_string());
            tracing::warn!(
                count,
                "{count} wrong keys so far from {address}: no tenant and no operator has them"
            );
        }
        pause
    }
}

/// An extension of a request in which an API records who sent it.
pub struct SenderSlot {
    address: Option<IpAddr>,
    found: Mutex<Shown>,
    /// Called as soon as the sender is known, because the response may take long.
    on_shown: OnShown,
}

type OnShown = Box<dyn Fn(&Shown) + Send + Sync>;

/// What a request has shown about its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    #[default]
    Nothing,
    /// The key of this tenant.
    Tenant(String),
    Operator,
    /// A wrong key, with the time that its response waits.
    WrongKey(Duration),
}

impl fmt::Debug for SenderSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderSlot").field("address", &self.address).finish_non_exhaustive()
    }
}

impl SenderSlot {
    pub fn new(address: IpAddr, on_shown: impl Fn(&Shown) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { address: Some(address), found: Mutex::default(), on_shown: Box::new(on_shown) })
    }

    pub fn found(&self) -> Shown {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(extensions: &Extensions, shown: impl FnOnce(&Self) -> Shown) {
        if let Some(slot) = extensions.get::<Arc<Self>>() {
            let shown = shown(slot);
            (slot.on_shown)(&shown);
            *slot.found.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        }
    }

    pub fn note_tenant(extensions: &Extensions, tenant: &str) {
        Self::note(extensions, |_| Shown::Tenant(tenant.to_owned()));
    }

    pub fn note_operator(extensions: &Extensions) {
        Self::note(extensions, |_| Shown::Operator);
    }

    /// Records an unknown key. A missing key does not count as wrong.
    pub fn note_wrong(extensions: &Extensions, key: &str, wrong_keys: &WrongKeys) {
        if !key.is_empty() {
            Self::note(extensions, |slot| Shown::WrongKey(wrong_keys.note(slot.address, Instant::now())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    #[test]
    fn an_address_that_guesses_is_answered_ever_more_slowly_and_no_other_is() {
        let (keys, now) = (WrongKeys::default(), Instant::now());
        let here = Some(IpAddr::from([192, 0, 2, 1]));
        let pauses: Vec<_> = (0..8).map(|_| keys.note(here, now).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 0, 1, 2, 3, 3, 3]);
        assert_eq!(keys.note(Some(IpAddr::from([192, 0, 2, 2])), now), Duration::ZERO);
        assert_eq!(keys.count(), 9);
        assert_eq!(keys.note(here, now + FORGET), Duration::ZERO, "a minute later it may start again");
    }
    /// Collects every line of the log that is a warning.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct LogLine(String);

    impl Visit for LogLine {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0 += &format!("{}={value:?} ", field.name());
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn event(&self, event: &Event<'_>) {
            let mut line = LogLine(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// Trap: a hundred wrong keys in a minute were one log line with the count 1.
    #[test]
    fn wrong_keys_are_logged_at_each_power_of_ten_with_their_total_and_never_the_key() {
        let (keys, lines) = (WrongKeys::default(), Lines::default());
        let mut guess = 0;
        let mut send = |count: u32| {
            for _ in 0..count {
                guess += 1;
                let mut extensions = Extensions::new();
                extensions.insert(SenderSlot::new(IpAddr::from([192, 0, 2, 1]), |_| {}));
                SenderSlot::note_wrong(&extensions, &format!("guess{guess:027}"), &keys);
            }
            lines.0.lock().unwrap().clone()
        };
        tracing::subscriber::with_default(lines.clone(), || {
            assert_eq!(send(1).len(), 1);
            assert_eq!(send(8).len(), 1, "the second to the ninth say nothing new");
            assert_eq!(send(1).len(), 2);
            assert_eq!(send(89).len(), 2);
            assert_eq!(send(1).len(), 3);
        });
        let lines = lines.0.lock().unwrap().clone();
        for (line, total) in lines.iter().zip([1, 10, 100]) {
            assert!(line.contains(&format!("count={total} ")), "{line}");
            assert!(line.contains(&format!("{total} wrong keys so far from 192.0.2.1")), "{line}");
            assert!(!line.contains("guess"), "{line}");
        }
        assert_eq!(keys.count(), 100);
    }
}

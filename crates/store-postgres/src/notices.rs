//! The content of a notice, and which of its two signals came first. The node that made a commit gets two signals:
//! the server's reply and the notice. The first one wakes the waiting callers, and the second does nothing.

use quittance_lifecycle::Key;
use quittance_ports::Watchers;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// How many batches are remembered by their first signal. Above that, a caller may be woken for nothing.
const REMEMBERED_MAX: usize = 4096;

/// The content of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// These orders are no longer awaited.
    News { node: u64, batch: u64, keys: Vec<Key> },
    /// A node tests whether its own notices arrive.
    Probe { node: u64, number: u64 },
}

/// The beginning of a notice about orders; the server adds the keys.
pub(crate) fn news(node: u64, batch: u64) -> String {
    format!("n{node:016x}{batch:016x}")
}

pub(crate) fn probe(node: u64, number: u64) -> String {
    format!("p{node:016x}{number:016x}")
}

impl Notice {
    /// Parses a notice. `None` if it is not ours: any client can send on a channel.
    pub(crate) fn read(payload: &str) -> Option<Self> {
        let word = |at: usize| u64::from_str_radix(payload.get(at..at + 16)?, 16).ok();
        let (node, number) = (word(1)?, word(17)?);
        let rest = payload.get(33..)?;
        match payload.as_bytes()[0] {
            b'n' => {
                let keys = (0..rest.len()).step_by(64).map(|at| Key::parse(rest.get(at..at + 64)?).ok());
                Some(Self::News { node, batch: number, keys: keys.collect::<Option<_>>()? })
            }
            b'p' if rest.is_empty() => Some(Self::Probe { node, number }),
            _ => None,
        }
    }
}

/// The batches of this node of which exactly one of the two signals has come.
#[derive(Default)]
pub(crate) struct AnnouncedBatches(Mutex<BTreeSet<u64>>);

impl AnnouncedBatches {
    /// Wakes the callers that wait for these orders, unless they were woken for the same batch. The lock is held
    /// until all are woken: after the second signal another caller can begin to wait, which the first must not wake.
    pub(crate) fn tell(&self, batch: u64, keys: &[Key], watchers: &Watchers) {
        if keys.is_empty() {
            return;
        }
        let mut announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if announced.remove(&batch) {
            return;
        }
        announced.insert(batch);
        if announced.len() > REMEMBERED_MAX {
            announced.pop_first();
        }
        for key in keys {
            watchers.wake(key);
        }
    }
}

/// Bytes in hexadecimal, which are safe inside a statement.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{AnnouncedBatches, Key, Notice, Watchers, hex, news, probe};
    use futures_util::FutureExt;

    #[test]
    fn a_notice_is_read_as_it_was_written() {
        let keys = vec![Key([0xab; 32]), Key([1; 32])];
        let payload = news(u64::MAX, 7) + &hex(&keys[0].0) + &hex(&keys[1].0);
        assert_eq!(Notice::read(&payload), Some(Notice::News { node: u64::MAX, batch: 7, keys }));
        assert_eq!(Notice::read(&probe(1, 2)), Some(Notice::Probe { node: 1, number: 2 }));
    }

    #[test]
    fn what_strangers_say_is_nothing() {
        let cut = news(1, 2) + "abc";
        let odd = format!("n{}", "\u{e9}".repeat(40));
        for payload in ["", "hello", "n", &cut, &odd, &probe(1, 2)[..20], &(probe(1, 2) + "0")] {
            assert_eq!(Notice::read(payload), None, "{payload}");
        }
    }

    #[test]
    fn a_waiter_is_woken_once_for_each_batch_whichever_source_is_first() {
        let (announced, watchers, key) = (AnnouncedBatches::default(), Watchers::default(), Key([3; 32]));
        let mut watch = watchers.watch(&key);
        for batch in 1..=3 {
            announced.tell(batch, &[key], &watchers);
            assert!(watch.changed().now_or_never().is_some());
            announced.tell(batch, &[key], &watchers);
            assert!(watch.changed().now_or_never().is_none(), "the second is silence");
        }
    }
}

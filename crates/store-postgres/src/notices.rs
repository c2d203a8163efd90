//! What a notice says, and which of its two copies came first. A commit is signalled twice to the node that made it,
//! once with the server's answer and once as a notice; whichever is first wakes the waiting callers, and the other
//! does nothing.

use quittance_lifecycle::Key;
use quittance_ports::Watchers;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// For so many batches it is remembered which signal came. Beyond that a caller may be woken for nothing.
const REMEMBERED_MAX: usize = 4096;

/// What a notice says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The news that these orders are no longer awaited.
    News { node: u64, batch: u64, keys: Vec<Key> },
    /// A node wants to know whether it hears itself.
    Probe { node: u64, number: u64 },
}

/// How a notice of news begins; the server adds the keys.
pub(crate) fn news(node: u64, batch: u64) -> String {
    format!("n{node:016x}{batch:016x}")
}

pub(crate) fn probe(node: u64, number: u64) -> String {
    format!("p{node:016x}{number:016x}")
}

impl Notice {
    /// `None` if it is not one of ours: any client may send anything on a channel.
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
    /// Wakes the callers that wait for these, unless they have been woken for the same batch. The lock is held until
    /// all are woken: the second signal may let another caller begin to wait, and that one must not be woken by the
    /// first.
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

/// What a note looks like inside of a statement, whatever it says.
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

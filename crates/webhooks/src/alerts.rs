//! Posts alerts to the operator's webhook: signed like every call, and retried until the webhook accepts it or it is too old.

use super::Webhooks;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quittance_lifecycle::{Backoff, Jitter};
use quittance_telemetry::{AlertWebhook, Announcement};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How often a call is tried, in about ten minutes.
const TRIES_MAX: u32 = 12;
/// The pause between two tries.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(90),
    jitter: Jitter::UpTo(Duration::from_secs(1)),
};

/// How many alerts are posted at once.
const CALLS_MAX: usize = 8;
/// How many alerts can wait to be posted.
const WAITING_MAX: usize = 256;

/// The rule and the subject of an alert.
type Named = (String, String);

/// Announcements to post, in order. A failing one delays no other alert, but those of one alert are posted in order.
#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Announcement>,
    under_way: BTreeSet<Named>,
}

impl Waiting {
    /// Adds an announcement. If there are too many, returns the oldest one, which is dropped.
    fn add(&mut self, announcement: Announcement) -> Option<Announcement> {
        self.queue.push_back(announcement);
        (self.queue.len() > WAITING_MAX).then(|| self.queue.pop_front()).flatten()
    }

    /// The next announcement that may be posted now.
    fn next(&mut self) -> Option<(Named, Announcement)> {
        if self.under_way.len() >= CALLS_MAX {
            return None;
        }
        let named = |next: &Announcement| (next.rule.clone(), next.subject.clone());
        let next = self.queue.iter().position(|next| !self.under_way.contains(&named(next)))?;
        let next = self.queue.remove(next)?;
        self.under_way.insert(named(&next));
        Some((named(&next), next))
    }

    fn done(&mut self, named: &Named) {
        self.under_way.remove(named);
    }
}

impl Webhooks {
    /// Posts all announcements to the operator's webhook, until the sender is gone.
    pub async fn post_alerts(&self, webhook: &AlertWebhook, mut announced: Receiver<Announcement>) {
        let (mut waiting, mut calls) = (Waiting::default(), FuturesUnordered::new());
        loop {
            while let Some((named, announcement)) = waiting.next() {
                calls.push(async move {
                    self.post_alert(webhook, &announcement).await;
                    named
                });
            }
            tokio::select! {
                Some(named) = calls.next() => waiting.done(&named),
                next = announced.recv() => match next {
                    Ok(announcement) => log_dropped(u64::from(waiting.add(announcement).is_some())),
                    Err(RecvError::Lagged(missed)) => log_dropped(missed),
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    async fn post_alert(&self, webhook: &AlertWebhook, announcement: &Announcement) {
        let Announcement { event, rule, subject, at_ms, .. } = announcement;
        // The same for each try, so that the receiver can tell a retry from another alert. The name of a pool or a node may not be
        // valid in a header.
        let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(subject.as_bytes()));
        let id = format!("alert_{event}_{rule}_{:08x}_{at_ms}", u32::from_be_bytes([a, b, c, d]));
        let body = announcement.json();
        for tries in 0..TRIES_MAX {
            let Err(why) = self.post(webhook, &id, &body).await else { return };
            tracing::info!(rule, event, why, "the webhook for alerts did not accept an alert; it is retried");
            tokio::time::sleep(BACKOFF.pause(tries, at_ms.wrapping_add(tries.into()))).await;
        }
        tracing::warn!(rule, event, "the webhook for alerts has not accepted an alert, which is dropped");
    }
}

fn log_dropped(missed: u64) {
    if missed > 0 {
        tracing::warn!(
            missed,
            "alerts came faster than the webhook accepts them; the log and the page have them all"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Timestamp;
    use quittance_ports::AlertNote;

    fn announcement(subject: &str, cleared: Option<u64>) -> Announcement {
        Announcement::of(&AlertNote {
            rule: "pool_starves".into(),
            subject: subject.into(),
            is_grave: false,
            words: "it is empty: fill it".into(),
            raised: Timestamp::from_millis(1000),
            cleared: cleared.map(Timestamp::from_millis),
            seen: None,
        })
    }

    #[test]
    fn an_alert_that_is_not_accepted_delays_no_other_and_is_posted_in_its_order() {
        let mut waiting = Waiting::default();
        for (subject, cleared) in [("a", None), ("a", Some(2000)), ("b", None), ("b", Some(2000))] {
            assert_eq!(waiting.add(announcement(subject, cleared)), None);
        }
        let mut next = || waiting.next().map(|(named, next)| (named.1, next.event));
        assert_eq!(next(), Some(("a".into(), "raised")));
        assert_eq!(next(), Some(("b".into(), "raised")), "although the other is not accepted yet");
        assert_eq!(next(), None);
        waiting.done(&("pool_starves".into(), "b".into()));
        let mut next = || waiting.next().map(|(named, next)| (named.1, next.event));
        assert_eq!((next(), next()), (Some(("b".into(), "cleared")), None));
    }

    #[test]
    fn the_alerts_under_way_and_those_that_wait_are_bounded() {
        let mut waiting = Waiting::default();
        let all = (0..WAITING_MAX + 3).filter_map(|n| waiting.add(announcement(&n.to_string(), None)));
        let dropped: Vec<_> = all.map(|dropped| dropped.subject).collect();
        assert_eq!(dropped, ["0", "1", "2"], "the page and the log have them");
        assert_eq!(std::iter::from_fn(|| waiting.next()).count(), CALLS_MAX);
    }
}

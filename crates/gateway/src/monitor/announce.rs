//! DeliveryState people: every alert that is raised or cleared stands in the log, and goes to the operator's webhook, signed like every
//! call of ours and tried again until it is taken or out of date. Whoever else wants to know listens, too.

use super::{AlertSettings, Monitor, Webhook};
use crate::tenant::KeyDigest;
use crate::webhooks::Webhooks;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quittance_alert::words;
use quittance_lifecycle::{Backoff, Jitter};
use quittance_ports::AlertNote;
use serde::Serialize;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How often a call is tried, and how long is waited in between: about ten minutes in all.
const TRIES_MAX: u32 = 12;
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(90),
    jitter: Jitter::UpTo(Duration::from_secs(1)),
};

/// How many alerts are told at once, and how many may wait for their turn.
const CALLS_MAX: usize = 8;
const WAITING_MAX: usize = 256;

/// Something that a person is to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Announcement {
    /// `raised` or `cleared`.
    pub event: &'static str,
    pub rule: String,
    pub subject: String,
    pub is_grave: bool,
    pub words: String,
    pub at: String,
    #[serde(skip)]
    at_ms: u64,
}

impl Announcement {
    pub(super) fn of(note: &AlertNote) -> Self {
        let at = note.cleared.unwrap_or(note.raised);
        Self {
            event: if note.cleared.is_some() { "cleared" } else { "raised" },
            rule: note.rule.clone(),
            subject: note.subject.clone(),
            is_grave: note.is_grave,
            words: match note.cleared {
                Some(cleared) => {
                    let stood = words::span(cleared.since(note.raised));
                    format!("over after {stood}; it was: {}", words::what_was(&note.words))
                }
                None => note.words.clone(),
            },
            at: crate::v1::rfc3339(at),
            at_ms: at.as_millis(),
        }
    }

    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("it has string keys and nothing that can fail")
    }

    /// Words from outside stand in it as text, whatever they are made of.
    fn log(&self) {
        let (rule, subject, words) = (&self.rule, self.subject.escape_debug(), self.words.escape_debug());
        match self.event {
            "raised" => tracing::warn!(rule, %subject, grave = self.is_grave, "alert: {words}"),
            _ => tracing::info!(rule, %subject, "alert: {words}"),
        }
    }
}

impl Monitor {
    pub(super) fn announce(&self, told: Vec<Announcement>) {
        for announcement in told {
            announcement.log();
            // Nobody listening is no error.
            _ = self.inner.announced.send(announcement);
        }
    }
}

/// By its rule and what it is about.
type Named = (String, String);

/// What is to be told, in the order in which it was heard. Whoever has not taken one alert holds up no other; but what is told of one
/// is told in its order.
#[derive(Debug, Default)]
struct Waiting {
    heard: VecDeque<Announcement>,
    under_way: BTreeSet<Named>,
}

impl Waiting {
    /// The one that waited longest gives way, if there are too many.
    fn add(&mut self, announcement: Announcement) -> Option<Announcement> {
        self.heard.push_back(announcement);
        (self.heard.len() > WAITING_MAX).then(|| self.heard.pop_front()).flatten()
    }

    /// What may be told now.
    fn next(&mut self) -> Option<(Named, Announcement)> {
        if self.under_way.len() >= CALLS_MAX {
            return None;
        }
        let named = |heard: &Announcement| (heard.rule.clone(), heard.subject.clone());
        let next = self.heard.iter().position(|heard| !self.under_way.contains(&named(heard)))?;
        let next = self.heard.remove(next)?;
        self.under_way.insert(named(&next));
        Some((named(&next), next))
    }

    fn done(&mut self, named: &Named) {
        self.under_way.remove(named);
    }
}

/// Calls the webhook, for as long as there is anything to tell.
pub(super) async fn pass_on(webhooks: Webhooks, settings: &AlertSettings, mut heard: Receiver<Announcement>) {
    let Some(webhook) = &settings.webhook else { return };
    let (mut waiting, mut calls) = (Waiting::default(), FuturesUnordered::new());
    loop {
        while let Some((named, announcement)) = waiting.next() {
            let webhooks = &webhooks;
            calls.push(async move {
                call(webhooks, webhook, &announcement).await;
                named
            });
        }
        tokio::select! {
            Some(named) = calls.next() => waiting.done(&named),
            next = heard.recv() => match next {
                Ok(announcement) => too_many(u64::from(waiting.add(announcement).is_some())),
                Err(RecvError::Lagged(missed)) => too_many(missed),
                Err(RecvError::Closed) => return,
            },
        }
    }
}

fn too_many(missed: u64) {
    if missed > 0 {
        tracing::warn!(
            missed,
            "alerts came faster than the webhook takes them; the log and the page have them all"
        );
    }
}

async fn call(webhooks: &Webhooks, webhook: &Webhook, announcement: &Announcement) {
    let Announcement { event, rule, subject, at_ms, .. } = announcement;
    // The same each time it is sent, so that it can be told from a new one, and from that of another subject. What a pool or a
    // node is called may not stand in a header.
    let id = format!("alert_{event}_{rule}_{:.8}_{at_ms}", KeyDigest::of(subject).to_string());
    let body = announcement.json();
    for tries in 0..TRIES_MAX {
        let Err(why) = webhooks.post(webhook, &id, &body).await else { return };
        tracing::info!(rule, event, why, "the webhook for alerts did not take it; it is tried again");
        tokio::time::sleep(BACKOFF.pause(tries, at_ms.wrapping_add(tries.into()))).await;
    }
    tracing::warn!(rule, event, "the webhook for alerts has not taken it, and is not asked again");
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Timestamp;

    fn heard(subject: &str, cleared: Option<u64>) -> Announcement {
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
    fn an_alert_that_is_not_taken_holds_up_no_other_and_is_told_in_its_order() {
        let mut waiting = Waiting::default();
        for (subject, cleared) in [("a", None), ("a", Some(2000)), ("b", None), ("b", Some(2000))] {
            assert_eq!(waiting.add(heard(subject, cleared)), None);
        }
        let mut told = || waiting.next().map(|(named, heard)| (named.1, heard.event));
        assert_eq!(told(), Some(("a".into(), "raised")));
        assert_eq!(told(), Some(("b".into(), "raised")), "although nobody has taken the other");
        assert_eq!(told(), None);
        waiting.done(&("pool_starves".into(), "b".into()));
        let mut told = || waiting.next().map(|(named, heard)| (named.1, heard.event));
        assert_eq!((told(), told()), (Some(("b".into(), "cleared")), None));
    }

    #[test]
    fn there_is_an_end_to_what_is_told_at_once_and_to_what_waits() {
        let mut waiting = Waiting::default();
        let all = (0..WAITING_MAX + 3).filter_map(|n| waiting.add(heard(&n.to_string(), None)));
        let given_way: Vec<_> = all.map(|heard| heard.subject).collect();
        assert_eq!(given_way, ["0", "1", "2"], "the page and the log have them");
        assert_eq!(std::iter::from_fn(|| waiting.next()).count(), CALLS_MAX);
    }
}

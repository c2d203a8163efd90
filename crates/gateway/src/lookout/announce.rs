//! Telling people: every alert that is raised or cleared stands in the log, and goes to the operator's webhook, signed like every
//! call of ours and tried again until it is taken or out of date. Whoever else wants to know listens, too.

use super::{AlertSettings, Lookout, Webhook};
use crate::outbound::Outbound;
use crate::tenant::KeyDigest;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quittance_alert::words;
use quittance_lifecycle::{Backoff, Jitter};
use quittance_ports::AlertNote;
use serde::Serialize;
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

impl Lookout {
    pub(super) fn announce(&self, told: Vec<Announcement>) {
        for announcement in told {
            announcement.log();
            // Nobody listening is no error.
            _ = self.inner.announced.send(announcement);
        }
    }
}

/// Calls the webhook, for as long as there is anything to tell.
pub(super) async fn pass_on(outbound: Outbound, settings: &AlertSettings, mut heard: Receiver<Announcement>) {
    let Some(webhook) = &settings.webhook else { return };
    loop {
        match heard.recv().await {
            Ok(announcement) => call(&outbound, webhook, &announcement).await,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "alerts came faster than the webhook takes them; the log and the page have them all"
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn call(outbound: &Outbound, webhook: &Webhook, announcement: &Announcement) {
    let Announcement { event, rule, at_ms, .. } = announcement;
    // The same each time it is sent, so that it can be told from a new one.
    let id = format!("alert_{event}_{rule}_{at_ms}");
    let body = announcement.json();
    for tries in 0..TRIES_MAX {
        let Err(why) = outbound.post(webhook, &id, &body).await else { return };
        tracing::info!(rule, event, why, "the webhook for alerts did not take it; it is tried again");
        tokio::time::sleep(BACKOFF.pause(tries, at_ms.wrapping_add(tries.into()))).await;
    }
    tracing::warn!(rule, event, "the webhook for alerts has not taken it, and is not asked again");
}

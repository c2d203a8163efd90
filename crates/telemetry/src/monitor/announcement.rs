//! Announcements: every alert that is raised or cleared is logged, and sent to all receivers in this process.

use super::Monitor;
use crate::alert::words;
use quittance_ports::AlertNote;
use quittance_ports::moment::rfc3339;
use serde::Serialize;

/// An alert that was raised or cleared.
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
    pub at_ms: u64,
}

impl Announcement {
    #[must_use]
    pub fn of(note: &AlertNote) -> Self {
        let at = note.cleared.unwrap_or(note.raised);
        Self {
            event: if note.cleared.is_some() { "cleared" } else { "raised" },
            rule: note.rule.clone(),
            subject: note.subject.clone(),
            is_grave: note.is_grave,
            words: match note.cleared {
                Some(cleared) => {
                    let duration = words::span(cleared.since(note.raised));
                    format!("over after {duration}; it was: {}", words::what_was(&note.words))
                }
                None => note.words.clone(),
            },
            at: rfc3339(at),
            at_ms: at.as_millis(),
        }
    }

    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("it has string keys and nothing that can fail")
    }

    /// Logs the announcement, with text from outside escaped.
    fn log(&self) {
        let (rule, subject, words) = (&self.rule, self.subject.escape_debug(), self.words.escape_debug());
        match self.event {
            "raised" => tracing::warn!(rule, %subject, grave = self.is_grave, "alert: {words}"),
            _ => tracing::info!(rule, %subject, "alert: {words}"),
        }
    }
}

impl Monitor {
    pub(super) fn announce(&self, announcements: Vec<Announcement>) {
        for announcement in announcements {
            announcement.log();
            // Without receivers this fails, and that is no error.
            _ = self.inner.announced.send(announcement);
        }
    }
}

//! Endpoints of webhooks that fail for days. An endpoint is one host of one tenant. After a time in which every
//! delivery failed, it is switched off: its deliveries become dead letters at once. One delivery an hour is sent all
//! the same, and switches it on again if it is accepted. An operator can do that, too.
//!
//! Each node counts what it sees, and shares what has failed for some minutes in one document of all nodes.

use crate::pools::WRITES_MAX;
use crate::{Engine, lock};
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{DeliveryOutcome, Timestamp};
use quittance_ports::moment::roughly;
use quittance_ports::{
    DocumentWritten, ENDPOINTS_MAX, EndpointNote, EndpointsDocument, SharedDocument, StoreError, Version,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// The fewest failures after which an endpoint is switched off.
const FAILURES_MIN: u32 = 10;
/// The time between two deliveries to an endpoint that is switched off.
const PROBE_SPAN: Duration = Duration::from_secs(3600);
/// How long an endpoint must have failed before the other nodes read of it. A shorter failure needs no write, unless the
/// endpoint is switched off.
const SHARED_AFTER: Duration = Duration::from_secs(600);
/// How often the document is read.
const READ_SPAN: Duration = Duration::from_secs(5);
/// How long the success of an endpoint is kept in the document, so that every node reads of it.
const SUCCESS_KEPT: Duration = Duration::from_secs(600);
/// The most endpoints whose failures one node counts.
const COUNTED_MAX: usize = 2 * ENDPOINTS_MAX;
const WHY_CHARS_MAX: usize = 100;

/// A host that webhooks of one tenant call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WebhookEndpoint {
    tenant: String,
    host: String,
}

impl WebhookEndpoint {
    pub(crate) fn of(tenant: &str, url: &str) -> Self {
        let host = page_host(url).unwrap_or_default().trim_end_matches('.').to_lowercase();
        Self { tenant: tenant.to_owned(), host }
    }

    fn of_note(note: &EndpointNote) -> Self {
        Self { tenant: note.tenant.clone(), host: note.host.clone() }
    }

    fn new_note(&self) -> EndpointNote {
        EndpointNote { tenant: self.tenant.clone(), host: self.host.clone(), ..EndpointNote::default() }
    }
}

/// Whether an endpoint may be called.
pub(crate) enum MayCall {
    Yes,
    /// The endpoint is switched off. This call finds out whether it works again.
    Probe,
    /// The endpoint is switched off. Holds the reason, as text.
    No(String),
}

/// What this node knows of the endpoints that fail, or did so a short time ago.
#[derive(Default)]
pub(crate) struct EndpointHealth {
    notes: BTreeMap<WebhookEndpoint, EndpointNote>,
    read_at: Timestamp,
}

impl EndpointHealth {
    fn note_success(&mut self, endpoint: &WebhookEndpoint, now: Timestamp) {
        if let Some(note) = self.notes.get_mut(endpoint) {
            switch_on(note, now);
        }
    }

    fn note_failure(&mut self, endpoint: &WebhookEndpoint, why: &str, now: Timestamp, off_after: Duration) {
        if !self.notes.contains_key(endpoint) && self.notes.len() >= COUNTED_MAX {
            return;
        }
        let note = self.notes.entry(endpoint.clone()).or_insert_with(|| endpoint.new_note());
        let since = *note.failing_since.get_or_insert(now);
        note.failures = note.failures.saturating_add(1);
        note.why = why.chars().take(WHY_CHARS_MAX).collect();
        if note.off_at.is_none() && note.failures >= FAILURES_MIN && now >= since + off_after {
            (note.off_at, note.probed_at) = (Some(now), now);
        }
    }

    /// Adds what the document says, and returns what it should say.
    fn merge(&mut self, document: &EndpointsDocument, now: Timestamp) -> EndpointsDocument {
        for stored in &document.endpoints {
            let endpoint = WebhookEndpoint::of_note(stored);
            self.notes.entry(endpoint).or_insert_with(|| stored.clone()).merge(stored);
        }
        self.notes.retain(|_, note| note.failing_since.is_some() || now < note.ok_at + SUCCESS_KEPT);
        let is_stored = |note: &EndpointNote| {
            document
                .endpoints
                .iter()
                .any(|known| WebhookEndpoint::of_note(known) == WebhookEndpoint::of_note(note))
        };
        let is_shared = |note: &&EndpointNote| {
            let has_failed_long = note.failing_since.is_some_and(|since| now >= since + SHARED_AFTER);
            is_stored(note) || note.off_at.is_some() || has_failed_long
        };
        let mut endpoints: Vec<EndpointNote> = self.notes.values().filter(is_shared).cloned().collect();
        if endpoints.len() > ENDPOINTS_MAX {
            endpoints.sort_by_key(|note| (note.off_at.is_none(), Reverse(note.failures)));
            endpoints.truncate(ENDPOINTS_MAX);
            endpoints.sort_by_key(WebhookEndpoint::of_note);
        }
        // The number of failures alone is no news: it decides nothing after the endpoint is switched off.
        for note in &mut endpoints {
            let stored = document
                .endpoints
                .iter()
                .find(|known| WebhookEndpoint::of_note(known) == WebhookEndpoint::of_note(note));
            let Some(stored) = stored else { continue };
            if stored.failures >= FAILURES_MIN && note.failing_since.is_some() {
                (note.failures, note.why) = (stored.failures, stored.why.clone());
            }
        }
        EndpointsDocument { endpoints }
    }
}

fn switch_on(note: &mut EndpointNote, now: Timestamp) {
    (note.failing_since, note.off_at, note.failures) = (None, None, 0);
    note.ok_at = now.max(note.ok_at);
    note.why.clear();
}

impl Engine {
    /// Whether this endpoint may be called now.
    pub(crate) async fn call_endpoint(&self, endpoint: &WebhookEndpoint) -> MayCall {
        let now = self.now();
        let note = lock(&self.endpoints).notes.get(endpoint).cloned();
        let Some(note) = note.filter(|_| !self.settings().webhook_off_after.is_zero()) else {
            return MayCall::Yes;
        };
        if note.off_at.is_none() {
            return MayCall::Yes;
        }
        if now >= note.probed_at + PROBE_SPAN && self.claim_probe(endpoint, now).await {
            return MayCall::Probe;
        }
        MayCall::No(why_off(&note))
    }

    /// Writes that this node probes the endpoint. False if another node does, or the store is away.
    async fn claim_probe(&self, endpoint: &WebhookEndpoint, now: Timestamp) -> bool {
        let claimed = self
            .change_endpoints(|document| {
                let found =
                    document.endpoints.iter_mut().find(|note| WebhookEndpoint::of_note(note) == *endpoint);
                match found {
                    Some(note) if now < note.probed_at + PROBE_SPAN => false,
                    Some(note) => {
                        note.probed_at = now;
                        true
                    }
                    None => false,
                }
            })
            .await;
        let is_claimed = claimed.unwrap_or_else(|error| {
            self.note_error(&error);
            false
        });
        if let Some(note) = lock(&self.endpoints).notes.get_mut(endpoint) {
            note.probed_at = note.probed_at.max(if is_claimed { now } else { Timestamp::ZERO });
        }
        is_claimed
    }

    /// Notes the outcome of a delivery. Returns why the endpoint is switched off, if it is.
    pub(crate) fn note_delivery(
        &self,
        endpoint: &WebhookEndpoint,
        outcome: &DeliveryOutcome,
    ) -> Option<String> {
        let (now, off_after) = (self.now(), self.settings().webhook_off_after);
        if off_after.is_zero() {
            return None;
        }
        let mut endpoints = lock(&self.endpoints);
        match outcome {
            DeliveryOutcome::Delivered => endpoints.note_success(endpoint, now),
            DeliveryOutcome::NotDelivered { why } => endpoints.note_failure(endpoint, why, now, off_after),
            DeliveryOutcome::SwitchedOff { .. } => {}
        }
        endpoints.notes.get(endpoint).filter(|note| note.off_at.is_some()).map(why_off)
    }

    /// Reads what other nodes know, and writes what this one has learned.
    pub(crate) async fn share_endpoints(&self) {
        let now = self.now();
        {
            let mut endpoints = lock(&self.endpoints);
            let is_soon = endpoints.read_at <= now && now < endpoints.read_at + READ_SPAN;
            if is_soon || self.settings().webhook_off_after.is_zero() {
                return;
            }
            endpoints.read_at = now;
        }
        let shared = self
            .change_endpoints(|document| {
                let next = lock(&self.endpoints).merge(document, now);
                let is_news = next != *document;
                *document = next;
                is_news
            })
            .await;
        if let Err(error) = shared {
            self.note_error(&error);
        }
    }

    /// Changes the document, also if other nodes write it at the same time. `change` returns whether it changed it.
    async fn change_endpoints(
        &self,
        change: impl Fn(&mut EndpointsDocument) -> bool,
    ) -> Result<bool, StoreError> {
        for _ in 0..WRITES_MAX {
            let (version, mut document) = self.endpoints_document().await?;
            if !change(&mut document) {
                return Ok(false);
            }
            let whole = SharedDocument::Endpoints(document);
            let written = self
                .world
                .membership
                .write_document(SharedDocument::ENDPOINTS, version, Some(&whole))
                .await?;
            match written {
                DocumentWritten::Done(_) => return Ok(true),
                DocumentWritten::Conflict => {}
                DocumentWritten::NoRoom => return Ok(false),
            }
        }
        Ok(false)
    }

    async fn endpoints_document(&self) -> Result<(Version, EndpointsDocument), StoreError> {
        let documents = self.world.membership.documents().await?;
        let found = documents.into_iter().find_map(|stored| match stored.document {
            SharedDocument::Endpoints(document) => Some((stored.version, document)),
            _ => None,
        });
        Ok(found.unwrap_or((Version::ABSENT, EndpointsDocument::default())))
    }

    /// The endpoints of webhooks that have failed for some minutes, those that are switched off included.
    pub async fn failing_endpoints(&self) -> Result<Vec<EndpointNote>, StoreError> {
        let (_, document) = self.endpoints_document().await?;
        Ok(document.endpoints.into_iter().filter(|note| note.failing_since.is_some()).collect())
    }

    /// Switches an endpoint on again, for all nodes. False if no such endpoint fails.
    pub async fn switch_endpoint_on(&self, tenant: &str, host: &str) -> Result<bool, StoreError> {
        let endpoint = WebhookEndpoint { tenant: tenant.to_owned(), host: host.to_lowercase() };
        let now = self.now();
        let is_on = self
            .change_endpoints(|document| {
                let mut failing = document.endpoints.iter_mut().filter(|note| note.failing_since.is_some());
                let found = failing.find(|note| WebhookEndpoint::of_note(note) == endpoint);
                found.map(|note| switch_on(note, now)).is_some()
            })
            .await?;
        lock(&self.endpoints).note_success(&endpoint, now);
        Ok(is_on)
    }
}

fn why_off(note: &EndpointNote) -> String {
    let failed = note.off_at.zip(note.failing_since).map_or(Duration::ZERO, |(off, since)| off.since(since));
    let failed = roughly(failed);
    format!("the endpoint {} is switched off after {failed} of failures, last: {}", note.host, note.why)
}

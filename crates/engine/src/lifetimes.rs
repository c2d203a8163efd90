//! How long answers live: what their kind states, what the operator sets for a kind or a site, and what callers have
//! reported about a site. An answer gets its expiry when it arrives, so changes here do not affect answers that exist
//! already.

use crate::pools::WRITES_MAX;
use crate::targets::HostPattern;
use crate::{Engine, lock};
use quittance_lifecycle::{Draft, Kind, Order, Phase, Timestamp};
use quittance_ports::Trust;
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::{DocumentWritten, SharedDocument, StoredDocument, TrustDocument, Version};
use std::time::Duration;

/// What an operator sets for the answers of a kind, of a site, or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeRule {
    pub kind: Option<String>,
    pub site: Option<HostPattern>,
    pub life: Option<Duration>,
    pub margin: Option<Duration>,
}

/// How long the answers of one site are trusted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustView {
    pub tenant: String,
    pub kind: String,
    pub site: String,
    /// The life without any reports.
    pub life: Duration,
    pub trusted: Duration,
    pub trust: Trust,
}

impl LifeRule {
    fn fits(&self, kind: &str, site: &str) -> bool {
        self.kind.as_deref().is_none_or(|named| named == kind)
            && self.site.as_ref().is_none_or(|pattern| pattern.covers(site))
    }
}

/// The kind after the operator's rules for one site.
#[must_use]
pub fn with_life_rules(rules: &[LifeRule], kind: &Kind, site: &str) -> Kind {
    let mut kind = kind.clone();
    for rule in rules.iter().filter(|rule| rule.fits(&kind.name, site)) {
        // What lives for ever is not made to die by a rule for all kinds of a site.
        if kind.life.is_some() || rule.kind.is_some() {
            kind.life = rule.life.or(kind.life);
        }
        kind.margin = rule.margin.unwrap_or(kind.margin);
    }
    kind
}

/// How long an answer of this kind lives, if it may be handed out up to the trusted age: the margin is added, because
/// a caller that gets the answer needs it.
fn trusted_life(kind: &Kind, life: Duration, trusted: impl FnOnce(Duration) -> Duration) -> Duration {
    trusted(life.saturating_sub(kind.margin)) + kind.margin
}

/// How reports have changed the life of a site's answers; `None` if they live for ever.
#[must_use]
pub fn show_trust(
    rules: &[LifeRule],
    kind: &Kind,
    document: TrustDocument,
    now: Timestamp,
) -> Option<TrustView> {
    let kind = with_life_rules(rules, kind, &document.site);
    let life = kind.life?;
    let trusted = trusted_life(&kind, life, |usable| document.trust.life(usable, now));
    let TrustDocument { tenant, kind, site, trust } = document;
    Some(TrustView { tenant, kind, site, life, trusted, trust })
}

impl Engine {
    /// The kind with the lifetimes that apply to this draft on this site.
    pub(crate) fn with_lifetimes(&self, kind: &Kind, draft: &Draft, site: &str, now: Timestamp) -> Kind {
        let mut kind = with_life_rules(&self.settings().lifetimes, kind, site);
        if let Some(life) = kind.life {
            let trusted = trusted_life(&kind, life, |usable| {
                lock(&self.pools).trusted(&draft.tenant, &kind.name, site, usable, now)
            });
            // A caller that wants much life is still served: no report takes an order away from a caller.
            let least = draft.min_life.unwrap_or(kind.margin) * 4 / 3;
            kind.life = Some(trusted.max(least.min(life)));
        }
        kind
    }

    /// Which answers sites have rejected, according to callers' reports, and what this has changed.
    #[must_use]
    pub fn trusts(&self) -> Vec<TrustView> {
        let documents: Vec<TrustDocument> = lock(&self.pools).trusts().cloned().collect();
        self.show_trusts(documents.iter())
    }

    /// Which answers sites have rejected, from documents that the caller has just read.
    #[must_use]
    pub fn trusts_among(&self, documents: &[StoredDocument]) -> Vec<TrustView> {
        self.show_trusts(documents.iter().filter_map(|stored| match &stored.document {
            SharedDocument::Trust(document) => Some(document),
            _ => None,
        }))
    }

    fn show_trusts<'a>(&self, documents: impl Iterator<Item = &'a TrustDocument>) -> Vec<TrustView> {
        let (now, rules) = (self.now(), &self.settings().lifetimes);
        let views = documents.filter_map(|document| {
            let kind = (self.settings().kinds)(&document.kind)?;
            show_trust(rules, &kind, document.clone(), now)
        });
        views.collect()
    }

    /// How long answers of this kind live on this site before any reports; `None` if they never expire or the kind is not known.
    #[must_use]
    pub fn life(&self, kind: &str, site: &str) -> Option<Duration> {
        with_life_rules(&self.settings().lifetimes, &(self.settings().kinds)(kind)?, site).life
    }

    /// Learns from a caller's report how an answer fared at its site. A lost race is tried again a few times. A
    /// failure is not an error for the caller.
    pub(crate) async fn learn_trust(&self, order: &Order, is_good: bool) {
        let (answer, given) = match &order.phase {
            Phase::Solved { answer, at } | Phase::Claimed { answer, at, .. } => (answer, *at),
            _ => return,
        };
        if answer.expires.is_none() || order.terms.site.is_empty() || !order.terms.single_use {
            return;
        }
        let age = given.since(answer.earliest);
        let (tenant, kind, site) = (&order.terms.tenant, &order.terms.kind, &order.terms.site);
        let name = SharedDocument::trust_name(tenant, kind, site);
        for _ in 0..WRITES_MAX {
            let Ok(documents) =
                self.world.membership.documents().await.inspect_err(|error| self.note_error(error))
            else {
                return;
            };
            let stored = documents.iter().find(|stored| stored.name == name);
            let mut trust = match stored {
                Some(StoredDocument { document: SharedDocument::Trust(document), .. }) => {
                    document.trust.clone()
                }
                // That answers are good is news only where a caller has reported bad ones.
                _ if is_good || documents.len() >= DOCUMENTS_MAX => return,
                _ => Trust::default(),
            };
            if is_good {
                trust.approved(self.now(), age);
            } else {
                trust.refused(self.now(), age);
            }
            let version = stored.map_or(Version::ABSENT, |stored| stored.version);
            let (tenant, kind, site) = (tenant.clone(), kind.clone(), site.clone());
            let document = SharedDocument::Trust(TrustDocument { tenant, kind, site, trust });
            match self.world.membership.write_document(&name, version, Some(&document)).await {
                Ok(DocumentWritten::Conflict) => {}
                Ok(DocumentWritten::Done(version)) => {
                    return lock(&self.pools).note_document(StoredDocument { name, version, document });
                }
                Ok(DocumentWritten::NoRoom) => return,
                Err(error) => return self.note_error(&error),
            }
        }
    }
}

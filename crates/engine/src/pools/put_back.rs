//! Pools, and what reports have taught, are put back after a shared store has forgotten them, like orders. A document
//! that is no longer there was removed by a person, or the store has forgotten it: which of the two shows when the
//! store next says who it is.

use super::Pools;
use crate::{Engine, lock};
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::{DocumentWritten, SharedDocument, StoreError, StoredDocument, Version};
use std::collections::BTreeMap;

const fn is_put_back(document: &SharedDocument) -> bool {
    matches!(document, SharedDocument::Pool(_) | SharedDocument::Trust(_))
}

impl Pools {
    /// These are all documents that there are now. Those that are not among them any more are remembered for a while.
    pub(super) fn replace_documents(&mut self, stored: Vec<StoredDocument>) {
        let next: BTreeMap<String, StoredDocument> =
            stored.into_iter().map(|stored| (stored.name.clone(), stored)).collect();
        let before = std::mem::replace(&mut self.documents, next);
        self.vanished.extend(before.into_iter().filter(|(_, stored)| is_put_back(&stored.document)));
        self.vanished.retain(|name, _| !self.documents.contains_key(name));
        while self.vanished.len() > DOCUMENTS_MAX {
            self.vanished.pop_first();
        }
    }
}

impl Engine {
    /// The names of documents that were there and are not any more, as far as this node has read.
    #[must_use]
    pub fn vanished_pools(&self) -> Vec<String> {
        lock(&self.pools).vanished.keys().cloned().collect()
    }

    /// The store is the same as before: these were removed by a person.
    pub fn pools_were_removed(&self, names: &[String]) {
        let mut pools = lock(&self.pools);
        for name in names {
            pools.vanished.remove(name);
        }
    }

    /// The store has forgotten: the pools as this node knows them, and what reports have taught, with what has
    /// vanished since the store was last known to be the same.
    #[must_use]
    pub fn take_known_pools(&self) -> Vec<StoredDocument> {
        let mut pools = lock(&self.pools);
        let vanished = std::mem::take(&mut pools.vanished);
        let there = pools.documents.values().filter(|stored| is_put_back(&stored.document)).cloned();
        there.chain(vanished.into_values()).collect()
    }

    /// Puts back those of them that the store no longer has, as they were; says how many that were.
    pub async fn put_back_pools(&self, known: &[StoredDocument]) -> Result<usize, StoreError> {
        if known.is_empty() {
            return Ok(0);
        }
        let documents = self.world.membership.documents().await?;
        let is_missing = |known: &&StoredDocument| documents.iter().all(|stored| stored.name != known.name);
        let mut put_back = 0;
        for stored in known.iter().filter(is_missing) {
            // Another node may be faster, and knows as much.
            let written = self
                .world
                .membership
                .write_document(&stored.name, Version::ABSENT, Some(&stored.document))
                .await?;
            put_back += usize::from(matches!(written, DocumentWritten::Done(_)));
        }
        self.look_at_pools_soon();
        Ok(put_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_ports::Trust;
    use quittance_ports::{AlertDocument, TrustDocument};

    fn stored(name: &str, document: SharedDocument) -> StoredDocument {
        StoredDocument { name: name.into(), version: Version(1), document }
    }

    #[test]
    fn what_is_no_longer_there_is_remembered_until_it_is_back_and_within_bounds() {
        let trust = |name: &str| {
            let (tenant, kind, site) = (String::new(), String::new(), String::new());
            stored(name, SharedDocument::Trust(TrustDocument { tenant, kind, site, trust: Trust::default() }))
        };
        let mut pools = Pools::default();
        pools.replace_documents(vec![
            trust("a"),
            trust("b"),
            stored("alerts", SharedDocument::Alerts(AlertDocument::default())),
        ]);
        pools.replace_documents(vec![]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a", "b"], "alerts begin again by themselves");
        pools.replace_documents(vec![trust("b")]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a"]);
        for n in 0..2 * DOCUMENTS_MAX {
            pools.replace_documents(vec![trust(&n.to_string())]);
        }
        assert_eq!(pools.vanished.len(), DOCUMENTS_MAX);
    }
}

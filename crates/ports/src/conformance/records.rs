//! A record is read as it was written, complete, under a version that no other write of its key ever has.

use super::samples::{self, START, SampleOrder, after, draft, riddle};
use super::{AVAILABLE, commit, create, list, write};
use crate::store::{Commit, Store, Version, Versioned, Which};
use quittance_lifecycle::{Event, Key};
use std::sync::Arc;

/// A key that was never written has no record.
pub async fn absent_is_none(store: Arc<dyn Store>) {
    create(&*store, &samples::queued("another", START).order).await;
    assert_eq!(store.load(&Key([7; 32])).await.expect(AVAILABLE), None);
}

/// Every phase, every state of an attempt, and all values that are hard to write.
pub async fn a_record_written_is_read_back_the_same(store: Arc<dyn Store>) {
    let mut written = Vec::new();
    for SampleOrder { order, .. } in samples::every_phase() {
        let version = create(&*store, &order).await;
        written.push(Versioned { version, order });
    }
    for versioned in &written {
        let loaded = store.load(&versioned.order.key).await.expect(AVAILABLE);
        assert_eq!(loaded.as_ref(), Some(versioned), "{}", versioned.order.phase.name());
    }
    written.sort_by_key(|versioned| versioned.order.key);
    let listed = list(&*store, Which::ALL, None, written.len() + 1).await;
    assert_eq!(listed, written, "and a list shows them as they are");
}

/// Images are part of the order: another node must be able to send them again.
pub async fn a_record_of_a_megabyte_is_read_back_the_same(store: Arc<dyn Store>) {
    let picture: Vec<u8> =
        (0..1_048_576_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let draft = draft("https://example.com/wall").with("picture", picture);
    let SampleOrder { order, .. } = SampleOrder::placed("large", draft, &riddle(), START);
    let version = create(&*store, &order).await;
    let whole = Versioned { version, order };
    assert_eq!(store.load(&whole.order.key).await.expect(AVAILABLE).as_ref(), Some(&whole));
    let due = store.claim_due(START, after(60), 10).await.expect(AVAILABLE);
    assert_eq!(due.orders, [whole]);
}

/// Each step of one life is written over the record of the step before it.
pub async fn a_write_replaces_the_record(store: Arc<dyn Store>) {
    let submitting = samples::submitting("steps", START);
    let steps = [
        samples::queued("steps", START),
        submitting.clone(),
        submitting.clone().then(Event::Cancelled),
        submitting.then(samples::accepted(1)),
        samples::solved("steps", START),
        samples::failed("steps", START),
    ];
    let mut version = Version::ABSENT;
    for SampleOrder { order, .. } in steps {
        version = write(&*store, version, &order).await;
        let loaded = store.load(&order.key).await.expect(AVAILABLE);
        assert_eq!(loaded, Some(Versioned { version, order }));
        assert_eq!(list(&*store, Which::ALL, None, 10).await.len(), 1, "it is one record");
    }
}

/// Versions grow even if nothing else changes.
pub async fn versions_grow(store: Arc<dyn Store>) {
    let SampleOrder { order, .. } = samples::queued("again", START);
    let mut version = Version::ABSENT;
    for _ in 0..20 {
        let next = write(&*store, version, &order).await;
        assert!(next > version, "{next:?} after {version:?}");
        version = next;
    }
}

/// A node may be frozen while a record is purged and created again, and then write with the old version.
pub async fn a_version_never_comes_back_after_a_purge(store: Arc<dyn Store>) {
    let SampleOrder { order: first, .. } = samples::failed("phoenix", START);
    let mut old = vec![create(&*store, &first).await];
    old.push(write(&*store, old[0], &first).await);
    let forgotten = store.purge(after(2 * 3600), 10).await.expect(AVAILABLE);
    assert_eq!(forgotten, 1, "it could be forgotten an hour after it failed");

    let SampleOrder { order: second, .. } = samples::queued("phoenix", after(3 * 3600));
    let created = create(&*store, &second).await;
    let written = write(&*store, created, &second).await;
    let stands = Versioned { version: written, order: second };
    for version in old {
        assert!(version < created, "{created:?} comes after {version:?}, which was purged");
        let sleeper = commit(&*store, version, &first).await;
        assert_eq!(sleeper, Commit::Conflict(Some(Box::new(stands.clone()))));
    }
    assert!(written.0 > 0 && written > created);
}

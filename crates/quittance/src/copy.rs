//! Moves orders from one store to another. The old store is sealed first, so that it cannot change. Then orders,
//! documents (pools and reports about sites), usage and the callback secret are copied and compared. An interrupted
//! copy begins again, and leaves what was copied already.

mod usage;

use crate::callback_secret;
use crate::place::{Opened, SecretError};
use futures_util::stream::{self, StreamExt};
use quittance_lifecycle::{Counters, Key, Order, Timestamp};
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{
    Commit, DocumentWritten, Members, Membership, Store, StoreError, StoredDocument, Version, Versioned,
    Which,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use usage::{NEXT_MARK, USAGE_MARK, all_usage, copy_usage, lines_done};

/// How many orders are read at once, and written at the same time.
const PAGE: usize = 256;
const WRITES_MAX: usize = 128;
/// How often the write of a document is tried. No other process writes there, except perhaps an operator's.
const DOCUMENT_TRIES: u32 = 8;
/// How the note begins of a store whose orders are being moved away.
const MOVING: &str = "its orders are being moved to ";
const MOVED: &str = "its orders have moved to ";
/// The note in the store to which orders are moved.
const FILLING: &str = "orders are being moved here, under the address ";

/// How far the copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    Copying { orders: u64 },
    Usage { lines: usize, of: usize },
    Comparing { orders: u64 },
}

/// What is in the new store after a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many orders were written to the new store.
    pub written: u64,
    pub there: u64,
    /// How many documents of the old store are in the new one, unchanged.
    pub documents: usize,
    /// How many rows of the usage were added.
    pub lines: usize,
    /// Orders that exist in both stores and are unrelated. The order in the new store was not changed.
    pub differ: Vec<Key>,
    /// Records of the old store that cannot be read.
    pub unreadable: Vec<Key>,
    /// Orders that were missing in the new store at the end. There should be none.
    pub missing: Vec<Key>,
    /// The names of documents that were not copied, because the new store has too many of its own.
    pub documents_missing: Vec<String>,
    /// Nodes that still run on the old store. They do no work any more, and should be restarted on the new store.
    pub left_behind: Vec<String>,
    /// Whether the new store has a callback secret of its own. Then callbacks for orders in flight are not
    /// recognised, and their answers are polled instead.
    pub other_secret: bool,
    /// Whether everything had been moved there before, so that nothing was done.
    pub is_repeat: bool,
}

impl Copied {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.differ.is_empty() && self.unreadable.is_empty() && self.has_all()
    }

    /// Whether another try could not copy more.
    const fn has_all(&self) -> bool {
        self.missing.is_empty() && self.documents_missing.is_empty()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(
        "the new store is sealed ({note}): choose another store, or unseal it with `quittance store unseal --yes`"
    )]
    TargetSealed { note: String },
    #[error(
        "nodes work on the new store already ({}): an order that is not copied yet could be paid for again; stop them first",
        .nodes.join(", ")
    )]
    TargetInUse { nodes: Vec<String> },
    #[error(
        "the old store is sealed ({note}): orders that are in two stores are paid for twice, so finish that move. If no \
         node has ever worked on the other store, unseal this one with `quittance store unseal --yes`"
    )]
    OtherMove { note: String },
    #[error("both addresses lead to the same store: nothing was done")]
    SameStore,
    #[error("orders are being moved to the new store from elsewhere ({note}): finish that move first")]
    OtherFilling { note: String },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn live(members: &Members) -> Vec<String> {
    let is_live = |seen: Timestamp| members.now.since(seen) < SILENT_AFTER;
    members
        .nodes
        .iter()
        .filter(|signed| is_live(signed.seen))
        .map(|signed| signed.node_status.name.clone())
        .collect()
}

/// Counts what a copy would do, and changes nothing.
pub async fn survey(
    from: &Opened,
    progress: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<Copied, StoreError> {
    let mut copied = Copied { left_behind: live(&from.membership.members().await?), ..Copied::default() };
    let mut pages = Pages::of(&*from.store);
    while let Some((orders, unreadable)) = pages.next().await? {
        copied.written += orders.len() as u64;
        copied.unreadable.extend(unreadable);
        progress(CopyStep::Copying { orders: copied.written });
    }
    copied.documents = from.membership.documents().await?.len();
    copied.lines = all_usage(&*from.store).await?.len();
    Ok(copied)
}

/// Moves everything. `address` is the name of the new store in the note of the old one.
pub async fn copy(
    from: &Opened,
    to: &Opened,
    address: &str,
    progress: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<Copied, CopyError> {
    if let Some(note) = to.membership.sealed().await? {
        return Err(CopyError::TargetSealed { note });
    }
    let done = match Before::of(from.membership.sealed().await?.as_deref(), address) {
        Before::Nothing => 0,
        Before::Begun { lines, next } => lines_done(from, to, lines, next).await?,
        // Where they went they may have ended and been forgotten since: to copy them again would bring them back to
        // life.
        Before::Done => {
            to.membership.set_filling(None).await?;
            return Ok(Copied { is_repeat: true, ..Copied::default() });
        }
        Before::Another { note } => return Err(CopyError::OtherMove { note }),
    };
    close_to_nodes(from, to, address).await?;
    let moving = format!("{MOVING}{address}");
    from.membership.seal(Some(&format!("{moving}{USAGE_MARK}{done}"))).await?;
    let mut copied = Copied { left_behind: live(&from.membership.members().await?), ..Copied::default() };
    copied.other_secret = copy_secret(from, to).await?;
    copy_orders(from, to, &mut copied, progress).await?;
    copy_documents(&*from.membership, &*to.membership, &mut copied).await?;
    copied.lines = copy_usage(from, to, done, &moving, progress).await?;
    compare(from, to, &mut copied, progress).await?;
    // What is not there yet may be there next time.
    if copied.has_all() {
        from.membership.seal(Some(&format!("{MOVED}{address}"))).await?;
        to.membership.set_filling(None).await?;
    }
    Ok(copied)
}

/// Marks both stores, so that no node begins to work on the new store before everything is there: it would pay again
/// for missing orders. A node sends its heartbeat first and reads the note after that, so at least one side notices
/// the other.
async fn close_to_nodes(from: &Opened, to: &Opened, address: &str) -> Result<(), CopyError> {
    let filling = format!("{FILLING}{address}");
    let before = to.membership.filling().await?;
    if let Some(note) = before.as_ref().filter(|note| **note != filling) {
        return Err(CopyError::OtherFilling { note: note.clone() });
    }
    to.membership.set_filling(Some(&filling)).await?;
    let is_same = from.membership.filling().await?.as_ref() == Some(&filling);
    let nodes = live(&to.membership.members().await?);
    if (is_same || !nodes.is_empty()) && before.is_none() {
        to.membership.set_filling(None).await?;
    }
    match is_same {
        true => Err(CopyError::SameStore),
        false if !nodes.is_empty() => Err(CopyError::TargetInUse { nodes }),
        false => Ok(()),
    }
}

/// What the note of the old store shows about earlier moves.
enum Before {
    /// The store is open, or was closed for another reason.
    Nothing,
    Begun {
        lines: usize,
        next: Option<u64>,
    },
    Done,
    Another {
        note: String,
    },
}

impl Before {
    fn of(note: Option<&str>, address: &str) -> Self {
        let Some(note) = note else { return Self::Nothing };
        if let Some(rest) = note.strip_prefix(MOVING) {
            return match rest.rsplit_once(USAGE_MARK) {
                Some((to, lines)) if to == address => {
                    let (lines, next) = lines.split_once(NEXT_MARK).unwrap_or((lines, ""));
                    Self::Begun { lines: lines.parse().unwrap_or(0), next: next.parse().ok() }
                }
                _ => Self::Another { note: note.to_owned() },
            };
        }
        match note.strip_prefix(MOVED) {
            Some(to) if to == address => Self::Done,
            Some(_) => Self::Another { note: note.to_owned() },
            None => Self::Nothing,
        }
    }
}

/// Copies the secret. Returns whether the new store has another one. The new store must recognise the addresses that
/// providers have, and the keys of orders depend on the secret. If the new store was only read so far, nothing
/// depends on its secret yet.
async fn copy_secret(from: &Opened, to: &Opened) -> Result<bool, CopyError> {
    let drawn = callback_secret::draw().map_err(SecretError::from)?;
    let ours = from.secret(drawn).await?;
    let is_same = to.secret(ours).await? == ours;
    let may_be_replaced = is_same || to.store.list(Which::ALL, None, 1).await?.is_empty();
    if may_be_replaced {
        // Also if it is there: it came with orders, and no node may bring another in its place.
        to.replace_secret(ours).await?;
    }
    Ok(!may_be_replaced)
}

/// All orders, page by page. A record that cannot be read is reported by its key.
struct Pages<'a> {
    store: &'a dyn Store,
    after: Option<Key>,
}

type OrderPage = (Vec<Versioned>, Vec<Key>);

impl<'a> Pages<'a> {
    const fn of(store: &'a dyn Store) -> Self {
        Self { store, after: None }
    }

    async fn next(&mut self) -> Result<Option<OrderPage>, StoreError> {
        let page = self.store.list(Which::ALL, self.after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = Some(last.as_ref().map_or_else(|broken| broken.key, |record| record.order.key));
        let (mut orders, mut unreadable) = (Vec::new(), Vec::new());
        for record in page {
            match record {
                Ok(record) => orders.push(record),
                Err(broken) => unreadable.push(broken.key),
            }
        }
        Ok(Some((orders, unreadable)))
    }
}

/// Whether both are the same record. The new one may be further in its life, but not behind: the old store is closed.
fn is_same(old: &Order, new: &Order) -> bool {
    old.born == new.born
}

enum Put {
    Written,
    There,
    Differs(Key),
}

async fn put(store: &dyn Store, order: &Arc<Order>) -> Result<Put, StoreError> {
    // The usage come later, line by line.
    Ok(match store.commit(Version::ABSENT, order, &Counters::default(), order.placed).await? {
        Commit::Done(_) => Put::Written,
        Commit::Conflict(Some(record)) if is_same(order, &record.order) => Put::There,
        Commit::Conflict(_) => Put::Differs(order.key),
    })
}

async fn copy_orders(
    from: &Opened,
    to: &Opened,
    copied: &mut Copied,
    progress: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<(), StoreError> {
    let mut pages = Pages::of(&*from.store);
    while let Some((orders, unreadable)) = pages.next().await? {
        copied.unreadable.extend(unreadable);
        let store = &to.store;
        let puts = orders.into_iter().map(|record| async move { put(&**store, &record.order).await });
        let mut puts = stream::iter(puts).buffer_unordered(WRITES_MAX);
        while let Some(done) = puts.next().await {
            match done? {
                Put::Written => copied.written += 1,
                Put::There => copied.there += 1,
                Put::Differs(key) => copied.differ.push(key),
            }
        }
        progress(CopyStep::Copying { orders: copied.written + copied.there });
    }
    Ok(())
}

/// Copies documents. Unlike an order, a document that exists in both stores is replaced: no node has worked on the
/// new store, and its orders were bought for the pools of the old one.
async fn copy_documents(
    from: &dyn Membership,
    to: &dyn Membership,
    copied: &mut Copied,
) -> Result<(), StoreError> {
    let documents = from.documents().await?;
    let mut there = to.documents().await?;
    for record in &documents {
        for _ in 0..DOCUMENT_TRIES {
            match put_document(to, record, &there).await? {
                DocumentWritten::Conflict => there = to.documents().await?,
                DocumentWritten::Done(_) | DocumentWritten::NoRoom => break,
            }
        }
    }
    let there = to.documents().await?;
    for record in documents {
        match there.iter().any(|stands| stands.name == record.name && stands.document == record.document) {
            true => copied.documents += 1,
            false => copied.documents_missing.push(record.name),
        }
    }
    Ok(())
}

async fn put_document(
    to: &dyn Membership,
    record: &StoredDocument,
    there: &[StoredDocument],
) -> Result<DocumentWritten, StoreError> {
    let StoredDocument { name, document, .. } = record;
    match there.iter().find(|stands| stands.name == *name) {
        Some(stands) if stands.document == *document => Ok(DocumentWritten::Done(stands.version)),
        stands => {
            let version = stands.map_or(Version::ABSENT, |stands| stands.version);
            to.write_document(name, version, Some(document)).await
        }
    }
}

async fn compare(
    from: &Opened,
    to: &Opened,
    copied: &mut Copied,
    progress: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<(), StoreError> {
    let differ: BTreeSet<Key> = copied.differ.iter().copied().collect();
    let mut compared = 0;
    let mut pages = Pages::of(&*from.store);
    while let Some((orders, _)) = pages.next().await? {
        let store = &to.store;
        let looks = orders.into_iter().map(|record| async move {
            let key = record.order.key;
            let stands = store.load(&key).await?;
            Ok::<_, StoreError>((key, stands.is_some_and(|stands| is_same(&record.order, &stands.order))))
        });
        let mut looks = stream::iter(looks).buffer_unordered(WRITES_MAX);
        while let Some(look) = looks.next().await {
            let (key, is_there) = look?;
            compared += 1;
            if !is_there && !differ.contains(&key) {
                copied.missing.push(key);
            }
        }
        progress(CopyStep::Comparing { orders: compared });
    }
    Ok(())
}

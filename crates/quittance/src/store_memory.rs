//! What a node remembers of its store, in memory and in its folder: the store's identity, its epoch, and the secrets
//! that signed callbacks. With this a node notices that a store was flushed, restored or replaced. It also still
//! recognises genuine callbacks after that.

use crate::callback_secret;
use crate::in_hand_file::{InHandFile, KeptOrders};
use crate::node_servers::Webhooks;
use crate::place::Opened;
use quittance_engine::{Engine, KnownDocument, PutBack};
use quittance_lifecycle::Timestamp;
use quittance_ports::{MarkRequest, StoreError, StoreMark};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// The name of the file with the store's identity.
pub const IDENTITY: &str = "store-identity";
const SECRETS: &str = "callback-secrets";
/// The name of the file about what the store has forgotten, until an operator has acknowledged it.
pub const NOTE: &str = "store-forgot";
/// How often the epoch is written.
const KEEP_SPAN: Duration = Duration::from_secs(10);
/// How often it is logged that this node still puts back what it had in hand.
const STILL_SPAN: Duration = Duration::from_secs(1);
/// How often unreadable records and lost timers are logged.
const REPORT_SPAN: Duration = Duration::from_secs(60);
/// How many orders are named in the log.
const NAMED_MAX: usize = 50;

pub(crate) struct StoreMemory {
    opened: Opened,
    dir: Option<PathBuf>,
    address: String,
    mark: Option<([u8; 16], u64)>,
    secrets: Vec<[u8; 32]>,
    /// When the first secret was drawn, by the store's clock.
    drawn_at: Option<Timestamp>,
    /// The secret that this node uses, after it has agreed on one with the store.
    in_use: Option<[u8; 32]>,
    has_agreed: bool,
    /// Signs webhooks with a key derived from the secret, unless the operator has set a secret.
    webhooks: Option<Webhooks>,
    kept_at: Option<Instant>,
    has_note: bool,
    /// What the store reported when it was opened, until the node has acted on it.
    agreed: Option<StoreMark>,
    /// Whether the store failed before everything in hand was put back.
    is_incomplete: bool,
    /// The file of an earlier process with its orders in hand, and how many of them cannot be read. `None` after they
    /// were compared with the store.
    kept: Option<(InHandFile, usize)>,
    /// The pools that must still be put back.
    owed_pools: Vec<KnownDocument>,
    /// The error of the store's own files at the last report.
    last_error: Option<String>,
    /// The last report about lost lines of the trail.
    reported_trail: Option<String>,
    /// How many records could not be read at the last report, and when that was.
    reported_unreadable: (u64, Option<Instant>),
    /// How many lost timers were written again before the last report, and when that was.
    reported_timers: (u64, Option<Instant>),
}

impl StoreMemory {
    /// Reads what this node remembers. `dir` is its folder.
    pub(crate) fn recall(opened: Opened, dir: Option<&Path>, address: String) -> Self {
        let mut memory = Self {
            opened,
            dir: dir.map(Path::to_owned),
            address,
            mark: None,
            secrets: Vec::new(),
            drawn_at: None,
            in_use: None,
            has_agreed: false,
            webhooks: None,
            kept_at: None,
            has_note: false,
            agreed: None,
            is_incomplete: false,
            kept: None,
            owed_pools: Vec::new(),
            last_error: None,
            reported_trail: None,
            reported_unreadable: (0, None),
            reported_timers: (0, None),
        };
        if let Some(dir) = dir {
            let identity = fs::read_to_string(dir.join(IDENTITY)).unwrap_or_default();
            memory.mark = read_identity(&identity, &memory.address);
            memory.drawn_at = read_drawn_at(&identity, &memory.address);
            let secrets = fs::read(dir.join(SECRETS)).unwrap_or_default();
            // Those of another store prove nothing here, and do no harm.
            memory.secrets = secrets.chunks_exact(32).filter_map(|secret| secret.try_into().ok()).collect();
        }
        memory
    }

    /// Agrees with the store on the secrets. Returns whether other nodes may know of more.
    pub(crate) async fn agree(&mut self) -> Result<bool, StoreError> {
        let Some(mark) = self.mark_of_store(false).await? else {
            // A store that one node has to itself keeps its own secret; what is remembered here is of another store.
            self.secrets.clear();
            return Ok(false);
        };
        if !mark.secrets.is_empty() {
            self.learn(&mark);
            let is_other = self.is_other(&mark);
            self.agreed = Some(mark);
            return Ok(is_other);
        }
        // The store may have been flushed a moment ago: no order is new until other nodes had the time to bring an
        // older secret.
        let secrets = &[draw()?];
        let request = MarkRequest { secrets, drawn_at: None, ..self.request(false)? };
        if let Some(mark) = self.opened.mark(request).await? {
            self.learn(&mark);
            self.agreed = Some(mark);
        }
        Ok(true)
    }

    async fn mark_of_store(&self, is_putting_back: bool) -> Result<Option<StoreMark>, StoreError> {
        self.opened.mark(self.request(is_putting_back)?).await
    }

    fn request(&self, is_putting_back: bool) -> Result<MarkRequest<'_>, StoreError> {
        Ok(MarkRequest {
            drawn: draw()?,
            known: self.mark,
            secrets: &self.secrets,
            drawn_at: self.drawn_at,
            is_at_work: self.has_agreed,
            is_putting_back,
        })
    }

    /// Applies to this engine what was agreed with the store. The engine begins no orders while other nodes put back
    /// what the store has forgotten. Without `webhooks`, the operator has set the secret of callbacks and webhooks.
    pub(crate) fn hold_to(&mut self, engine: &Engine, secret: [u8; 32], webhooks: Option<Webhooks>) {
        self.in_use = Some(secret);
        self.webhooks = webhooks;
        self.take_kept(engine);
        if let Some(mark) = self.agreed.take() {
            engine.recover_for(mark.recovery);
            self.opened.trust(&mark);
        }
    }

    /// Whether the store was replaced or restored before this process began.
    pub(crate) fn is_replaced(&self) -> bool {
        self.agreed.as_ref().is_some_and(|mark| self.is_other(mark))
    }

    /// Takes the orders in hand of an earlier process of this node, if the store may not have them.
    fn take_kept(&mut self, engine: &Engine) {
        let Some(file) = self.in_hand_file() else { return };
        let KeptOrders { orders, is_all_stored, unreadable } = match file.read() {
            Ok(Some(kept)) => kept,
            Ok(None) => return,
            Err(error) => {
                let path = file.path();
                tracing::warn!(path = %path.display(), %error, "the orders that this node kept at its last stop cannot be read");
                return;
            }
        };
        let is_same_store = self.agreed.as_ref().is_some_and(|mark| !self.is_other(mark));
        if is_all_stored && is_same_store {
            // The store had them, and other nodes may have brought them to their end and removed them.
            remove_kept(&file, 0);
            return;
        }
        // Orders that were left to other nodes have come to their end there.
        let in_hand = engine.take_in_hand(orders, is_same_store || is_all_stored);
        let why = if is_all_stored {
            "the store is not what it was when this node stopped"
        } else {
            "this node could not reach its store when it stopped"
        };
        tracing::warn!(
            store = self.address,
            in_hand,
            unreadable,
            "{why}: the orders that it kept in its folder are compared with the store"
        );
        self.kept = Some((file, unreadable));
        self.is_incomplete = true;
    }

    /// The file for the orders in hand when this node stops.
    pub(crate) fn in_hand_file(&self) -> Option<InHandFile> {
        self.dir.clone().map(|dir| InHandFile::new(dir, self.address.clone()))
    }

    pub(crate) fn forget_restored(&self) {
        self.opened.forget_restored();
    }

    pub(crate) fn secrets(&self) -> &[[u8; 32]] {
        &self.secrets
    }

    fn is_other(&self, mark: &StoreMark) -> bool {
        self.mark.is_some_and(|(identity, epoch)| identity != mark.identity || epoch > mark.epoch)
    }

    /// Stores the secrets of the mark. Returns whether they differ from before.
    fn learn(&mut self, mark: &StoreMark) -> bool {
        let mut secrets = mark.secrets.clone();
        secrets.extend(self.secrets.iter().filter(|known| !mark.secrets.contains(known)));
        let is_new = secrets != self.secrets;
        self.secrets = secrets;
        (self.drawn_at, self.has_agreed) = (Some(mark.drawn_at), true);
        if is_new {
            self.keep(SECRETS, &self.secrets.concat());
        }
        is_new
    }

    /// Reports what an earlier process left for an operator to see.
    pub(crate) fn remind(&mut self, engine: &Engine) {
        let note = self.dir.as_ref().and_then(|dir| fs::read_to_string(dir.join(NOTE)).ok());
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            self.has_note = true;
            engine.note_forgetting(note);
        }
    }

    /// Checks whether the store is still the same, and acts if it is not. Returns whether the store has all orders
    /// that this node has in hand.
    pub(crate) async fn look(&mut self, engine: &Engine, is_suspected: bool) -> bool {
        self.look_at_files(engine);
        self.look_at_records(engine);
        self.look_at_timers(engine);
        if self.has_note && engine.forgetting().is_none() {
            self.has_note = false;
            if let Some(dir) = &self.dir {
                drop(fs::remove_file(dir.join(NOTE)));
            }
        }
        // It was noticed before the store says who it is: if it is the same still, it has not forgotten them.
        let vanished = engine.vanished_pools();
        let mark = match self.mark_of_store(false).await {
            Ok(Some(mark)) => mark,
            // One node has it to itself.
            Ok(None) => return true,
            Err(_) => return false,
        };
        if self.learn(&mark)
            && let Some(address) = engine.callback_address().filter(|_| self.webhooks.is_some())
        {
            address.set_secrets(self.secrets.clone());
        }
        let is_other = self.is_other(&mark);
        self.use_agreed_secret(engine, &mark, is_other);
        if is_other {
            self.owed_pools.extend(engine.take_known_pools());
        } else {
            engine.pools_were_removed(&vanished);
        }
        let is_due = self.kept_at.is_none_or(|at| at.elapsed() >= KEEP_SPAN);
        self.take_for_true(engine, &mark);
        if is_other || is_due {
            self.kept_at = Some(Instant::now());
            let identity = u128::from_be_bytes(mark.identity);
            self.keep(
                IDENTITY,
                format!("{}\n{identity:032x}\n{}\n{}\n", self.address, mark.epoch, mark.drawn_at.as_millis())
                    .as_bytes(),
            );
        }
        if is_other || is_suspected || std::mem::take(&mut self.is_incomplete) {
            self.put_back(engine, is_other).await;
        }
        self.put_back_pools(engine).await;
        !self.is_incomplete
    }

    /// Uses the secret on which the nodes of a store have agreed. If this node used another, the store has begun a
    /// recovery, and no order is new until that is over.
    fn use_agreed_secret(&mut self, engine: &Engine, mark: &StoreMark, is_other: bool) {
        let Some(secret) = self.secrets.first().copied().filter(|secret| self.in_use != Some(*secret)) else {
            return;
        };
        engine.recover_for(mark.recovery);
        engine.set_key_secret(secret);
        if let Some(webhooks) = &self.webhooks {
            webhooks.set_root_secret(secret);
        }
        self.in_use = Some(secret);
        let words = "this node used another secret than the nodes that worked on the store before it lost its secret, and uses \
                     theirs from now on; an order that was placed here under the other secret is not recognised when it is placed \
                     again: find out what happened to the store, then mark this alert as seen";
        tracing::warn!(store = self.address, "{words}");
        if !is_other {
            self.note(engine, words.to_owned());
        }
    }

    /// Accepts the store: first no order may be new, and only then commits are for this store.
    fn take_for_true(&mut self, engine: &Engine, mark: &StoreMark) {
        engine.recover_for(mark.recovery);
        self.mark = Some((mark.identity, mark.epoch));
        self.opened.trust(mark);
    }

    /// Puts back what this node had in hand. Until that is done, prolongs the recovery for all nodes.
    async fn put_back_in_time(&mut self, engine: &Engine, is_other: bool) -> PutBack {
        let mut putting_back = pin!(engine.put_back());
        loop {
            tokio::select! {
                result = &mut putting_back => return result,
                () = tokio::time::sleep(STILL_SPAN) => {
                    if is_other && let Ok(Some(mark)) = self.mark_of_store(true).await {
                        self.take_for_true(engine, &mark);
                    }
                }
            }
        }
    }

    async fn put_back(&mut self, engine: &Engine, is_other: bool) {
        let result = self.put_back_in_time(engine, is_other).await;
        self.is_incomplete = result.is_incomplete;
        if let Some((file, unreadable)) = self.kept.take_if(|_| !result.is_incomplete) {
            remove_kept(&file, unreadable);
        }
        if !is_other && result.count() == 0 {
            return;
        }
        let what = if is_other { "was flushed, restored or replaced" } else { "has lost orders" };
        let PutBack { put_back, recalled, lost, answered, is_incomplete } = &result;
        let keys: Vec<String> =
            put_back.iter().chain(recalled).chain(lost).take(NAMED_MAX).map(ToString::to_string).collect();
        tracing::warn!(
            store = self.address,
            put_back = put_back.len(),
            placed_again = recalled.len(),
            lost = lost.len(),
            answered,
            is_incomplete,
            orders = keys.join(" "),
            "the store {what}; the orders that this node had in hand were put back, callbacks are kept and matched: look at \
             `quittance dead list --cause store_forgot`"
        );
        let outcome = match result.count() {
            0 => "this node had none of its orders in hand, so it is not known which are lost".to_owned(),
            _ => format!(
                "of the orders that this node had in hand, {} were put back, {} had been placed again, {} are lost, and {answered} \
                 that have their answer were put back",
                put_back.len(),
                recalled.len(),
                lost.len()
            ),
        };
        let words = format!(
            "the store {what}; {outcome}: compare `quittance dead list --cause store_forgot` with the provider's list, find out what \
             happened to the store, then mark this alert as seen"
        );
        self.note(engine, words);
    }

    async fn put_back_pools(&mut self, engine: &Engine) {
        match engine.put_back_pools(&self.owed_pools).await {
            Ok(pools) => {
                self.owed_pools.clear();
                if pools > 0 {
                    tracing::warn!(store = self.address, pools, "pools that the store forgot were put back");
                }
            }
            // It is tried again at the next look.
            Err(error) => {
                tracing::warn!(store = self.address, %error, "the pools that the store forgot cannot be put back yet");
            }
        }
    }

    /// Reports what happened to the files of an embedded store.
    fn look_at_files(&mut self, engine: &Engine) {
        let damage = self.opened.damage();
        match self.opened.look_at_secret() {
            Ok(None) => {}
            Ok(Some(words)) => {
                tracing::warn!(store = self.address, "{words}");
                // What became of the files says more.
                if damage.is_none() {
                    self.note(engine, words);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the callback secret is gone or replaced, and cannot be written again");
            }
        }
        if damage.is_some() && damage != self.last_error {
            self.last_error.clone_from(&damage);
            let words = damage.unwrap_or_default();
            tracing::warn!(store = self.address, "{words}");
            self.note(engine, words);
        }
        let note = self.opened.trail_note();
        if note != self.reported_trail {
            if let Some(words) = &note {
                tracing::warn!(store = self.address, "{words}");
            }
            self.reported_trail = note;
        }
    }

    /// Reports records that cannot be read, when there are more than before.
    fn look_at_records(&mut self, engine: &Engine) {
        let listed = self.opened.unreadable();
        if let Some(count) = listed {
            engine.note_unreadable(count);
        }
        // Other stores do not count them; there, this node counts how often it met one.
        let count = listed.unwrap_or_else(|| engine.unreadable());
        let (reported, at) = &mut self.reported_unreadable;
        if count <= *reported {
            *reported = count;
        } else if at.is_none_or(|at| at.elapsed() >= REPORT_SPAN) {
            tracing::warn!(
                store = self.address,
                unreadable = count,
                "records of the store cannot be read; they are set aside, and their orders rest: compare `quittance dead list \
                 --cause unreadable` with the provider's list, look at the disk, then drop them (`quittance dead drop`)"
            );
            (*reported, *at) = (count, Some(Instant::now()));
        }
    }

    /// Reports timers that the store had lost and has restored.
    fn look_at_timers(&mut self, engine: &Engine) {
        let restored = self.opened.timers_restored();
        let (reported, at) = self.reported_timers;
        if restored <= reported || at.is_some_and(|at| at.elapsed() < REPORT_SPAN) {
            return;
        }
        self.reported_timers = (restored, Some(Instant::now()));
        let words = format!(
            "the store has lost the timers of orders whose records it has: {} or more had none, and have one again from their \
             records; they were late: find out what removed the keys `*:due` of the store, then mark this alert as seen",
            restored - reported
        );
        tracing::warn!(store = self.address, "{words}");
        self.note(engine, words);
    }

    fn note(&mut self, engine: &Engine, words: String) {
        self.has_note = true;
        self.keep(NOTE, words.as_bytes());
        engine.note_forgetting(words);
    }

    /// Writes a file into the folder. An error is not a reason to stop, because the file is only needed after a
    /// restart.
    fn keep(&self, name: &str, bytes: &[u8]) {
        let Some(dir) = &self.dir else { return };
        if let Err(error) = callback_secret::keep(dir, name, bytes) {
            tracing::warn!(%error, name, "what this node remembers of its store cannot be kept in its folder");
        }
    }
}

fn remove_kept(file: &InHandFile, unreadable: usize) {
    if let Err(error) = file.remove(unreadable) {
        let path = file.path();
        tracing::warn!(path = %path.display(), %error, "the store has the orders of this file, and it cannot be removed");
    }
}

fn draw<const N: usize>() -> Result<[u8; N], StoreError> {
    callback_secret::draw().map_err(|error: io::Error| StoreError::Unavailable {
        doing: "drawing a number",
        source: error.into(),
    })
}

/// Reads the identity and the epoch of the store at `address`; `None` if the text is about another store.
fn read_identity(text: &str, address: &str) -> Option<([u8; 16], u64)> {
    let mut lines = text.lines();
    if lines.next()? != address {
        return None;
    }
    let identity = u128::from_str_radix(lines.next()?, 16).ok()?.to_be_bytes();
    Some((identity, lines.next()?.parse().ok()?))
}

/// When the secret beside this text was drawn.
fn read_drawn_at(text: &str, address: &str) -> Option<Timestamp> {
    let mut lines = text.lines();
    if lines.next()? != address {
        return None;
    }
    lines.nth(2)?.parse().ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::{read_drawn_at, read_identity};
    use quittance_lifecycle::Timestamp;

    #[test]
    fn what_is_known_of_another_store_says_nothing_about_this_one() {
        let text = "redis://a:1\n000102030405060708090a0b0c0d0e0f\n77\n";
        let identity = std::array::from_fn(|n| n.to_le_bytes()[0]);
        assert_eq!(read_identity(text, "redis://a:1"), Some((identity, 77)));
        assert_eq!(read_identity(text, "redis://b:1"), None);
        assert_eq!(read_identity("", "redis://a:1"), None);
        assert_eq!(read_drawn_at(text, "redis://a:1"), None);
        let text = format!("{text}99\n");
        assert_eq!(read_identity(&text, "redis://a:1"), Some((identity, 77)));
        assert_eq!(read_drawn_at(&text, "redis://a:1"), Some(Timestamp::from_millis(99)));
        assert_eq!(read_drawn_at(&text, "redis://b:1"), None);
    }
}

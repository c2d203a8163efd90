//! The indices in memory: the row of each key, its tenant, timers, stocks, and what can be forgotten. They are
//! derived from the rows when the store is opened. An order at rest needs about sixty bytes.

mod known;

use crate::lists::{ListRow, Lists};
use crate::row::{EmbeddedMarks, TenantMark};
use quittance_lifecycle::{Key, Target, Timestamp};
use quittance_ports::{OrderClass, OrderCounts, Which};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// How many discarded rows are remembered.
const DISCARDED_MAX: usize = 4096;

/// The first eight bytes of a key: enough to sort by, and all but always enough to find the row.
pub(crate) fn prefix(key: &Key) -> u64 {
    let b = &key.0;
    u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn last_key_of(prefix: u64) -> Key {
    let mut key = [0xff; 32];
    key[..8].copy_from_slice(&prefix.to_be_bytes());
    Key(key)
}

/// The answers in each stock, sorted by expiry.
pub(crate) type StockIndex = BTreeSet<(Target, Timestamp, Key)>;
/// What each claimant took from each stock.
pub(crate) type Takers = BTreeSet<(Key, Target, Key)>;

/// The lowest possible key.
pub(crate) const FIRST_KEY: Key = Key([0; 32]);

/// The answers that this claimant has from this stock.
pub(crate) fn own<'a>(takers: &'a Takers, by: &Key, target: &Target) -> impl Iterator<Item = Key> + use<'a> {
    let (by, target) = (*by, *target);
    let from = takers.range((by, target, FIRST_KEY)..);
    from.take_while(move |(taker, of, _)| (*taker, *of) == (by, target)).map(|(.., key)| *key)
}

/// The answers in a stock from this place on; the one that expires first comes first.
pub(crate) fn class<'a>(
    stocks: &'a StockIndex,
    target: &Target,
    from: (Timestamp, Key),
) -> impl Iterator<Item = (Timestamp, Key)> + use<'a> {
    let target = *target;
    let stock = stocks.range((target, from.0, from.1)..).take_while(move |(of, ..)| *of == target);
    stock.map(|(_, expires, key)| (*expires, *key))
}

#[derive(Default)]
pub(crate) struct OrderIndex {
    lists: Lists,
    by_tenant: BTreeMap<TenantMark, Lists>,
    /// When each order next appears in `claim_due`: when it is due, or when its claim ends.
    timers: BTreeMap<(Timestamp, Key), i64>,
    /// When each claim ends. Claims are not durable: they end with the process.
    claimed: BTreeMap<Key, Timestamp>,
    stocks: StockIndex,
    takers: Takers,
    forgettable: BTreeSet<(Timestamp, u64, i64)>,
    /// Rows that cannot be read. They are in no other index, except for their timer until it fires.
    broken: BTreeMap<Key, UnreadableRow>,
    /// Rows that were recently discarded. A read that began before must not set such a row aside again. Reads are
    /// short, so the last [`DISCARDED_MAX`] rows are enough.
    discarded: VecDeque<i64>,
}

/// Why the row of a key cannot be read, and which row it is. One row can be reported under two keys, and two rows
/// under one.
#[derive(Default)]
struct UnreadableRow {
    why: String,
    rows: BTreeSet<i64>,
    /// When the row is or was reported.
    tells_at: Option<Timestamp>,
    /// Whether the row was readable once: then the other indices still have it.
    was_good: bool,
    /// Whether the row was listed under another key while it was readable: then its own key may be damaged.
    is_stray: bool,
}

/// A timer that has fired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rung {
    pub(crate) at: Timestamp,
    pub(crate) key: Key,
    pub(crate) id: i64,
    pub(crate) lapses: Timestamp,
}

/// The result of [`OrderIndex::claim`].
#[derive(Debug, Default)]
pub(crate) struct IndexClaims {
    pub(crate) rung: Vec<Rung>,
    pub(crate) broken: Vec<(Key, String)>,
    pub(crate) next: Option<Timestamp>,
}

/// Some rows in the order of their keys, as far as the prefixes show it.
#[derive(Debug)]
pub(crate) struct IndexPage {
    pub(crate) ids: Vec<i64>,
    pub(crate) broken: Vec<(Key, String)>,
    /// All keys up to this one are in the page. `None` if the page has all keys.
    pub(crate) through: Option<Key>,
}

impl OrderIndex {
    /// Builds the index from many rows, which is much faster than adding them one by one.
    pub(crate) fn of(rows: &[(Key, i64, EmbeddedMarks)]) -> Self {
        let mut tenants: BTreeMap<TenantMark, Vec<(ListRow, OrderClass)>> = BTreeMap::new();
        for (key, id, marks) in rows {
            tenants.entry(marks.tenant).or_default().push(((prefix(key), *id), marks.class));
        }
        let all = rows.iter().map(|(key, id, marks)| ((prefix(key), *id), marks.class));
        let timer = |(key, id, marks): &(Key, i64, EmbeddedMarks)| Some(((marks.due?, *key), *id));
        let stock = |(key, _, marks): &(Key, i64, EmbeddedMarks)| {
            marks.stock.map(|(target, expires)| (target, expires, *key))
        };
        let taker =
            |(key, _, marks): &(Key, i64, EmbeddedMarks)| marks.taken.map(|(by, target)| (by, target, *key));
        let forget =
            |(key, id, marks): &(Key, i64, EmbeddedMarks)| Some((marks.forget_at?, prefix(key), *id));
        Self {
            lists: Lists::of(all),
            by_tenant: tenants.into_iter().map(|(tenant, rows)| (tenant, Lists::of(rows))).collect(),
            timers: rows.iter().filter_map(timer).collect(),
            claimed: BTreeMap::new(),
            stocks: rows.iter().filter_map(stock).collect(),
            takers: rows.iter().filter_map(taker).collect(),
            forgettable: rows.iter().filter_map(forget).collect(),
            broken: BTreeMap::new(),
            discarded: VecDeque::new(),
        }
    }

    /// The rows that may belong to the key: one or none, and very rarely two.
    pub(crate) fn rows(&self, key: &Key) -> Vec<i64> {
        let prefix = prefix(key);
        self.lists.keys.range((prefix, i64::MIN)..=(prefix, i64::MAX)).map(|(_, id)| *id).collect()
    }

    pub(crate) fn why_broken(&self, key: &Key) -> Option<&String> {
        self.broken.get(key).map(|record| &record.why)
    }

    /// The rows that were reported under this key, if any were.
    pub(crate) fn rows_set_aside(&self, key: &Key) -> Option<Vec<i64>> {
        self.broken.get(key).map(|record| record.rows.iter().copied().collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.keys.len()
    }

    pub(crate) fn order_counts(&self) -> OrderCounts {
        let Lists { open, dead, .. } = &self.lists;
        OrderCounts { open: open.len() as u64, dead: (dead.len() + self.broken.len()) as u64 }
    }

    /// All keys that cannot be read, in order, with the reason.
    pub(crate) fn broken(&self) -> impl Iterator<Item = (&Key, &String)> {
        self.broken.iter().map(|(key, record)| (key, &record.why))
    }

    /// Moves a row to its new place in the indices. A new row has no old place.
    pub(crate) fn replace(&mut self, key: &Key, id: i64, old: Option<EmbeddedMarks>, new: EmbeddedMarks) {
        let row = (prefix(key), id);
        if let Some(timer) = self.claimed.remove(key).or(old.and_then(|old| old.due)) {
            self.timers.remove(&(timer, *key));
        }
        if let Some((target, expires)) = old.and_then(|old| old.stock) {
            self.stocks.remove(&(target, expires, *key));
        }
        if let Some((by, target)) = old.and_then(|old| old.taken) {
            self.takers.remove(&(by, target, *key));
        }
        if let Some(at) = old.and_then(|old| old.forget_at) {
            self.forgettable.remove(&(at, row.0, id));
        }
        self.list(row, old, new);
        if let Some(at) = new.due {
            self.timers.insert((at, *key), id);
        }
        if let Some((target, expires)) = new.stock {
            self.stocks.insert((target, expires, *key));
        }
        if let Some((by, target)) = new.taken {
            self.takers.insert((by, target, *key));
        }
        if let Some(at) = new.forget_at {
            self.forgettable.insert((at, row.0, id));
        }
    }

    /// Moves a row in the two lists: that of all orders, and that of its tenant.
    fn list(&mut self, row: ListRow, old: Option<EmbeddedMarks>, new: EmbeddedMarks) {
        if let Some(old) = old {
            if (old.tenant, old.class) == (new.tenant, new.class) {
                return;
            }
            self.lists.remove(&row);
            self.strike_from(old.tenant, &row);
        }
        self.lists.insert(row, new.class);
        self.by_tenant.entry(new.tenant).or_default().insert(row, new.class);
    }

    fn strike_from(&mut self, tenant: TenantMark, row: &ListRow) {
        if let Some(lists) = self.by_tenant.get_mut(&tenant)
            && lists.remove(row)
            && lists.keys.is_empty()
        {
            self.by_tenant.remove(&tenant);
        }
    }

    /// Removes a row from every list. Its tenant may be damaged, so all lists are searched; that is rare.
    fn strike_from_lists(&mut self, row: &ListRow) -> bool {
        for lists in self.by_tenant.values_mut() {
            lists.remove(row);
        }
        self.lists.remove(row)
    }

    /// Removes an unreadable row from the indices. Its timer stays: the row is reported when it fires.
    pub(crate) fn set_aside(&mut self, key: &Key, id: i64, why: String) {
        if self.discarded.contains(&id) {
            return;
        }
        let row = (prefix(key), id);
        let was_listed = self.strike_from_lists(&row);
        let record = self.broken.entry(*key).or_default();
        record.why = why;
        if record.rows.insert(id) {
            record.was_good = true;
            record.is_stray |= !was_listed;
        }
    }

    /// Notes a row that could not be read when the store was opened, and that is in no index yet.
    pub(crate) fn never_good(&mut self, key: &Key, id: i64, why: String, due: Option<Timestamp>) {
        let record = self.broken.entry(*key).or_default();
        record.why = why;
        record.rows.insert(id);
        self.tell_at(due, key, id);
    }

    /// Sets when the set-aside row is reported.
    pub(crate) fn tell_at(&mut self, due: Option<Timestamp>, key: &Key, id: i64) {
        let Some(at) = due else { return };
        self.timers.insert((at, *key), id);
        if let Some(record) = self.broken.get_mut(key) {
            record.tells_at = Some(at);
        }
    }

    /// Stops all reports about this key and about the erased rows, under any key.
    pub(crate) fn discard(&mut self, key: &Key, erased: &BTreeSet<i64>) {
        for id in erased {
            self.set_aside(key, *id, String::new());
        }
        self.discarded.extend(erased);
        let over = self.discarded.len().saturating_sub(DISCARDED_MAX);
        self.discarded.drain(..over);
        for record in self.broken.values_mut() {
            record.rows.retain(|id| !erased.contains(id));
        }
        let is_over =
            |(of, record): (&Key, &UnreadableRow)| (of == key || record.rows.is_empty()).then_some(*of);
        let over: Vec<Key> = self.broken.iter().filter_map(is_over).collect();
        for key in over {
            let Some(record) = self.broken.remove(&key) else { continue };
            if let Some(at) = record.tells_at {
                self.timers.remove(&(at, key));
            }
            if record.was_good {
                self.strike_off(&key, erased);
            }
            if record.is_stray {
                for lists in self.by_tenant.values_mut().chain([&mut self.lists]) {
                    lists.retain(|(_, id)| !erased.contains(id));
                }
            }
        }
    }

    /// Removes a row that was readable once from every index. Its times may be damaged, so the indices are searched
    /// in full; damage while the store is open is rare.
    fn strike_off(&mut self, key: &Key, erased: &BTreeSet<i64>) {
        self.claimed.remove(key);
        self.timers.retain(|(_, of), id| of != key && !erased.contains(id));
        self.stocks.retain(|(.., of)| of != key);
        self.takers.retain(|(.., of)| of != key);
        self.forgettable.retain(|(.., id)| !erased.contains(id));
    }

    /// Claims the timers that have fired by `now`, and puts them off to `until`.
    pub(crate) fn claim(&mut self, now: Timestamp, until: Timestamp, limit: usize) -> IndexClaims {
        let mut claims = IndexClaims::default();
        while claims.rung.len() + claims.broken.len() < limit
            && let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let ((at, key), id) = entry.remove_entry();
            match self.broken.get(&key) {
                Some(record) => claims.broken.push((key, record.why.clone())),
                None => claims.rung.push(Rung { at, key, id, lapses: at.max(until) }),
            }
        }
        // What is returned now is in the claimer's hands: the claimer knows when its claim lapses.
        claims.next = self.timers.first_key_value().map(|((at, _), _)| *at);
        for Rung { key, id, lapses, .. } in &claims.rung {
            self.timers.insert((*lapses, *key), *id);
            self.claimed.insert(*key, *lapses);
        }
        claims
    }

    /// Ends a claim that led to nothing, unless the order was written meanwhile. Its timer fires at `at`, or not at
    /// all.
    pub(crate) fn put_back(&mut self, rung: &Rung, at: Option<Timestamp>) {
        if self.claimed.get(&rung.key) != Some(&rung.lapses) {
            return;
        }
        self.claimed.remove(&rung.key);
        self.timers.remove(&(rung.lapses, rung.key));
        if let Some(at) = at {
            self.timers.insert((at, rung.key), rung.id);
        }
    }

    /// Whether a stock can have an answer for this claimant. If not, it need not wait for the writer.
    pub(crate) fn has_for(&self, by: &Key, target: &Target, good_until: Timestamp) -> bool {
        class(&self.stocks, target, (good_until, FIRST_KEY)).next().is_some()
            || own(&self.takers, by, target).next().is_some()
    }

    /// A readable answer that this claimant has from this stock, except those that `passes` rejects.
    pub(crate) fn own(&self, by: &Key, target: &Target, passes: impl Fn(&Key) -> bool) -> Option<Key> {
        own(&self.takers, by, target).find(|key| !passes(key) && !self.broken.contains_key(key))
    }

    /// The readable answer that expires first from this place on, except those that `passes` rejects.
    pub(crate) fn soonest(
        &self,
        target: &Target,
        from: (Timestamp, Key),
        passes: impl Fn(&Key) -> bool,
    ) -> Option<(Timestamp, Key)> {
        let readable = |(_, key): &(Timestamp, Key)| !passes(key) && !self.broken.contains_key(key);
        class(&self.stocks, target, from).find(readable)
    }

    pub(crate) fn list_stock(&self, target: &Target, now: Timestamp, limit: usize) -> Vec<Key> {
        let expired = Bound::Excluded((*target, now, Key([0xff; 32])));
        let fresh = self.stocks.range((expired, Bound::Unbounded)).take_while(|(of, ..)| of == target);
        let readable = fresh.map(|(.., key)| *key).filter(|key| !self.broken.contains_key(key));
        readable.take(limit).collect()
    }

    /// The rows of about `limit` keys after `after`. All rows with the same prefix come together, because only the
    /// rows show their order.
    pub(crate) fn page(&self, which: Which<'_>, after: Option<&Key>, limit: usize) -> IndexPage {
        let none = Lists::default();
        let lists = match which.tenant {
            None => &self.lists,
            Some(tenant) => self.by_tenant.get(&TenantMark::of(tenant)).unwrap_or(&none),
        };
        let rows = match which.class {
            Some(OrderClass::Open) => &lists.open,
            Some(OrderClass::Dead) => &lists.dead,
            // The reader of the rows separates those at rest from the others.
            Some(OrderClass::AtRest) | None => &lists.keys,
        };
        let start = after.map_or(0, prefix);
        let mut ids = Vec::new();
        let mut beyond = 0;
        let mut last = start;
        let mut through = None;
        for (prefix, id) in rows.range((start, i64::MIN)..) {
            if beyond >= limit && *prefix != last {
                through = Some(last_key_of(last));
                break;
            }
            beyond += usize::from(after.is_none() || *prefix != start);
            last = *prefix;
            ids.push(*id);
        }
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(*key));
        let to = through.map_or(Bound::Unbounded, Bound::Included);
        let listed =
            which.includes_unreadable() && after.zip(through).is_none_or(|(after, through)| *after < through);
        let broken = listed.then(|| self.broken.range((from, to)));
        let broken = broken.into_iter().flatten().map(|(key, record)| (*key, record.why.clone())).collect();
        IndexPage { ids, broken, through }
    }

    /// What can be forgotten by `now`: `limit` entries, and those with the same time and prefix as the last.
    pub(crate) fn forgettable(&self, now: Timestamp, limit: usize) -> Vec<(Timestamp, u64, i64)> {
        let mut record: Vec<(Timestamp, u64, i64)> = Vec::new();
        // What cannot be read stays for a person.
        let readable = |(_, prefix, id): &&(Timestamp, u64, i64)| self.lists.keys.contains(&(*prefix, *id));
        let old = self.forgettable.iter().take_while(|(at, ..)| *at <= now);
        for entry in old.filter(readable) {
            let ties = |last: &(Timestamp, u64, i64)| (last.0, last.1) == (entry.0, entry.1);
            if record.len() >= limit && !record.last().is_some_and(ties) {
                break;
            }
            record.push(*entry);
        }
        record
    }

    /// Removes a purged row from the indices. Its order was not due any more, and in no stock.
    pub(crate) fn is_gone(&mut self, key: &Key, id: i64, tenant: TenantMark, taken: Option<(Key, Target)>) {
        if let Some(timer) = self.claimed.remove(key) {
            self.timers.remove(&(timer, *key));
        }
        if let Some((by, target)) = taken {
            self.takers.remove(&(by, target, *key));
        }
        let row = (prefix(key), id);
        self.lists.remove(&row);
        self.strike_from(tenant, &row);
    }

    /// Drops an entry without effect: its row is gone, or was written since.
    pub(crate) fn is_not_forgettable(&mut self, entry: &(Timestamp, u64, i64)) {
        self.forgettable.remove(entry);
    }
}

//! Remembers the keys of ids on this node. An id is derived from its key, so an entry is never out of date. A
//! forgotten entry is found in the store.

use crate::order_id::OrderId;
use hashbrown::{Equivalent, HashMap};
use quittance_lifecycle::Key;
use std::sync::{Mutex, MutexGuard, PoisonError};

const STOCKS: usize = 64;
/// The most ids in each part of the cache. A full part is emptied.
const NAMES_MAX: usize = 4096;

/// An id and its tenant, for lookups without a copy.
#[derive(Hash)]
struct Name<'a>(u64, &'a str);

impl Equivalent<(u64, String)> for Name<'_> {
    fn equivalent(&self, (id, tenant): &(u64, String)) -> bool {
        self.0 == *id && self.1 == tenant
    }
}

/// One part of the cache. Two keys with one id are kept as `None`, so that the store is read.
type StockPlace = HashMap<(u64, String), Option<Key>>;

#[derive(Debug)]
pub(crate) struct IdCache(Vec<Mutex<StockPlace>>);

impl Default for IdCache {
    fn default() -> Self {
        Self((0..STOCKS).map(|_| Mutex::default()).collect())
    }
}

impl IdCache {
    fn list_stock(&self, id: OrderId) -> MutexGuard<'_, StockPlace> {
        let index = usize::try_from(id.number() >> 1).unwrap_or_default() % STOCKS;
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn learn(&self, tenant: &str, id: OrderId, key: Key) {
        let mut stock = self.list_stock(id);
        if let Some(known) = stock.get_mut(&Name(id.number(), tenant)) {
            *known = known.filter(|known| *known == key);
            return;
        }
        if stock.len() >= NAMES_MAX {
            stock.clear();
        }
        stock.insert((id.number(), tenant.to_owned()), Some(key));
    }

    pub(crate) fn recall(&self, tenant: &str, id: OrderId) -> Option<Key> {
        *self.list_stock(id).get(&Name(id.number(), tenant))?
    }
}

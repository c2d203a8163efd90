//! Which key an id stands for, as far as this node remembers. An id follows from its key, so what is remembered is never
//! out of date; what is forgotten is found in the store.

use crate::id::OrderId;
use hashbrown::{Equivalent, HashMap};
use quittance_lifecycle::Key;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHELVES: usize = 64;
/// How many names each shelf holds; when it is full, it is emptied, and the names are found again as they are needed.
const NAMES_MAX: usize = 4096;

/// Whose it is and its number: a name that is looked up without being copied.
#[derive(Hash)]
struct Name<'a>(u64, &'a str);

impl Equivalent<(u64, String)> for Name<'_> {
    fn equivalent(&self, (id, tenant): &(u64, String)) -> bool {
        self.0 == *id && self.1 == tenant
    }
}

/// Two keys under one id are remembered as none: the store then shows that there are two.
type Shelf = HashMap<(u64, String), Option<Key>>;

#[derive(Debug)]
pub(crate) struct Names(Vec<Mutex<Shelf>>);

impl Default for Names {
    fn default() -> Self {
        Self((0..SHELVES).map(|_| Mutex::default()).collect())
    }
}

impl Names {
    fn shelf(&self, id: OrderId) -> MutexGuard<'_, Shelf> {
        let index = usize::try_from(id.number() >> 1).unwrap_or_default() % SHELVES;
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn learn(&self, tenant: &str, id: OrderId, key: Key) {
        let mut shelf = self.shelf(id);
        if let Some(known) = shelf.get_mut(&Name(id.number(), tenant)) {
            *known = known.filter(|known| *known == key);
            return;
        }
        if shelf.len() >= NAMES_MAX {
            shelf.clear();
        }
        shelf.insert((id.number(), tenant.to_owned()), Some(key));
    }

    pub(crate) fn recall(&self, tenant: &str, id: OrderId) -> Option<Key> {
        *self.shelf(id).get(&Name(id.number(), tenant))?
    }
}

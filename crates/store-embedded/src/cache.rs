//! A bounded cache of the orders that were used last. Placements of existing orders and waits are answered from it,
//! without SQLite and without another thread. It only holds what is durable.

use crate::row::StoredOrder;
use crate::thread_queue::lock;
use hashbrown::HashMap;
use quittance_lifecycle::{Attempt, Key, Order, Phase, TimelineEntry};
use quittance_ports::Version;
use std::collections::BTreeMap;
use std::sync::Mutex;

const SHARDS: usize = 64;

pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    orders_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    /// The orders. They are not iterated in order; a hash map is twice as fast here as an ordered map.
    orders: HashMap<Key, CacheEntry>,
    /// The keys in order of arrival. An entry at the front that was used since goes to the back.
    line: BTreeMap<u64, Key>,
    arrivals: u64,
    bytes: usize,
    /// Counts the writes, so that a reader that began before a write does not insert the old version.
    writes: u64,
}

struct CacheEntry {
    stored_order: StoredOrder,
    place: u64,
    bytes: usize,
    was_used: bool,
}

/// The result of a miss. The caller that reads the order from disk passes it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    writes: u64,
}

/// The approximate memory that an order needs.
fn size(order: &Order) -> usize {
    let text = match &order.phase {
        Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => answer.payload.text.len(),
        _ => 0,
    };
    // Names of tasks, codes of faults and the nodes of maps: they differ, and each is small.
    let odds = 512;
    size_of::<Order>()
        + order.attempts.len() * size_of::<Attempt>()
        + order.timeline.entries.len() * size_of::<TimelineEntry>()
        + order.terms.size()
        + text
        + odds
}

impl Cache {
    pub(crate) fn new(orders_max: usize, bytes_max: usize) -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { shards, orders_max: orders_max / SHARDS, bytes_max: bytes_max / SHARDS }
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        &self.shards[usize::from(key.0[31]) % SHARDS]
    }

    pub(crate) fn look(&self, key: &Key) -> Result<StoredOrder, Miss> {
        let mut shard = lock(self.shard(key));
        let writes = shard.writes;
        let cached = shard.orders.get_mut(key).ok_or(Miss { writes })?;
        cached.was_used = true;
        Ok(cached.stored_order.clone())
    }

    /// Inserts what was read from the disk after `miss`, unless this shard was written since.
    pub(crate) fn offer(&self, miss: Miss, stored_order: &StoredOrder) {
        let key = &stored_order.versioned.order.key;
        let mut shard = lock(self.shard(key));
        let record =
            shard.orders.get(key).map_or(Version::ABSENT, |cached| cached.stored_order.versioned.version);
        if shard.writes == miss.writes && record < stored_order.versioned.version {
            self.insert(&mut shard, stored_order);
        }
    }

    /// Inserts what has just become durable.
    pub(crate) fn write(&self, stored_order: &StoredOrder) {
        let mut shard = lock(self.shard(&stored_order.versioned.order.key));
        shard.writes += 1;
        self.insert(&mut shard, stored_order);
    }

    /// All cached orders, in no particular order.
    pub(crate) fn all(&self) -> Vec<StoredOrder> {
        let of = |shard: &Mutex<Shard>| {
            let shard = lock(shard);
            shard
                .line
                .values()
                .filter_map(|key| Some(shard.orders.get(key)?.stored_order.clone()))
                .collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(of).collect()
    }

    pub(crate) fn remove(&self, key: &Key) {
        let mut shard = lock(self.shard(key));
        shard.writes += 1;
        shard.remove(key);
    }

    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            *shard = Shard { writes: shard.writes + 1, ..Shard::default() };
        }
    }

    fn insert(&self, shard: &mut Shard, stored_order: &StoredOrder) {
        let key = stored_order.versioned.order.key;
        shard.remove(&key);
        let place = shard.arrivals;
        shard.arrivals += 1;
        let bytes = size(&stored_order.versioned.order);
        shard.bytes += bytes;
        shard.line.insert(place, key);
        shard
            .orders
            .insert(key, CacheEntry { stored_order: stored_order.clone(), place, bytes, was_used: false });
        while shard.orders.len() > self.orders_max || shard.bytes > self.bytes_max {
            shard.make_room();
        }
    }
}

impl Shard {
    fn remove(&mut self, key: &Key) {
        if let Some(cached) = self.orders.remove(key) {
            self.line.remove(&cached.place);
            self.bytes -= cached.bytes;
        }
    }

    /// Evicts entries until there is room. It ends, because an entry that is passed over once is not used again
    /// meanwhile.
    fn make_room(&mut self) {
        while let Some((_, key)) = self.line.pop_first() {
            let Some(cached) = self.orders.get_mut(&key) else { continue };
            if !std::mem::take(&mut cached.was_used) {
                self.remove(&key);
                return;
            }
            cached.place = self.arrivals;
            self.line.insert(self.arrivals, key);
            self.arrivals += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, SHARDS, size};
    use crate::row::StoredOrder;
    use quittance_lifecycle::{Key, Order};
    use quittance_ports::conformance::samples;
    use quittance_ports::{Version, Versioned};
    use std::sync::Arc;

    /// An order in a fixed shard.
    fn stored_order(n: u8, version: u64) -> StoredOrder {
        let mut key = [0; 32];
        key[0] = n;
        let order = Order { key: Key(key), ..(*samples::queued("any", samples::START).order).clone() };
        StoredOrder {
            id: 1,
            versioned: Versioned { version: Version(version), order: Arc::new(order) },
            terms_sum: 0,
        }
    }

    fn visible(cache: &Cache, n: u8) -> Option<u64> {
        cache
            .look(&stored_order(n, 0).versioned.order.key)
            .ok()
            .map(|stored_order| stored_order.versioned.version.0)
    }

    #[test]
    fn a_read_before_a_write_does_not_put_the_old_value_into_the_cache() {
        let cache = Cache::new(10 * SHARDS, usize::MAX);
        let key = stored_order(1, 0).versioned.order.key;
        let miss = cache.look(&key).unwrap_err();
        cache.write(&stored_order(1, 6));
        cache.offer(miss, &stored_order(1, 5));
        assert_eq!(visible(&cache, 1), Some(6));

        let miss = cache.look(&stored_order(2, 0).versioned.order.key).unwrap_err();
        cache.remove(&key);
        cache.offer(miss, &stored_order(1, 6));
        assert_eq!(visible(&cache, 1), None, "it is gone, whatever a reader saw before");

        let miss = cache.look(&key).unwrap_err();
        cache.offer(miss, &stored_order(1, 7));
        cache.offer(miss, &stored_order(1, 6));
        assert_eq!(visible(&cache, 1), Some(7), "of two readers the later one is right");
        let miss = cache.look(&stored_order(3, 0).versioned.order.key).unwrap_err();
        cache.clear();
        cache.offer(miss, &stored_order(3, 1));
        assert_eq!((visible(&cache, 1), visible(&cache, 3)), (None, None));
    }

    #[test]
    fn it_keeps_what_was_looked_at_and_stays_within_its_bounds() {
        let cache = Cache::new(3 * SHARDS, usize::MAX);
        (0..3).for_each(|n| cache.write(&stored_order(n, 1)));
        assert_eq!(visible(&cache, 0), Some(1));
        (3..5).for_each(|n| cache.write(&stored_order(n, 1)));
        let left: Vec<u8> = (0..5).filter(|n| visible(&cache, *n).is_some()).collect();
        assert_eq!(left, [0, 3, 4]);

        let one = size(&stored_order(0, 1).versioned.order);
        let cache = Cache::new(100 * SHARDS, (2 * one + one / 2) * SHARDS);
        (0..10).for_each(|n| cache.write(&stored_order(n, 1)));
        assert_eq!((0..10).filter(|n| visible(&cache, *n).is_some()).count(), 2, "by bytes as well");
        let cache = Cache::new(0, usize::MAX);
        cache.write(&stored_order(0, 1));
        assert_eq!(visible(&cache, 0), None, "and it may have no room at all");
    }
}

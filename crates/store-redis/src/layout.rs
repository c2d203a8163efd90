//! The layout of a store: the names of its keys, and the partition of each order. All keys of a partition have one
//! hash tag in braces, so a cluster keeps them in one slot and one script can use all of them.
//!
//! | key | what |
//! | --- | --- |
//! | `{prefix}:meta` | hash: the format of this layout, and how many partitions |
//! | `{prefix:P}:order:KEY` | hash: version, record, terms, and what was derived from them |
//! | `{prefix:P}:desk` | hash: the last version that was given, and the note of a store that is closed |
//! | `{prefix:P}:due`, `:forget` | sorted sets: keys by the moment, in milliseconds |
//! | `{prefix:P}:open`, `:rest`, `:dead` | sorted sets: keys by name, each in one of them |
//! | `{prefix:P}:of:TENANT:open`, `:rest`, `:dead` | sorted sets: the same of one tenant's orders |
//! | `{prefix:P}:tenants` | set: the tenants that have such lists, or had |
//! | `{prefix:P}:stocks` | sorted set: `TARGET:EXPIRES:KEY` by name |
//! | `{prefix:P}:taken:TARGET:BY` | string: the key of what BY took from this stock; it expires with the order |
//! | `{prefix:P}:days`, `:usage:DAY` | sorted set of days kept in detail; hash: what was added on the day |
//! | `{prefix:P}:closed` | sorted set of the days of which only sums are kept |
//! | `{prefix:0}:seen`, `:cards`, `:secret` | the membership, and what all nodes share |
//! | `{prefix:P}:identity` | hash: who this store is, how far it has come, and until when nodes put back what it has forgotten |
//! | `{prefix:0}:documents` | hash: a version and a document, by its name |
//! | `{prefix:0}:leases:LIMIT` | hash: the version of the last lease, and `AMOUNT UNTIL VERSION` by node; it expires by itself |
//!
//! The hash of an order in a stock also holds `once_taken`, its timer and its purge time after a take, and `line`,
//! its row in the usage. After the take, `taker` is `TARGET:BY`. `taken_at` stays until the record itself holds the
//! take.

use quittance_lifecycle::{Key, Target, Timestamp};
use quittance_ports::{OrderClass, UsageRow, Which};
use std::fmt::Display;

/// The layout that is written. A node that finds another one does not use the store. Layout 1 had no lists by tenant.
pub(crate) const FORMAT: u64 = 2;

/// The latest moment that a sorted set holds exactly: its scores are floating-point numbers.
const MOMENT_MAX: u64 = (1 << 53) - 1;

/// The hash with the last version that was given.
pub(crate) const VERSIONS: &str = "desk";

/// The partition with the data of the whole store.
pub(crate) const FIRST: u16 = 0;

/// The names that a commit uses in its partition besides its record and the usage, in the order of the script's keys.
const OF_A_COMMIT: [&str; 10] =
    [VERSIONS, "due", "forget", "open", "rest", "dead", "stocks", "days", "tenants", "identity"];

/// The lists of the keys of orders. Each order is in one of them.
pub(crate) const LISTS: [&str; 3] = ["open", "rest", "dead"];

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    prefix: String,
    pub(crate) partitions: u16,
    /// The key names for commits, made once because every commit needs them.
    of_commits: Vec<[String; 10]>,
}

impl Layout {
    pub(crate) fn new(prefix: &str, partitions: u16) -> Self {
        let (prefix, partitions) = (prefix.to_owned(), partitions.max(1));
        let mut layout = Self { prefix, partitions, of_commits: Vec::new() };
        layout.of_commits =
            layout.all().map(|partition| OF_A_COMMIT.map(|what| layout.name(partition, what))).collect();
        layout
    }

    pub(crate) fn divided_into(&self, partitions: u16) -> Self {
        Self::new(&self.prefix, partitions)
    }

    pub(crate) fn of_a_commit(&self, partition: u16) -> &[String; 10] {
        &self.of_commits[usize::from(partition)]
    }

    pub(crate) fn all(&self) -> std::ops::Range<u16> {
        0..self.partitions
    }

    /// The partition of an order. Keys are digests, so their first bits are evenly spread.
    pub(crate) fn partition(&self, key: &Key) -> u16 {
        u16::from_be_bytes([key.0[0], key.0[1]]) % self.partitions
    }

    /// The partition of a usage row without an order: the same on every node, and spread over all partitions.
    pub(crate) fn partition_of_line(&self, line: &UsageRow) -> u16 {
        let UsageRow { tenant, kind, site, account, .. } = line;
        let bytes = [tenant, kind, site, account].into_iter().flat_map(|part| part.bytes());
        let sum = bytes.fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte)));
        sum % self.partitions
    }

    pub(crate) fn meta(&self) -> String {
        format!("{{{}}}:meta", self.prefix)
    }

    /// The channel for notices about changed orders.
    pub(crate) fn channel(&self) -> String {
        format!("{}:news", self.prefix)
    }

    pub(crate) fn name(&self, partition: u16, what: impl Display) -> String {
        format!("{{{}:{partition}}}:{what}", self.prefix)
    }

    /// The beginning of every record name of a partition.
    pub(crate) fn records(&self, partition: u16) -> String {
        self.name(partition, "order:")
    }

    /// The beginning of every name that says what a claimant took.
    pub(crate) fn takings(&self, partition: u16) -> String {
        self.name(partition, "taken:")
    }

    /// The beginning of every name of a tenant's list.
    pub(crate) fn lists_of_tenants(&self, partition: u16) -> String {
        self.name(partition, "of:")
    }

    /// The lists that hold the keys of these orders.
    pub(crate) fn lists(&self, partition: u16, which: Which<'_>) -> Vec<String> {
        let lists = match which.class {
            None => &LISTS[..],
            Some(OrderClass::Open) => &["open"],
            Some(OrderClass::AtRest) => &["rest"],
            Some(OrderClass::Dead) => &["dead"],
        };
        let name = |list: &&str| match which.tenant {
            None => self.name(partition, list),
            Some(tenant) => self.name(partition, format_args!("of:{tenant}:{list}")),
        };
        lists.iter().map(name).collect()
    }

    pub(crate) fn record(&self, key: &Key) -> String {
        self.name(self.partition(key), format_args!("order:{key}"))
    }
}

/// A moment as the score of a sorted set. A later moment than a score can hold becomes the latest one.
pub(crate) fn score(moment: Timestamp) -> u64 {
    moment.as_millis().min(MOMENT_MAX)
}

/// The entry of an order in a stock. Entries sort by target, then by expiry, then by key.
pub(crate) fn stock_member(target: &Target, expires: Timestamp, key: &Key) -> String {
    format!("{target}:{:020}:{key}", expires.as_millis())
}

/// The range of entries in a stock that expire after this moment. `g` sorts after every digit.
pub(crate) fn stock_range(target: &Target, now: Timestamp) -> (String, String) {
    (format!("({target}:{:020}:g", now.as_millis()), format!("({target}:g"))
}

/// The range of entries in a stock that do not expire before this moment.
pub(crate) fn stock_range_from(target: &Target, good_until: Timestamp) -> (String, String) {
    (format!("[{target}:{:020}:", good_until.as_millis()), format!("({target}:g"))
}

/// The mark of a claimant and a stock.
pub(crate) fn taker_mark(target: &Target, by: &Key) -> String {
    format!("{target}:{by}")
}

pub(crate) fn read_taker_mark(mark: &str) -> Option<Key> {
    mark.split_once(':').and_then(|(_, by)| Key::parse(by).ok())
}

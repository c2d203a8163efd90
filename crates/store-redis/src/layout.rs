//! How a store is laid out: what its keys are called, and which order belongs to which partition. All keys of a
//! partition carry the same tag in braces, so a cluster keeps them in one slot and one script can touch them all.
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
//! Of an order on a stock its hash also says `once_taken`, when it will be due and forgotten then, and its `line` in
//! the usage. Once it was taken, `taker` is `TARGET:BY`, and `taken_at` stands there until the record itself says so.

use quittance_lifecycle::{Key, Target, Timestamp};
use quittance_ports::{OrderClass, UsageRow, Which};
use std::fmt::Display;

/// The layout that is written; a node that finds another one does not touch it. Layout 1 had no lists by tenant.
pub(crate) const FORMAT: u64 = 2;

/// The farthest moment that a sorted set holds exactly: its scores are floating-point numbers.
const MOMENT_MAX: u64 = (1 << 53) - 1;

/// The hash with the version that was given last.
pub(crate) const VERSIONS: &str = "desk";

/// The partition where what belongs to the whole store is kept.
pub(crate) const FIRST: u16 = 0;

/// What a commit may touch in its partition, besides its record and the usage, in the order in which its script asks.
const OF_A_COMMIT: [&str; 10] =
    [VERSIONS, "due", "forget", "open", "rest", "dead", "stocks", "days", "tenants", "identity"];

/// Where the keys of orders are listed, each in one of them.
pub(crate) const LISTS: [&str; 3] = ["open", "rest", "dead"];

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    prefix: String,
    pub(crate) partitions: u16,
    /// Made once: they are needed for every commit.
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

    /// Keys are digests, so their first bits are as good as any.
    pub(crate) fn partition(&self, key: &Key) -> u16 {
        u16::from_be_bytes([key.0[0], key.0[1]]) % self.partitions
    }

    /// Where a line is kept that belongs to no order: the same wherever it is counted, and not all in one place.
    pub(crate) fn partition_of_line(&self, line: &UsageRow) -> u16 {
        let UsageRow { tenant, kind, site, account, .. } = line;
        let bytes = [tenant, kind, site, account].into_iter().flat_map(|part| part.bytes());
        let sum = bytes.fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte)));
        sum % self.partitions
    }

    pub(crate) fn meta(&self) -> String {
        format!("{{{}}}:meta", self.prefix)
    }

    /// The channel for notices that an order has news.
    pub(crate) fn channel(&self) -> String {
        format!("{}:news", self.prefix)
    }

    pub(crate) fn name(&self, partition: u16, what: impl Display) -> String {
        format!("{{{}:{partition}}}:{what}", self.prefix)
    }

    /// What the name of every record of a partition begins with.
    pub(crate) fn records(&self, partition: u16) -> String {
        self.name(partition, "order:")
    }

    /// The beginning of every name that says which claimant took what.
    pub(crate) fn takings(&self, partition: u16) -> String {
        self.name(partition, "taken:")
    }

    /// What the name of every list of a tenant's orders begins with.
    pub(crate) fn lists_of_tenants(&self, partition: u16) -> String {
        self.name(partition, "of:")
    }

    /// Where the keys of these orders are listed.
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

/// A moment as the score of a sorted set. What lies beyond what a score can hold is as far away as can be.
pub(crate) fn score(moment: Timestamp) -> u64 {
    moment.as_millis().min(MOMENT_MAX)
}

/// How one order stands on a stock: in the order of targets, then of moments, then of keys.
pub(crate) fn stock_member(target: &Target, expires: Timestamp, key: &Key) -> String {
    format!("{target}:{:020}:{key}", expires.as_millis())
}

/// The range of what stands on a stock and expires after this moment; `g` comes behind every digit.
pub(crate) fn stock_range(target: &Target, now: Timestamp) -> (String, String) {
    (format!("({target}:{:020}:g", now.as_millis()), format!("({target}:g"))
}

/// From the first that does not expire before this moment to the last.
pub(crate) fn stock_range_from(target: &Target, good_until: Timestamp) -> (String, String) {
    (format!("[{target}:{:020}:", good_until.as_millis()), format!("({target}:g"))
}

/// The claimant, and the stock.
pub(crate) fn taker_mark(target: &Target, by: &Key) -> String {
    format!("{target}:{by}")
}

pub(crate) fn read_taker_mark(mark: &str) -> Option<Key> {
    mark.split_once(':').and_then(|(_, by)| Key::parse(by).ok())
}

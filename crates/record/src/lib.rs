//! How an order is written down. Every record is one JSON object on one line, with the version of its format in
//! `v`, so that people can read a store with its own tools and every later version can read what this one wrote.
//!
//! The rules of format 1, which `golden/v1` holds every later version to:
//! - Moments and spans are whole milliseconds, money is millionths, digests are hexadecimal, bytes are base64.
//! - Variants are written by name, never by position, and a name never changes its meaning.
//! - What is empty, nothing or zero may be left out, and a field that is left out has its default.
//! - A field that the reader does not know is passed over, because during a rolling restart the newer half writes
//!   for the older one. The older half also drops it when it writes. So a new field must tolerate being dropped, and
//!   is left out while it has its default; or else it begins format 2.
//! - A version or a name that the reader does not know is an error: money depends on it, so there is no guess.
#![forbid(unsafe_code)]

mod answer;
mod arrival;
mod attempt;
mod disk;
mod document;
mod error;
mod fields;
mod follow_up;
mod frame;
mod node_status;
mod operator_documents;
mod order;
mod phase;
mod receipt;
mod spill;
mod terms;
mod timeline;

#[cfg(test)]
mod tests;

pub use arrival::{decode_incoming, encode_incoming};
pub use document::{decode_document, encode_document};
pub use error::{Flaw, RecordError};
pub use node_status::{decode_node_status, encode_node_status};
pub use order::{decode_order, encode_order};
pub use spill::SpillFile;
pub use terms::{decode_terms, encode_terms};

/// The format that is written. All formats up to it are read.
pub const VERSION: u64 = 1;

//! How an order is stored. Every record is one JSON object on one line, with the version of its format in `v`. So
//! operators can read a store with its own tools, and every later version can read old records.
//!
//! The rules of format 1. The files in `golden/v1` hold every later version to them:
//! - Moments and durations are whole milliseconds, money is millionths, digests are hexadecimal, bytes are base64.
//! - Variants are written by name, never by position, and a name never changes its meaning.
//! - An empty or zero value may be left out, and a field that is left out has its default.
//! - A reader ignores an unknown field, because during a rolling restart newer nodes write for older ones. An older
//!   node also drops the field when it writes. So a new field must tolerate being dropped, and is left out while it
//!   has its default. Otherwise it needs format 2.
//! - An unknown version or name is an error: money depends on it, so a reader must not guess.
#![forbid(unsafe_code)]

mod answer;
mod arrival;
mod attempt;
mod attempt_account;
mod budget_records;
mod disk;
mod document;
mod error;
mod failure_documents;
mod fields;
mod follow_up;
mod frame;
mod gate_document;
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

/// The format of new records. All formats up to this one can be read.
pub const VERSION: u64 = 1;

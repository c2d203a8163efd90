//! An order's story as OpenTelemetry spans. Everything that happens to an order is in its record with the time, whichever node
//! did it and whoever crashed in between; so its trace is not gathered while it happens but told from the record when it has
//! come to something: no cost on the way, and no part missing because another node did it.
#![forbid(unsafe_code)]

mod otlp;
mod parent;
mod timeline;

pub use otlp::encode;
pub use parent::TraceParent;
pub use timeline::{Placing, handed_out, news_of, placed};

use quittance_lifecycle::Timestamp;

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Ours alone.
    Internal,
    /// We answer somebody.
    Server,
    /// We ask somebody.
    Client,
}

/// What a span is called everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanName {
    pub trace: [u8; 16],
    pub id: [u8; 8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: SpanKind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, String)>,
    /// What happened within, and when.
    pub events: Vec<(Timestamp, String)>,
    /// A span of another trace that it has to do with.
    pub link: Option<SpanName>,
    /// What went wrong, if it did.
    pub error: Option<String>,
}

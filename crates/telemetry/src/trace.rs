//! The timeline of an order as OpenTelemetry spans, and their export. The record of an order holds every step with
//! its time, including steps of other nodes and from before a crash. So a trace is made from the record when the
//! order ends: it costs nothing before, and no part is missing.

mod export;
mod otlp;
mod parent;
mod timeline;

pub use export::{TraceSettings, Traces};
pub use otlp::encode;
pub use parent::TraceParent;
pub use timeline::{Placing, handed_out, news_of, placed};

use quittance_lifecycle::Timestamp;

/// The role of a span in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The span is no call.
    Internal,
    /// Quittance is called.
    Server,
    /// Quittance calls.
    Client,
}

/// The ids of a span.
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
    /// Events within the span.
    pub events: Vec<(Timestamp, String)>,
    /// A related span of another trace.
    pub link: Option<SpanName>,
    /// The error, if the span failed.
    pub error: Option<String>,
}

//! A task that was taken: what was asked, its planned outcome, and what has become of it.

use crate::answer::MockAnswer;
use crate::json::{JsonKind, MockDialect};
use crate::ledger::{LedgerValue, MockReport};
use crate::response_text::SolvedTask;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskOutcome {
    Answer(MockAnswer),
    Code(String),
}

/// How a client requested a task of the JSON protocol.
#[derive(Debug)]
pub(crate) struct JsonTaskDetails {
    pub dialect: MockDialect,
    pub task_type: String,
    pub kind: &'static JsonKind,
}

#[derive(Debug)]
pub(crate) struct MockTask {
    pub account: usize,
    pub spoken: Option<JsonTaskDetails>,
    pub method: String,
    pub is_get: bool,
    pub is_json_by_default: bool,
    pub params: BTreeMap<String, LedgerValue>,
    pub luck: u64,
    pub accepted_at: u64,
    pub price_micros: u64,
    pub solves_at: u64,
    pub outcome: TaskOutcome,
    pub is_over: bool,
    /// When the result is deleted.
    pub gone_at: u64,
    pub vanishes: bool,
    pub is_refunded: bool,
    pub reply_delivered: bool,
    pub polls: u64,
    pub reads: u64,
    pub first_read_at: Option<u64>,
    pub pingback: Option<String>,
    pub pingback_refused: Option<&'static str>,
    pub pingbacks_sent: u64,
    pub pingbacks_acked: u64,
    pub is_delivered: bool,
    pub reported: Option<MockReport>,
    pub reports: u64,
}

impl MockTask {
    pub(super) fn dialect(&self) -> Option<MockDialect> {
        self.spoken.as_ref().map(|spoken| spoken.dialect)
    }

    pub(super) fn solved_task<'a>(
        &self,
        id: u64,
        answer: &'a MockAnswer,
        with_price: bool,
    ) -> SolvedTask<'a> {
        SolvedTask {
            id,
            answer,
            kind: self
                .spoken
                .as_ref()
                .map_or_else(|| JsonKind::of_method(&self.method), |spoken| spoken.kind),
            price_micros: self.price_micros,
            with_price,
            taken_at_ms: self.accepted_at,
            solved_at_ms: self.solves_at,
        }
    }
}

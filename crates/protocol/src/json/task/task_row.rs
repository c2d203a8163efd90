//! The type of a row in the table of JSON task types, and the functions to write one with. The rows are in
//! `task_rows.rs`.

use crate::json::dialect::JsonDialect;

/// What a field holds on the wire. In our form it is text or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldShape {
    Text,
    /// `true` and `false`, which are `1` and `0` in the classic protocol.
    Flag,
    Number,
    /// A file in base64.
    File,
    /// A host, which the classic protocol writes as a URL.
    Host,
    /// `a=b; c=d`, which the classic protocol writes as `a:b;c:d`.
    Cookies,
}

/// Our name and theirs. A point in their name leads into an object.
#[derive(Clone, Copy)]
pub(super) struct FieldName {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    pub(super) shape: FieldShape,
}

/// A field and its value, or `None` for any value.
type TaskMark = (&'static str, Option<&'static str>);

pub(super) struct TaskRow {
    pub(super) kind: &'static str,
    /// The types that we write with a proxy, and without one.
    pub(super) types: (&'static str, &'static str),
    pub(super) at_cap_solver: Option<(&'static str, &'static str)>,
    /// Other types that clients write, compared in lower case and without `Proxyless`.
    pub(super) also: &'static [&'static str],
    /// If this list is not empty, a task is of this kind only if it has one of these fields.
    pub(super) marked_by: &'static [TaskMark],
    /// The dialects that use this spelling, if not all do.
    pub(super) only: &'static [JsonDialect],
    /// Parameters of ours that the type implies.
    pub(super) implied: &'static [(&'static str, &'static str)],
    /// Fields of theirs that repeat what the kind is.
    pub(super) marks: &'static [(&'static str, &'static str, FieldShape)],
    /// The names of the parameters. If a parameter has several, we write the first, and prefer it when we read.
    pub(super) names: &'static [FieldName],
    /// Other names in one dialect.
    pub(super) elsewhere: &'static [(JsonDialect, &'static str, &'static str)],
    /// Objects that are sent as text.
    pub(super) packed: &'static [&'static str],
}

/// Fields of open kinds that hold JSON and that the services document as a text.
const TEXTS: &[FieldName] = &[name("challengeJSON", "challengeJSON")];

pub(super) const PLAIN: TaskRow = TaskRow {
    kind: "",
    types: ("", ""),
    at_cap_solver: None,
    also: &[],
    marked_by: &[],
    only: &[],
    implied: &[],
    marks: &[],
    names: TEXTS,
    elsewhere: &[],
    packed: &[],
};

pub(super) const fn name(ours: &'static str, theirs: &'static str) -> FieldName {
    FieldName { ours, theirs, shape: FieldShape::Text }
}

pub(super) const fn flag(ours: &'static str, theirs: &'static str) -> FieldName {
    FieldName { ours, theirs, shape: FieldShape::Flag }
}

pub(super) const fn number(ours: &'static str, theirs: &'static str) -> FieldName {
    FieldName { ours, theirs, shape: FieldShape::Number }
}

pub(super) const fn file(ours: &'static str, theirs: &'static str) -> FieldName {
    FieldName { ours, theirs, shape: FieldShape::File }
}

/// Fields that every kind can have, open kinds too, because every order is checked for its page.
pub(super) const COMMON: &[FieldName] = &[
    name("pageurl", "websiteURL"),
    name("pageurl", "pageURL"),
    name("userAgent", "userAgent"),
    FieldName { ours: "cookies", theirs: "cookies", shape: FieldShape::Cookies },
];

//! The type of a row in the table of JSON task types, and the functions to write one with. The rows are in
//! `task_rows.rs`.

use crate::json::dialect::JsonDialect;

/// What a field holds on the wire; ours is text or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldShape {
    Text,
    /// `true` and `false`, which are `1` and `0` in the classic protocol.
    Flag,
    Number,
    /// A file in base64.
    File,
    /// A host, which the classic protocol writes as an address.
    Host,
    /// `a=b; c=d`, which the classic protocol writes as `a:b;c:d`.
    Cookies,
}

/// Our name and theirs; a point in theirs leads into an object.
#[derive(Clone, Copy)]
pub(super) struct FieldName {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    pub(super) shape: FieldShape,
}

/// A field, and what it says; or whatever it says.
type TaskMark = (&'static str, Option<&'static str>);

pub(super) struct TaskRow {
    pub(super) kind: &'static str,
    /// What we write with a proxy, and without one.
    pub(super) types: (&'static str, &'static str),
    pub(super) at_cap_solver: Option<(&'static str, &'static str)>,
    /// Other types that clients write; all are compared without `Proxyless` and in small letters.
    pub(super) also: &'static [&'static str],
    /// If there are any, one of them must be there for a task to be of this kind.
    pub(super) marked_by: &'static [TaskMark],
    /// The dialect whose spelling it is, where it is not common to all.
    pub(super) only: &'static [JsonDialect],
    /// Parameters of ours that the type says.
    pub(super) implied: &'static [(&'static str, &'static str)],
    /// Fields of theirs that say the kind once more.
    pub(super) marks: &'static [(&'static str, &'static str, FieldShape)],
    /// For one parameter there may be several; the first is what we write, and counts most in what we read.
    pub(super) names: &'static [FieldName],
    /// Where one dialect has another name.
    pub(super) elsewhere: &'static [(JsonDialect, &'static str, &'static str)],
    /// Objects that travel as text.
    pub(super) packed: &'static [&'static str],
}

pub(super) const PLAIN: TaskRow = TaskRow {
    kind: "",
    types: ("", ""),
    at_cap_solver: None,
    also: &[],
    marked_by: &[],
    only: &[],
    implied: &[],
    marks: &[],
    names: &[],
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

/// What every kind may have, also open kinds: every order is checked for its page.
pub(super) const COMMON: &[FieldName] = &[
    name("pageurl", "websiteURL"),
    name("pageurl", "pageURL"),
    name("userAgent", "userAgent"),
    FieldName { ours: "cookies", theirs: "cookies", shape: FieldShape::Cookies },
];

//! What a spelling is made of, and the words to write one with. The spellings themselves are in `rows`.

use crate::json::flavour::Flavour;

/// What a field holds on the wire; ours is text or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
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
pub(super) struct Name {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    pub(super) shape: Shape,
}

/// A field, and what it says; or whatever it says.
type Tell = (&'static str, Option<&'static str>);

pub(super) struct Row {
    pub(super) kind: &'static str,
    /// What we write with a proxy, and without one.
    pub(super) types: (&'static str, &'static str),
    pub(super) at_cap_solver: Option<(&'static str, &'static str)>,
    /// Other types that clients write; all are compared without `Proxyless` and in small letters.
    pub(super) also: &'static [&'static str],
    /// If there are any, one of them must be there for a task to be of this kind.
    pub(super) told_by: &'static [Tell],
    /// Whose spelling it is, where it is not everybody's.
    pub(super) only: &'static [Flavour],
    /// Parameters of ours that the type says.
    pub(super) implied: &'static [(&'static str, &'static str)],
    /// Fields of theirs that say the kind once more.
    pub(super) marks: &'static [(&'static str, &'static str, Shape)],
    /// For one parameter there may be several; the first is what we write, and counts most in what we read.
    pub(super) names: &'static [Name],
    /// Where one flavour has another name.
    pub(super) elsewhere: &'static [(Flavour, &'static str, &'static str)],
    /// Objects that travel as text.
    pub(super) packed: &'static [&'static str],
}

pub(super) const PLAIN: Row = Row {
    kind: "",
    types: ("", ""),
    at_cap_solver: None,
    also: &[],
    told_by: &[],
    only: &[],
    implied: &[],
    marks: &[],
    names: &[],
    elsewhere: &[],
    packed: &[],
};

pub(super) const fn name(ours: &'static str, theirs: &'static str) -> Name {
    Name { ours, theirs, shape: Shape::Text }
}

pub(super) const fn flag(ours: &'static str, theirs: &'static str) -> Name {
    Name { ours, theirs, shape: Shape::Flag }
}

pub(super) const fn number(ours: &'static str, theirs: &'static str) -> Name {
    Name { ours, theirs, shape: Shape::Number }
}

pub(super) const fn file(ours: &'static str, theirs: &'static str) -> Name {
    Name { ours, theirs, shape: Shape::File }
}

/// What every kind may have, also those that nobody has described: which page it is for is asked of every order.
pub(super) const COMMON: &[Name] = &[
    name("pageurl", "websiteURL"),
    name("pageurl", "pageURL"),
    name("userAgent", "userAgent"),
    Name { ours: "cookies", theirs: "cookies", shape: Shape::Cookies },
];

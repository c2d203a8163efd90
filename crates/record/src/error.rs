//! Why a record cannot be read, and what to do about it. An error names the place and never its content: records
//! contain tokens and passwords of proxies, and errors go to logs.

use serde_json::error::Category;
use std::fmt;

/// The longest name in our records. A longer text is not a name, and is not shown.
const NAME_BYTES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error(
        "the record has format {found}, and this version of Quittance reads up to format {understood}: leave it \
         as it is, and read it with the version that wrote it or a later one"
    )]
    UnknownVersion { found: u64, understood: u64 },
    #[error(
        "`{field}` says {found}, and this version of Quittance knows only {}: leave the record as it is, and read \
         it with the version that wrote it or a later one",
        .understood.join(", ")
    )]
    UnknownName { field: String, found: String, understood: &'static [&'static str] },
    #[error("the record is damaged, `{field}` is missing: keep a copy, and restore it from a backup")]
    Missing { field: String },
    #[error("the record is damaged, `{field}` is not {expected}: keep a copy, and restore it from a backup")]
    Malformed { field: String, expected: &'static str },
    #[error(
        "the record is damaged, {flaw} at line {line}, column {column}: keep a copy, and restore it from a backup"
    )]
    Unreadable { flaw: Flaw, line: usize, column: usize },
}

/// What is wrong with a text that should be a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The text ends too early.
    Short,
    NotJson,
    /// The text is JSON, but a value has the wrong type or is out of range.
    WrongType,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "it breaks off",
            Self::NotJson => "it is not JSON",
            Self::WrongType => "a value has the wrong type",
        })
    }
}

impl RecordError {
    /// Whether a later version of Quittance may have written the record: then it is not damaged, and other nodes can
    /// read it.
    #[must_use]
    pub const fn is_later(&self) -> bool {
        matches!(self, Self::UnknownVersion { .. } | Self::UnknownName { .. })
    }

    pub(crate) fn unknown_name(
        field: &'static str,
        found: &str,
        understood: &'static [&'static str],
    ) -> Self {
        let is_name = (1..=NAME_BYTES_MAX).contains(&found.len())
            && found.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        // A damaged record may have anything in this place, also what must not be shown.
        let found = if is_name { format!("`{found}`") } else { "something that is no name".into() };
        Self::UnknownName { field: field.into(), found, understood }
    }

    pub(crate) fn malformed(field: &'static str, expected: &'static str) -> Self {
        Self::Malformed { field: field.into(), expected }
    }

    /// The error with the name of the outer field added to its path.
    fn within(mut self, outer: &str) -> Self {
        match &mut self {
            Self::UnknownName { field, .. } | Self::Missing { field } | Self::Malformed { field, .. } => {
                *field = format!("{outer}.{field}");
            }
            Self::UnknownVersion { .. } | Self::Unreadable { .. } => {}
        }
        self
    }
}

impl From<serde_json::Error> for RecordError {
    /// Keeps only the position, because the message quotes the content.
    fn from(error: serde_json::Error) -> Self {
        let flaw = match error.classify() {
            Category::Eof => Flaw::Short,
            Category::Syntax | Category::Io => Flaw::NotJson,
            Category::Data => Flaw::WrongType,
        };
        Self::Unreadable { flaw, line: error.line(), column: error.column() }
    }
}

/// Lets an error collect its path on the way up.
pub(crate) trait Within {
    fn within(self, outer: &str) -> Self;
    fn within_item(self, outer: &str, index: usize) -> Self;
}

impl<T> Within for Result<T, RecordError> {
    fn within(self, outer: &str) -> Self {
        self.map_err(|error| error.within(outer))
    }

    fn within_item(self, outer: &str, index: usize) -> Self {
        self.map_err(|error| error.within(&format!("{outer}[{index}]")))
    }
}

//! The full name of a setting: its tables and its key, such as `timing.callback_wait`. An entry of `[[provider]]` or
//! `[[tenant]]` is a table with the entry's name: `provider.main.url`.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(Vec<String>);

impl Name {
    pub(crate) fn top() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn of<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Self {
        Self(segments.into_iter().map(Into::into).collect())
    }

    pub(crate) fn below(&self, segment: &str) -> Self {
        Self(self.0.iter().cloned().chain([segment.to_owned()]).collect())
    }

    pub(crate) fn segments(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn is_below(&self, table: &Self) -> bool {
        self.0.len() > table.0.len() && self.0.starts_with(&table.0)
    }

    /// The table of this name.
    pub(crate) fn above(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    pub(crate) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Reads a name as TOML has it: a part with a dot or a colon is quoted.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut segments = Vec::new();
        let mut rest = text.trim();
        loop {
            let (segment, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            if segment.is_empty() {
                return None;
            }
            segments.push(segment.to_owned());
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None if after.is_empty() => return Some(Self(segments)),
                None => return None,
            }
        }
    }
}

/// One part of a name, written as TOML.
pub(crate) fn quoted(segment: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !segment.is_empty() && segment.chars().all(is_bare) { segment.to_owned() } else { toml_text(segment) }
}

/// Writes a text as TOML. All escapes of JSON are escapes of TOML, which has one more character to escape.
pub fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<String> = self.segments().map(quoted).collect();
        f.write_str(&segments.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for text in ["listen", "timing.callback_wait", "reuse.targets.\"*.example.org\"", "provider.a-b.url"]
        {
            assert_eq!(Name::parse(text).unwrap().to_string(), text);
        }
        let odd = Name::parse("provider.main.faults.\"ERROR: 1001\"").unwrap();
        assert_eq!(odd.last(), "ERROR: 1001");
        for text in ["", ".", "a..b", "a.", "\"a", "\"a\"b"] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }
}

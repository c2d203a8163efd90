//! Parses Rust sources for the rules. Comments, and on request strings and tests, are replaced by spaces, so that
//! every line keeps its number, and prose does not confuse a rule about code.

/// Two views of one file, each as long as the file in bytes.
pub(crate) struct SourceView {
    /// The source without comments and without the content of literals.
    pub(crate) code: String,
    /// The source without comments.
    pub(crate) uncommented: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceSpan {
    Comment,
    Quoted,
}

impl SourceView {
    pub(crate) fn read(text: &str) -> Self {
        let spans = spans(text);
        let comments = spans.iter().filter(|(kind, ..)| *kind == SourceSpan::Comment);
        Self {
            code: blank(text, spans.iter().map(|&(_, from, to)| (from, to))),
            uncommented: blank(text, comments.map(|&(_, from, to)| (from, to))),
        }
    }

    /// The source without the items under `#[cfg(test)]`.
    pub(crate) fn without_tests(&self) -> Self {
        let tests = test_items(&self.code);
        Self {
            code: blank(&self.code, tests.iter().copied()),
            uncommented: blank(&self.uncommented, tests.iter().copied()),
        }
    }
}

/// Whether a file contains only tests.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

/// The names that follow a keyword such as `fn` or `mod`, each with its line.
pub(crate) fn named_after<'a>(code: &'a str, keyword: &str) -> Vec<(usize, &'a str)> {
    let mut findings = Vec::new();
    for (number, line) in numbered(code) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let name = pair[1].split(|c| !is_word(c)).next().unwrap_or_default();
            if pair[0].rsplit(|c| !is_word(c)).next() == Some(keyword) && !name.is_empty() {
                findings.push((number, name));
            }
        }
    }
    findings
}

/// Whether the pattern occurs in the line, and is not the end of a longer word.
pub(crate) fn stands_in(line: &str, pattern: &str) -> bool {
    let begins_a_word = pattern.starts_with(is_word);
    line.match_indices(pattern).any(|(at, _)| !(begins_a_word && line[..at].ends_with(is_word)))
}

pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Replaces the spans by spaces. Newlines stay, so that lines keep their numbers.
fn blank(text: &str, spans: impl Iterator<Item = (usize, usize)>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (from, to) in spans {
        bytes[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(bytes).expect("spans begin and end at whole characters")
}

/// The spans of comments and of the content of literals.
fn spans(text: &str) -> Vec<(SourceSpan, usize, usize)> {
    let mut findings = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_new_word = !text[..at].ends_with(is_word);
        let (kind, from, to, end) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (SourceSpan::Comment, 0, length, length)
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            (SourceSpan::Comment, 0, length, length)
        } else if let Some((open, close)) = raw_quote(rest).filter(|_| is_new_word) {
            let inside = rest[open..].find(&close).unwrap_or(rest.len() - open);
            (SourceSpan::Quoted, open, open + inside, (open + inside + close.len()).min(rest.len()))
        } else if next == '"' {
            let inside = until_unescaped(&rest[1..], '"');
            (SourceSpan::Quoted, 1, 1 + inside, (2 + inside).min(rest.len()))
        } else if let Some(inside) = character(rest) {
            (SourceSpan::Quoted, 1, 1 + inside, (2 + inside).min(rest.len()))
        } else {
            at += next.len_utf8();
            continue;
        };
        findings.push((kind, at + from, at + to));
        at += end;
    }
    findings
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the opening of a raw string, and the text that closes it.
fn raw_quote(rest: &str) -> Option<(usize, String)> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then(|| (prefix.len() + hashes + 1, format!("\"{}", "#".repeat(hashes))))
}

fn until_unescaped(inside: &str, close: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == close => return at,
            _ => {}
        }
    }
    inside.len()
}

/// The length of the content of a character literal; `None` if the quote begins a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(until_unescaped(inside, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8())
}

/// The items under `#[cfg(test)]`, each from the attribute to its end.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    code.match_indices("#[cfg(test)]")
        .map(|(from, attribute)| {
            let body = from + attribute.len();
            let mut depth = 0_usize;
            for (at, byte) in code[body..].bytes().enumerate() {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth = depth.saturating_sub(1),
                    b';' if depth == 0 => return (from, body + at),
                    _ => continue,
                }
                if depth == 0 {
                    return (from, body + at + 1);
                }
            }
            (from, code.len())
        })
        .collect()
}

#[cfg(test)]
mod tests;

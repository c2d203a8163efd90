//! The rule that documents refer only to existing files: paths in backticks, and relative links.

use super::TidyFinding;
use crate::markdown::{MarkdownDocument, in_backticks, links};
use crate::tree::{File, Tree};

/// The documents that are checked. The changelog is not: it may name files that are gone.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Files that users have and the repository does not.
const NOT_OURS: &[&str] = &["quittance.toml"];
/// Prefixes that have a slash and are no paths: media types, branches, and build results.
const NO_PATHS: &[&str] = &["application/", "text/", "image/", "audio/", "multipart/", "origin/", "target/"];

/// The documents that readers have: the pages at the root and everything in `docs/`.
pub(super) fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| {
        DOCUMENTS.contains(&file.path.as_str())
            || file.path.starts_with("docs/") && file.path.ends_with(".md")
    })
}

pub(super) fn point_at_what_exists(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in documents(tree) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, line) in MarkdownDocument::read(&file.text).prose {
            for path in in_backticks(line).filter_map(path_in) {
                if !is_here(tree, folder, path) {
                    findings.push(TidyFinding::breach(&file.path, number, format!("there is no `{path}`")));
                }
            }
            for link in links(line) {
                let is_elsewhere = link.contains(':') || link.starts_with(['#', '/']);
                let path = link.split(['#', '?']).next().unwrap_or(link);
                if !is_elsewhere && !join(folder, path).is_some_and(|path| tree.has(&path)) {
                    findings.push(TidyFinding::breach(
                        &file.path,
                        number,
                        format!("the link to {link} leads nowhere"),
                    ));
                }
            }
        }
    }
    findings
}

/// The path that a text in backticks means, if it looks like one. A pattern, a placeholder, a command and an address
/// name no file. An absolute path is a route, or on the reader's machine.
fn path_in(span: &str) -> Option<&str> {
    let is_pattern = span.contains(|c: char| c.is_whitespace() || "*<>{}$=+(),;&|@\"'…".contains(c));
    // A line number may follow.
    let path = match span.rsplit_once(':') {
        Some((path, line)) if line.chars().all(|c| c.is_ascii_digit()) => path,
        _ => span,
    };
    let looks_like_one =
        path.contains('/') || [".rs", ".md", ".toml"].iter().any(|ending| path.ends_with(ending));
    let is_something_else = is_pattern
        || path.contains(':')
        || path.starts_with(['/', '~', '-'])
        || NOT_OURS.contains(&path)
        || NO_PATHS.iter().any(|start| path.starts_with(start));
    (looks_like_one && !is_something_else).then_some(path)
}

/// Whether the path exists. Prose shortens paths, such as `src/key.rs` in a paragraph about one crate, so any file
/// that ends like this is enough.
fn is_here(tree: &Tree, folder: &str, path: &str) -> bool {
    if join(folder, path).is_some_and(|path| tree.has(&path)) {
        return true;
    }
    let inner = format!("/{}/", path.trim_start_matches("./").trim_end_matches('/'));
    tree.files.iter().any(|file| format!("/{}/", file.path).contains(&inner))
}

/// The path from the root of the repository; `None` if it leads outside.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(document: &str, text: &str) -> usize {
        let tree = Tree::of(&[
            (document, text),
            ("LICENSE-MIT", ""),
            ("crates/lifecycle/src/key.rs", ""),
            ("docs/errors.md", ""),
        ]);
        point_at_what_exists(&tree).len()
    }

    #[test]
    fn what_exists_may_be_named_in_full_or_in_short() {
        for text in [
            "`crates/lifecycle/src/key.rs`, `src/key.rs:12`, `key.rs`, `crates/lifecycle/`, `lifecycle/src`",
            "[a](docs/errors.md#top), [b](./LICENSE-MIT), [c](#here), [d](https://example.com/x.md)",
            "`application/json`, `/v1/orders`, `crates/*/src`, `quittance.toml`, `https://a.b/c`, `cargo run a/b`",
            "```sh\n`crates/gone`\n```",
        ] {
            assert_eq!(breaches("README.md", text), 0, "{text}");
        }
        assert_eq!(breaches("docs/api.md", "[a](errors.md) [b](../README.md) `../LICENSE-MIT`"), 1);
    }

    #[test]
    fn what_is_gone_is_found() {
        for text in
            ["`crates/gone`", "`gone.rs`", "`ey.rs`", "`docs/gone.md:3`", "[a](gone.md)", "[a](key.rs)"]
        {
            assert_eq!(breaches("ARCHITECTURE.md", text), 1, "{text}");
        }
        assert_eq!(breaches("docs/decisions/a.md", "[a](errors.md)"), 1);
        assert_eq!(breaches("docs/a.md", "[a](../../errors.md)"), 1);
        assert_eq!(breaches("CHANGELOG.md", "`crates/gone`"), 0);
    }
}

//! The rule that each promise has its test: the last column of the tables in the guarantees names tests that exist.

use super::TidyFinding;
use crate::markdown::{MarkdownDocument, in_backticks, last_cell};
use crate::source::{SourceView, is_word, named_after};
use crate::tree::Tree;
use std::collections::BTreeSet;

const GUARANTEES: &str = "docs/guarantees.md";

pub(super) fn name_tests_that_exist(tree: &Tree) -> Vec<TidyFinding> {
    let Some(text) = tree.text(GUARANTEES) else {
        return vec![TidyFinding::nudge(GUARANTEES, 1, "there is no such file yet, so nothing was checked")];
    };
    // Prose and strings name tests too, so that only what the compiler sees counts.
    let codes: Vec<String> = tree.rust().map(|file| SourceView::read(&file.text).code).collect();
    let functions: BTreeSet<&str> =
        codes.iter().flat_map(|code| named_after(code, "fn")).map(|(_, name)| name).collect();

    let mut findings = Vec::new();
    let mut tests = 0;
    for (number, line) in MarkdownDocument::read(text).prose {
        let Some(cell) = last_cell(line) else { continue };
        for name in in_backticks(cell).filter_map(test_name) {
            tests += 1;
            if !functions.contains(name) {
                findings.push(TidyFinding::breach(GUARANTEES, number, format!("there is no fn `{name}`")));
            }
        }
    }
    if tests == 0 {
        findings.push(TidyFinding::breach(GUARANTEES, 1, "no table names a test in its last column"));
    }
    findings
}

/// The name of a test, with or without a path before it; `None` for commands, crates and types.
fn test_name(span: &str) -> Option<&str> {
    let name = span.trim_end_matches("()").rsplit("::").next()?;
    let is_name = name.starts_with(|c: char| c.is_lowercase() || c == '_') && name.chars().all(is_word);
    (is_name && !span.contains(['/', ' '])).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: (&str, &str) = (
        "crates/a/tests/b.rs",
        "#[test]\nfn one_creator_wins() {}\n// fn only_in_prose() {}\nconst A: &str = \"fn only_in_quotes()\";",
    );

    fn breaches(table: &str) -> Vec<String> {
        name_tests_that_exist(&Tree::of(&[SOURCES, (GUARANTEES, table)]))
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn a_test_that_exists_is_fine() {
        let table =
            "| promise | test |\n| --- | --- |\n| `gone` | `conformance::one_creator_wins`, `cargo test` |";
        assert!(breaches(table).is_empty(), "{:?}", breaches(table));
    }

    #[test]
    fn a_test_that_is_gone_is_found() {
        for name in ["gone", "only_in_prose", "only_in_quotes"] {
            let table = format!("| a promise | `one_creator_wins`, `{name}` |");
            assert_eq!(breaches(&table), [format!("there is no fn `{name}`")]);
        }
    }

    #[test]
    fn guarantees_without_any_test_are_found_and_missing_ones_noted() {
        assert_eq!(breaches("Promises: `one_creator_wins`.").len(), 1);
        assert_eq!(name_tests_that_exist(&Tree::of(&[SOURCES]))[0].weight, crate::tidy::FindingWeight::Nudge);
    }
}

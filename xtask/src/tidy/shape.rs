//! The shape of a file: what it opens with, how long it is, what it and the things in it are called.

use super::Finding;
use crate::source::{Source, named_after};
use crate::tree::Tree;

const LINES_NUDGE: usize = 400;
const LINES_MAX: usize = 800;

const DRAWERS: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"];
const EMPTY_VERBS: &[&str] = &["get_", "handle_", "process_"];

pub(super) fn opens_with_a_doc(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| Finding::breach(&file.path, 1, "it does not open with a //! line"))
        .collect()
}

pub(super) fn stays_readable(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            findings.push(Finding::breach(&file.path, lines, format!("{lines} lines, over {LINES_MAX}")));
        } else if lines > LINES_NUDGE {
            findings.push(Finding::nudge(&file.path, lines, format!("{lines} lines, over {LINES_NUDGE}")));
        }
    }
    findings
}

pub(super) fn names_say_something(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if let Some(name) = file.path.trim_end_matches(".rs").split('/').find(|name| is_drawer(name)) {
            findings.push(Finding::breach(&file.path, 1, format!("a file or folder called `{name}`")));
        }
        let code = Source::read(&file.text).code;
        for (line, name) in named_after(&code, "mod").into_iter().filter(|(_, name)| is_drawer(name)) {
            findings.push(Finding::breach(&file.path, line, format!("a module called `{name}`")));
        }
        for (line, name) in named_after(&code, "fn") {
            if EMPTY_VERBS.iter().any(|verb| name.starts_with(verb)) {
                findings.push(Finding::breach(&file.path, line, format!("a function called `{name}`")));
            }
        }
    }
    findings
}

/// `test_helpers` is a drawer as well.
fn is_drawer(name: &str) -> bool {
    name.split(['_', '-']).any(|word| DRAWERS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Weight;

    fn found(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<(usize, Weight)> {
        rule(&Tree::of(&[(path, text)])).into_iter().map(|finding| (finding.line, finding.weight)).collect()
    }

    #[test]
    fn a_file_without_a_module_doc_is_found() {
        assert!(found(opens_with_a_doc, "a/src/lib.rs", "//! What it is for.\nfn a() {}").is_empty());
        for text in
            ["", "fn a() {}", "// An ordinary comment.", "/// Of an item.\nfn a() {}", "use a;\n//! b"]
        {
            assert_eq!(found(opens_with_a_doc, "a/tests/b.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_long_file_is_a_nudge_and_a_very_long_one_a_breach() {
        let lines = |count: usize| "//!\n".repeat(count);
        assert!(found(stays_readable, "a.rs", &lines(LINES_NUDGE)).is_empty());
        assert_eq!(found(stays_readable, "a.rs", &lines(LINES_NUDGE + 1)), [(401, Weight::Nudge)]);
        assert_eq!(found(stays_readable, "a.rs", &lines(LINES_MAX)), [(800, Weight::Nudge)]);
        assert_eq!(found(stays_readable, "a.rs", &lines(LINES_MAX + 1)), [(801, Weight::Breach)]);
    }

    #[test]
    fn drawers_are_found_as_files_folders_and_modules() {
        for path in
            ["a/src/utils.rs", "a/src/common/b.rs", "a/tests/test_helpers.rs", "crates/misc/src/lib.rs"]
        {
            assert_eq!(found(names_say_something, path, "").len(), 1, "{path}");
        }
        assert_eq!(found(names_say_something, "a.rs", "\npub mod manager;").len(), 1);
        assert!(found(names_say_something, "a/src/uncommon.rs", "mod sweep; // mod utils").is_empty());
    }

    #[test]
    fn verbs_that_fit_everything_are_found() {
        let bad = "fn place() {}\npub async fn get_order() {}\n    fn handle_it();\nfn process_all() {}";
        let lines: Vec<_> =
            found(names_say_something, "a.rs", bad).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert!(found(names_say_something, "a.rs", "fn get() {} fn target_of() {} x.get_mut();").is_empty());
    }
}

//! Rules about the shape of a file: how it begins, how long it is, and the names of the file and of the items in it.

use super::TidyFinding;
use crate::source::{SourceView, named_after};
use crate::tree::Tree;

const LINES_NUDGE: usize = 400;
const LINES_MAX: usize = 800;

const DRAWERS: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"];
const EMPTY_VERBS: &[&str] = &["get_", "handle_", "process_"];

pub(super) fn opens_with_a_doc(tree: &Tree) -> Vec<TidyFinding> {
    tree.rust()
        .filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| TidyFinding::breach(&file.path, 1, "it does not open with a //! line"))
        .collect()
}

pub(super) fn stays_readable(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            findings.push(TidyFinding::breach(&file.path, lines, format!("{lines} lines, over {LINES_MAX}")));
        } else if lines > LINES_NUDGE {
            findings.push(TidyFinding::nudge(
                &file.path,
                lines,
                format!("{lines} lines, over {LINES_NUDGE}"),
            ));
        }
    }
    findings
}

pub(super) fn names_say_something(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if let Some(name) = file.path.trim_end_matches(".rs").split('/').find(|name| is_drawer(name)) {
            findings.push(TidyFinding::breach(&file.path, 1, format!("a file or folder called `{name}`")));
        }
        let code = SourceView::read(&file.text).code;
        for (line, name) in named_after(&code, "mod").into_iter().filter(|(_, name)| is_drawer(name)) {
            findings.push(TidyFinding::breach(&file.path, line, format!("a module called `{name}`")));
        }
        for (line, name) in named_after(&code, "fn") {
            if EMPTY_VERBS.iter().any(|verb| name.starts_with(verb)) {
                findings.push(TidyFinding::breach(&file.path, line, format!("a function called `{name}`")));
            }
        }
    }
    findings
}

/// Whether a name is too general. `test_helpers` is, too.
fn is_drawer(name: &str) -> bool {
    name.split(['_', '-']).any(|word| DRAWERS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::FindingWeight;

    fn matches(rule: fn(&Tree) -> Vec<TidyFinding>, path: &str, text: &str) -> Vec<(usize, FindingWeight)> {
        rule(&Tree::of(&[(path, text)])).into_iter().map(|finding| (finding.line, finding.weight)).collect()
    }

    #[test]
    fn a_file_without_a_module_doc_is_found() {
        assert!(matches(opens_with_a_doc, "a/src/lib.rs", "//! What it is for.\nfn a() {}").is_empty());
        for text in
            ["", "fn a() {}", "// An ordinary comment.", "/// Of an item.\nfn a() {}", "use a;\n//! b"]
        {
            assert_eq!(matches(opens_with_a_doc, "a/tests/b.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_long_file_is_a_nudge_and_a_very_long_one_a_breach() {
        let lines = |count: usize| "//!\n".repeat(count);
        assert!(matches(stays_readable, "a.rs", &lines(LINES_NUDGE)).is_empty());
        assert_eq!(matches(stays_readable, "a.rs", &lines(LINES_NUDGE + 1)), [(401, FindingWeight::Nudge)]);
        assert_eq!(matches(stays_readable, "a.rs", &lines(LINES_MAX)), [(800, FindingWeight::Nudge)]);
        assert_eq!(matches(stays_readable, "a.rs", &lines(LINES_MAX + 1)), [(801, FindingWeight::Breach)]);
    }

    #[test]
    fn drawers_are_found_as_files_folders_and_modules() {
        for path in
            ["a/src/utils.rs", "a/src/common/b.rs", "a/tests/test_helpers.rs", "crates/misc/src/lib.rs"]
        {
            assert_eq!(matches(names_say_something, path, "").len(), 1, "{path}");
        }
        assert_eq!(matches(names_say_something, "a.rs", "\npub mod manager;").len(), 1);
        assert!(matches(names_say_something, "a/src/uncommon.rs", "mod sweep; // mod utils").is_empty());
    }

    #[test]
    fn verbs_that_fit_everything_are_found() {
        let bad = "fn place() {}\npub async fn get_order() {}\n    fn handle_it();\nfn process_all() {}";
        let lines: Vec<_> =
            matches(names_say_something, "a.rs", bad).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert!(
            matches(names_say_something, "a.rs", "fn get() {} fn target_of() {} x.get_mut();").is_empty()
        );
    }
}

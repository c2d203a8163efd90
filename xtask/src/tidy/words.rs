//! The rules about words: words that the glossary has replaced do not come back, in Rust sources or in documents. A
//! doc comment makes sense alone, and lines of prose are short.

use super::TidyFinding;
use super::glossary::{BanScope, GLOSSARY, Glossary};
use super::paths::documents;
use crate::markdown::{MarkdownDocument, is_table_row, without_code};
use crate::source::numbered;
use crate::tree::{File, Tree};

/// The most characters in a line of prose. Rows of tables and code may be longer.
const PROSE_LINE_MAX: usize = 140;

/// How a doc comment begins that depends on the one before it.
const LEANING: &[&str] = &["The same", "And ", "Likewise", "Ditto", "As above"];

/// The ends of the names of sources: programs, and what operators read beside the documents.
const SOURCES: &[&str] =
    &[".rs", ".sql", ".lua", ".js", ".mjs", ".html", ".yml", ".service", ".socket", "dashboard.json"];

/// Sources that may contain a replaced word, each with the reason. The path is a file or a folder.
const MAY_SAY: &[(&str, &str)] = &[
    ("xtask/src/tidy/", "the rules and their tests plant the words that they look for"),
    ("crates/record/src/tests/cases", "golden files hold these names, and never change"),
    (
        "crates/sim/src/life.rs",
        "the name of a stream of random numbers: another one would change what every seed does",
    ),
    ("crates/store-redis/src/layout.rs", "the stored name of a key of Redis"),
    ("crates/store-redis/src/timers.rs", "the stored name of a key of Redis"),
    ("crates/store-redis/tests/store/main.rs", "the stored name of a key of Redis"),
    ("crates/engine/src/inspect/tests/vendors.rs", "an address as a vendor writes it"),
];

/// Checks names, comments, strings and the names of tests.
pub(super) fn sources_use_plain_words(tree: &Tree) -> Vec<TidyFinding> {
    let glossary = Glossary::of(tree);
    let mut findings = Vec::new();
    let is_source = |file: &&File| SOURCES.iter().any(|suffix| file.path.ends_with(suffix));
    let may_say = |file: &&File| MAY_SAY.iter().any(|(path, _)| file.path.starts_with(path));
    for file in tree.files.iter().filter(is_source).filter(|file| !may_say(file)) {
        for (number, line) in numbered(&file.text) {
            let words = words_of_source(line);
            let words: Vec<&str> = words.split_whitespace().collect();
            for replaced in glossary.replaced_in(&words) {
                if replaced.scope == BanScope::Everywhere {
                    let what = format!("`{}` was replaced; write `{}`", replaced.phrase, replaced.plain);
                    findings.push(TidyFinding::breach(&file.path, number, what));
                }
            }
        }
    }
    findings
}

/// Checks the prose and tables of the documents, without code.
pub(super) fn documents_use_plain_words(tree: &Tree) -> Vec<TidyFinding> {
    let glossary = Glossary::of(tree);
    let mut findings = Vec::new();
    if tree.text(GLOSSARY).is_some() && !glossary.has_replaced_words() {
        findings.push(TidyFinding::breach(GLOSSARY, 1, "it has no table of replaced words"));
    }
    for file in documents(tree) {
        for (number, line) in MarkdownDocument::read(&file.text).prose {
            if file.path == GLOSSARY && glossary.is_replaced_line(number) {
                continue;
            }
            let prose = without_code(line).to_lowercase();
            for replaced in glossary.replaced_in(&words_of_prose(&prose)) {
                let what = format!("`{}` was replaced; write `{}`", replaced.phrase, replaced.plain);
                findings.push(TidyFinding::breach(&file.path, number, what));
            }
        }
    }
    findings
}

pub(super) fn prose_lines_are_short(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in documents(tree) {
        let prose = MarkdownDocument::read(&file.text).prose;
        for (number, line) in prose.into_iter().filter(|(_, line)| !is_table_row(line)) {
            let length = line.chars().count();
            if length > PROSE_LINE_MAX {
                let what = format!("the line has {length} characters; at most {PROSE_LINE_MAX} are allowed");
                findings.push(TidyFinding::breach(&file.path, number, what));
            }
        }
    }
    findings
}

/// Checks that a doc comment does not depend on the one above it: it is read on hover, alone.
pub(super) fn doc_comments_stand_alone(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let mut before = "";
        for (number, line) in numbered(&file.text) {
            let line = line.trim_start();
            if let Some(text) = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "))
                && !before.starts_with("///")
                && !before.starts_with("//!")
                && LEANING.iter().any(|leaning| text.starts_with(leaning))
            {
                let what = format!("a doc comment begins with `{text}`");
                findings.push(TidyFinding::breach(&file.path, number, what));
            }
            before = line;
        }
    }
    findings
}

/// The words of a line of prose. A dot or an underscore inside a word makes it a name: `gateway.dialect` is a
/// setting.
fn words_of_prose(prose: &str) -> Vec<&str> {
    prose
        .split(|c: char| !c.is_alphanumeric() && !"._".contains(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect()
}

/// A line of Rust as words in lower case: `ShelfIndex`, `read_shelf` and `SHELF_MAX` all contain `shelf`; `itself`
/// does not.
fn words_of_source(line: &str) -> String {
    let mut words = String::with_capacity(line.len() + 8);
    let mut was_small = false;
    for character in line.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() && was_small {
            words.push(' ');
        }
        if character.is_alphanumeric() {
            words.extend(character.to_lowercase());
        }
        was_small = character.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Words that we replaced\n\n| not this | write this | where |\n| --- | --- | --- |\n\
        | whoever, nobody | name the thing | everywhere |\n| shelf, shelves | stock | everywhere |\n\
        | go on with, goes on with | resume | everywhere |\n| told | gets | documents |\n";

    fn findings(rule: fn(&Tree) -> Vec<TidyFinding>, path: &str, text: &str) -> Vec<TidyFinding> {
        rule(&Tree::of(&[(GLOSSARY, TABLE), (path, text)]))
    }

    fn lines(rule: fn(&Tree) -> Vec<TidyFinding>, path: &str, text: &str) -> Vec<usize> {
        findings(rule, path, text).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_replaced_word_is_found_in_names_comments_strings_and_names_of_tests() {
        for text in [
            "struct ShelfIndex;",
            "fn read_shelves() {}",
            "const SHELF_MAX: u8 = 1;",
            "mod shelf;",
            "let shelf = 1;",
            "// Whoever asks gets it.",
            "/// It goes on with the rest.",
            "const A: &str = \"nobody waits\";",
            "#[test] fn nobody_pays_twice() {}",
        ] {
            assert_eq!(lines(sources_use_plain_words, "crates/a/src/lib.rs", text), [1], "{text}");
            assert_eq!(lines(sources_use_plain_words, "crates/a/tests/b.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn other_words_of_a_source_are_fine() {
        for text in ["struct Itself;", "fn bookshelf() {}", "// It was told.", "// It goes on."] {
            assert!(lines(sources_use_plain_words, "crates/a/src/lib.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_replaced_word_is_found_in_prose_and_in_tables() {
        for text in [
            "Whoever asks again gets it.",
            "| what | Who asked is **told**. |",
            "The node goes on with it.",
            "It is nobody’s order.",
            "An `order` that nobody's caller has.",
        ] {
            assert_eq!(lines(documents_use_plain_words, "docs/a.md", text), [1], "{text}");
        }
        assert_eq!(lines(documents_use_plain_words, "README.md", "a\n\nthe shelf, nobody\n"), [3, 3]);
    }

    #[test]
    fn plain_words_code_and_other_files_are_fine() {
        for text in [
            "The caller asks again. It goes on. This is the history of bookshelves.",
            "`nobody`, `whoever_waits` and `the shelf` are code, gateway.shelf and told_at are names.",
            "```text\nwhoever waits\n```",
        ] {
            assert!(lines(documents_use_plain_words, "docs/a.md", text).is_empty(), "{text}");
        }
        for path in ["CHANGELOG.md", "docs/images/a.svg", "crates/a/src/lib.rs"] {
            assert!(lines(documents_use_plain_words, path, "whoever").is_empty(), "{path}");
        }
    }

    #[test]
    fn a_finding_names_the_plain_word() {
        for (rule, path) in [
            (documents_use_plain_words as fn(&Tree) -> Vec<TidyFinding>, "docs/a.md"),
            (sources_use_plain_words, "crates/a/src/lib.rs"),
        ] {
            assert_eq!(findings(rule, path, "// the shelf")[0].what, "`shelf` was replaced; write `stock`");
        }
    }

    #[test]
    fn a_glossary_without_its_table_is_found() {
        let tree = Tree::of(&[(GLOSSARY, "# Glossary\n")]);
        assert_eq!(documents_use_plain_words(&tree).len(), 1);
    }

    #[test]
    fn a_line_of_prose_has_at_most_140_characters() {
        let (fits, long) = ("ä".repeat(PROSE_LINE_MAX), "a".repeat(PROSE_LINE_MAX + 1));
        let text = format!("{fits}\n- {long}\n  | a | {long} |\n```\n{long}\n```\n{long}\n");
        for path in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/a.md"] {
            assert_eq!(lines(prose_lines_are_short, path, &text), [2, 7], "{path}");
        }
        assert!(lines(prose_lines_are_short, "CHANGELOG.md", &text).is_empty());
    }

    #[test]
    fn a_doc_comment_that_leans_on_another_is_found() {
        let text =
            "/// Opens it.\nfn a() {}\n/// The same for others.\nfn b() {}\n/// And this.\nfn c() {}\n";
        for path in ["crates/a/src/lib.rs", "crates/a/tests/b.rs"] {
            assert_eq!(lines(doc_comments_stand_alone, path, text), [3, 5]);
        }
        assert_eq!(lines(doc_comments_stand_alone, "crates/a/src/lib.rs", "//! The same, for b.\n"), [1]);
        let text = "/// Opens it.\n/// The same file twice is an error.\nfn a() {}";
        assert!(lines(doc_comments_stand_alone, "crates/a/src/lib.rs", text).is_empty());
    }
}

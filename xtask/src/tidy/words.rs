//! One word for one thing: words that the glossary has replaced do not come back, neither in names nor in the documents; a
//! doc comment makes sense alone, and lines of prose are short.

use super::TidyFinding;
use super::paths::documents;
use crate::markdown::{MarkdownDocument, is_table_row, without_code};
use crate::source::{SourceView, named_after, numbered};
use crate::tree::Tree;

/// A word that was ours alone, and the one that readers know; docs/glossary.md explains the second.
const REPLACED: &[(&str, &str)] = &[
    ("agenda", "run queue"),
    ("alarm", "timer"),
    ("books", "usage"),
    ("census", "order counts"),
    ("courier", "webhook sender"),
    ("errand", "follow-up"),
    ("lookout", "monitor"),
    ("patience", "timeout"),
    ("roster", "membership"),
    ("sheet", "shared document"),
    ("shelf", "stock"),
    ("shelves", "stock"),
    ("simulator", "mock provider"),
    ("spoil", "expire"),
    ("stockroom", "client"),
    ("tally", "counters"),
    ("unsure", "in doubt"),
    ("vitals", "node stats"),
    ("watchman", "alert engine"),
];

/// A word, or some words in a row, that the documents do not use, and what they say instead. Endings are listed one by one:
/// `book` is a plain word, and `books` was ours for the usage.
const PLAIN: &[(&[&str], &str)] = &[
    (&["whoever", "whomever"], "the caller, the node: name the thing"),
    (&["nobody", "nobody's"], "no caller, no node: name the thing"),
    (&["somebody", "anybody", "everybody", "everyone", "anyone"], "a caller, each tenant: name the thing"),
    (&["he", "his", "him", "himself"], "it, its: the subject is a program"),
    (&["told", "tells", "telling"], "gets, reports, shows"),
    (&["said", "heard", "hears"], "set, sent, received"),
    (&["mend", "mends", "mended", "mending"], "fix"),
    (&["deed", "deeds"], "action"),
    (&["anew"], "again"),
    (&["be rid of", "get rid of"], "remove"),
    (&["go on with", "goes on with", "went on with", "gone on with"], "resume, continue"),
    (&["bury", "buries", "buried"], "move to dead letters"),
    (&["overrule", "overrules", "overruled"], "override"),
    (&["agenda"], "run queue"),
    (&["alarm", "alarms"], "timer, alert"),
    (&["books", "tally", "tallies"], "usage, counters"),
    (&["census"], "counts"),
    (&["courier"], "webhook sender"),
    (&["desk"], "order service"),
    (&["door", "doors"], "endpoint, API"),
    (&["errand", "errands"], "follow-up"),
    (&["flavour", "flavours", "manner", "manners", "tongue"], "dialect, format"),
    (&["goods"], "answer"),
    (&["lookout"], "monitor"),
    (&["watchman"], "alert engine"),
    (&["patience"], "timeout"),
    (&["roster"], "membership"),
    (&["vitals"], "node stats"),
    (&["sheet", "sheets"], "shared document"),
    (&["shelf", "shelves", "shelved", "stockroom"], "stock"),
    (&["simulator"], "mock provider, simulation"),
    (&["spoil", "spoils", "spoiled"], "expire"),
    (&["trouble", "troubles"], "error, fault"),
    (&["unsure", "without word", "no word"], "in doubt"),
];

/// The most characters in a line of prose. Rows of tables and code may be longer.
const PROSE_LINE_MAX: usize = 140;

/// What introduces a name in Rust.
const NAMERS: &[&str] = &["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];

/// How a doc comment begins that leans on the one before it.
const LEANING: &[&str] = &["The same", "And "];

pub(super) fn names_are_in_the_glossary(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.ends_with("tidy/words.rs")) {
        let code = SourceView::read(&file.text).code;
        for namer in NAMERS {
            for (line, name) in named_after(&code, namer) {
                if let Some((old, new)) = replaced_in(name) {
                    let what = format!("`{name}` says `{old}`; the glossary says `{new}`");
                    findings.push(TidyFinding::breach(&file.path, line, what));
                }
            }
        }
    }
    findings
}

/// Prose and tables of the documents, without what stands in code.
pub(super) fn documents_use_plain_words(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in documents(tree) {
        for (number, line) in MarkdownDocument::read(&file.text).prose {
            for (word, plain) in unplain_in(&without_code(line)) {
                let what = format!("`{word}` is not a plain word here; write `{plain}`");
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

/// Whole words in any case: `Whoever` counts, and `manners` is not found in `mannerisms`.
fn unplain_in(prose: &str) -> Vec<(&'static str, &'static str)> {
    let prose = prose.to_lowercase().replace('’', "'");
    // A dot or an underscore inside a word makes it a name: `gateway.flavour` is a setting.
    let words: Vec<&str> = prose
        .split(|c: char| !c.is_alphanumeric() && !"'._".contains(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect();
    let is_there = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).any(|some| some == phrase)
    };
    PLAIN
        .iter()
        .flat_map(|(phrases, plain)| phrases.iter().map(move |phrase| (*phrase, *plain)))
        .filter(|(phrase, _)| is_there(phrase))
        .collect()
}

/// A doc comment is read on hover, without the one above it.
pub(super) fn doc_comments_stand_alone(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.contains("/tests/")) {
        let mut before = "";
        for (number, line) in numbered(&file.text) {
            let line = line.trim_start();
            if let Some(text) = line.strip_prefix("/// ")
                && !before.starts_with("///")
                && LEANING.iter().any(|leaning| text.starts_with(leaning))
            {
                findings.push(TidyFinding::breach(
                    &file.path,
                    number,
                    format!("a doc comment begins with `{text}`"),
                ));
            }
            before = line;
        }
    }
    findings
}

/// `ShelfIndex`, `read_shelf` and `SHELVES_MAX` all say it; `itself` does not.
fn replaced_in(name: &str) -> Option<(&'static str, &'static str)> {
    let mut words = String::new();
    let mut was_small = false;
    for character in name.chars() {
        if character.is_uppercase() && was_small {
            words.push('_');
        }
        was_small = character.is_lowercase();
        words.extend(character.to_lowercase());
    }
    REPLACED.iter().copied().find(|(old, _)| {
        words.split('_').any(|word| {
            let ending = word.strip_prefix(old);
            ending.is_some_and(|ending| matches!(ending, "" | "s" | "ed" | "ing"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Tree) -> Vec<TidyFinding>, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[("crates/a/src/lib.rs", text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_replaced_word_is_found_in_any_part_of_a_name() {
        for text in ["struct ShelfIndex;", "fn read_sheets() {}", "const SPOILED_MAX: u8 = 1;", "mod roster;"]
        {
            assert_eq!(lines(names_are_in_the_glossary, text), [1], "{text}");
        }
    }

    #[test]
    fn other_words_and_prose_are_fine() {
        for text in
            ["struct Itself;", "fn worksheet() {}", "// the shelf\nfn a() {}", "const A: &str = \"shelf\";"]
        {
            assert!(lines(names_are_in_the_glossary, text).is_empty(), "{text}");
        }
    }

    fn lines_of(rule: fn(&Tree) -> Vec<TidyFinding>, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_unplain_word_is_found_in_prose_and_in_tables() {
        for text in [
            "Whoever asks again gets it.",
            "| what | Who asked is **told**. |",
            "A node takes its work up anew.",
            "The node goes on with it.",
            "It is nobody’s order.",
            "An `order` that his caller has.",
        ] {
            assert_eq!(lines_of(documents_use_plain_words, "docs/a.md", text), [1], "{text}");
        }
        assert_eq!(lines_of(documents_use_plain_words, "README.md", "a\n\nthe shelf, the tally\n"), [3, 3]);
    }

    #[test]
    fn plain_words_code_and_other_files_are_fine() {
        for text in [
            "The caller asks again. It goes on. This is the history of the mannerisms.",
            "`nobody`, `whoever_waits` and `the shelf` are code, gateway.flavour and told_at are names.",
            "```text\nwhoever tells\n```",
        ] {
            assert!(lines_of(documents_use_plain_words, "docs/a.md", text).is_empty(), "{text}");
        }
        for path in ["CHANGELOG.md", "docs/images/a.svg", "crates/a/src/lib.rs"] {
            assert!(lines_of(documents_use_plain_words, path, "whoever").is_empty(), "{path}");
        }
    }

    #[test]
    fn a_finding_names_the_plain_word() {
        let tree = Tree::of(&[("docs/a.md", "The deed is done.")]);
        let findings = documents_use_plain_words(&tree);
        assert_eq!(findings[0].what, "`deed` is not a plain word here; write `action`");
    }

    #[test]
    fn a_line_of_prose_has_at_most_140_characters() {
        let (fits, long) = ("ä".repeat(PROSE_LINE_MAX), "a".repeat(PROSE_LINE_MAX + 1));
        let text = format!("{fits}\n- {long}\n  | a | {long} |\n```\n{long}\n```\n{long}\n");
        for path in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/a.md"] {
            assert_eq!(lines_of(prose_lines_are_short, path, &text), [2, 7], "{path}");
        }
        assert!(lines_of(prose_lines_are_short, "CHANGELOG.md", &text).is_empty());
    }

    #[test]
    fn a_doc_comment_that_leans_on_another_is_found() {
        let text =
            "/// Opens it.\nfn a() {}\n/// The same for others.\nfn b() {}\n/// And this.\nfn c() {}\n";
        assert_eq!(lines(doc_comments_stand_alone, text), [3, 5]);
        assert!(
            lines(doc_comments_stand_alone, "/// Opens it.\n/// The same file twice is an error.\nfn a() {}")
                .is_empty()
        );
    }
}

//! One word for one thing: names that the glossary has replaced do not come back, and a doc comment makes sense alone.

use super::TidyFinding;
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

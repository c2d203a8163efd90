//! The glossary as data: the words that it explains, and the words that it replaced. `docs/glossary.md` is the only
//! list of them, for readers and for rules.

use crate::markdown::is_table_row;
use crate::source::numbered;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const GLOSSARY: &str = "docs/glossary.md";

/// The heading of the table of replaced words.
const REPLACED_HEADING: &str = "## Words that we replaced";

/// Where a replaced word must not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BanScope {
    /// In documents and in Rust sources.
    Everywhere,
    /// In documents only: in code, the word also has an ordinary meaning.
    Documents,
}

/// A word or a phrase, and what to write instead.
#[derive(Debug)]
pub(super) struct ReplacedWord {
    pub(super) phrase: String,
    pub(super) plain: String,
    pub(super) scope: BanScope,
}

#[derive(Debug, Default)]
pub(super) struct Glossary {
    /// The explained terms, written as file names: `dead_letter`.
    terms: BTreeSet<String>,
    /// The replaced words by the first word of their phrase.
    replaced: BTreeMap<String, Vec<ReplacedWord>>,
    /// The lines of the table of replaced words.
    replaced_lines: BTreeSet<usize>,
}

impl Glossary {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut glossary = Self::default();
        let mut is_replaced_table = false;
        for (number, line) in numbered(tree.text(GLOSSARY).unwrap_or_default()) {
            if line.starts_with('#') {
                is_replaced_table = line == REPLACED_HEADING;
            }
            if !is_table_row(line) {
                continue;
            }
            let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").map(str::trim).collect();
            if is_replaced_table {
                glossary.replaced_lines.insert(number);
                glossary.add_replaced(&cells);
            } else {
                glossary.add_terms(cells[0]);
            }
        }
        glossary
    }

    pub(super) fn has_replaced_words(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Whether this line of the glossary is part of its table of replaced words, where they must occur.
    pub(super) fn is_replaced_line(&self, number: usize) -> bool {
        self.replaced_lines.contains(&number)
    }

    /// Whether a file name is a term of the glossary, in the singular or in the plural.
    pub(super) fn explains(&self, file_name: &str) -> bool {
        let singular = file_name.strip_suffix('s').unwrap_or(file_name);
        self.terms.contains(file_name) || self.terms.contains(singular)
    }

    /// The replaced words in a line that was split into words in lower case.
    pub(super) fn replaced_in(&self, words: &[&str]) -> Vec<&ReplacedWord> {
        let mut findings: Vec<&ReplacedWord> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            for replaced in self.replaced.get(*word).into_iter().flatten() {
                let is_phrase = replaced
                    .phrase
                    .split(' ')
                    .eq(words[at..].iter().copied().take(replaced.phrase.split(' ').count()));
                if is_phrase && !findings.iter().any(|other| other.phrase == replaced.phrase) {
                    findings.push(replaced);
                }
            }
        }
        findings
    }

    /// Adds a row with three cells: the words, what to write instead, and where the ban applies.
    fn add_replaced(&mut self, cells: &[&str]) {
        let &[words, plain, scope] = cells else { return };
        let scope = match scope {
            "everywhere" => BanScope::Everywhere,
            "documents" => BanScope::Documents,
            // The head of the table.
            _ => return,
        };
        for phrase in words.split(", ") {
            let first = phrase.split(' ').next().unwrap_or_default().to_owned();
            let replaced = ReplacedWord { phrase: phrase.to_owned(), plain: plain.to_owned(), scope };
            self.replaced.entry(first).or_default().push(replaced);
        }
    }

    /// Adds the terms of a cell such as `**webhook, delivery**`.
    fn add_terms(&mut self, cell: &str) {
        let Some(terms) = cell.strip_prefix("**").and_then(|cell| cell.strip_suffix("**")) else { return };
        self.terms.extend(terms.split(", ").map(|term| term.to_lowercase().replace([' ', '-'], "_")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Glossary\n| word | meaning |\n| --- | --- |\n| **dead letter, follow-up** | a |\n\n\
        ## Words that we replaced\n| not this | write this | where |\n| --- | --- | --- |\n\
        | deed, be rid of | action | everywhere |\n| told | gets | documents |\n";

    #[test]
    fn terms_are_read_as_file_names() {
        let glossary = Glossary::of(&Tree::of(&[(GLOSSARY, TEXT)]));
        for name in ["dead_letter", "dead_letters", "follow_up"] {
            assert!(glossary.explains(name), "{name}");
        }
        assert!(!glossary.explains("deed") && !glossary.explains("word"));
    }

    #[test]
    fn replaced_words_are_found_alone_and_as_a_phrase() {
        let glossary = Glossary::of(&Tree::of(&[(GLOSSARY, TEXT)]));
        let found = |text: &str| -> Vec<(String, BanScope)> {
            let words: Vec<&str> = text.split(' ').collect();
            glossary.replaced_in(&words).iter().map(|word| (word.phrase.clone(), word.scope)).collect()
        };
        assert_eq!(found("to be rid of a deed")[0].0, "be rid of");
        assert_eq!(found("to be rid of a deed").len(), 2);
        assert_eq!(found("told"), [("told".to_owned(), BanScope::Documents)]);
        assert!(found("be rid").is_empty() && found("indeed").is_empty());
        assert!(glossary.is_replaced_line(9) && !glossary.is_replaced_line(4));
    }

    #[test]
    fn the_real_glossary_has_both_tables() {
        let tree = Tree::load().unwrap_or_else(|why| panic!("{why}"));
        let glossary = Glossary::of(&tree);
        assert!(glossary.explains("order") && glossary.has_replaced_words());
    }
}

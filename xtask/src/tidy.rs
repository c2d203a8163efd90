//! Tidy as a test: the house rules that a compiler cannot see, each one function over the tree. All that breaks a rule is
//! reported at once, with the reason for the rule and how to mend it.

mod architecture;
mod concrete;
mod guarantees;
mod knows;
mod leftovers;
mod lifecycle;
mod machine;
mod paths;
mod shape;
mod unsafe_code;
mod words;

use crate::tree::Tree;
use std::fmt::Write;

struct Rule {
    name: &'static str,
    why: &'static str,
    mend: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

#[derive(Debug, PartialEq, Eq)]
enum Weight {
    Breach,
    /// Worth a thought; fails nothing.
    Nudge,
}

#[derive(Debug)]
struct Finding {
    path: String,
    line: usize,
    what: String,
    weight: Weight,
}

impl Finding {
    fn breach(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), weight: Weight::Breach }
    }

    fn nudge(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { weight: Weight::Nudge, ..Self::breach(path, line, what) }
    }
}

const RULES: &[Rule] = &[
    Rule {
        name: "who may know whom",
        why: "a rule that only a sentence keeps is broken on a busy day; the arrows between crates are the architecture",
        mend: "drop the dependency, or change the table in xtask/src/tidy/knows.rs and say why in ARCHITECTURE.md",
        check: knows::who_may_know_whom,
    },
    Rule {
        name: "the table of crates is true",
        why: "a table that nobody checks is wrong within a month, and a reader believes it",
        mend: "write into ARCHITECTURE.md what the manifest says, or drop the dependency",
        check: architecture::table_is_true,
    },
    Rule {
        name: "lifecycle knows no std",
        why: "whoever can reach std can read a clock, roll dice and do I/O; then a decision cannot be replayed",
        mend: "use core or alloc, or let the caller pass it in with the event",
        check: lifecycle::knows_no_std,
    },
    Rule {
        name: "lifecycle knows no captcha",
        why: "a kind is opaque to decisions about money, or else every new kind would change them",
        mend: "say it in quittance-protocol, and pass what the decision needs as terms",
        check: lifecycle::knows_no_captcha,
    },
    Rule {
        name: "engine names no concrete store or provider",
        why: "the engine and all below it work on any store and any provider, which is what the conformance suite holds them to",
        mend: "ask for it through a contract in quittance-ports",
        check: concrete::names_no_store_or_provider,
    },
    Rule {
        name: "unsafe code is forbidden",
        why: "no promise of ours is worth memory that nobody checks",
        mend: "write [lints] workspace = true in the manifest, or #![forbid(unsafe_code)] in the crate root",
        check: unsafe_code::is_forbidden,
    },
    Rule {
        name: "every file says what it is for",
        why: "a reader who opens a file should know in one sentence whether it is the right one",
        mend: "open the file with a //! line",
        check: shape::opens_with_a_doc,
    },
    Rule {
        name: "files stay readable",
        why: "a file over 400 lines is a nudge to think, one over 800 is two files",
        mend: "split it along a sentence that names each half",
        check: shape::stays_readable,
    },
    Rule {
        name: "names say something",
        why: "a drawer without a name fills up, and a verb that fits everything tells nothing",
        mend: "use the nouns and verbs of CONTRIBUTING.md: place, submit, poll, settle, take, sweep, ...",
        check: shape::names_say_something,
    },
    Rule {
        name: "names are in the glossary",
        why: "a word of our own costs every reader a question; the glossary has one plain word for each thing",
        mend: "use the word that the finding names; docs/glossary.md explains it",
        check: words::names_are_in_the_glossary,
    },
    Rule {
        name: "a doc comment stands alone",
        why: "it is read on hover, where the item above it is not shown",
        mend: "say what this item is, without the one before it",
        check: words::doc_comments_stand_alone,
    },
    Rule {
        name: "documents use plain words",
        why: "most readers learned English at school; a word of our own, or an old one, costs each of them a question",
        mend: "use the word that the finding names, and let the thing itself be the subject of the sentence",
        check: words::documents_use_plain_words,
    },
    Rule {
        name: "prose lines are short",
        why: "a long line is a long sentence, and a change in it cannot be read in a diff",
        mend: "break the line, split the sentence, or make a list or a table of it",
        check: words::prose_lines_are_short,
    },
    Rule {
        name: "nothing is left over",
        why: "what is unfinished, switched off or slept through passes every test and fails at night",
        mend: "finish it, delete it, or wait for a moment of the Clock",
        check: leftovers::nothing_is_left_over,
    },
    Rule {
        name: "no test sleeps for luck",
        why: "a sleep that is long enough today is too short on a busy machine, and too long on every other",
        mend: "wait for a condition with a deadline, in a helper that is listed in xtask/src/tidy/leftovers.rs, or inject the time",
        check: leftovers::no_test_sleeps_for_luck,
    },
    Rule {
        name: "no trace of a machine",
        why: "a path or a mirror of one machine breaks on every other, and tells strangers where we work",
        mend: "use a path relative to the repository, and leave registries to the settings of the machine",
        check: machine::leaves_no_trace,
    },
    Rule {
        name: "each promise has its test",
        why: "a promise whose test was renamed or deleted is only a sentence",
        mend: "name the test that holds the promise now, or take the promise back",
        check: guarantees::name_tests_that_exist,
    },
    Rule {
        name: "documents point at what exists",
        why: "one dead path costs a reader the trust in all the others",
        mend: "correct the path; a file that users have and we do not belongs into NOT_OURS in xtask/src/tidy/paths.rs",
        check: paths::point_at_what_exists,
    },
    Rule {
        name: "the map shows every crate",
        why: "ARCHITECTURE.md is read first; a map with a missing house misleads more than none",
        mend: "add the crate to the tree in ARCHITECTURE.md with its sentence, or take the gone one out",
        check: architecture::shows_every_crate,
    },
];

/// What the rules say of the tree, in full: an error if anything breaks one.
pub(crate) fn verdict(tree: &Tree) -> Result<String, String> {
    let mut said = String::new();
    let mut breaches = 0;
    for rule in RULES {
        let findings = (rule.check)(tree);
        breaches += findings.iter().filter(|finding| finding.weight == Weight::Breach).count();
        said.push_str(&describe(rule, &findings));
    }
    if breaches == 0 {
        return Ok(format!("{said}tidy: {} files keep all {} rules", tree.files.len(), RULES.len()));
    }
    Err(format!("{said}tidy: {breaches} to mend"))
}

fn describe(rule: &Rule, findings: &[Finding]) -> String {
    let mut said = String::new();
    if findings.is_empty() {
        return said;
    }
    let endless = "a String takes all that is written";
    writeln!(said, "{}\n  why:  {}\n  mend: {}", rule.name, rule.why, rule.mend).expect(endless);
    for Finding { path, line, what, weight } in findings {
        let weight = if *weight == Weight::Nudge { " (a nudge)" } else { "" };
        writeln!(said, "  {path}:{line}: {what}{weight}").expect(endless);
    }
    said.push('\n');
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let tree = Tree::load().unwrap_or_else(|why| panic!("{why}"));
        match verdict(&tree) {
            Ok(good) => println!("{good}"),
            Err(bad) => panic!("\n{bad}"),
        }
    }

    #[test]
    fn a_verdict_says_what_where_why_and_how_to_fix() {
        let long = format!("//! Long.\n{}", "\n".repeat(500));
        let tree = Tree::of(&[("crates/a/src/b.rs", "fn f() {}\n"), ("crates/a/src/c.rs", &long)]);
        let said = verdict(&tree).expect_err("it has no module doc");
        for part in ["crates/a/src/b.rs:1: ", "why:  ", "mend: open the file", "tidy: 1 to mend"] {
            assert!(said.contains(part), "{part} is missing in:\n{said}");
        }
    }

    #[test]
    fn a_nudge_fails_nothing() {
        let long = format!("//! Long.\n{}", "\n".repeat(500));
        let said = verdict(&Tree::of(&[("xtask/src/c.rs", &long)])).expect("it is only a nudge");
        assert!(said.contains("(a nudge)"), "{said}");
    }
}

//! Checks the rules of the code base that a compiler cannot see. Each rule is a function of the tree. All breaches
//! are reported at once, each with the reason for the rule and how to fix it.

mod architecture;
mod concrete;
mod glossary;
mod guarantees;
mod knows;
mod leftovers;
mod lifecycle;
mod machine;
mod paths;
mod shape;
mod unique;
mod unsafe_code;
mod words;

use crate::tree::Tree;
use std::fmt::Write;

struct TidyRule {
    name: &'static str,
    why: &'static str,
    fix: &'static str,
    check: fn(&Tree) -> Vec<TidyFinding>,
}

#[derive(Debug, PartialEq, Eq)]
enum FindingWeight {
    Breach,
    /// A hint, which fails nothing.
    Nudge,
}

#[derive(Debug)]
struct TidyFinding {
    path: String,
    line: usize,
    what: String,
    weight: FindingWeight,
}

impl TidyFinding {
    fn breach(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), weight: FindingWeight::Breach }
    }

    fn nudge(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { weight: FindingWeight::Nudge, ..Self::breach(path, line, what) }
    }
}

const RULES: &[TidyRule] = &[
    TidyRule {
        name: "who may know whom",
        why: "a rule that only a sentence keeps is broken on a busy day; the arrows between crates are the architecture",
        fix: "drop the dependency, or change the table in xtask/src/tidy/knows.rs and say why in ARCHITECTURE.md",
        check: knows::who_may_know_whom,
    },
    TidyRule {
        name: "the table of crates is true",
        why: "an unchecked table is wrong within a month, and a reader believes it",
        fix: "write into ARCHITECTURE.md what the manifest says, or drop the dependency",
        check: architecture::table_is_true,
    },
    TidyRule {
        name: "lifecycle knows no std",
        why: "code that can reach std can read a clock, roll dice and do I/O; then a decision cannot be replayed",
        fix: "use core or alloc, or let the caller pass it in with the event",
        check: lifecycle::knows_no_std,
    },
    TidyRule {
        name: "lifecycle knows no captcha",
        why: "a kind is opaque to decisions about money, or else every new kind would change them",
        fix: "say it in quittance-protocol, and pass what the decision needs as terms",
        check: lifecycle::knows_no_captcha,
    },
    TidyRule {
        name: "engine names no concrete store or provider",
        why: "the engine and all below it work on any store and any provider, which is what the conformance suite holds them to",
        fix: "ask for it through a contract in quittance-ports",
        check: concrete::names_no_store_or_provider,
    },
    TidyRule {
        name: "unsafe code is forbidden",
        why: "no promise of ours is worth unchecked memory",
        fix: "write [lints] workspace = true in the manifest, or #![forbid(unsafe_code)] in the crate root",
        check: unsafe_code::is_forbidden,
    },
    TidyRule {
        name: "every file says what it is for",
        why: "a reader who opens a file should know in one sentence whether it is the right one",
        fix: "open the file with a //! line",
        check: shape::opens_with_a_doc,
    },
    TidyRule {
        name: "files stay readable",
        why: "a file over 400 lines is a nudge to think, one over 800 is two files",
        fix: "split it along a sentence that names each half",
        check: shape::stays_readable,
    },
    TidyRule {
        name: "names say something",
        why: "a drawer without a name fills up, and a verb that fits everything tells nothing",
        fix: "use the nouns and verbs of CONTRIBUTING.md: place, submit, poll, settle, take, sweep, ...",
        check: shape::names_say_something,
    },
    TidyRule {
        name: "a type name stands once",
        why: "a name with two meanings must be looked up at every use; a search for it finds the wrong one",
        fix: "name one of them after what it is for, or give a reason in xtask/src/tidy/unique.rs",
        check: unique::type_names_stand_once,
    },
    TidyRule {
        name: "a file name stands once",
        why: "an editor and a stack trace show the file name without its folder",
        fix: "name the file after what is in it, or say what the name always means in xtask/src/tidy/unique.rs",
        check: unique::file_names_stand_once,
    },
    TidyRule {
        name: "sources use plain words",
        why: "a word of our own costs every reader a question; the glossary has one plain word for each thing",
        fix: "use the word that the finding names; docs/glossary.md explains it and lists the replaced words",
        check: words::sources_use_plain_words,
    },
    TidyRule {
        name: "a doc comment stands alone",
        why: "it is read on hover, where the item above it is not shown",
        fix: "say what this item is, without the one before it",
        check: words::doc_comments_stand_alone,
    },
    TidyRule {
        name: "documents use plain words",
        why: "most readers learned English at school; a word of our own, or an old one, costs each of them a question",
        fix: "use the word that the finding names, and let the thing itself be the subject of the sentence",
        check: words::documents_use_plain_words,
    },
    TidyRule {
        name: "prose lines are short",
        why: "a long line is a long sentence, and a change in it cannot be read in a diff",
        fix: "break the line, split the sentence, or make a list or a table of it",
        check: words::prose_lines_are_short,
    },
    TidyRule {
        name: "nothing is left over",
        why: "what is unfinished, switched off or slept through passes every test and fails at night",
        fix: "finish it, delete it, or wait for a moment of the Clock",
        check: leftovers::nothing_is_left_over,
    },
    TidyRule {
        name: "no test sleeps for luck",
        why: "a sleep that is long enough today is too short on a busy machine, and too long on every other",
        fix: "wait for a condition with a deadline, in a helper that is listed in xtask/src/tidy/leftovers.rs, or inject the time",
        check: leftovers::no_test_sleeps_for_luck,
    },
    TidyRule {
        name: "no trace of a machine",
        why: "a path or a mirror of one machine breaks on every other, and tells strangers where we work",
        fix: "use a path relative to the repository, and leave registries to the settings of the machine",
        check: machine::leaves_no_trace,
    },
    TidyRule {
        name: "each promise has its test",
        why: "a promise whose test was renamed or deleted is only a sentence",
        fix: "name the test that holds the promise now, or take the promise back",
        check: guarantees::name_tests_that_exist,
    },
    TidyRule {
        name: "documents point at what exists",
        why: "one dead path costs a reader the trust in all the others",
        fix: "correct the path; a file that users have and we do not belongs into NOT_OURS in xtask/src/tidy/paths.rs",
        check: paths::point_at_what_exists,
    },
    TidyRule {
        name: "the map shows every crate",
        why: "ARCHITECTURE.md is read first; a map with a missing house misleads more than none",
        fix: "add the crate to the tree in ARCHITECTURE.md with its sentence, or take the gone one out",
        check: architecture::shows_every_crate,
    },
];

/// The full report about the tree; an error if anything breaks a rule.
pub(crate) fn verdict(tree: &Tree) -> Result<String, String> {
    let mut output = String::new();
    let mut breaches = 0;
    for rule in RULES {
        let findings = (rule.check)(tree);
        breaches += findings.iter().filter(|finding| finding.weight == FindingWeight::Breach).count();
        output.push_str(&describe(rule, &findings));
    }
    if breaches == 0 {
        return Ok(format!("{output}tidy: {} files keep all {} rules", tree.files.len(), RULES.len()));
    }
    Err(format!("{output}tidy: {breaches} to fix"))
}

fn describe(rule: &TidyRule, findings: &[TidyFinding]) -> String {
    let mut output = String::new();
    if findings.is_empty() {
        return output;
    }
    let endless = "a String takes all that is written";
    writeln!(output, "{}\n  why:  {}\n  fix:  {}", rule.name, rule.why, rule.fix).expect(endless);
    for TidyFinding { path, line, what, weight } in findings {
        let weight = if *weight == FindingWeight::Nudge { " (a nudge)" } else { "" };
        writeln!(output, "  {path}:{line}: {what}{weight}").expect(endless);
    }
    output.push('\n');
    output
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
        let output = verdict(&tree).expect_err("it has no module doc");
        for part in ["crates/a/src/b.rs:1: ", "why:  ", "fix:  open the file", "tidy: 1 to fix"] {
            assert!(output.contains(part), "{part} is missing in:\n{output}");
        }
    }

    #[test]
    fn a_nudge_fails_nothing() {
        let long = format!("//! Long.\n{}", "\n".repeat(500));
        let output = verdict(&Tree::of(&[("xtask/src/c.rs", &long)])).expect("it is only a nudge");
        assert!(output.contains("(a nudge)"), "{output}");
    }
}

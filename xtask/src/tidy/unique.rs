//! The rule that names are unique: a type name has one meaning in the workspace, and so has the name of a source
//! file.

use super::TidyFinding;
use super::glossary::Glossary;
use crate::source::{SourceView, is_test_file, is_word, numbered};
use crate::tree::{File, Tree};
use std::collections::BTreeMap;

/// Type names that occur more than once, each with the reason.
const SHARED_TYPE_NAMES: &[(&str, &str)] = &[
    ("Settings", "the settings of its module, and always written with it: `engine::Settings`"),
    ("Order", "an order: as a program writes it, and as it is kept"),
];

/// File names that occur more than once and are no terms of the glossary, each with its one meaning.
const SHARED_FILE_NAMES: &[(&str, &str)] = &[
    ("lib", "the root of a crate, by cargo's rule"),
    ("main", "the entry of a program, by cargo's rule"),
    ("batch", "the commits that a store writes together"),
    ("bulk", "one action on many dead letters"),
    ("checkup", "what `doctor` asks the database server"),
    ("classic", "the classic protocol"),
    ("clock", "the `Clock`: its contract, and the real one"),
    ("code", "the error codes of one protocol, in the module of that protocol"),
    ("copy", "the copy of one store to another"),
    ("days", "a range of days that a request asks for"),
    ("dead", "dead letters, as a person sees them"),
    ("discard", "the removal of a record that cannot be read"),
    ("document", "shared documents: what they hold, and how they are stored"),
    ("documents", "shared documents: the table in which a store keeps them"),
    ("error", "the error type of the crate"),
    ("failure", "what an error of a database means for us"),
    ("gateway", "the gateway, and its settings"),
    ("identity", "how a store is recognised as the one that it was"),
    ("json", "the JSON protocol"),
    ("lifetimes", "how long answers live"),
    ("metrics", "the metrics in the Prometheus text format"),
    ("notices", "how a store tells nodes that an order has changed"),
    ("prices", "price lists"),
    ("render", "what a command prints"),
    ("report", "a report about an answer, to its provider"),
    ("rng", "random numbers from a seed"),
    ("row", "an order as one row of a store"),
    ("schema", "the tables of a store"),
    ("script", "what happens when: faults that are written down"),
    ("settings", "what an operator can set for the module that it belongs to"),
    ("shared", "what all nodes of a store read and write"),
    ("tls", "connections over TLS"),
    ("writer", "the task that writes to a store"),
];

/// Sources that replace others if a feature is off. Their types have the names of those that they replace.
const STAND_INS: &[&str] = &["crates/quittance/src/no_servers.rs"];

const VISIBLE: &[&str] = &["pub ", "pub(crate) ", "pub(super) "];
const TYPE_KEYWORDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "union "];

/// Checks the types that other modules can see. Two in one file are the variants of one type for two platforms.
pub(super) fn type_names_stand_once(tree: &Tree) -> Vec<TidyFinding> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in sources(tree).filter(|file| !STAND_INS.contains(&file.path.as_str())) {
        let code = SourceView::read(&file.text).without_tests().code;
        for (number, line) in numbered(&code) {
            let Some(name) = visible_type(line) else { continue };
            let known = places.entry(name.to_owned()).or_default();
            if known.iter().all(|(path, _)| *path != file.path) {
                known.push((&file.path, number));
            }
        }
    }
    let is_shared = |name: &str| SHARED_TYPE_NAMES.iter().any(|(shared, _)| *shared == name);
    places.retain(|name, places| places.len() > 1 && !is_shared(name));
    repeated(&places, "type")
}

pub(super) fn file_names_stand_once(tree: &Tree) -> Vec<TidyFinding> {
    let glossary = Glossary::of(tree);
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in sources(tree) {
        places.entry(file_name(file).to_owned()).or_default().push((&file.path, 1));
    }
    let is_shared = |name: &str| SHARED_FILE_NAMES.iter().any(|(shared, _)| *shared == name);
    places.retain(|name, places| places.len() > 1 && !is_shared(name) && !glossary.explains(name));
    repeated(&places, "file")
}

/// One finding for each name, at its last place.
fn repeated(places: &BTreeMap<String, Vec<(&str, usize)>>, sort: &str) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (name, places) in places {
        let Some(((path, line), others)) = places.split_last() else { continue };
        let others: Vec<String> = others.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let what = format!("a {sort} called `{name}` stands in {} as well", others.join(", "));
        findings.push(TidyFinding::breach(path, *line, what));
    }
    findings
}

/// The sources of our crates, without tests.
fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|file| {
        file.path.starts_with("crates/") && file.path.contains("/src/") && !is_test_file(&file.path)
    })
}

fn file_name(file: &File) -> &str {
    file.path.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default()
}

/// The name of a visible type that this line declares.
fn visible_type(line: &str) -> Option<&str> {
    let item = VISIBLE.iter().find_map(|visible| line.trim_start().strip_prefix(visible))?;
    let rest = TYPE_KEYWORDS.iter().find_map(|keyword| item.strip_prefix(keyword))?;
    rest.split(|c| !is_word(c)).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<TidyFinding>, files: &[(&str, &str)]) -> Vec<String> {
        rule(&Tree::of(files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_type_name_that_stands_twice_is_found() {
        for (first, second) in [
            ("pub struct Task {}", "pub enum Task {}"),
            ("pub(crate) trait Task {}", "    pub(super) type Task = u8;"),
        ] {
            let files = [("crates/a/src/lib.rs", first), ("crates/b/src/c/d.rs", second)];
            let what = found(type_names_stand_once, &files);
            assert_eq!(what, ["a type called `Task` stands in crates/a/src/lib.rs:1 as well"]);
        }
    }

    #[test]
    fn private_types_tests_platforms_and_listed_names_are_fine() {
        let files = [
            ("crates/a/src/lib.rs", "#[cfg(unix)]\npub struct A;\n#[cfg(windows)]\npub struct A;"),
            ("crates/b/src/lib.rs", "struct A;\n#[cfg(test)]\nmod tests { pub struct A; }\n// pub struct A;"),
            ("crates/b/src/tests.rs", "pub struct A;"),
            ("crates/b/tests/c.rs", "pub struct A;"),
            ("crates/c/src/lib.rs", "pub struct Settings;"),
            ("crates/d/src/lib.rs", "pub struct Settings;\npub fn a() -> A {}"),
            ("crates/quittance/src/node_servers.rs", "pub struct B;"),
            ("crates/quittance/src/no_servers.rs", "pub struct B;"),
        ];
        assert!(found(type_names_stand_once, &files).is_empty());
    }

    #[test]
    fn a_file_name_that_stands_twice_is_found() {
        let files = [("crates/a/src/reply.rs", ""), ("crates/a/src/b/reply.rs", "")];
        let what = found(file_names_stand_once, &files);
        assert_eq!(what, ["a file called `reply` stands in crates/a/src/reply.rs:1 as well"]);
    }

    #[test]
    fn terms_of_the_glossary_tests_and_listed_files_are_fine() {
        let files = [
            ("docs/glossary.md", "| **order** | what a caller wants |\n"),
            ("crates/a/src/order.rs", ""),
            ("crates/b/src/orders.rs", ""),
            ("crates/b/src/order.rs", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/b/src/lib.rs", ""),
            ("crates/b/src/tests/c.rs", ""),
            ("crates/a/src/c.rs", ""),
        ];
        assert!(found(file_names_stand_once, &files).is_empty());
    }

    #[test]
    fn each_listed_name_is_still_needed() {
        let tree = Tree::load().unwrap_or_else(|why| panic!("{why}"));
        let codes: Vec<String> = sources(&tree).map(|file| SourceView::read(&file.text).code).collect();
        let types: Vec<&str> = codes.iter().flat_map(|code| code.lines().filter_map(visible_type)).collect();
        for (name, _) in SHARED_TYPE_NAMES {
            assert!(types.iter().filter(|other| *other == name).count() > 1, "the type {name} stands once");
        }
        for (name, _) in SHARED_FILE_NAMES {
            assert!(
                sources(&tree).filter(|file| file_name(file) == *name).count() > 1,
                "{name}.rs stands once"
            );
        }
    }
}

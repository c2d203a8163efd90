//! Rules about ARCHITECTURE.md: its tree has every crate and no other, and its table agrees with the manifests.

use super::TidyFinding;
use crate::markdown::MarkdownDocument;
use crate::tree::{DependencyKind, Tree};
use std::collections::{BTreeMap, BTreeSet};

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn shows_every_crate(tree: &Tree) -> Vec<TidyFinding> {
    let Some(text) = tree.text(MAP) else {
        return vec![TidyFinding::nudge(MAP, 1, "there is no such file yet, so nothing was checked")];
    };
    let listed = listed(&MarkdownDocument::read(text).fenced);
    let there: Vec<&str> =
        tree.files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml")).collect();
    let mut findings = Vec::new();
    for folder in there.iter().filter(|folder| !listed.contains_key(**folder)) {
        findings.push(TidyFinding::breach(MAP, 1, format!("{folder} is not in the tree")));
    }
    for (folder, line) in &listed {
        let is_crate = folder.starts_with("crates/");
        if is_crate && !there.contains(&folder.as_str()) {
            findings.push(TidyFinding::breach(
                MAP,
                *line,
                format!("{folder} is in the tree and does not exist"),
            ));
        }
    }
    findings
}

/// Checks that the crates that the table allows a crate to know are exactly those of its manifest.
pub(super) fn table_is_true(tree: &Tree) -> Vec<TidyFinding> {
    let Some(text) = tree.text(MAP) else { return Vec::new() };
    let mut findings = Vec::new();
    let rows: Vec<_> = MarkdownDocument::read(text)
        .prose
        .into_iter()
        .filter_map(|(line, row)| Some((line, row_of(row)?)))
        .collect();
    let ours = tree.packages.iter().filter(|package| package.manifest.starts_with("crates/"));
    for package in ours {
        let name = short(&package.name);
        let Some((line, (_, known))) = rows.iter().find(|(_, (of, _))| *of == name) else {
            findings.push(TidyFinding::breach(MAP, 1, format!("{name} is not in the table of crates")));
            continue;
        };
        if known.starts_with("everything") {
            continue;
        }
        let stated: BTreeSet<&str> =
            known.split(", ").map(first_word).filter(|name| *name != "nothing").collect();
        let is_ours = |dependency: &str| tree.packages.iter().any(|package| package.name == dependency);
        let there =
            package.dependencies.iter().filter(|(name, kind)| *kind != DependencyKind::Dev && is_ours(name));
        let there: BTreeSet<&str> = there.map(|(name, _)| short(name)).collect();
        for name_there in there.difference(&stated) {
            findings.push(TidyFinding::breach(
                MAP,
                *line,
                format!("{name} knows {name_there}, and the table does not say so"),
            ));
        }
        for name_told in stated.difference(&there) {
            findings.push(TidyFinding::breach(MAP, *line, format!("{name} does not know {name_told}")));
        }
    }
    findings
}

fn short(package: &str) -> &str {
    package.strip_prefix("quittance-").unwrap_or(package)
}

/// The first word of a cell. A note may follow the name.
fn first_word(cell: &str) -> &str {
    cell.split([' ', ':']).next().unwrap_or_default()
}

/// The crate of a table row, and the crates that it may know.
fn row_of(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let name = cells.next()?;
    let (_, known, _) = (cells.next()?, cells.next()?, cells.next()?);
    Some((name.trim(), known.trim()))
}

/// The folders of the drawn tree with their lines: those at the margin, and those one step below `crates/`.
fn listed(fenced: &[(usize, &str)]) -> BTreeMap<String, usize> {
    let mut listed = BTreeMap::new();
    let mut step: Option<usize> = None;
    let mut is_below_crates = false;
    for (number, line) in fenced {
        // The lines of a drawn tree are indentation like any other.
        let name_at = line.chars().take_while(|c| c.is_whitespace() || "│├└─|`+-".contains(*c)).count();
        let rest: String = line.chars().skip(name_at).collect();
        if name_at == 0 {
            is_below_crates = rest.starts_with("crates/");
            step = None;
        } else if !is_below_crates || *step.get_or_insert(name_at) != name_at {
            continue;
        }
        let parent = if name_at == 0 { "" } else { "crates/" };
        // Several may share a line, before the sentence about them.
        for folder in rest.split_whitespace().map_while(|word| word.strip_suffix('/')) {
            listed.insert(format!("{parent}{folder}"), *number);
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Package;

    const LIFECYCLE: (&str, &str) = ("crates/lifecycle/Cargo.toml", "");
    const RECORD: (&str, &str) = ("crates/record/Cargo.toml", "");
    const XTASK: (&str, &str) = ("xtask/Cargo.toml", "");
    const GOOD: &str = "```text\nCargo.toml\ncrates/\n  lifecycle/  the src/ of life\n    order/\n  record/\nxtask/  tidy\n```\n";

    fn breaches(map: &str, crates: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![(MAP, map), ("Cargo.toml", "")];
        files.extend(crates);
        shows_every_crate(&Tree::of(&files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_true_map_is_fine_however_it_is_drawn() {
        let all = [LIFECYCLE, RECORD, XTASK];
        let side_by_side = GOOD.replace("the src/ of life\n    order/\n", "");
        let lines = GOOD.replace("  lifecycle/", "├── lifecycle/").replace("  record/", "└── record/");
        for map in [GOOD, &side_by_side, &lines.replace("    order/", "│   └── order/")] {
            assert!(breaches(map, &all).is_empty(), "{map}\n{:?}", breaches(map, &all));
        }
    }

    #[test]
    fn a_missing_crate_and_a_gone_one_are_found() {
        let new = ("crates/new/Cargo.toml", "");
        assert_eq!(breaches(GOOD, &[LIFECYCLE, RECORD, XTASK, new]), ["crates/new is not in the tree"]);
        let gone = breaches(GOOD, &[LIFECYCLE, XTASK]);
        assert_eq!(gone, ["crates/record is in the tree and does not exist"]);
        assert_eq!(breaches("It says lifecycle, but draws nothing.", &[LIFECYCLE]).len(), 1);
    }

    #[test]
    fn a_table_that_says_too_little_or_too_much_is_a_breach() {
        let breaches = |row: &str| {
            let mut tree = Tree::of(&[(MAP, row)]);
            let dependencies = vec![("quittance-lifecycle".to_owned(), DependencyKind::Built)];
            let package = |name: &str, dependencies| Package {
                name: name.to_owned(),
                manifest: format!("crates/{name}/Cargo.toml"),
                dependencies,
            };
            tree.packages =
                vec![package("quittance-lifecycle", Vec::new()), package("quittance-ports", dependencies)];
            table_is_true(&tree).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
        };
        let life = "| lifecycle | decide | nothing | std |\n";
        let ports = |known: &str| format!("{life}| ports | promise | {known} | a driver |\n");
        assert!(breaches(&ports("lifecycle")).is_empty());
        assert_eq!(breaches(&ports("nothing")), ["ports knows lifecycle, and the table does not say so"]);
        assert_eq!(breaches(&ports("lifecycle, pool")), ["ports does not know pool"]);
        assert_eq!(breaches(life), ["ports is not in the table of crates"]);
    }

    #[test]
    fn a_missing_map_is_noted() {
        assert_eq!(shows_every_crate(&Tree::of(&[LIFECYCLE]))[0].weight, crate::tidy::FindingWeight::Nudge);
    }
}

//! The rule that every crate forbids unsafe code: through the lints of the workspace, or by itself.

use super::TidyFinding;
use crate::source::SourceView;
use crate::tree::Tree;

const ATTRIBUTE: &str = "#![forbid(unsafe_code)]";

pub(super) fn is_forbidden(tree: &Tree) -> Vec<TidyFinding> {
    let workspace = tree.text("Cargo.toml").unwrap_or_default();
    let workspace_forbids = value(workspace, "workspace.lints.rust.unsafe_code")
        .is_some_and(|value| value.contains("\"forbid\""));
    let mut findings = Vec::new();
    for manifest in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        if workspace_forbids && value(&manifest.text, "lints.workspace") == Some("true") {
            continue;
        }
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for file in tree.rust().filter(|file| file.path.strip_prefix(folder).is_some_and(is_crate_root)) {
            if !SourceView::read(&file.text).code.lines().any(|line| line.trim() == ATTRIBUTE) {
                findings.push(TidyFinding::breach(&file.path, 1, "nothing forbids unsafe code here"));
            }
        }
    }
    findings
}

fn is_crate_root(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["src", "lib.rs" | "main.rs"] | ["build.rs"] => true,
        ["src", "bin", rest @ ..] | ["tests" | "examples" | "benches", rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

/// The value of a key in a manifest, by its full name. This parses enough TOML for one-line values.
fn value<'a>(manifest: &'a str, wanted: &str) -> Option<&'a str> {
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((key, value)) = line.split_once('=') {
            let dot = if section.is_empty() { "" } else { "." };
            if format!("{section}{dot}{}", key.trim()) == wanted {
                return Some(value.split('#').next().unwrap_or(value).trim());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDS: (&str, &str) = ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n");
    const INHERITS: (&str, &str) = ("crates/a/Cargo.toml", "[package]\n[lints]\nworkspace = true # all\n");
    const BARE: (&str, &str) = ("crates/a/src/lib.rs", "//! x\n// #![forbid(unsafe_code)]\n");

    fn count(files: &[(&str, &str)]) -> usize {
        is_forbidden(&Tree::of(files)).len()
    }

    #[test]
    fn either_way_will_do() {
        assert_eq!(count(&[FORBIDS, INHERITS, BARE]), 0);
        let itself = ("crates/a/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n");
        assert_eq!(count(&[("crates/a/Cargo.toml", "[package]"), itself, ("crates/a/src/b.rs", "//! y")]), 0);
        assert_eq!(value("lints.workspace = true", "lints.workspace"), Some("true"));
    }

    #[test]
    fn half_of_it_will_not() {
        assert_eq!(count(&[INHERITS, BARE]), 1);
        assert_eq!(
            count(&[("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"warn\""), INHERITS, BARE]),
            1
        );
        let keeps_out = ("crates/a/Cargo.toml", "[lints]\nworkspace = false");
        assert_eq!(count(&[FORBIDS, keeps_out, BARE]), 1);
        let test = ("crates/a/tests/b/main.rs", "//! y");
        assert_eq!(count(&[FORBIDS, keeps_out, BARE, test]), 2);
    }
}

//! The rule that no file shows on which machine it was written. The patterns are joined from halves, so that this
//! file follows its own rule.

use super::TidyFinding;
use crate::source::{is_word, numbered};
use crate::tree::Tree;

const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];
/// Folders that a user's name follows.
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];
/// Package registries: public ones, and the usual names of private ones.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npm", "js.org"),
    concat!("deb", "ian.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("arti", "factory"),
    concat!("jf", "rog.io"),
    concat!("cloud", "smith.io"),
];
/// The one source that cargo itself writes into every lock file.
const PUBLIC_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

pub(super) fn leaves_no_trace(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in numbered(&file.text) {
            if let Some(trace) = trace(&file.path, line) {
                findings.push(TidyFinding::breach(&file.path, number, trace));
            }
        }
    }
    findings
}

fn trace(path: &str, line: &str) -> Option<String> {
    if let Some(folder) = FOLDERS.iter().find(|folder| absolute(line, folder).next().is_some()) {
        return Some(format!("a path below {folder}"));
    }
    let is_somebodys = |home: &&&str| absolute(line, home).any(|rest| rest.starts_with(is_word));
    if let Some(home) = HOMES.iter().find(is_somebodys) {
        return Some(format!("a user's folder below {home}"));
    }
    let is_lock = path == "Cargo.lock" || path.ends_with("/Cargo.lock");
    if let Some(source) = line.strip_prefix("source = \"").filter(|_| is_lock) {
        return (source.trim_end_matches('"') != PUBLIC_SOURCE).then(|| format!("a package from {source}"));
    }
    let host = REGISTRIES.iter().find(|host| line.to_lowercase().contains(*host))?;
    Some(format!("the package registry {host}"))
}

/// The rest of the line after each place where the path begins at the root: `src/work/` is no such place.
fn absolute<'a>(line: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    let goes_on = |c: char| is_word(c) || matches!(c, '.' | '-' | '~' | '}' | ')' | '>' | '*');
    line.match_indices(path)
        .filter(move |(at, _)| !line[..*at].ends_with(goes_on))
        .map(|(at, path)| &line[at + path.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        leaves_no_trace(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn paths_of_a_machine_are_found_in_any_file() {
        for (from, folder) in [("wo", "rk/x"), ("ro", "ot/.cargo"), ("ho", "me/ada/x"), ("Us", "ers/ada")] {
            for text in
                [format!("/{from}{folder}"), format!("see `/{from}{folder}`"), format!("a=/{from}{folder}")]
            {
                assert_eq!(count("docs/a.md", &text), 1, "{text}");
            }
        }
    }

    #[test]
    fn hosts_of_registries_are_found() {
        assert_eq!(count("a.json", concat!("https://registry.npm", "js.org/x")), 1);
        assert_eq!(count("a.toml", concat!("https://Arti", "factory.example.com")), 1);
        assert_eq!(count("Cargo.lock", "source = \"registry+https://mirror.example.com/index\""), 1);
    }

    #[test]
    fn relative_paths_routes_and_the_public_source_are_fine() {
        let wo = concat!("/wo", "rk/");
        for text in [format!("src{wo}"), format!("{{dir}}{wo}"), concat!("/ho", "me/<name>").to_owned()] {
            assert_eq!(count("a.md", &text), 0, "{text}");
        }
        assert_eq!(count("Cargo.lock", &format!("source = \"{PUBLIC_SOURCE}\"")), 0);
        assert_eq!(count("a.md", "It is in /var/lib/quittance."), 0);
    }
}

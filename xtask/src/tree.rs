//! The tree that the rules check: texts by path, and the dependencies of each package. Rules are pure functions of
//! the tree, so their tests need no files.

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tracked file, or a new one that is not ignored. A file that is not UTF-8 has no text to check.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    /// Dependencies of the crate itself: normal and build dependencies.
    Built,
    /// Dependencies of its tests only.
    Dev,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<(String, DependencyKind)>,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
}

impl Tree {
    /// Reads the tree of the repository.
    pub(crate) fn load() -> Result<Self, String> {
        let root = root();
        let metadata = metadata()?;
        let listed = run(Command::new("git").current_dir(&root).args([
            "ls-files",
            "-z",
            "-co",
            "--exclude-standard",
        ]))?;
        let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        // Git still lists a file that was deleted and not committed: what cannot be read is not there.
        let files = paths
            .into_iter()
            .filter_map(|path| Some((path, std::fs::read(root.join(path)).ok()?)))
            .map(|(path, bytes)| File {
                path: path.to_owned(),
                text: String::from_utf8(bytes).unwrap_or_default(),
            })
            .collect();
        Ok(Self { files, packages: packages(&metadata, &root) })
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// Whether there is a file at this path, or a folder with a file in it.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        Self { files: files.iter().map(file).collect(), packages: Vec::new() }
    }
}

/// The metadata of our manifests from cargo, which resolves inheritance, renamings and tables for one target only.
pub(crate) fn metadata() -> Result<Value, String> {
    let json = run(Command::new(cargo()).current_dir(root()).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]))?;
    serde_json::from_str(&json).map_err(|why| format!("cargo metadata did not answer in JSON: {why}"))
}

pub(crate) fn packages(metadata: &Value, root: &Path) -> Vec<Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let package = |package: &Value| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let dependency = |dependency: &Value| {
            let kind = match dependency["kind"].as_str() {
                Some("dev") => DependencyKind::Dev,
                _ => DependencyKind::Built,
            };
            (text(&dependency["name"]), kind)
        };
        Package {
            name: text(&package["name"]),
            manifest: manifest.strip_prefix(root).unwrap_or(&manifest).to_string_lossy().into_owned(),
            dependencies: list(&package["dependencies"]).iter().map(dependency).collect(),
        }
    };
    list(&metadata["packages"]).iter().map(package).collect()
}

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lives in the workspace").to_owned()
}

/// The cargo that started us, for one toolchain.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command to its end, and returns its output.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_owned();
    let result = command.output().map_err(|why| format!("cannot start {}: {why}", name.display()))?;
    if result.status.success() {
        return Ok(String::from_utf8_lossy(&result.stdout).into_owned());
    }
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let complaint = String::from_utf8_lossy(&result.stderr);
    Err(format!("{} {} failed:\n{complaint}", name.display(), arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_it_holds_something() {
        let tree = Tree::of(&[("docs/guarantees.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/guarantees.md"));
        assert!(!tree.has("doc") && !tree.has("guarantees.md"));
    }

    #[test]
    fn packages_are_read_from_the_answer_of_cargo() {
        let answer = serde_json::json!({"packages": [{
            "name": "quittance-ports",
            "manifest_path": "/somewhere/crates/ports/Cargo.toml",
            "dependencies": [
                {"name": "thiserror", "kind": null},
                {"name": "cc", "kind": "build"},
                {"name": "tempfile", "kind": "dev"},
            ],
        }]});
        let packages = packages(&answer, Path::new("/somewhere"));
        assert_eq!(packages[0].manifest, "crates/ports/Cargo.toml");
        let kinds: Vec<_> = packages[0].dependencies.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [DependencyKind::Built, DependencyKind::Built, DependencyKind::Dev]);
    }
}

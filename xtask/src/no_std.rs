//! Proves that the decisions link without std, on a machine with std.
//!
//! A test crate with its own panic handler is compiled against them. If anything below it linked std, there would be
//! two handlers, and the compiler would report that (E0152, duplicate lang item `panic_impl`). The test crate is a
//! few lines for rustc and no member of the workspace: a crate outside the workspace would have a lock file of its
//! own, which becomes outdated.
//!
//! The check can fail: with quittance-ports, which uses std, the error is that the lang item was "first defined in
//! crate `std` (which `quittance_ports` depends on)". To make sure that it still can, each run first tries a crate
//! that links std.

use crate::tree::{cargo, metadata, root, run};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKAGES: &[&str] = &["quittance-lifecycle"];
const HANDLER: &str = "#[panic_handler] fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }";

pub(crate) fn prove() -> Result<String, String> {
    let target =
        metadata()?["target_directory"].as_str().map(PathBuf::from).unwrap_or_else(|| root().join("target"));
    let target = target.join("no-std-proof");
    std::fs::create_dir_all(&target).map_err(|why| format!("cannot make {}: {why}", target.display()))?;

    catches_std(&target)?;
    let libraries = check(&target, PACKAGES, None)?;
    link(&target, &libraries)
        .map_err(|complaint| format!("{} do not link without std:\n{complaint}", PACKAGES.join(" and ")))?;
    let mut report = format!("no-std: {} link without std", PACKAGES.join(" and "));

    // Where a target without an operating system is installed, it is the better judge: there is no std to link.
    for bare in bare_targets() {
        check(&target, PACKAGES, Some(&bare))?;
        report.push_str(&format!(", and build for {bare}"));
    }
    Ok(report)
}

/// Checks that the proof fails for a crate that links std.
fn catches_std(target: &Path) -> Result<(), String> {
    let library = target.join("liblinks_std.rmeta");
    compile("links_std", "pub fn uses_std() -> std::string::String { Default::default() }", &library, &[])?;
    match link(target, &[("links_std".to_owned(), library)]) {
        Err(complaint) if complaint.contains("panic_impl") => Ok(()),
        Err(complaint) => Err(format!("a crate that links std failed for another reason:\n{complaint}")),
        Ok(()) => Err("a crate that links std was not caught: the proof has lost its teeth".to_owned()),
    }
}

fn link(target: &Path, libraries: &[(String, PathBuf)]) -> Result<(), String> {
    let uses: String = libraries.iter().map(|(name, _)| format!("use {name} as _;\n")).collect();
    compile("proof", &format!("#![no_std]\n{uses}{HANDLER}"), &target.join("libproof.rmeta"), libraries)
}

/// Compiles a source to metadata, which is enough: the compiler counts lang items before it generates code.
fn compile(name: &str, source: &str, output: &Path, libraries: &[(String, PathBuf)]) -> Result<(), String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition",
        "2024",
        "--crate-type",
        "lib",
        "--emit",
        "metadata",
        "--crate-name",
        name,
        "-o",
    ]);
    rustc.arg(output);
    for (name, library) in libraries {
        let folder = library.parent().unwrap_or(Path::new("."));
        rustc.arg("-L").arg(format!("dependency={}", folder.display()));
        rustc.arg("--extern").arg(format!("{name}={}", library.display()));
    }
    rustc.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |why: std::io::Error| format!("cannot run rustc: {why}");
    let mut child = rustc.spawn().map_err(cannot)?;
    child.stdin.take().expect("it was piped").write_all(source.as_bytes()).map_err(cannot)?;
    let report = child.wait_with_output().map_err(cannot)?;
    if report.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&report.stderr).into_owned()) }
}

/// Checks the packages, and returns where the compiler put each. Only they are selected, so that no other crate of
/// the workspace enables their features.
fn check(target: &Path, packages: &[&str], bare: Option<&str>) -> Result<Vec<(String, PathBuf)>, String> {
    let command = |offline: &[&str]| {
        let mut command = Command::new(cargo());
        command.current_dir(root()).args(["check", "--lib", "--message-format", "json-render-diagnostics"]);
        command.args(offline).arg("--target-dir").arg(target);
        command.args(packages.iter().flat_map(|package| ["-p", package]));
        command.args(bare.iter().flat_map(|bare| ["--target", bare]));
        command
    };
    // Offline fails where the dependencies were never fetched.
    let messages = run(&mut command(&["--offline"])).or_else(|_| run(&mut command(&[])))?;
    packages
        .iter()
        .map(|package| package.replace('-', "_"))
        .map(|name| match library(&messages, &name) {
            Some(path) => Ok((name, path)),
            None => Err(format!("cargo did not say where it left {name}")),
        })
        .collect()
}

fn library(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == name)
        .find_map(|message| {
            let files = message["filenames"].as_array()?.clone();
            files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".rmeta")).map(PathBuf::from)
        })
}

/// The installed targets without std; empty without rustup. Then only the host is checked.
fn bare_targets() -> Vec<String> {
    let installed = run(Command::new("rustup").args(["target", "list", "--installed"])).unwrap_or_default();
    installed.lines().filter(|target| target.contains("-none")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decisions_link_without_std() {
        prove().unwrap_or_else(|why| panic!("{why}"));
    }

    #[test]
    fn a_library_is_found_in_what_cargo_says() {
        let messages = "Checking\n{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"a\"},\"filenames\":[\"/x/liba.rmeta\"]}";
        assert_eq!(library(messages, "a"), Some(PathBuf::from("/x/liba.rmeta")));
        assert_eq!(library(messages, "b"), None);
    }
}

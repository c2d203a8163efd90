//! The built binary in a shell without any set-up: version, help, and invalid commands. Tests with a provider or a
//! store are in `crates/e2e`.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quittance"));
    command.args(args).env_clear().output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it speaks UTF-8")
}

/// The commands in the help.
fn commands() -> Vec<String> {
    let help = run(&["--help"]);
    let listed = text(&help.stdout).lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).filter(|name| name != "help").collect()
}

#[test]
fn the_version_is_the_crates() {
    let output = run(&["--version"]);
    assert_eq!(text(&output.stdout), concat!("quittance ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn every_command_has_help_and_stands_on_the_page_about_the_command_line() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    let commands = commands();
    assert!(!commands.is_empty());
    for command in &commands {
        let help = run(&[command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        assert!(text(&help.stdout).contains("Usage: quittance"), "{command}: {}", text(&help.stdout));
        assert!(help.stderr.is_empty(), "{command}");
        assert!(
            page.lines().any(|row| row.starts_with(&format!("| `{command}"))),
            "{command} is not on the page"
        );
    }
}

#[test]
fn what_is_not_understood_exits_with_2_and_says_what_would_be() {
    for (args, word) in [
        (&["dmeo"][..], "demo"),
        (&["demo", "--sede", "1"], "--seed"),
        (&["demo", "--seed", "one"], "--seed"),
        (&["dead"], "list"),
        (&["tenant"], "new"),
        (&["store"], "copy"),
        (&["store", "copy", "config"], "<TO>"),
        (&["store", "status", "elsewhere"], "postgres://"),
        (&["store", "copy", "redis://:s3cr3t@127.0.0.1:1", "config"], "QUITTANCE_FROM_PASSWORD"),
        (&["store", "copy", "config", "redis://:s3cr3t@127.0.0.1:1"], "QUITTANCE_TO_PASSWORD"),
        (&["store", "migrate", "embedded:nowhere"], "PostgreSQL"),
        (&["tenant", "new"], "--help"),
        (&["serve", "--listen", "here"], "--listen"),
        (&["pool"], "set"),
        (&["pool", "set"], "<NAME>"),
        (&["stock", "--from", "today"], "2026-11-16"),
        (&["config"], "show"),
        (&["completions", "tcsh"], "bash"),
        (&["solve"], "--help"),
        (&["init"], "--dialect"),
        (&["init", "--dialect", "none"], "captchaai"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(word) && output.stdout.is_empty(),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}

//! What all commands have in common: help with examples, one JSON document, colours only on terminals.

use crate::binary::{quittance, run};
use crate::provider::Sim;
use crate::sandbox::Sandbox;

const COMMANDS: [&str; 11] = [
    "demo",
    "serve",
    "solve",
    "mock",
    "tenant",
    "dead",
    "errors",
    "kinds",
    "config",
    "doctor",
    "completions",
];

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let help = run(quittance(["--help"]));
    help.must_succeed();
    for command in COMMANDS {
        assert!(
            help.out.lines().any(|line| line.trim_start().starts_with(command)),
            "{command}: {}",
            help.out
        );
    }
    assert!(help.out.contains("Exit codes:") && help.out.contains("quittance demo"), "{}", help.out);
    let version = run(quittance(["--version"]));
    assert!(version.must_succeed().out.starts_with("quittance "), "{version:?}");
    let nothing = run(quittance([]));
    nothing.must_fail(2, &["Usage:", "demo", "Exit codes:"]);
}

#[test]
fn every_command_has_examples_in_its_help() {
    for words in [
        &["demo"][..],
        &["serve"],
        &["tenant"],
        &["solve"],
        &["mock"],
        &["dead"],
        &["errors"],
        &["kinds"],
        &["config", "show"],
        &["doctor"],
        &["completions"],
    ] {
        let help = run(quittance(words.iter().copied().chain(["--help"])));
        help.must_succeed();
        let example = format!("  quittance {}", words.join(" "));
        assert!(help.out.contains("Examples:") && help.out.contains(&example), "{words:?}: {}", help.out);
        assert_eq!(help.err, "", "{words:?}");
    }
    // Those whose code a script looks at say what each code means.
    for command in ["demo", "solve", "doctor"] {
        let help = run(quittance([command, "--help"])).out;
        let codes = help.split_once("Exit codes:").unwrap_or_else(|| panic!("{command}: {help}")).1;
        for code in ["\n  0  ", "\n  1  "] {
            assert!(codes.contains(code), "{command}: {help}");
        }
    }
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    sandbox.run_lines(&[]).must_succeed();
    for args in [
        &["errors", "--json"][..],
        &["errors", "ERROR_ZERO_BALANCE", "--json"],
        &["errors", "ERROR_OF_THE_MOON", "--json"],
        &["kinds", "--json"],
        &["kinds", "turnstile", "--json"],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["dead", "list", "--json"],
    ] {
        let ran = sandbox.run(args);
        let document = ran.must_succeed().json();
        assert!(document.is_object() || document.is_array(), "{args:?}: {ran:?}");
        assert_eq!(ran.err, "", "{args:?}");
        assert!(ran.out.ends_with('\n'), "{args:?}");
    }
}

#[test]
fn colours_are_for_terminals_only() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    sandbox.run_lines(&[]).must_succeed();
    let commands =
        [&["errors"][..], &["kinds"], &["doctor"], &["config", "show"], &["dead", "list"], &["--help"]];
    let has_colours = |variables: &[(&str, &str)]| -> Vec<bool> {
        let coloured = |args: &&[&str]| {
            let mut command = sandbox.command(args);
            command.envs(variables.iter().copied());
            let ran = run(command);
            assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
            ran.must_succeed().out.contains('\u{1b}')
        };
        commands.iter().map(coloured).collect()
    };
    assert_eq!(has_colours(&[]), [false; 6]);
    assert_eq!(has_colours(&[("TERM", "xterm-256color")]), [false; 6]);
    assert_eq!(has_colours(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]), [false; 6]);
    assert!(has_colours(&[("CLICOLOR_FORCE", "1")])[0], "colours can be forced");
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(quittance(["completions", shell]));
        ran.must_succeed();
        for command in COMMANDS.into_iter().chain(["replay", "--idempotency-key"]) {
            let bare = command.trim_start_matches('-');
            assert!(ran.out.contains(bare), "{shell}: {command}");
        }
    }
    run(quittance(["completions", "cmd.exe"])).must_fail(2, &["bash", "fish"]);
}

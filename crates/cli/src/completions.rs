//! `quittance completions SHELL`: prints a script with which a shell completes our commands.

use crate::exit::{CliError, Exit};
use crate::output;
use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const AFTER: &str = "\
Examples:
  quittance completions bash > \\
      ~/.local/share/bash-completion/completions/quittance
  quittance completions zsh > ~/.zfunc/_quittance
  quittance completions fish > ~/.config/fish/completions/quittance.fish

Exit codes: 0 printed, 2 unknown shell, 3 not written.";

/// `command` is the whole command line, with all its subcommands.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<Exit, CliError> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script)).map(|()| Exit::Done)
}

//! `quittance config`: shows the settings, checks them, or has a daemon read them again. Their meaning is in `quittance_config`.

use crate::exit::{CliError, Exit};
use crate::output;
use anstyle::Style;
use clap::{Args, Subcommand};
use quittance_config::{Config, ConfigError, Line, ORIGIN_COLUMN, Sources, lines, object};
use quittance_daemon::CheckReport;
use serde_json::json;
use std::path::PathBuf;

const COMMENT: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();

/// The flags that every command with a configuration has.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// The config file
    ///
    /// Default: the file that QUITTANCE_CONFIG names, else ./quittance.toml if it exists.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Override one setting, such as timing.deadline=120s; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", global = true)]
    pub(crate) overrides: Vec<String>,
}

impl ConfigArgs {
    pub(crate) fn sources(&self) -> Sources {
        Sources { file: self.config.clone(), overrides: self.overrides.clone() }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, and where its value came from
    ///
    /// The output is an equivalent config file. It contains no secrets: only whether each is set, and where.
    #[command(after_help = AFTER_SHOW)]
    Show {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration, and change nothing
    ///
    /// Finds every error that would stop `quittance serve` and that shows without a store and a provider: names, values and
    /// their relations, keys and passwords, certificates, the provider's address, pools and their targets, the addresses to
    /// listen on, and the folder for this node's files. `quittance doctor` checks the rest.
    #[command(after_help = AFTER_CHECK)]
    Check {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Let the running daemon read its configuration again
    ///
    /// The daemon applies what needs no restart, and names the rest. A wrong configuration is refused whole, and changes nothing.
    #[command(after_help = crate::config_reload::AFTER_HELP)]
    Reload(crate::config_reload::ReloadArgs),
}

const AFTER_CHECK: &str = "\
Examples:
  quittance config check --config new.toml && systemctl restart quittance
  quittance config check --json | jq -r '.notes[]'

Errors go to standard error, each with its line and what to do. Secrets,
addresses and folders are checked as the daemon would use them: run the command
as the daemon's user and with its environment. An address in use is only a note,
because the daemon that you are about to restart may use it. Notes are about
settings that are valid but may surprise you.

Exit codes: 0 valid, 3 not written, 4 wrong.";

const AFTER_SHOW: &str = "\
Examples:
  quittance config show                      every setting and its origin
  quittance config show --set retry.preset=aggressive
  quittance config show --json | jq '.settings[\"timing.deadline\"]'

The file overrides the defaults, QUITTANCE_... in the environment overrides the
file, and --set overrides both. To start a config file, use `quittance init`: a
copy of this output would keep the defaults of this version for ever.

Exit codes: 0 shown, 3 not written, 4 the configuration is wrong.";

/// Prints every setting and where its value came from.
pub(crate) fn show(as_json: bool, config: &Config) -> Result<Exit, CliError> {
    refuse_to_overwrite(config)?;
    output::show(as_json, &object(config), || lines(config).iter().map(styled).collect())
}

fn styled(line: &Line) -> String {
    match line {
        Line::Heading(heading) => format!("\n{HEADING}{heading}{HEADING:#}\n"),
        Line::Comment(comment) => format!("{COMMENT}# {comment}{COMMENT:#}\n"),
        Line::Setting { setting, origin } => {
            format!("{setting:<ORIGIN_COLUMN$} {COMMENT}# {origin}{COMMENT:#}\n")
        }
    }
}

/// Refuses to write into the config file itself: with `>` the shell empties the file before it is read, and with `>>`
/// the file would have every setting twice.
fn refuse_to_overwrite(config: &Config) -> Result<(), CliError> {
    let Some(path) = config.file().filter(|path| output::goes_to(path)) else {
        return Ok(());
    };
    let what = format!(
        "standard output is the config file itself, {}: write to another file. Nothing was written; {}",
        path.display(),
        match std::fs::metadata(path).map(|file| file.len()) {
            Ok(0) =>
                "the file is empty, because `>` empties it before this command reads it: restore it from a copy",
            _ => "the file is as it was",
        }
    );
    Err(CliError::new(Exit::Config, what))
}

/// Reports everything for which `serve` would not start, and changes nothing. `read` is the configuration, with the
/// errors in its names and values.
pub(crate) async fn check(
    as_json: bool,
    read: Result<(Config, Vec<ConfigError>), ConfigError>,
) -> Result<Exit, CliError> {
    let report = Box::pin(CheckReport::of(read)).await;
    let CheckReport { file, wrong, notes } = &report;
    if !as_json {
        let lines = wrong.iter().map(|what| format!("wrong: {}\n", output::harmless(what)));
        output::tell(&lines.collect::<String>());
    }
    let object = json!({ "file": file, "valid": wrong.is_empty(), "errors": wrong, "notes": notes });
    output::show(as_json, &object, || as_text(&report))?;
    Ok(if wrong.is_empty() { Exit::Done } else { Exit::Config })
}

fn as_text(CheckReport { file, wrong, notes }: &CheckReport) -> String {
    // A file that is no TOML is named in its error.
    let unnamed =
        if wrong.is_empty() { "the configuration (no file was found)" } else { "the configuration" };
    let file = file.as_deref().unwrap_or(unnamed);
    let result = match wrong.is_empty() {
        true => "is valid",
        false => "is not valid: `quittance serve` would not start with it",
    };
    let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
    format!("{file} {result}\n{notes}")
}

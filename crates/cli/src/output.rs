//! The output streams: results go to standard output, everything else to standard error. Colours are used only on a
//! terminal, and a closed pipe is no error.

use crate::exit::{CliError, Exit};
use quittance::gateway::plain_json;
use quittance_config::LogConfig;
use quittance_daemon::LogLevel;
pub(crate) use quittance_gateway::harmless;
pub(crate) use quittance_ports::moment::roughly;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes to standard output. A closed pipe is no error.
pub(crate) fn print(rendered: &str) -> Result<(), CliError> {
    let mut out = anstream::AutoStream::auto(io::stdout()).lock();
    match out.write_all(rendered.as_bytes()).and_then(|()| out.flush()) {
        Err(error) => match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(not_written(&error)),
        },
        Ok(()) => Ok(()),
    }
}

/// Writes the result of a command: as indented JSON, or as text.
pub(crate) fn show(
    as_json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<Exit, CliError> {
    let rendered = match as_json {
        true => format!("{}\n", plain_json(&format!("{:#}", to_json(value)?))),
        false => text(),
    };
    print(&rendered).map(|()| Exit::Done)
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<serde_json::Value, CliError> {
    serde_json::to_value(value)
        .map_err(|error| CliError::new(Exit::Bad, format!("this is a bug, please report it: {error}")))
}

/// Writes a JSON document as a line of its own.
pub(crate) fn print_json(document: &serde_json::Value) -> Result<(), CliError> {
    print(&format!("{}\n", plain_json(&document.to_string())))
}

/// Writes an answer to standard output: unchanged for a program, and without control characters for a terminal.
pub(crate) fn print_answer(answer: &str) -> Result<(), CliError> {
    if io::stdout().is_terminal() {
        return print(&format!("{}\n", harmless(answer)));
    }
    let mut out = io::stdout().lock();
    match out.write_all(answer.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(not_written(&error)),
        _ => Ok(()),
    }
}

/// Whether standard output goes into this file.
#[cfg(unix)]
pub(crate) fn goes_to(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let out =
        io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from).and_then(|out| out.metadata());
    let same = |out: &std::fs::Metadata, file: &std::fs::Metadata| {
        (out.dev(), out.ino()) == (file.dev(), file.ino())
    };
    out.is_ok_and(|out| std::fs::metadata(path).is_ok_and(|file| same(&out, &file)))
}

#[cfg(not(unix))]
pub(crate) const fn goes_to(_path: &Path) -> bool {
    false
}

pub(crate) fn not_written(error: &io::Error) -> CliError {
    CliError::new(Exit::NotWritten, format!("the result could not be written: {error}"))
}

/// Writes to standard error. An error is ignored.
pub(crate) fn tell(message: &str) {
    _ = anstream::AutoStream::auto(io::stderr()).lock().write_all(message.as_bytes());
}

/// Logs of the library go to standard error, from warnings up.
pub(crate) fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(tracing::Level::WARN)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        .without_time()
        .init();
}

/// What the daemon logs at this level. Other libraries log from warnings up: what they log about single connections is
/// of no use.
fn targets(level: Level) -> Targets {
    Targets::new().with_default(LevelFilter::WARN.min(level.into())).with_target("quittance", level)
}

/// The log of the daemon, on standard error. Returns what sets its level.
pub(crate) fn log_as(config: LogConfig) -> LogLevel {
    let (targets_now, handle) = reload::Layer::new(targets(config.level));
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours);
    let lines = if config.is_json { layer.json().flatten_event(true).boxed() } else { layer.boxed() };
    tracing_subscriber::registry().with(lines.with_filter(targets_now)).init();
    // It fails only if there is no log any more.
    LogLevel(Arc::new(move |level| _ = handle.reload(targets(level))))
}

/// Whether a line on standard error can be overwritten, because it is a terminal.
pub(crate) fn moves() -> bool {
    io::stderr().is_terminal()
}

/// A line on standard error that is overwritten on a terminal, and silent elsewhere.
pub(crate) struct ProgressLine {
    what: String,
    moves: bool,
    width: usize,
}

impl ProgressLine {
    pub(crate) fn start(what: &str) -> Self {
        Self { what: what.into(), moves: moves(), width: 0 }
    }

    /// Like [`show`](Self::show), but without a terminal it prints a line of its own.
    pub(crate) fn tell(&mut self, state: &str) {
        if self.moves {
            self.show(state);
        } else {
            tell(&format!("{}: {state}\n", self.what));
        }
    }

    pub(crate) fn show(&mut self, state: &str) {
        if self.moves {
            let line = format!("{}: {state}", self.what);
            let blank = " ".repeat(self.width.saturating_sub(line.chars().count()));
            self.width = line.chars().count();
            tell(&format!("\r{line}{blank}"));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.moves && self.width > 0 {
            tell(&format!("\r{}\r", " ".repeat(self.width)));
        }
    }
}

/// The beginning of a text, if it is too long.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars.saturating_sub(1)).chain(['…']).collect()
}

//! How a command ends: an exit code for scripts, a sentence for people, and sometimes a hint. The documentation
//! promises the codes, and they never change their meaning.

use std::fmt;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The command ran with a bad result: a broken promise, no answer, a failed check.
    Bad = 1,
    /// The command line or the order is not valid.
    Usage = 2,
    /// The result could not be written.
    NotWritten = 3,
    Config = 4,
    Store = 5,
    Provider = 6,
    // What a shell says of a process that SIGINT or SIGTERM ended.
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) what: String,
}

impl CliError {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into() }
    }

    /// The error with all its causes, in one line.
    pub(crate) fn of(exit: Exit, error: &dyn std::error::Error) -> Self {
        let mut what = error.to_string();
        let mut beneath = error.source();
        while let Some(cause) = beneath {
            let more = cause.to_string();
            if !what.contains(&more) {
                what = format!("{what} ({more})");
            }
            beneath = cause.source();
        }
        Self { exit, what }
    }
}

/// An error that ends the command.
pub(crate) trait OrExit<T> {
    /// The value, or an error with this exit code and all its causes.
    fn or_exit(self, exit: Exit) -> Result<T, CliError>;
}

impl<T, E: std::error::Error> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, CliError> {
        self.map_err(|error| CliError::of(exit, &error))
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

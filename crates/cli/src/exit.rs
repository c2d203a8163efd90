//! How a command ends: an exit code for scripts, a sentence for people, and sometimes a hint. The documentation
//! promises the codes, and they never change their meaning.

use crate::output;
use quittance::Quittance;
use quittance_daemon::configured_node::STOP_WAIT;
use quittance_daemon::{ApiClient, ApiError, SetupError, SetupFault, with_causes};
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

/// After this time, a command says why it does not end.
const STOP_NOTE: Duration = Duration::from_secs(1);

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
        Self { exit, what: with_causes(error) }
    }
}

impl From<SetupError> for CliError {
    fn from(error: SetupError) -> Self {
        let exit = match error.fault {
            SetupFault::Config => Exit::Config,
            SetupFault::Store => Exit::Store,
            SetupFault::Provider => Exit::Provider,
            SetupFault::Machine => Exit::Bad,
        };
        Self::new(exit, error.what)
    }
}

impl From<ApiError> for CliError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Setup(error) => error.into(),
            ApiError::Problem(problem) => {
                let exit = match (&*problem.code, problem.status) {
                    ("unauthorized" | "forbidden", _) => Exit::Config,
                    (_, 403 | 404 | 409) => Exit::Bad,
                    (_, 400 | 413 | 415 | 422) => Exit::Usage,
                    _ => Exit::Store,
                };
                Self::new(exit, problem.detail)
            }
        }
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

/// Finishes the work in progress, within limits.
pub(crate) async fn stop(node: &Quittance) {
    let mut stopping = std::pin::pin!(node.stop());
    if tokio::time::timeout(STOP_NOTE, &mut stopping).await.is_err() {
        output::tell("finishing the work in progress; Ctrl-C is safe\n");
        _ = tokio::time::timeout(STOP_WAIT, stopping).await;
    }
}

/// Finishes the work in progress of this process's node, if the client has one.
pub(crate) async fn close(client: &ApiClient) {
    if let ApiClient::InProcess(local) = client {
        stop(&local.node).await;
    }
}

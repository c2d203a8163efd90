//! Signals that ask the process to end: Ctrl-C and SIGTERM.

use crate::exit::{CliError, Exit};

/// Receives the signals from the moment it is made, so it is made before the address is printed.
#[cfg(unix)]
pub(crate) struct Interruption(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Interruption {
    pub(crate) fn listen() -> Result<Self, CliError> {
        use tokio::signal::unix::{SignalKind, signal};
        let both =
            signal(SignalKind::interrupt()).and_then(|first| Ok((first, signal(SignalKind::terminate())?)));
        both.map(|(interrupt, terminate)| Self(interrupt, terminate)).map_err(|error| no_signals(&error))
    }

    /// Waits for a signal. Returns its exit code.
    pub(crate) async fn came(mut self) -> Exit {
        tokio::select! {
            _ = self.0.recv() => Exit::Interrupted,
            _ = self.1.recv() => Exit::Terminated,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Interruption;

#[cfg(not(unix))]
impl Interruption {
    pub(crate) fn listen() -> Result<Self, CliError> {
        Ok(Self)
    }

    pub(crate) async fn came(self) -> Exit {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn no_signals(error: &std::io::Error) -> CliError {
    CliError::new(Exit::Bad, format!("signals cannot be received: {error}"))
}

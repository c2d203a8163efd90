//! Signals that end the process: Ctrl-C and SIGTERM.

use crate::exit::{CliError, Exit};

/// Receives the signals from its creation on. Create it before the address is printed.
#[cfg(unix)]
pub(crate) struct Interruption(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Interruption {
    pub(crate) fn listen() -> Result<Self, CliError> {
        use tokio::signal::unix::SignalKind;
        Ok(Self(listen_to(SignalKind::interrupt())?, listen_to(SignalKind::terminate())?))
    }

    /// Waits for a signal. Returns its exit code.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.0.recv() => Exit::Interrupted,
            _ = self.1.recv() => Exit::Terminated,
        }
    }
}

#[cfg(unix)]
pub(crate) fn listen_to(
    kind: tokio::signal::unix::SignalKind,
) -> Result<tokio::signal::unix::Signal, CliError> {
    let listening = tokio::signal::unix::signal(kind);
    listening.map_err(|error| CliError::new(Exit::Bad, format!("signals cannot be received: {error}")))
}

#[cfg(not(unix))]
pub(crate) struct Interruption;

#[cfg(not(unix))]
impl Interruption {
    pub(crate) fn listen() -> Result<Self, CliError> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> Exit {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Interruption {
    /// Waits for one signal. Returns its exit code.
    pub(crate) async fn came(mut self) -> Exit {
        self.next().await
    }
}

//! Somebody wants the process to end, by Ctrl-C or by a polite signal.

use crate::exit::{CliError, Exit};

/// Whoever wants the process to end. Heard from the moment it is made, so it is made before anybody is told the address.
#[cfg(unix)]
pub(crate) struct Interruption(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Interruption {
    pub(crate) fn listen() -> Result<Self, CliError> {
        use tokio::signal::unix::{SignalKind, signal};
        let both =
            signal(SignalKind::interrupt()).and_then(|first| Ok((first, signal(SignalKind::terminate())?)));
        both.map(|(interrupt, terminate)| Self(interrupt, terminate)).map_err(|error| unheard(&error))
    }

    /// How a process ends that is told so.
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
fn unheard(error: &std::io::Error) -> CliError {
    CliError::new(Exit::Bad, format!("signals cannot be heard: {error}"))
}

//! Signals to the daemon: end, end at once, and read the configuration and the certificate again.

use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// End the process. Holds the exit code if the daemon ends at once.
    End(Exit),
    Reload,
}

impl Sign {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::End(Exit::Interrupted) => "SIGINT",
            Self::End(_) => "SIGTERM",
            Self::Reload => "SIGHUP",
        }
    }
}

/// Receives the signals from its creation on.
pub(super) struct Signals {
    interruption: Interruption,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, CliError> {
        Ok(Self {
            interruption: Interruption::listen()?,
            #[cfg(unix)]
            hang_up: crate::interruption::listen_to(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> Sign {
        tokio::select! {
            exit = self.interruption.next() => Sign::End(exit),
            _ = self.hang_up.recv() => Sign::Reload,
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> Sign {
        Sign::End(self.interruption.next().await)
    }

    /// Waits for a signal that ends the process. Returns its name and its exit code.
    pub(super) async fn end(&mut self) -> (&'static str, Exit) {
        loop {
            let sign = self.next().await;
            if let Sign::End(exit) = sign {
                return (sign.name(), exit);
            }
        }
    }
}

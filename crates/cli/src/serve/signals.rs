//! Signals to the daemon: to end, to end at once, and to read its certificate again.

use crate::exit::Exit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Interrupt,
    Terminate,
    Reload,
}

impl Sign {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Reload => "SIGHUP",
        }
    }

    /// How a process ends that this signal ended at once.
    pub(super) const fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate | Self::Reload => Exit::Terminated,
        }
    }
}

/// Heard from the moment it is made.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> Sign {
        tokio::select! {
            _ = self.interrupt.recv() => Sign::Interrupt,
            _ = self.terminate.recv() => Sign::Terminate,
            _ = self.hang_up.recv() => Sign::Reload,
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> Sign {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Sign::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Signals {
    /// Until a signal asks the process to end.
    pub(super) async fn end(&mut self) -> Sign {
        loop {
            match self.next().await {
                Sign::Reload => {}
                sign => return sign,
            }
        }
    }
}

//! Somebody wants the process to end, by Ctrl-C or by a polite signal.

/// Whoever wants the process to end. Heard from the moment it is made, so it is made before anybody is told the address.
#[cfg(unix)]
pub(crate) struct Interruption(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Interruption {
    pub(crate) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    pub(crate) async fn came(mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Interruption;

#[cfg(not(unix))]
impl Interruption {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn came(self) {
        _ = tokio::signal::ctrl_c().await;
    }
}

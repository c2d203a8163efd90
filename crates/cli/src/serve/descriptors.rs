//! How many files and connections this process may have open. Every connection is one, and the usual limit is far below
//! what we can serve.

/// So many now, and so many at most; `None` is without limit.
#[cfg(unix)]
pub(crate) fn descriptors() -> (Option<u64>, Option<u64>) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    (limit.current, limit.maximum)
}

#[cfg(not(unix))]
pub(crate) const fn descriptors() -> (Option<u64>, Option<u64>) {
    (None, None)
}

/// Takes as many as the system lets us, and says so if they are too few.
pub(super) fn raise(connections_max: usize) {
    let (current, maximum) = descriptors();
    #[cfg(unix)]
    if current != maximum {
        let wanted = rustix::process::Rlimit { current: maximum, maximum };
        if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted) {
            tracing::warn!("the limit of open files cannot be raised: {error}");
        }
    }
    let (now, _) = descriptors();
    tracing::debug!(before = current, limit = now, at_most = maximum, "open files");
    if now.is_some_and(|now| now < connections_max as u64) {
        tracing::warn!(
            "only {} files may be open at once, and listener.connections_max is {connections_max}: raise the limit \
             (LimitNOFILE= in the unit, or `ulimit -n`), or lower listener.connections_max",
            now.unwrap_or_default()
        );
    }
}

//! How many files and connections this process may have open. Every connection counts as a file, and the usual limit
//! is far below what we can serve.

/// How many files this process may open: the limit now, and the highest that it may set. `None` is no limit.
#[cfg(unix)]
#[must_use]
pub fn descriptors() -> (Option<u64>, Option<u64>) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    (limit.current, limit.maximum)
}

#[cfg(not(unix))]
#[must_use]
pub const fn descriptors() -> (Option<u64>, Option<u64>) {
    (None, None)
}

/// File handles that are kept back from connections, for the store, the provider and webhooks.
const KEPT_BACK: u64 = 1024;

/// How many of the wanted connections are possible with this limit of files. If the limit is low, half of the files
/// are kept back.
#[must_use]
pub fn connections(wanted: usize, files: Option<u64>) -> usize {
    let Some(files) = files else { return wanted };
    let most = files - KEPT_BACK.min(files / 2);
    wanted.min(usize::try_from(most).unwrap_or(usize::MAX)).max(1)
}

/// Raises the limit as far as the system allows. Returns how many of the wanted connections are possible.
#[must_use]
pub(crate) fn raise(wanted: usize) -> usize {
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
    let possible = connections(wanted, now);
    if possible < wanted {
        tracing::warn!(
            "only {} files may be open at once, and listener.connections_max is {wanted}: at most {possible} connections are accepted, and \
             the other files are kept for the store and the provider; raise the limit (LimitNOFILE= in the unit, or `ulimit \
             -n`), or lower listener.connections_max",
            now.unwrap_or_default()
        );
    }
    possible
}

#[cfg(test)]
mod tests {
    use super::connections;

    #[test]
    fn files_are_kept_back_for_the_store_and_the_provider() {
        assert_eq!(connections(20_000, Some(65_536)), 20_000);
        assert_eq!(connections(20_000, Some(20_000)), 18_976);
        assert_eq!(connections(20_000, Some(1_024)), 512);
        assert_eq!((connections(5, Some(0)), connections(7, None)), (1, 7));
    }
}

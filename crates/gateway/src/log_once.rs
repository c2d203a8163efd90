//! Log lines that are written once, because one for each request would flood the log.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many different lines are remembered. Further lines are not written.
const LINES_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct LogOnce(Mutex<BTreeSet<String>>);

impl LogOnce {
    /// Whether this line was not written before.
    pub(crate) fn is_first(&self, line: &str) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.len() < LINES_MAX && seen.insert(line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_written_once_and_the_list_is_bounded() {
        let once = LogOnce::default();
        assert!(once.is_first("a") && !once.is_first("a") && once.is_first("b"));
        (0..LINES_MAX).for_each(|n| _ = once.is_first(&n.to_string()));
        assert!(!once.is_first("one more"));
    }
}

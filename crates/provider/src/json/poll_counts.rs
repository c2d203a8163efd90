//! Limits our polls to what the provider allows: a client that polls too often is banned for minutes, and then all
//! orders wait. Polls are counted in this process only.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most tasks whose polls are counted. Above it the counts start again, which only makes us poll more often.
const TASKS_MAX: usize = 20_000;

/// Counts the polls of each open task.
pub(crate) struct PollCounts {
    per_task_max: Option<u32>,
    poll_counts: Mutex<BTreeMap<String, u32>>,
}

impl PollCounts {
    pub(crate) fn new(per_task_max: Option<u32>) -> Self {
        Self { per_task_max, poll_counts: Mutex::default() }
    }

    /// Counts a poll of the task, and returns whether the provider allows it.
    pub(crate) fn spend(&self, task: &str) -> bool {
        let Some(most) = self.per_task_max else { return true };
        let mut poll_counts = lock(&self.poll_counts);
        if poll_counts.len() >= TASKS_MAX && !poll_counts.contains_key(task) {
            poll_counts.clear();
        }
        let count = poll_counts.entry(task.to_owned()).or_default();
        let may = *count < most;
        *count = count.saturating_add(1);
        may
    }

    pub(crate) fn forget(&self, task: &str) {
        lock(&self.poll_counts).remove(task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_polled_no_more_often_than_the_provider_allows() {
        let questions = PollCounts::new(Some(2));
        assert_eq!([questions.spend("a"), questions.spend("a"), questions.spend("a")], [true, true, false]);
        assert!(questions.spend("b"));
        questions.forget("a");
        assert!(questions.spend("a"));
        let free = PollCounts::new(None);
        assert!((0..1000).all(|_| free.spend("a")));
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let questions = PollCounts::new(Some(1));
        for task in 0..TASKS_MAX + 10 {
            questions.spend(&task.to_string());
        }
        assert!(lock(&questions.poll_counts).len() <= TASKS_MAX);
    }
}

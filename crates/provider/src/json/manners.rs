//! How often the provider lets itself be asked, kept on our side: whoever asks too often is banned for minutes, and then
//! everybody waits. Counted in this process only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of so many tasks the questions are counted; beyond, counting begins anew, which only makes us less polite.
const TASKS_MAX: usize = 20_000;
/// How many codes that nobody has seen are told of.
const STRANGE_MAX: usize = 100;

/// Questions about each task that has not come to its end.
pub(crate) struct Questions {
    per_task_max: Option<u32>,
    asked: Mutex<BTreeMap<String, u32>>,
}

impl Questions {
    pub(crate) fn new(per_task_max: Option<u32>) -> Self {
        Self { per_task_max, asked: Mutex::default() }
    }

    /// Whether the task may be asked for once more.
    pub(crate) fn spend(&self, task: &str) -> bool {
        let Some(most) = self.per_task_max else { return true };
        let mut asked = lock(&self.asked);
        if asked.len() >= TASKS_MAX && !asked.contains_key(task) {
            asked.clear();
        }
        let count = asked.entry(task.to_owned()).or_default();
        let may = *count < most;
        *count = count.saturating_add(1);
        may
    }

    pub(crate) fn forget(&self, task: &str) {
        lock(&self.asked).remove(task);
    }
}

/// Codes that nobody has seen before.
#[derive(Default)]
pub(crate) struct UnlistedCodesSeen(Mutex<BTreeSet<String>>);

impl UnlistedCodesSeen {
    pub(crate) fn is_news(&self, code: &str) -> bool {
        let mut seen = lock(&self.0);
        seen.len() < STRANGE_MAX && seen.insert(code.to_owned())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_asked_for_no_more_often_than_the_provider_bears() {
        let questions = Questions::new(Some(2));
        assert_eq!([questions.spend("a"), questions.spend("a"), questions.spend("a")], [true, true, false]);
        assert!(questions.spend("b"));
        questions.forget("a");
        assert!(questions.spend("a"));
        let free = Questions::new(None);
        assert!((0..1000).all(|_| free.spend("a")));
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let questions = Questions::new(Some(1));
        for task in 0..TASKS_MAX + 10 {
            questions.spend(&task.to_string());
        }
        assert!(lock(&questions.asked).len() <= TASKS_MAX);
        let strange = UnlistedCodesSeen::default();
        assert_eq!((0..1000).filter(|code| strange.is_news(&code.to_string())).count(), STRANGE_MAX);
        assert!(!strange.is_news("0"));
    }
}

//! Counts the seconds for calls that wait for the disk. A disk can hang for ever, and no other part of the store
//! would notice.

use crate::shared::EmbeddedShared;
use crate::thread_queue::{TICK, lock};
use crate::writer::WriteTask;
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct DiskWatch {
    is_closed: Mutex<bool>,
    bell: Condvar,
}

impl DiskWatch {
    pub(crate) fn run(&self, shared: &EmbeddedShared) {
        let mut is_closed = lock(&self.is_closed);
        while !*is_closed {
            let (guard, timeout) =
                self.bell.wait_timeout(is_closed, TICK).unwrap_or_else(PoisonError::into_inner);
            is_closed = guard;
            if timeout.timed_out() {
                shared.tasks.tick();
                shared.questions.tick();
                let is_well = shared.check_files().is_ok();
                if shared.wants_rescue() {
                    shared.tasks.leave_unanswered(WriteTask::Rescue);
                }
                if is_well && shared.trail().is_lost() {
                    shared.tasks.leave_unanswered(WriteTask::Trail);
                }
            }
        }
    }

    pub(crate) fn close(&self) {
        *lock(&self.is_closed) = true;
        self.bell.notify_all();
    }
}

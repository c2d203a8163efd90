//! A queue of work for a thread. A caller waits for its answer without blocking its own thread. The queue is bounded,
//! and so is the wait: if a disk hangs, waiting callers get an error.

use crate::failure::{EmbeddedError, unavailable};
use futures_channel::oneshot;
use quittance_ports::StoreError;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many ticks one piece of work can take before its caller gets an error that the disk hangs.
pub(crate) const TICKS_MAX: u32 = 20;
pub(crate) const TICK: Duration = Duration::from_secs(1);

type AnswerSender<A> = Result<A, StoreError>;

/// A queue of work `W` with answers `A`.
pub(crate) struct ThreadQueue<W, A> {
    state: Mutex<QueueState<W, A>>,
    bell: Condvar,
    doing: &'static str,
    waiting_max: usize,
}

struct QueueState<W, A> {
    waiting: VecDeque<(W, oneshot::Sender<AnswerSender<A>>)>,
    /// The work of each thread.
    hands: Vec<WorkInHand<A>>,
    is_closed: bool,
}

/// The work of one thread. Its waiting callers are kept here and not in the thread, which may hang for ever.
struct WorkInHand<A> {
    replies: Vec<oneshot::Sender<AnswerSender<A>>>,
    is_busy: bool,
    ticks: u32,
}

/// Locks a mutex. A poisoned one is used too, because a panic elsewhere cannot have left its data half-written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W, A> ThreadQueue<W, A> {
    pub(crate) fn new(doing: &'static str, threads: usize, waiting_max: usize) -> Self {
        let hand = || WorkInHand { replies: Vec::new(), is_busy: false, ticks: 0 };
        let hands = std::iter::repeat_with(hand).take(threads).collect();
        let state = QueueState { waiting: VecDeque::new(), hands, is_closed: false };
        Self { state: Mutex::new(state), bell: Condvar::new(), doing, waiting_max }
    }

    pub(crate) async fn ask(&self, work: W) -> AnswerSender<A> {
        let answer = self.leave(work).map_err(|failure| unavailable(self.doing, failure))?;
        // A caller that gives up on the work drops the other end.
        answer.await.unwrap_or_else(|_| Err(unavailable(self.doing, EmbeddedError::Stuck)))
    }

    /// Adds work without waiting for its answer.
    pub(crate) fn leave_unanswered(&self, work: W) {
        // A queue that is closed or stuck has no thread that could do it.
        drop(self.leave(work));
    }

    fn leave(&self, work: W) -> Result<oneshot::Receiver<AnswerSender<A>>, EmbeddedError> {
        let (reply, answer) = oneshot::channel();
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(EmbeddedError::Closed);
        }
        if state.is_stuck() {
            return Err(EmbeddedError::Stuck);
        }
        if state.waiting.len() >= self.waiting_max {
            return Err(EmbeddedError::Crowded { waiting: state.waiting.len() });
        }
        state.waiting.push_back((work, reply));
        drop(state);
        self.bell.notify_one();
        Ok(answer)
    }

    /// Takes the waiting work, up to the first piece that `joins` rejects. Waits for the first piece, without a limit
    /// or until `timeout`, after which the list is empty. `None` once the queue is closed and empty.
    pub(crate) fn take(
        &self,
        thread: usize,
        timeout: Option<Duration>,
        mut joins: impl FnMut(&W) -> bool,
    ) -> Option<Vec<W>> {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() {
            if state.is_closed {
                return None;
            }
            let Some(timeout) = timeout else {
                state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state = self.bell.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0;
            if state.waiting.is_empty() && !state.is_closed {
                return Some(Vec::new());
            }
        }
        let QueueState { waiting, hands, .. } = &mut *state;
        let hand = &mut hands[thread];
        hand.ticks = 0;
        hand.is_busy = true;
        let mut works = Vec::new();
        while let Some((work, _)) = waiting.front()
            && (joins(work) || works.is_empty())
            && let Some((work, reply)) = waiting.pop_front()
        {
            works.push(work);
            hand.replies.push(reply);
        }
        Some(works)
    }

    /// Returns the answers to the taken work, in the same order.
    pub(crate) fn give(&self, thread: usize, answers: Vec<AnswerSender<A>>) {
        let replies = {
            let hand = &mut lock(&self.state).hands[thread];
            hand.is_busy = false;
            std::mem::take(&mut hand.replies)
        };
        // Outside of the lock: a woken caller may come straight back. The caller may be gone.
        for (reply, answer) in replies.into_iter().zip(answers) {
            drop(reply.send(answer));
        }
    }

    /// Fails the calls that wait for a thread that hangs. Call this once every [`TICK`].
    pub(crate) fn tick(&self) {
        let mut gone = Vec::new();
        let mut state = lock(&self.state);
        for hand in state.hands.iter_mut().filter(|hand| hand.is_busy) {
            hand.ticks = hand.ticks.saturating_add(1);
            if hand.ticks > TICKS_MAX {
                gone.append(&mut hand.replies);
            }
        }
        if state.is_stuck() {
            gone.extend(state.waiting.drain(..).map(|(_, reply)| reply));
        }
        drop(state);
        drop(gone);
    }

    /// Closes the queue. Waiting work is still done; new work is refused.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.bell.notify_all();
    }
}

impl<W, A> QueueState<W, A> {
    fn is_stuck(&self) -> bool {
        self.hands.iter().all(|hand| hand.is_busy && hand.ticks > TICKS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{TICKS_MAX, ThreadQueue};
    use futures_util::FutureExt;
    use quittance_ports::StoreError;
    use std::error::Error;
    use std::time::Duration;

    fn queue(threads: usize) -> ThreadQueue<u32, u32> {
        ThreadQueue::new("testing", threads, 3)
    }

    fn output(answer: Result<u32, StoreError>) -> String {
        let error = answer.expect_err("it should have been sent away");
        error.source().expect("it says why").to_string()
    }

    #[test]
    fn a_call_at_a_full_queue_fails_at_once() {
        let queue = queue(1);
        let mut calls: Vec<_> = (0..3).map(|n| Box::pin(queue.ask(n))).collect();
        assert!(calls.iter_mut().all(|calls| calls.now_or_never().is_none()));
        assert!(output(queue.ask(3).now_or_never().unwrap()).contains("3 others wait"));
        assert_eq!(queue.take(0, None, |_| true), Some(vec![0, 1, 2]));
        assert!(queue.ask(4).now_or_never().is_none(), "there is room again");
    }

    #[test]
    fn work_is_taken_together_and_each_caller_gets_its_own_answer() {
        let queue = queue(1);
        let mut calls: Vec<_> = [10, 20, 31].map(|n| Box::pin(queue.ask(n))).into();
        assert!(calls.iter_mut().all(|calls| calls.now_or_never().is_none()));
        let even = |n: &u32| n.is_multiple_of(2);
        assert_eq!(queue.take(0, None, even), Some(vec![10, 20]));
        queue.give(0, vec![Ok(1), Ok(2)]);
        assert_eq!(queue.take(0, None, even), Some(vec![31]), "what joins no batch comes alone");
        queue.give(0, vec![Ok(3)]);
        let answers: Vec<_> = calls.iter_mut().map(|calls| calls.now_or_never().unwrap().unwrap()).collect();
        assert_eq!(answers, [1, 2, 3]);
        assert_eq!(queue.take(0, Some(Duration::ZERO), even), Some(vec![]), "nothing waits");
    }

    #[test]
    fn no_caller_waits_for_ever_for_a_thread_that_hangs() {
        let queue = queue(1);
        let mut held = Box::pin(queue.ask(1));
        assert!(held.as_mut().now_or_never().is_none());
        assert_eq!(queue.take(0, None, |_| true), Some(vec![1]));
        let mut behind = Box::pin(queue.ask(2));
        for _ in 0..TICKS_MAX {
            queue.tick();
            assert!(held.as_mut().now_or_never().is_none() && behind.as_mut().now_or_never().is_none());
        }
        queue.tick();
        for answer in [held.now_or_never(), behind.now_or_never(), queue.ask(3).now_or_never()] {
            assert!(output(answer.unwrap()).contains("hangs"));
        }
        queue.give(0, vec![Ok(1)]);
        let mut again = Box::pin(queue.ask(4));
        assert!(again.as_mut().now_or_never().is_none());
        assert_eq!(queue.take(0, None, |_| true), Some(vec![4]), "it came back, and goes on");
        queue.give(0, vec![Ok(4)]);
        assert_eq!(again.now_or_never().unwrap().unwrap(), 4);
    }

    #[test]
    fn one_thread_that_hangs_does_not_hold_up_the_other() {
        let queue = queue(2);
        let mut held = Box::pin(queue.ask(1));
        assert!(held.as_mut().now_or_never().is_none());
        assert_eq!(queue.take(0, None, |_| true), Some(vec![1]));
        (0..=TICKS_MAX).for_each(|_| queue.tick());
        assert!(held.now_or_never().unwrap().is_err());
        let mut other = Box::pin(queue.ask(2));
        assert!(other.as_mut().now_or_never().is_none());
        assert_eq!(queue.take(1, None, |_| true), Some(vec![2]));
        queue.give(1, vec![Ok(2)]);
        assert_eq!(other.now_or_never().unwrap().unwrap(), 2);
    }

    #[test]
    fn what_waits_when_it_closes_is_still_done() {
        let queue = queue(1);
        let mut calls = Box::pin(queue.ask(1));
        assert!(calls.as_mut().now_or_never().is_none());
        queue.close();
        assert!(output(queue.ask(2).now_or_never().unwrap()).contains("closed"));
        assert_eq!(queue.take(0, None, |_| true), Some(vec![1]));
        queue.give(0, vec![Ok(1)]);
        assert_eq!(calls.now_or_never().unwrap().unwrap(), 1);
        assert_eq!(queue.take(0, None, |_| true), None);
    }
}

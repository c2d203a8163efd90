//! Runs tasks on one thread, in virtual time; a seed decides which task runs next. Tasks belong to groups (a node is
//! a group). A group can be killed at any await point, or frozen and resumed. Only its own tasks are affected.

use crate::rng::Rng;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

/// The number of a group of tasks. [`WORLD`] is the group of the simulation itself, which is never killed.
pub type Group = u64;
pub const WORLD: Group = 0;

type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

struct ExecutorTask {
    group: Group,
    /// The task's future; `None` while it is being polled.
    future: Option<BoxedFuture>,
    waker: Waker,
}

struct ExecutorState {
    now: u64,
    rng: Rng,
    last_id: u64,
    tasks: BTreeMap<u64, ExecutorTask>,
    timers: BTreeMap<(u64, u64), Waker>,
    frozen: BTreeMap<Group, Vec<u64>>,
    /// Groups that die after this many more polls.
    doomed: BTreeMap<Group, u64>,
    deaths: Vec<Group>,
    trace: Option<Vec<String>>,
    polls: u64,
}

/// A handle to the simulated machine.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Mutex<ExecutorState>>,
    ready: Arc<Mutex<Vec<u64>>>,
}

struct TaskWaker {
    id: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = locked(&self.ready);
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("one thread, and a panic ends the simulation")
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executor({} ms)", self.now())
    }
}

impl Executor {
    #[must_use]
    pub fn new(seed: u64, start: u64, traced: bool) -> Self {
        let inner = ExecutorState {
            now: start,
            rng: Rng::new(seed, "executor"),
            last_id: 0,
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
            frozen: BTreeMap::new(),
            doomed: BTreeMap::new(),
            deaths: Vec::new(),
            trace: traced.then(Vec::new),
            polls: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)), ready: Arc::default() }
    }

    /// The true time, in milliseconds. Nodes have clocks of their own.
    #[must_use]
    pub fn now(&self) -> u64 {
        locked(&self.inner).now
    }

    #[must_use]
    pub fn polls(&self) -> u64 {
        locked(&self.inner).polls
    }

    pub fn note(&self, line: impl FnOnce() -> String) {
        let mut inner = locked(&self.inner);
        let now = inner.now;
        if let Some(trace) = &mut inner.trace {
            trace.push(format!("{:>9.3} {}", (now % 100_000_000) as f64 / 1000.0, line()));
        }
    }

    #[must_use]
    pub fn take_trace(&self) -> Vec<String> {
        locked(&self.inner).trace.take().unwrap_or_default()
    }

    pub fn spawn(&self, group: Group, future: impl Future<Output = ()> + Send + 'static) {
        let mut inner = locked(&self.inner);
        inner.last_id += 1;
        let id = inner.last_id;
        let waker = Waker::from(Arc::new(TaskWaker { id, ready: Arc::clone(&self.ready) }));
        inner.tasks.insert(id, ExecutorTask { group, future: Some(Box::pin(future)), waker });
        locked(&self.ready).push(id);
    }

    /// Drops all tasks of a group, between two polls, like `kill -9`.
    pub fn kill(&self, group: Group) {
        let dropped: Vec<ExecutorTask> = {
            let mut inner = locked(&self.inner);
            inner.deaths.push(group);
            inner.frozen.remove(&group);
            inner.doomed.remove(&group);
            inner.tasks.extract_if(.., |_, task| task.group == group).map(|(_, task)| task).collect()
        };
        // Outside of the lock: what is dropped may cancel its timers.
        drop(dropped);
    }

    /// Drops all tasks. Tasks hold the executor that holds them, so they are not dropped otherwise.
    pub fn end(&self) {
        let (tasks, timers) = {
            let mut inner = locked(&self.inner);
            (std::mem::take(&mut inner.tasks), std::mem::take(&mut inner.timers))
        };
        drop((tasks, timers));
    }

    /// Kills a group after this many more polls of its tasks.
    pub fn doom(&self, group: Group, polls: u64) {
        locked(&self.inner).doomed.insert(group, polls);
    }

    pub fn freeze(&self, group: Group) {
        locked(&self.inner).frozen.entry(group).or_default();
    }

    pub fn thaw(&self, group: Group) {
        let stalled = locked(&self.inner).frozen.remove(&group).unwrap_or_default();
        locked(&self.ready).extend(stalled);
    }

    #[must_use]
    pub fn is_frozen(&self, group: Group) -> bool {
        locked(&self.inner).frozen.contains_key(&group)
    }

    #[must_use]
    pub fn take_deaths(&self) -> Vec<Group> {
        std::mem::take(&mut locked(&self.inner).deaths)
    }

    pub fn sleep_until(&self, at: u64) -> Sleep {
        let mut inner = locked(&self.inner);
        inner.last_id += 1;
        Sleep { executor: self.clone(), timer: (at, inner.last_id) }
    }

    pub fn sleep(&self, span: u64) -> Sleep {
        self.sleep_until(self.now().saturating_add(span))
    }

    /// Runs until `is_over` returns true, nothing is left to do, or the time is past `horizon`.
    pub fn run(&self, horizon: u64, mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            let Some(id) = self.pick() else {
                if !self.let_time_pass(horizon) {
                    return;
                }
                continue;
            };
            self.poll(id);
        }
    }

    fn pick(&self) -> Option<u64> {
        let mut inner = locked(&self.inner);
        let mut ready = locked(&self.ready);
        while !ready.is_empty() {
            let at = inner.rng.index(ready.len());
            let id = ready.swap_remove(at);
            let Some(group) = inner.tasks.get(&id).map(|task| task.group) else { continue };
            match inner.frozen.get_mut(&group) {
                Some(stalled) => stalled.push(id),
                None => return Some(id),
            }
        }
        None
    }

    fn let_time_pass(&self, horizon: u64) -> bool {
        let mut inner = locked(&self.inner);
        let Some((&(at, _), _)) = inner.timers.first_key_value() else { return false };
        if at > horizon {
            return false;
        }
        inner.now = inner.now.max(at);
        let now = inner.now;
        let mut later = inner.timers.split_off(&(now + 1, 0));
        std::mem::swap(&mut inner.timers, &mut later);
        drop(inner);
        later.into_values().for_each(Waker::wake);
        true
    }

    fn poll(&self, id: u64) {
        let (mut future, waker, group) = {
            let mut inner = locked(&self.inner);
            inner.polls += 1;
            let Some(task) = inner.tasks.get_mut(&id) else { return };
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone(), task.group)
        };
        let is_done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut inner = locked(&self.inner);
        let finished = match inner.tasks.get_mut(&id) {
            Some(task) if !is_done => {
                task.future = Some(future);
                None
            }
            _ => {
                inner.tasks.remove(&id);
                Some(future)
            }
        };
        let is_doomed = inner.doomed.get_mut(&group).is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        drop(inner);
        drop(finished);
        if is_doomed {
            self.kill(group);
        }
    }
}

/// A timer that is removed when it is dropped.
#[derive(Debug)]
pub struct Sleep {
    executor: Executor,
    timer: (u64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = locked(&self.executor.inner);
        if inner.now >= self.timer.0 {
            return Poll::Ready(());
        }
        inner.timers.insert(self.timer, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        locked(&self.executor.inner).timers.remove(&self.timer);
    }
}

/// A slot for a reply, filled once by one task and awaited by another. If the sender is dropped, no reply comes.
#[derive(Debug)]
pub struct ReplySlot<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Clone for ReplySlot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for ReplySlot<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((None, None))))
    }
}

impl<T> ReplySlot<T> {
    pub fn fill(&self, value: T) {
        let waker = {
            let mut slot = locked(&self.0);
            slot.0 = Some(value);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Fills the slot if it is empty.
    pub fn fill_if_empty(&self, value: T) {
        if locked(&self.0).0.is_none() {
            self.fill(value);
        }
    }

    pub async fn filled(&self) -> T {
        std::future::poll_fn(|cx| {
            let mut slot = locked(&self.0);
            match slot.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    slot.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

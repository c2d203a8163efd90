//! Wakes the worker when there is new work. There is one listener. Two wake-ups before it listens count as one.

use crate::lock;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

#[derive(Default)]
pub(crate) struct Wakeup(Mutex<(bool, Option<Waker>)>);

impl Wakeup {
    pub(crate) fn ring(&self) {
        let waker = {
            let mut wakeup = lock(&self.0);
            wakeup.0 = true;
            wakeup.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn rung(&self) {
        poll_fn(|cx| {
            let mut wakeup = lock(&self.0);
            if std::mem::take(&mut wakeup.0) {
                return Poll::Ready(());
            }
            wakeup.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

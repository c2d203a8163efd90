//! How the worker is told that there is something new to do. One listener; ringing twice before it listens is ringing once.

use crate::lock;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

#[derive(Default)]
pub(crate) struct Bell(Mutex<(bool, Option<Waker>)>);

impl Bell {
    pub(crate) fn ring(&self) {
        let waker = {
            let mut bell = lock(&self.0);
            bell.0 = true;
            bell.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn rung(&self) {
        poll_fn(|cx| {
            let mut bell = lock(&self.0);
            if std::mem::take(&mut bell.0) {
                return Poll::Ready(());
            }
            bell.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

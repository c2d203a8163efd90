//! The upper limit: a file to which records are appended, with one disk sync for all callers that came in the
//! meantime. This is no store, so nothing with an equal promise can be faster.

use crate::scene::WORKS;
use futures_channel::oneshot;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

type BareWaiter = (Vec<u8>, oneshot::Sender<()>);

#[derive(Default)]
struct BareLine {
    waiting: Mutex<(Vec<BareWaiter>, bool)>,
    bell: Condvar,
}

/// A log with one writer thread.
pub(crate) struct BareLog {
    line: Arc<BareLine>,
    writer: Option<JoinHandle<()>>,
}

impl BareLog {
    pub(crate) fn open(path: &Path) -> Self {
        let file = File::create(path).expect("the directory was just made");
        let line = Arc::new(BareLine::default());
        let writer = std::thread::spawn({
            let line = Arc::clone(&line);
            move || write_all(&line, file)
        });
        Self { line, writer: Some(writer) }
    }

    /// Appends a record. Returns when it is durable.
    pub(crate) async fn append(&self, record: Vec<u8>) {
        let (done, is_done) = oneshot::channel();
        self.line.waiting.lock().unwrap_or_else(PoisonError::into_inner).0.push((record, done));
        self.line.bell.notify_one();
        is_done.await.expect("the writer answers every call");
    }
}

impl Drop for BareLog {
    fn drop(&mut self) {
        self.line.waiting.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.line.bell.notify_one();
        if let Some(writer) = self.writer.take() {
            drop(writer.join());
        }
    }
}

fn write_all(line: &BareLine, mut file: File) {
    let mut buffer = Vec::new();
    loop {
        let mut state = line.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while state.0.is_empty() {
            if state.1 {
                return;
            }
            state = line.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let batch = std::mem::take(&mut state.0);
        drop(state);
        buffer.clear();
        batch.iter().for_each(|(record, _)| buffer.extend_from_slice(record));
        file.write_all(&buffer).and_then(|()| file.sync_data()).expect(WORKS);
        for (_, done) in batch {
            // A caller that stopped waiting does not need the answer.
            _ = done.send(());
        }
    }
}

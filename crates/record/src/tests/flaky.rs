//! A disk that fails at one chosen step, in one of the typical ways, and works again afterwards.

use crate::disk::{Disk, FileDisk};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The step did nothing.
    Before,
    /// The step was done, and its result was lost.
    After,
    /// Half of the bytes were written.
    HalfWay,
}

#[derive(Debug)]
pub(super) struct FlakyDisk {
    disk: FileDisk,
    failure: Failure,
    /// Counts down to zero, at the step that fails.
    left: Arc<AtomicUsize>,
    /// How often the file was replaced. No test can see whether its name is safe.
    replaced: Arc<AtomicUsize>,
}

impl FlakyDisk {
    pub(super) fn open(path: &Path, failure: Failure) -> io::Result<Self> {
        let disk = FileDisk::open(path)?;
        Ok(Self { disk, failure, left: Arc::default(), replaced: Arc::default() })
    }

    pub(super) fn left(&self) -> Arc<AtomicUsize> {
        self.left.clone()
    }

    pub(super) fn replaced(&self) -> Arc<AtomicUsize> {
        self.replaced.clone()
    }

    fn step<T>(
        &mut self,
        act: impl FnOnce(&mut FileDisk) -> io::Result<T>,
        half: impl FnOnce(&mut FileDisk) -> io::Result<()>,
    ) -> io::Result<T> {
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(1), Ordering::SeqCst);
        if left != 1 {
            return act(&mut self.disk);
        }
        match self.failure {
            Failure::Before => {}
            Failure::After => drop(act(&mut self.disk)?),
            Failure::HalfWay => half(&mut self.disk)?,
        }
        Err(io::Error::other("the disk is having a bad day"))
    }
}

impl Disk for FlakyDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.step(FileDisk::read, |_| Ok(()))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(|disk| disk.append(bytes), |disk| disk.append(&bytes[..bytes.len() / 2]))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step(FileDisk::sync, |_| Ok(()))
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.step(|disk| disk.cut(length), |_| Ok(()))
    }

    fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        self.replaced.fetch_add(1, Ordering::SeqCst);
        self.step(|disk| disk.replace(content), |_| Ok(()))
    }

    fn set_aside(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(|disk| disk.set_aside(bytes), |disk| disk.set_aside(&bytes[..bytes.len() / 2]))
    }

    fn set_aside_bytes(&self) -> io::Result<u64> {
        self.disk.set_aside_bytes()
    }
}

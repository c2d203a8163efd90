//! A spill in a local file. What [`keep`](Spill::keep) took is on the disk before it returns; whatever cannot be
//! read later is set aside in `<file>.unreadable`, in the same form, so that a version that can read it finds it
//! again when a person appends it to the spill of a stopped process.

use crate::arrival::encode_incoming;
use crate::disk::{Disk, FileDisk, beside};
use crate::frame::{Piece, frame, scan};
use quittance_lifecycle::Timestamp;
use quittance_ports::{IncomingEvent, Spill, SpillError};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// One process at a time has it open, and one task at a time empties it; any number may keep things in it.
#[derive(Debug)]
pub struct SpillFile {
    state: Mutex<SpillState>,
    /// Where it is written down until when callbacks were answered; nowhere, if it is not on a real disk.
    mark: Option<PathBuf>,
}

#[derive(Debug)]
struct SpillState {
    disk: Box<dyn Disk>,
    bytes_max: u64,
    /// The length of every entry in the file, oldest first.
    entries: VecDeque<u64>,
    /// How much of the file was promised to be safe: the entries, and nothing behind them.
    bytes: u64,
    /// A write failed, so there may be a part of an entry behind `bytes`, or the kernel may have forgotten
    /// pages that it could not write. Nothing is added before the entries are in a new file.
    suspect: bool,
    /// The entries are no longer those that were last shown, so a count of them means nothing.
    recount: bool,
}

impl SpillFile {
    /// Opens the spill, or makes an empty one. It takes nothing more while it has `bytes_max` bytes.
    pub fn open(path: impl AsRef<Path>, bytes_max: u64) -> Result<Self, SpillError> {
        let spill = Self::on(Box::new(FileDisk::open(path.as_ref())?), bytes_max)?;
        Ok(Self { mark: Some(beside(path.as_ref(), ".reachable")), ..spill })
    }

    pub(crate) fn on(disk: Box<dyn Disk>, bytes_max: u64) -> io::Result<Self> {
        let (entries, bytes) = (VecDeque::new(), 0);
        let mut state = SpillState { disk, bytes_max, entries, bytes, suspect: false, recount: false };
        // A crash may have left a part of an entry at the end, and what is added behind it must be found.
        state.look()?;
        state.recount = false;
        Ok(Self { state: Mutex::new(state), mark: None })
    }

    /// How much was ever set aside for a person and is still there. Not zero is worth an alert.
    pub fn unreadable_bytes(&self) -> Result<u64, SpillError> {
        Ok(self.state().disk.set_aside_bytes()?)
    }

    fn state(&self) -> MutexGuard<'_, SpillState> {
        self.state.lock().unwrap_or_else(|poisoned| {
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            (state.suspect, state.recount) = (true, true);
            state
        })
    }
}

#[cfg(test)]
impl SpillFile {
    pub(crate) fn panic_while_held(&self) {
        let panic = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _held = self.state();
                    panic!("on purpose");
                })
                .join()
        });
        assert!(panic.is_err());
    }
}

impl Spill for SpillFile {
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError> {
        let frame = frame(&encode_incoming(arrival));
        let mut state = self.state();
        let full = SpillError::Full { bytes_max: state.bytes_max };
        let Some(frame) = frame else { return Err(full) };
        if state.suspect {
            state.make_sure()?;
        }
        if state.bytes.saturating_add(frame.len() as u64) > state.bytes_max {
            return Err(full);
        }
        Ok(state.add(&frame)?)
    }

    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError> {
        let mut state = self.state();
        let (_, arrivals) = state.look()?;
        state.recount = false;
        Ok(arrivals)
    }

    fn forget(&self, count: usize) -> Result<(), SpillError> {
        let mut state = self.state();
        if state.recount {
            let what = "the spill file was repaired: read again what waits, before anything is forgotten";
            return Err(SpillError::Io(io::Error::other(what)));
        }
        Ok(state.drop_oldest(count)?)
    }

    fn mark_reachable(&self, until: Timestamp) {
        if let Some(path) = &self.mark {
            // Without a mark, or with an old one, answers are dated from earlier: that is safe.
            _ = std::fs::write(path, until.as_millis().to_string());
        }
    }

    fn reachable_until(&self) -> Option<Timestamp> {
        let written = std::fs::read_to_string(self.mark.as_ref()?).ok()?;
        written.parse().ok().map(Timestamp::from_millis)
    }
}

impl SpillState {
    /// Reads the whole file, sets aside what cannot be read, and finds the entries again.
    fn look(&mut self) -> io::Result<(Vec<u8>, Vec<IncomingEvent>)> {
        let mut file = self.disk.read()?;
        if self.suspect {
            // The bytes behind the entries were never acknowledged.
            file.truncate(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        }
        let (mut good, mut bad, mut entries, mut arrivals) = (vec![], vec![], VecDeque::new(), vec![]);
        for piece in scan(&file) {
            match piece {
                Piece::TimelineEntry { bytes, arrival } => {
                    entries.push_back(bytes.len() as u64);
                    good.extend_from_slice(&file[bytes]);
                    arrivals.push(*arrival);
                }
                Piece::Unreadable { bytes } => bad.extend_from_slice(&file[bytes]),
            }
        }
        if !bad.is_empty() {
            // In this order, so that a crash between the two leaves it twice rather than nowhere.
            self.disk.set_aside(&bad)?;
            self.replace(&good)?;
        }
        self.bytes = good.len() as u64;
        self.recount |= self.entries != entries;
        self.entries = entries;
        Ok((good, arrivals))
    }

    /// After a failed write: puts the entries, and only them, in a new file.
    fn make_sure(&mut self) -> io::Result<()> {
        let (entries, _) = self.look()?;
        if self.suspect { self.replace(&entries) } else { Ok(()) }
    }

    fn add(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Err(error) = self.disk.append(frame) {
            // Most likely the disk is full, and then a new file would not fit either.
            self.suspect = self.disk.cut(self.bytes).and_then(|()| self.disk.sync()).is_err();
            return Err(error);
        }
        if let Err(error) = self.disk.sync() {
            self.suspect = true;
            return Err(error);
        }
        self.bytes += frame.len() as u64;
        self.entries.push_back(frame.len() as u64);
        Ok(())
    }

    /// Goes by the lengths that were known when the entries were shown, and never by what can be read now.
    fn drop_oldest(&mut self, count: usize) -> io::Result<()> {
        let count = count.min(self.entries.len());
        let dropped: u64 = self.entries.iter().take(count).sum();
        if dropped == 0 {
            return Ok(());
        }
        if dropped == self.bytes {
            self.cut_all()?;
        } else {
            let file = self.disk.read()?;
            let span = usize::try_from(dropped).ok().zip(usize::try_from(self.bytes).ok());
            let rest = span.and_then(|(from, to)| file.get(from..to));
            self.replace(rest.ok_or_else(|| io::Error::other("the spill is shorter than it was"))?)?;
        }
        self.bytes -= dropped;
        self.entries.drain(..count);
        Ok(())
    }

    /// Needs no room for a second file, so a full disk can be emptied.
    fn cut_all(&mut self) -> io::Result<()> {
        let cut = self.disk.cut(0).and_then(|()| self.disk.sync());
        self.suspect |= cut.is_err();
        cut
    }

    /// After a failure either content may be there.
    fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let replaced = self.disk.replace(content);
        self.suspect = replaced.is_err();
        replaced
    }
}

//! A spill in a local file. An event is on the disk before [`keep`](Spill::keep) returns. An entry that cannot be
//! read later is moved unchanged to `<file>.unreadable`. A version that can read it finds it again if an operator
//! appends it to the spill of a stopped process.

use crate::arrival::encode_incoming;
use crate::disk::{Disk, FileDisk, beside};
use crate::frame::{Piece, frame, scan};
use quittance_lifecycle::Timestamp;
use quittance_ports::{IncomingEvent, Spill, SpillError};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// A spill in a file. One process at a time has it open. One task at a time empties it, and any number of tasks may
/// add events.
#[derive(Debug)]
pub struct SpillFile {
    state: Mutex<SpillState>,
    /// The file that keeps until when callbacks were answered; `None` if the spill is not on a real disk.
    mark: Option<PathBuf>,
}

#[derive(Debug)]
struct SpillState {
    disk: Box<dyn Disk>,
    bytes_max: u64,
    /// The length of every entry in the file, the oldest first.
    entries: VecDeque<u64>,
    /// How many bytes of the file are acknowledged: the entries, and nothing after them.
    bytes: u64,
    /// Whether a write has failed. Then a part of an entry may follow after `bytes`, or the kernel may have lost
    /// pages. Nothing is added before the entries are in a new file.
    suspect: bool,
    /// Whether the entries have changed since they were last returned, so that a count of them is not valid.
    recount: bool,
}

impl SpillFile {
    /// Opens the spill, or creates an empty one. It accepts no events while it has `bytes_max` bytes.
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

    /// How many bytes were set aside for an operator and still exist. Any value except 0 deserves an alert.
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
                Piece::Incoming { bytes, arrival } => {
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

    /// Puts the entries, and only them, in a new file after a failed write.
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

    /// Removes the oldest entries, by the lengths that were known when the entries were returned, never by what can
    /// be read now.
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

    /// Empties the file. This needs no space for a second file, so it works on a full disk.
    fn cut_all(&mut self) -> io::Result<()> {
        let cut = self.disk.cut(0).and_then(|()| self.disk.sync());
        self.suspect |= cut.is_err();
        cut
    }

    /// Replaces the content of the file. After a failure, the file may have either content.
    fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let replaced = self.disk.replace(content);
        self.suspect = replaced.is_err();
        replaced
    }
}

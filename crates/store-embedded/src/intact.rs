//! Checks whether the database and its log still hold what SQLite wrote. A file that is emptied, cut or overwritten
//! in place keeps its name and number. SQLite continues to use it, and what it acknowledges then is lost when the
//! process ends.
//!
//! SQLite's index of the log (`orders.db-shm`) holds the number of frames and the checksum of the last one. So a few
//! small reads show whether the log is complete, and whether only checkpoints wrote to the database. The formats are
//! those of SQLite's documents on its file format and write-ahead log. Damage in the middle of the log is noticed
//! before the log is moved into the database: SQLite checks the checksums of the log only when it opens the log.
//! Damage in the middle of the database is not noticed here: the checksums of the rows show it when they are read.

use crate::files::{number_of, which};
use crate::home::{DATABASE, StoreHome};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

pub(crate) const LOG: &str = "orders.db-wal";

const INDEX_BYTES: usize = 136;
/// The size of the index header, of which the index holds two copies.
const INDEX_HEADER_BYTES: usize = 48;
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: u64 = 24;
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const LOG_MAGIC: [u8; 3] = [0x37, 0x7f, 0x06];
/// How often the files are read again because SQLite wrote to them meanwhile. The writer checks too.
const TRIES_MAX: usize = 4;

/// SQLite's index of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalIndex {
    frames: u64,
    /// The number of pages of the database, including those in the log.
    pages: u64,
    page_bytes: u64,
    last_sum: [u32; 2],
    salt: [u8; 8],
    /// How many frames are in the database.
    moved: u32,
    /// How many frames will be there when the running checkpoint ends.
    moving: u32,
}

impl WalIndex {
    fn of(bytes: &[u8; INDEX_BYTES]) -> Option<Self> {
        if bytes[..INDEX_HEADER_BYTES] != bytes[INDEX_HEADER_BYTES..2 * INDEX_HEADER_BYTES] {
            return None;
        }
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut salt = [0; 8];
        salt.copy_from_slice(&bytes[32..40]);
        let page_bytes = match u16::from_ne_bytes([bytes[14], bytes[15]]) {
            1 => 1 << 16,
            bytes => u64::from(bytes),
        };
        Some(Self {
            frames: word(16).into(),
            pages: word(20).into(),
            page_bytes,
            last_sum: [word(24), word(28)],
            salt,
            moved: word(96),
            moving: word(128),
        })
    }

    fn frame_at(&self, number: u64) -> u64 {
        LOG_HEADER_BYTES as u64 + (number - 1) * (FRAME_HEADER_BYTES + self.page_bytes)
    }
}

/// A whole frame of the log.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    number: u64,
    salt: [u8; 8],
    bytes: Vec<u8>,
}

/// What one check has read from the files, between two equal reads of the index.
struct Look {
    database_bytes: u64,
    /// The header, or `None` if the file is too short.
    header: Option<[u8; HEADER_BYTES]>,
    /// The last frame, if there is one.
    last: Option<Frame>,
    /// Whether the checked parts of the log are intact.
    is_log_whole: bool,
}

/// The files, and what was last seen in them.
#[derive(Debug)]
pub(crate) struct Contents {
    index: Option<File>,
    log: Option<Arc<File>>,
    database_bytes: u64,
    /// The salt of the log, how much of it was moved, and the header of the database at that time.
    header: Option<([u8; 8], u32, [u8; HEADER_BYTES])>,
    last: Option<Frame>,
}

impl Contents {
    /// Opens the files. Call this while the database is open. A file that cannot be opened is not checked.
    pub(crate) fn of(home: &StoreHome) -> Self {
        let mut contents = Self { index: None, log: None, database_bytes: 0, header: None, last: None };
        contents.open_again(home);
        contents
    }

    /// Opens the files again after the database was closed and opened: index and log may be other files now. A handle
    /// of an unchanged index is kept, because closing it would drop SQLite's locks on that file.
    pub(crate) fn open_again(&mut self, home: &StoreHome) {
        let index = home.dir().join(format!("{DATABASE}-shm"));
        let known = self.index.as_ref().and_then(|file| file.metadata().ok()).as_ref().map(number_of);
        if known.is_none() || known != which(&index) {
            self.index = File::open(index).ok();
        }
        self.log = File::open(home.dir().join(LOG)).ok().map(Arc::new);
        (self.header, self.last) = (None, None);
        // What is there now is what is compared with later.
        _ = self.damaged(home);
    }

    /// Whether the log was empty at the last look. The next write begins a new log, and only before that can the
    /// database be checked.
    pub(crate) const fn is_log_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The name of a file that does not hold what SQLite wrote.
    pub(crate) fn damaged(&mut self, home: &StoreHome) -> Option<&'static str> {
        for _ in 0..TRIES_MAX {
            let Some(index) = self.read_index() else { continue };
            let Ok(look) = self.look(home, &index) else { return None };
            if self.read_index() == Some(index) {
                return self.judge(&index, look);
            }
        }
        None
    }

    /// The log and its index, for [`adds_up`].
    pub(crate) fn log(&self) -> Option<(Arc<File>, WalIndex)> {
        Some((self.log.clone()?, self.read_index()?))
    }

    /// Whether the log has not restarted since this index was read.
    pub(crate) fn is_same_log(&self, index: &WalIndex) -> bool {
        self.read_index().is_some_and(|now| now.salt == index.salt)
    }

    fn read_index(&self) -> Option<WalIndex> {
        let mut bytes = [0; INDEX_BYTES];
        read_at(self.index.as_ref()?, &mut bytes, 0).ok()?;
        WalIndex::of(&bytes)
    }

    fn look(&self, home: &StoreHome, index: &WalIndex) -> io::Result<Look> {
        let database = home.database_file();
        let mut header = [0; HEADER_BYTES];
        let header = there(read_at(database, &mut header, 0))?.then_some(header);
        let database_bytes = database.metadata()?.len();
        let mut look = Look { database_bytes, header, last: None, is_log_whole: true };
        let Some(log) = self.log.as_ref().filter(|_| index.frames > 0) else { return Ok(look) };
        let mut beginning = [0; LOG_HEADER_BYTES];
        look.is_log_whole = there(read_at(log, &mut beginning, 0))?
            && beginning[..3] == LOG_MAGIC
            && beginning[16..24] == index.salt;
        look.last = read_frame(log, index, index.frames)?;
        look.is_log_whole &= look.last.as_ref().is_some_and(|last| is_last(last, index));
        // A log that was cut and then written on has a hole where this frame was.
        if let Some(last_frame) = self.last.as_ref().filter(|last_frame| is_in(last_frame, index)) {
            look.is_log_whole &= read_frame(log, index, last_frame.number)?.as_ref() == Some(last_frame);
        }
        Ok(look)
    }

    fn judge(&mut self, index: &WalIndex, look: Look) -> Option<&'static str> {
        if !look.is_log_whole {
            return Some(LOG);
        }
        // Only a `VACUUM` makes a database smaller, and then it is as large as SQLite says.
        let is_vacuumed = index.pages > 0 && look.database_bytes >= index.pages * index.page_bytes;
        if look.database_bytes < self.database_bytes && !is_vacuumed {
            return Some(DATABASE);
        }
        let is_checkpointing = index.moved != index.moving;
        let header = look.header.filter(|header| header.starts_with(MAGIC));
        match (self.header, header) {
            (Some(_), None) => return Some(DATABASE),
            (Some((salt, moved, last_frame)), Some(record))
                if (salt, moved) == (index.salt, index.moved)
                    && !is_checkpointing
                    && last_frame != record =>
            {
                return Some(DATABASE);
            }
            (_, Some(record)) if !is_checkpointing => self.header = Some((index.salt, index.moved, record)),
            _ => {}
        }
        self.database_bytes = look.database_bytes;
        self.last = look.last;
        None
    }
}

/// Whether the frame is in the current log, and is not the last one.
fn is_in(frame: &Frame, index: &WalIndex) -> bool {
    frame.salt == index.salt && frame.number < index.frames
}

fn is_last(frame: &Frame, index: &WalIndex) -> bool {
    let word = |at: usize| {
        let bytes = &frame.bytes;
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    frame.bytes[8..16] == index.salt && [word(16), word(20)] == index.last_sum
}

/// Whether all frames that a checkpoint would move have correct checksums. The checksum of a frame continues that of
/// the frame before.
pub(crate) fn adds_up(log: &File, index: &WalIndex) -> io::Result<bool> {
    let mut beginning = [0; LOG_HEADER_BYTES];
    if !there(read_at(log, &mut beginning, 0))? {
        return Ok(index.frames == 0);
    }
    let is_big_endian = beginning[3] & 1 == 1;
    let mut sum = LogSum::written(&beginning[24..32]);
    for number in u64::from(index.moved).max(1)..=index.frames {
        let Some(frame) = read_frame(log, index, number)? else { return Ok(false) };
        let (header, page) = frame.bytes.split_at(usize::try_from(FRAME_HEADER_BYTES).unwrap_or(usize::MAX));
        let written = LogSum::written(&header[16..24]);
        // The last frame that was moved is where the sums of the others go on.
        if number != u64::from(index.moved) {
            sum = sum.add(&header[..8], is_big_endian).add(page, is_big_endian);
            if sum != written || header[8..16] != index.salt {
                return Ok(false);
            }
        }
        sum = written;
    }
    Ok(true)
}

/// The checksum of SQLite's log.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LogSum(u32, u32);

impl LogSum {
    /// Reads a checksum as the log stores it: two words of four bytes.
    fn written(bytes: &[u8]) -> Self {
        Self(word(&bytes[..4], true), word(&bytes[4..8], true))
    }

    fn add(self, bytes: &[u8], is_big_endian: bool) -> Self {
        bytes.chunks_exact(8).fold(self, |Self(first, second), pair| {
            let first = first.wrapping_add(word(&pair[..4], is_big_endian)).wrapping_add(second);
            Self(first, second.wrapping_add(word(&pair[4..], is_big_endian)).wrapping_add(first))
        })
    }
}

fn word(bytes: &[u8], is_big_endian: bool) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Reads a frame, or returns `None` if the log is too short.
fn read_frame(log: &File, index: &WalIndex, number: u64) -> io::Result<Option<Frame>> {
    let length = usize::try_from(FRAME_HEADER_BYTES + index.page_bytes).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    let is_there = there(read_at(log, &mut bytes, index.frame_at(number)))?;
    Ok(is_there.then_some(Frame { number, salt: index.salt, bytes }))
}

/// Whether the file was long enough.
fn there(read: io::Result<()>) -> io::Result<bool> {
    match read {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

/// On other systems open files cannot be cut, so their contents are not checked.
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

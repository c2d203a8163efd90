//! A list of the writes beside the log, one line each, in a text file. SQLite silently drops a damaged end of its
//! log. These lines show the loss when the store is opened, and name the orders.
//!
//! A line is appended after its write is durable and before a caller gets the result. So a line without its write
//! proves a loss. A write without its line proves nothing: after a power loss the lines may be incomplete, because no
//! call waits until they are on disk.
//!
//! If lines are lost, the proof is lost. Then all known orders are written down again, after a line that says so.

use crate::files::{number_of, which};
use crate::home::open_private;
use crate::ledger::OrderIndex;
use crate::sum;
use quittance_lifecycle::{Key, Order};
use quittance_ports::Version;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file with the lines of the last writes. Older lines are in a file with the suffix `.old`.
pub const TRAIL: &str = "orders.trail";
/// The size at which a new file begins. Two files cover more writes than the log.
const BYTES_MAX: u64 = 4 << 20;
/// The phase of a removed record.
const GONE: &str = "gone";
/// The beginning of a line that says when the lines before it were lost.
const AGAIN: &str = "# written again ";

/// The last line about an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrailStep {
    pub(crate) version: u64,
    phase: String,
    /// Kind, tenant and site, as the line has them.
    about: String,
}

/// What the store has lost.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Orders without a record.
    pub(crate) missing: BTreeMap<Key, TrailStep>,
    /// Orders whose record is older than their last write.
    pub(crate) stale: Vec<Key>,
    /// The highest version in the lines.
    pub(crate) last_version: u64,
}

impl TrailStep {
    /// A text that says why the order cannot be read.
    pub(crate) fn why(&self) -> String {
        format!(
            "its record is lost with the end of the log: it was {} ({}), and whether it was paid for is not known; a callback \
             that brings its answer is kept, and answers the order when it is placed again; else compare the provider's list, \
             then drop it",
            self.phase, self.about
        )
    }

    fn line(&self, key: &Key) -> String {
        let Self { version, phase, about } = self;
        let line = format!("{version} {key} {phase} {about}");
        let sum = sum::of_bytes(line.as_bytes());
        format!("{line} {sum:016x}\n")
    }

    fn read(line: &str) -> Option<(Key, Self)> {
        let (line, sum) = line.rsplit_once(' ')?;
        if u64::from_str_radix(sum, 16).ok()? != sum::of_bytes(line.as_bytes()) {
            return None;
        }
        let mut parts = line.splitn(4, ' ');
        let version = parts.next()?.parse().ok()?;
        let key = Key::parse(parts.next()?).ok()?;
        let (phase, about) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some((key, Self { version, phase, about }))
    }
}

pub(crate) struct Trail {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    /// Lost orders that an operator has not dropped yet. They are written again into each new file.
    missing: BTreeMap<Key, TrailStep>,
    /// Whether the file was deleted, replaced or emptied, and must be written again.
    is_lost: bool,
    /// When the lines were last written again.
    written_again: Option<String>,
}

/// The content of the lines.
#[derive(Debug, Default)]
pub(crate) struct TrailLines {
    pub(crate) steps: BTreeMap<Key, TrailStep>,
    /// Whether the file existed.
    pub(crate) is_there: bool,
    written_again: Option<String>,
}

impl TrailLines {
    fn read(path: &Path) -> io::Result<Self> {
        let mut lines = Self::default();
        for path in [old(path), path.to_owned()] {
            let mut text = Vec::new();
            match File::open(&path) {
                Ok(file) => file.take(4 * BYTES_MAX).read_to_end(&mut text)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    lines.is_there = false;
                    continue;
                }
                Err(error) => return Err(error),
            };
            lines.is_there = true;
            let text = String::from_utf8_lossy(&text);
            lines.steps.extend(text.lines().filter_map(TrailStep::read));
            let again = text.lines().rev().find_map(|line| line.strip_prefix(AGAIN));
            lines.written_again = again.map(str::to_owned).or(lines.written_again);
        }
        Ok(lines)
    }
}

/// A sentence about a trail whose lines were lost, or `None` if they were not.
#[must_use]
pub fn trail_note(dir: &Path) -> Option<String> {
    TrailLines::read(&dir.join(TRAIL)).ok()?.written_again.as_deref().map(words)
}

fn words(written_again: &str) -> String {
    format!(
        "{TRAIL} was missing or emptied, and was written again on {}: if the log of the store had lost its end before that, it could \
         not be noticed. Find out what removed the file, and compare the provider's list of that day with `quittance audit`; to end this \
         note, stop the node and remove the line that begins with `#` from {TRAIL}",
        written_again.trim().escape_debug()
    )
}

impl Trail {
    /// Reads the lines of a trail. A damaged or torn line is ignored.
    pub(crate) fn open(dir: &Path) -> io::Result<(Self, TrailLines)> {
        let path = dir.join(TRAIL);
        let lines = TrailLines::read(&path)?;
        let written_again = lines.written_again.clone();
        let missing = BTreeMap::new();
        let mut trail = Self { path, file: None, bytes: 0, missing, is_lost: false, written_again };
        trail.reopen()?;
        Ok((trail, lines))
    }

    /// Whether the file is not complete: it was deleted, replaced or emptied.
    pub(crate) fn is_lost(&mut self) -> bool {
        let Some(Ok(file)) = self.file.as_ref().map(File::metadata) else { return self.is_lost };
        self.is_lost |= which(&self.path) != Some(number_of(&file)) || file.len() < self.bytes;
        self.is_lost
    }

    /// Writes down all known orders, after a line that says that the lines before were lost.
    pub(crate) fn write_again(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let when: String = conn.query_row("SELECT strftime('%F %H:%M UTC', 'now')", [], |row| row.get(0))?;
        let lines = lines_of(conn)?;
        if self.reopen().is_ok() {
            self.is_lost = false;
            let missing: String = self.missing.iter().map(|(key, step)| step.line(key)).collect();
            self.write(&format!("{AGAIN}{when}\n{lines}{missing}"));
            self.written_again = Some(when);
        }
        Ok(())
    }

    /// The sentence that reports lost lines; `None` if no lines were lost.
    pub(crate) fn note(&self) -> Option<String> {
        self.written_again.as_deref().map(words)
    }

    /// Adds lines for lost orders, unless a line about them exists.
    pub(crate) fn name_lost(&mut self, keys: &BTreeSet<Key>, version: u64) {
        let known = TrailLines::read(&self.path).map(|lines| lines.steps).unwrap_or_default();
        let step = TrailStep { version, phase: "open".to_owned(), about: "-".to_owned() };
        let lost = keys.iter().filter(|key| !known.contains_key(*key));
        let lines: String = lost.map(|key| step.line(key)).collect();
        self.append(&lines);
    }

    fn reopen(&mut self) -> io::Result<()> {
        let mut file = open_private(&self.path)?;
        self.bytes = file.seek(SeekFrom::End(0))?;
        // A line that was torn must not damage the next line.
        if self.bytes > 0 {
            file.write_all(b"\n")?;
            self.bytes += 1;
        }
        self.file = Some(file);
        Ok(())
    }

    pub(crate) fn is_missing(&mut self, missing: BTreeMap<Key, TrailStep>) {
        self.missing = missing;
    }

    /// Adds lines for orders that were written.
    pub(crate) fn wrote<'a>(&mut self, orders: impl Iterator<Item = (Version, &'a Order)>) {
        let lines = orders.map(|(version, order)| {
            let terms = &order.terms;
            let [kind, tenant, site] = [&terms.kind, &terms.tenant, &terms.site].map(|text| visible(text));
            let about = format!("kind {kind}, tenant {tenant}, site {site}");
            TrailStep { version: version.0, phase: order.phase.name().to_owned(), about }.line(&order.key)
        });
        let lines: String = lines.collect();
        self.append(&lines);
    }

    /// Adds lines for orders that are about to be removed. If the removal fails, the lines do no harm.
    pub(crate) fn removes<'a>(&mut self, keys: impl Iterator<Item = &'a Key>, version: u64) {
        let mut lines = String::new();
        for key in keys {
            self.missing.remove(key);
            lines.push_str(&TrailStep { version, phase: GONE.to_owned(), about: "-".to_owned() }.line(key));
        }
        self.append(&lines);
    }

    /// Appends lines. A failure is ignored: a full disk has no room for the next write either, and only a proof is
    /// lost.
    fn append(&mut self, lines: &str) {
        if lines.is_empty() {
            return;
        }
        if self.is_lost() {
            self.file = None;
        }
        if self.bytes > BYTES_MAX && fs::rename(&self.path, old(&self.path)).is_ok() {
            self.file = None;
        }
        if self.file.is_none() {
            if self.reopen().is_err() {
                return;
            }
            let again: String = self.missing.iter().map(|(key, step)| step.line(key)).collect();
            self.write(&again);
        }
        self.write(lines);
    }

    fn write(&mut self, lines: &str) {
        let Some(file) = &mut self.file else { return };
        match file.write_all(lines.as_bytes()) {
            Ok(()) => self.bytes += lines.len() as u64,
            Err(_) => self.file = None,
        }
    }
}

/// A line for each order on record, the last write first, up to the size of a file.
pub(crate) fn lines_of(conn: &Connection) -> rusqlite::Result<String> {
    let mut read =
        conn.prepare("SELECT key, version, phase, kind, tenant FROM order_records ORDER BY version DESC")?;
    let mut rows = read.query([])?;
    let mut lines = String::new();
    while let Some(row) = rows.next()?.filter(|_| (lines.len() as u64) < BYTES_MAX) {
        let key = Key(row.get(0)?);
        let [phase, kind, tenant]: [String; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
        let about = format!("kind {}, tenant {}, site -", visible(&kind), visible(&tenant));
        lines
            .push_str(&TrailStep { version: row.get::<_, i64>(1)?.cast_unsigned(), phase, about }.line(&key));
    }
    Ok(lines)
}

fn old(path: &Path) -> PathBuf {
    path.with_extension("trail.old")
}

/// Text as one word of a line, of limited length.
fn visible(text: &str) -> String {
    let text: String = text.chars().take(80).collect();
    if text.is_empty() { "-".to_owned() } else { text.escape_debug().to_string().replace(' ', "_") }
}

/// Compares the lines with the stored orders.
pub(crate) fn losses(
    conn: &Connection,
    ledger: &OrderIndex,
    steps: BTreeMap<Key, TrailStep>,
) -> rusqlite::Result<Losses> {
    let mut losses = Losses::default();
    let mut find = conn.prepare("SELECT key, version FROM order_records WHERE id = ?1")?;
    for (key, step) in steps {
        losses.last_version = losses.last_version.max(step.version);
        if step.phase == GONE || ledger.why_broken(&key).is_some() {
            continue;
        }
        let mut version = None;
        for id in ledger.rows(&key) {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?));
            let record = find.query_row([id], row).optional()?;
            version = version.or(record.filter(|(of, _)| *of == key.0).map(|(_, at)| at.cast_unsigned()));
        }
        match version {
            Some(record) if record >= step.version => {}
            Some(_) => losses.stale.push(key),
            None => drop(losses.missing.insert(key, step)),
        }
    }
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use super::{Trail, TrailLines, TrailStep};
    use quittance_lifecycle::Key;
    use std::fs;

    #[test]
    fn a_line_that_is_damaged_or_torn_says_nothing_and_expires_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (mut trail, lines) = Trail::open(dir.path()).unwrap();
        assert!(lines.steps.is_empty());
        let keys = [Key([1; 32]), Key([2; 32]), Key([3; 32])];
        trail.removes(keys.iter(), 7);
        drop(trail);
        let path = dir.path().join(super::TRAIL);
        let mut bytes = fs::read(&path).unwrap();
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 9;
        bytes[second] ^= 1;
        bytes.truncate(bytes.len() - 5);
        fs::write(&path, bytes).unwrap();
        let (mut trail, TrailLines { steps, .. }) = Trail::open(dir.path()).unwrap();
        assert_eq!(steps.keys().copied().collect::<Vec<_>>(), [keys[0]]);
        trail.removes([keys[2]].iter(), 9);
        let (_, TrailLines { steps, .. }) = Trail::open(dir.path()).unwrap();
        assert_eq!(steps.keys().copied().collect::<Vec<_>>(), [keys[0], keys[2]]);
        assert_eq!(steps[&keys[2]].version, 9);
        assert!(TrailStep::read("").is_none() && TrailStep::read("1 2 3").is_none());
    }
}

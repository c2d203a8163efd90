//! How incoming events are framed in a file, so that damage to one never affects its neighbours. An entry begins with
//! a byte that no JSON contains, so the next entry can be found after any unreadable bytes.

use crate::arrival::decode_incoming;
use quittance_ports::IncomingEvent;
use sha2::{Digest, Sha256};
use std::ops::Range;

/// The ASCII record separator. Inside a JSON text it is always escaped.
const START: u8 = 0x1e;
/// The length of a head: `START`, the length and the checksum in hexadecimal, with a blank after each number.
const HEAD_BYTES: usize = 1 + 8 + 1 + 16 + 1;
const LENGTH: Range<usize> = 1..9;

/// One entry; `None` if the payload is too long for a frame.
pub(crate) fn frame(payload: &[u8]) -> Option<Vec<u8>> {
    let mut frame = head(payload)?.into_bytes();
    frame.extend_from_slice(payload);
    frame.push(b'\n');
    Some(frame)
}

fn head(payload: &[u8]) -> Option<String> {
    let length = u32::try_from(payload.len()).ok()?;
    let digest: [u8; 32] = Sha256::digest(payload).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    let checksum = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    Some(format!("{}{length:08x} {checksum:016x} ", char::from(START)))
}

/// A part of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Incoming { bytes: Range<usize>, arrival: Box<IncomingEvent> },
    Unreadable { bytes: Range<usize> },
}

/// Divides a whole file into readable and unreadable pieces. Together the pieces are the file.
pub(crate) fn scan(file: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let (piece, end) = match entry(&file[at..]) {
            Some((length, arrival)) => {
                let arrival = Box::new(arrival);
                (Piece::Incoming { bytes: at..at + length, arrival }, at + length)
            }
            None => {
                let end = next_start(file, at + 1);
                (Piece::Unreadable { bytes: at..end }, end)
            }
        };
        pieces.push(piece);
        at = end;
    }
    pieces
}

fn next_start(file: &[u8], from: usize) -> usize {
    file[from..].iter().position(|byte| *byte == START).map_or(file.len(), |offset| from + offset)
}

/// The entry at the beginning of `rest`, and its length. Every byte must be exactly what [`frame`] writes; otherwise
/// `None`.
fn entry(rest: &[u8]) -> Option<(usize, IncomingEvent)> {
    let offset = rest.get(..HEAD_BYTES)?;
    let digits = std::str::from_utf8(&offset[LENGTH]).ok()?;
    let length = usize::try_from(u32::from_str_radix(digits, 16).ok()?).ok()?;
    let end = HEAD_BYTES.checked_add(length)?;
    let payload = rest.get(HEAD_BYTES..end)?;
    let intact = rest.get(end) == Some(&b'\n') && head(payload)?.as_bytes() == offset;
    let arrival = intact.then(|| decode_incoming(payload).ok()).flatten()?;
    Some((end + 1, arrival))
}

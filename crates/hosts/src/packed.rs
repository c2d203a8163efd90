//! Decompresses gzip and zlib within a limit. Other compressed data is refused if a reader could decompress it.

use crate::Unclear;
use crate::decode::is_text;
use crate::inflate::{End, inflate};

/// How many decompressed bytes are searched.
const INSIDE_BYTES_MAX: usize = 256 * 1024;

/// The first bytes of zstd, xz, bzip2 and zip.
const OTHERS: [&[u8]; 4] = [b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh", b"PK\x03\x04"];
/// The bytes that follow in bzip2 after one more byte.
const BZIP2_BLOCK: &[u8] = b"1AY&SY";

/// gzip as letters: each stands for one byte, or for a byte that is no letter. An escape (`\b`) can have become a
/// line break.
const GZIP_LETTERS: [&str; 4] =
    ["\u{1f}\u{8b}\u{8}", "\u{1f}\u{fffd}\u{8}", "\u{1f}\u{8b}\n", "\u{1f}\u{fffd}\n"];

/// The decompressed bytes, or `None` if the bytes are not compressed.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, Unclear> {
    let is_other = OTHERS.iter().any(|head| bytes.starts_with(head));
    if is_other && (!bytes.starts_with(b"BZh") || bytes.get(4..10) == Some(BZIP2_BLOCK)) {
        return Err(Unclear::Packed);
    }
    if let Some(body) = gzip_body(bytes) {
        return match inflate(body, INSIDE_BYTES_MAX) {
            (_, End::TooLarge) => Err(Unclear::Packed),
            (inside, _) => Ok(Some(inside)),
        };
    }
    let Some(body) = zlib_body(bytes) else { return Ok(None) };
    match inflate(body, INSIDE_BYTES_MAX) {
        (_, End::TooLarge) => Err(Unclear::Packed),
        (inside, End::Whole) => Ok(Some(inside)),
        // Two bytes are like its first ones by chance; what comes of them then is no text.
        (inside, End::Broken) => Ok(Some(inside).filter(|inside| !inside.is_empty() && is_text(inside))),
    }
}

/// Whether a text contains gzip data of which each byte was written as one character.
pub(crate) fn holds_gzip(text: &str) -> bool {
    GZIP_LETTERS.iter().any(|head| text.contains(head))
}

/// The data after the gzip header of ten bytes and the optional fields that it announces.
fn gzip_body(bytes: &[u8]) -> Option<&[u8]> {
    let flags = match bytes {
        [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => *flags,
        _ => return None,
    };
    let mut body = bytes.get(10..).unwrap_or_default();
    if flags & 4 != 0 {
        let length = match body {
            [low, high, ..] => usize::from(*low) | usize::from(*high) << 8,
            _ => 0,
        };
        body = body.get(2 + length..).unwrap_or_default();
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = body.iter().position(|byte| *byte == 0).map_or(body.len(), |at| at + 1);
            body = &body[end..];
        }
    }
    Some(if flags & 2 != 0 { body.get(2..).unwrap_or_default() } else { body })
}

/// The data after the zlib header: its first byte holds the method and the window, and both bytes together are a
/// multiple of 31.
fn zlib_body(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [method, flags, body @ ..] => {
            let is_head = method & 0x0f == 8
                && method >> 4 <= 7
                && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
                && flags & 0x20 == 0;
            is_head.then_some(body)
        }
        _ => None,
    }
}

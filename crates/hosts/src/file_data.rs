//! Searches files. No provider looks for an address in a picture or a sound, but a drawing is a document, in whatever
//! form it is written.

use crate::decode::{from_base64, is_text};
use crate::encoding::wide_text;
use crate::packed::unpacked;
use crate::whole::without_namespaces;
use crate::{Hosts, Unclear, addresses, document, is_media_type, opaque, page_addresses};

/// How often a file can be compressed or encoded in base64.
const LAYERS_MAX: usize = 3;
/// Hosts that drawings use to name document types, namespaces, licences and programs. Nothing is fetched from there.
/// XML that picture programs embed names them too.
const DOCUMENT_TYPES: [&str; 7] = [
    "creativecommons.org",
    "ns.adobe.com",
    "purl.org",
    "sodipodi.sourceforge.net",
    "web.resource.org",
    "www.inkscape.org",
    "www.w3.org",
];
/// How many bytes at the beginning decide whether a file is text.
const HEAD_BYTES: usize = 4096;

/// Every host that a file names, if it is text: a drawing, or an address in place of a picture.
pub fn file(bytes: &[u8]) -> Result<Hosts, Unclear> {
    in_layers(bytes, LAYERS_MAX)
}

/// The smallest picture: no provider takes a smaller one.
const PICTURE_BYTES_MIN: usize = 100;

/// Whether bytes begin as a PNG, JPEG, GIF or WebP does.
#[must_use]
pub fn is_picture(bytes: &[u8]) -> bool {
    let has = |at: usize, word: &[u8]| bytes.get(at..at + word.len()) == Some(word);
    bytes.len() >= PICTURE_BYTES_MIN
        && (has(0, b"\x89PNG\r\n\x1a\n") && has(12, b"IHDR")
            || has(0, b"\xff\xd8\xff")
            || has(0, b"GIF87a")
            || has(0, b"GIF89a")
            || has(0, b"RIFF") && has(8, b"WEBP"))
}

/// Every host of an address in a picture, except those that name its XML namespaces.
pub fn picture(bytes: &[u8]) -> Result<Hosts, Unclear> {
    addresses(&without_namespaces(&String::from_utf8_lossy(bytes))).map(without_types)
}

/// The text without its pictures in base64, and these pictures: the whole text, or quoted texts in it.
#[must_use]
pub fn without_pictures(text: &str) -> (String, Vec<Vec<u8>>) {
    let mut pictures = Vec::new();
    let rest: Vec<&str> = text
        .split('"')
        .map(|piece| match body_of(piece.trim()).filter(|bytes| is_picture(bytes)) {
            Some(bytes) => {
                pictures.push(bytes);
                ""
            }
            None => piece,
        })
        .collect();
    (rest.join("\""), pictures)
}

fn in_layers(bytes: &[u8], layers: usize) -> Result<Hosts, Unclear> {
    let below = |inside: &[u8]| match layers {
        0 => Err(Unclear::TooDeep),
        layers => in_layers(inside, layers - 1),
    };
    if let Some(inside) = unpacked(bytes)? {
        return below(&inside);
    }
    if let Some(text) = wide_text(bytes) {
        return in_text(&text);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => match body_of(text) {
            Some(inside) => below(&inside),
            None => in_text(text),
        },
        Err(_) => {
            let head = &bytes[..bytes.len().min(HEAD_BYTES)];
            let text = || String::from_utf8_lossy(bytes);
            match is_document(&String::from_utf8_lossy(head)) {
                true => in_text(&text()),
                false if is_text(head) => {
                    let text = text();
                    page_addresses(&without_namespaces(&text)).map(|hosts| match text.contains("xmlns") {
                        true => without_types(hosts),
                        false => hosts,
                    })
                }
                false => Ok(Hosts::new()),
            }
        }
    }
}

/// Decodes a base64 text, alone or as the body of a `data:` URL.
fn body_of(text: &str) -> Option<Vec<u8>> {
    let body = text
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"))
        .filter(|(head, _)| is_media_type(head))
        .map_or(text, |(_, body)| body);
    let is_base64_byte = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n' | b'\t' | b' ')
    };
    if body.bytes().all(is_base64_byte) { from_base64(body) } else { None }
}

/// Whether a text begins as a document does.
pub(crate) fn is_document(text: &str) -> bool {
    text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}').starts_with('<')
}

fn in_text(text: &str) -> Result<Hosts, Unclear> {
    if is_document(text) { document(text).map(without_types) } else { opaque(text) }
}

fn without_types(mut hosts: Hosts) -> Hosts {
    hosts.retain(|host| !DOCUMENT_TYPES.contains(&host.as_str()));
    hosts
}

//! Bytes as text: in UTF-8, or in UTF-16 or UTF-32, which readers recognize by the first bytes.

/// UTF-16 or UTF-32, with its byte order.
#[derive(Clone, Copy)]
enum Wide {
    Two { big: bool },
    Four { big: bool },
}

/// The encoding that the first bytes show, and the length of its mark. Without a mark, the zeros around the first `<`
/// of a document show it.
fn wide(bytes: &[u8]) -> Option<(Wide, usize)> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => Some((Wide::Four { big: false }, 4)),
        [0, 0, 0xfe, 0xff, ..] => Some((Wide::Four { big: true }, 4)),
        [b'<', 0, 0, 0, ..] => Some((Wide::Four { big: false }, 0)),
        [0, 0, 0, b'<', ..] => Some((Wide::Four { big: true }, 0)),
        [0xff, 0xfe, ..] => Some((Wide::Two { big: false }, 2)),
        [0xfe, 0xff, ..] => Some((Wide::Two { big: true }, 2)),
        [b'<', 0, ..] => Some((Wide::Two { big: false }, 0)),
        [0, b'<', ..] => Some((Wide::Two { big: true }, 0)),
        _ => None,
    }
}

impl Wide {
    /// The text in this encoding. Invalid characters are replaced.
    fn read(self, body: &[u8]) -> String {
        match self {
            Self::Two { big } => {
                let number = |two: &[u8]| {
                    let two = [two[0], two.get(1).copied().unwrap_or_default()];
                    if big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
                };
                char::decode_utf16(body.chunks(2).map(number)).map(|c| c.unwrap_or('\u{fffd}')).collect()
            }
            Self::Four { big } => {
                let number = |four: &[u8]| {
                    let four = [four[0], four[1], four[2], four[3]];
                    if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
                };
                body.chunks_exact(4).map(|four| char::from_u32(number(four)).unwrap_or('\u{fffd}')).collect()
            }
        }
    }
}

/// The text, if the first bytes show UTF-16 or UTF-32. Invalid characters are replaced.
pub(crate) fn wide_text(bytes: &[u8]) -> Option<String> {
    let (wide, mark) = wide(bytes)?;
    Some(wide.read(&bytes[mark..]))
}

/// The texts that the bytes are in UTF-16 and UTF-32 without a mark, if all of them are characters.
pub(crate) fn unmarked_wide_texts(bytes: &[u8]) -> impl Iterator<Item = String> + use<'_> {
    let all = [true, false].into_iter().flat_map(|big| [(2, Wide::Two { big }), (4, Wide::Four { big })]);
    let fitting = all.filter(|(size, _)| bytes.len().is_multiple_of(*size));
    fitting.map(|(_, wide)| wide.read(bytes)).filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))
}

/// The text that the bytes are, or what a tolerant reader makes of them.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    wide_text(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}

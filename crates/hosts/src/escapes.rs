//! Removes one layer of escapes: percent signs, backslashes, and HTML entities.

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, byte| Some(sum * 16 + digit(*byte)?))
}

/// Decodes `%2F`, and the old form `%u002F`.
pub(crate) fn percent(text: &str) -> Option<String> {
    percent_bytes(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes percent signs into bytes.
pub(crate) fn percent_bytes(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [b'%', high, low, ..] if digit(*high).is_some() && digit(*low).is_some() => {
                decoded.push(u8::try_from(hex(&rest[1..3]).unwrap_or_default()).unwrap_or_default());
                at += 3;
            }
            [b'%', b'u' | b'U', digits @ ..] if digits.len() >= 4 && hex(&digits[..4]).is_some() => {
                let letter = hex(&digits[..4]).and_then(char::from_u32).unwrap_or('\u{fffd}');
                decoded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    (decoded != bytes).then_some(decoded)
}

/// Decodes `\/`, `\u002f`, `\u{2f}`, `\x2f` and `\57`, which JSON, scripts and similar formats use.
pub(crate) fn backslashes(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let after = &rest.as_bytes()[at + 1..];
        let escaped = |digits: usize| hex(after.get(1..=digits)?).and_then(char::from_u32);
        let (letter, length) = match after.first() {
            Some(b'u') if after.get(1) == Some(&b'{') => {
                let digits = after[2..].iter().take(7).position(|byte| *byte == b'}').unwrap_or_default();
                (hex(&after[2..2 + digits]).and_then(char::from_u32).filter(|_| digits > 0), digits + 4)
            }
            Some(b'u') => (escaped(4), 6),
            Some(b'x') => (escaped(2), 4),
            Some(b'/') => (Some('/'), 2),
            Some(b'"') => (Some('"'), 2),
            Some(b'\\') => (Some('\\'), 2),
            Some(b't') => (Some('\t'), 2),
            Some(b'0'..=b'7') if after.get(1).is_some_and(|byte| matches!(byte, b'0'..=b'7')) => {
                let digits = after.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7'));
                let (letter, length) =
                    digits.fold((0, 1), |(sum, length), byte| (sum * 8 + u32::from(byte - b'0'), length + 1));
                (char::from_u32(letter), length)
            }
            Some(b'n' | b'r' | b'b' | b'f' | b'v' | b'0') => (Some('\n'), 2),
            _ => (None, 0),
        };
        match letter {
            Some(letter) => {
                decoded.push(letter);
                rest = &rest[at + length..];
            }
            None => {
                decoded.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// Decodes `\3a ` and `\00003a`, as in CSS.
pub(crate) fn style_escapes(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        match hex(&rest.as_bytes()[..digits]).and_then(char::from_u32).filter(|_| digits > 0) {
            Some(letter) => {
                decoded.push(letter);
                rest = &rest[digits..];
                rest = rest.strip_prefix([' ', '\t', '\n', '\r']).unwrap_or(rest);
            }
            None => decoded.push('\\'),
        }
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// Names of characters that occur in a URL, or that readers leave out.
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dash", '-'),
    ("equals", '='),
    ("hyphen", '-'),
    ("lowbar", '_'),
    ("lrm", '\u{200e}'),
    ("nbsp", ' '),
    ("NewLine", '\n'),
    ("NoBreak", '\u{2060}'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("quest", '?'),
    ("quot", '"'),
    ("rlm", '\u{200f}'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("Tab", '\t'),
    ("ZeroWidthSpace", '\u{200b}'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Decodes `&#47;`, `&#x2f;` and the names above, each with or without its semicolon.
pub(crate) fn entities(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match entity(after) {
            Some((letter, length)) => {
                decoded.push(letter);
                let after = &after[length..];
                rest = after.strip_prefix(';').unwrap_or(after);
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// The character of an entity, and the length of its name.
fn entity(after: &str) -> Option<(char, usize)> {
    let Some(number) = after.strip_prefix('#') else {
        let named = ENTITIES.iter().filter(|(name, _)| after.starts_with(name));
        return named.max_by_key(|(name, _)| name.len()).map(|(name, letter)| (*letter, name.len()));
    };
    let (digits, radix, lead) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 2),
        None => (number, 10, 1),
    };
    let length = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let letter = char::from_u32(u32::from_str_radix(&digits[..length], radix).ok()?)?;
    Some((letter, lead + length))
}

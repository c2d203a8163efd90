//! Escapes text from outside where a person may see it raw: characters that move the cursor, ring a bell or reverse
//! the writing direction become their number.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character can change how the text around it is shown, or controls a terminal.
#[must_use]
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// The text with its control characters escaped, so that it cannot move the cursor.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_odd(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// A JSON text with such characters escaped. Its value stays the same.
#[must_use]
pub fn plain_json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_odd) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_odd(c) && c != '\n' {
            // None of them is beyond what four digits can say.
            _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_read_as_it_was() {
        let text = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}b\r\n\u{feff}é日";
        let json = serde_json::to_string(text).unwrap();
        let plain = plain_json(&json);
        assert!(!plain.contains(is_odd), "{plain}");
        assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), text);
        assert_eq!(plain_json("{\"a\":1}\n"), "{\"a\":1}\n");
    }

    #[test]
    fn nothing_from_outside_moves_the_cursor() {
        assert_eq!(harmless("a\u{1b}[2Jb\nc\u{202e}d é 日"), "a\\u{1b}[2Jb\\u{a}c\\u{202e}d é 日");
    }
}

//! The beginning of a key, as an operator types it. Keys are stored in order, so all keys with one prefix are
//! adjacent, and a search reads no others.

use crate::key::Key;
use alloc::string::{String, ToString};

/// The first digits of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(String);

impl KeyPrefix {
    /// The fewest digits of a prefix: fewer could match many orders by accident.
    pub const DIGITS_MIN: usize = 6;
    const DIGITS_MAX: usize = 64;

    /// Reads the first digits of a key; `None` if they are not hexadecimal, or too few or too many.
    #[must_use]
    pub fn parse(typed: &str) -> Option<Self> {
        let is_sized = (Self::DIGITS_MIN..=Self::DIGITS_MAX).contains(&typed.len());
        let is_hex = typed.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_sized && is_hex).then(|| Self(typed.to_ascii_lowercase()))
    }

    #[must_use]
    pub fn begins(&self, key: &Key) -> bool {
        key.to_string().starts_with(&self.0)
    }

    /// The last key before all keys with this prefix, if there is one.
    #[must_use]
    pub fn before(&self) -> Option<Key> {
        let mut digits = self.0.clone();
        digits.extend(core::iter::repeat_n('0', Self::DIGITS_MAX - self.0.len()));
        let mut key = Key::parse(&digits).ok()?;
        for byte in key.0.iter_mut().rev() {
            let (less, has_borrowed) = byte.overflowing_sub(1);
            *byte = less;
            if !has_borrowed {
                return Some(key);
            }
        }
        None
    }
}

impl core::fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: [u8; 3], rest: u8) -> Key {
        let mut bytes = [rest; 32];
        bytes[..3].copy_from_slice(&first);
        Key(bytes)
    }

    #[test]
    fn what_begins_so_stands_right_after_what_comes_before() {
        let prefix = KeyPrefix::parse("3F9a00").unwrap();
        assert_eq!(prefix.before(), Some(key([0x3f, 0x99, 0xff], 0xff)));
        assert!(
            prefix.begins(&key([0x3f, 0x9a, 0x00], 0x00)) && prefix.begins(&key([0x3f, 0x9a, 0x00], 0xff))
        );
        assert!(
            !prefix.begins(&key([0x3f, 0x99, 0xff], 0xff)) && !prefix.begins(&key([0x3f, 0x9a, 0x01], 0x00))
        );
        assert_eq!(KeyPrefix::parse("000000").unwrap().before(), None, "nothing comes before the first");
        let whole = key([1, 2, 3], 0);
        let before = KeyPrefix::parse(&whole.to_string()).unwrap().before().unwrap();
        assert!(before < whole);
    }

    #[test]
    fn what_is_no_beginning_of_a_key_is_none() {
        for odd in ["", "3f9a0", "3f9a0g", "3f 9a00", "日本"] {
            assert_eq!(KeyPrefix::parse(odd), None, "{odd}");
        }
        assert_eq!(KeyPrefix::parse(&"0".repeat(65)), None);
    }
}

//! The `traceparent` header of W3C: the span of the caller that an order is a part of.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub is_sampled: bool,
}

impl TraceParent {
    /// Parses the header. `None` if it is invalid: an invalid header is ignored.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // A later version may have more fields; version 00 may not.
        if number(version, 2)? == 0xff || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (number(trace, 32)?, u64::try_from(number(span, 16)?).ok()?);
        if trace == 0 || span == 0 {
            return None;
        }
        let is_sampled = number(flags, 2)? & 1 == 1;
        Some(Self { trace: trace.to_be_bytes(), span: span.to_be_bytes(), is_sampled })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace), u64::from_be_bytes(self.span));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.is_sampled))
    }
}

/// Reads a hexadecimal number in lower case, as the standard requires.
fn number(text: &str, digits: usize) -> Option<u128> {
    let is_right = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_right)).then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_was_read_is_written_the_same() {
        let parent = TraceParent::parse(GOOD).unwrap();
        assert!(parent.is_sampled);
        assert_eq!(parent.to_string(), GOOD);
        assert!(!TraceParent::parse(&GOOD.replace("-01", "-00")).unwrap().is_sampled);
        assert!(TraceParent::parse(&format!("cc{}-what-else", &GOOD[2..])).is_some(), "a later version");
    }

    #[test]
    fn what_is_none_is_passed_over() {
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }
}

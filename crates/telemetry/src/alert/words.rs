//! How messages for people are written: what is wrong, a colon, and what to do next. Also writes durations in a
//! fitting unit.

use std::time::Duration;

/// The duration in words, rounded.
#[must_use]
pub fn span(span: Duration) -> String {
    match span.as_secs() {
        1 => "1 second".into(),
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds @ 120..7200 => format!("{} minutes", seconds / 60),
        seconds @ 7200..172_800 => format!("{} hours", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// The message without the advice, which a cleared alert does not need.
#[must_use]
pub fn what_was(words: &str) -> &str {
    words.split_once(": ").map_or(words, |(what, _)| what)
}

/// Text from outside, cut to a useful length and escaped, so that it cannot be taken for our own text.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    let text: String = text.chars().take(CHARS_MAX).collect();
    text.escape_debug().to_string().replace(": ", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_in_the_unit_that_fits_it() {
        let shown =
            [0, 1, 90, 125, 7199, 7200, 90_000, 172_800].map(|seconds| span(Duration::from_secs(seconds)));
        let expected = [
            "0 seconds",
            "1 second",
            "90 seconds",
            "2 minutes",
            "119 minutes",
            "2 hours",
            "25 hours",
            "2 days",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_over_is_reported_without_what_to_do() {
        assert_eq!(what_was("the balance is 2.99: top up the account (`a: b`)"), "the balance is 2.99");
        assert_eq!(what_was("nothing to do"), "nothing to do");
        assert_eq!(what_was(&format!("it says {}: fix it", quoted("ERROR: no\n"))), "it says ERROR:no\\n");
    }
}

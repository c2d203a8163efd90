//! How soon and how often each service may be polled, by kind.

use quittance_lifecycle::PollRules;
use std::time::Duration;

/// The rules of one service, for pictures (and sounds and texts) and for all other kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindRules {
    pub pictures: PollRules,
    pub tokens: PollRules,
}

/// Kinds of pictures, sounds and texts. All other kinds are tokens.
const PICTURES: &[&str] =
    &["image", "text", "audio", "grid", "coordinates", "canvas", "rotate", "bounding_box", "bls"];

impl KindRules {
    #[must_use]
    pub fn of(&self, kind: &str) -> PollRules {
        if PICTURES.contains(&kind) { self.pictures } else { self.tokens }
    }
}

/// The rules with these numbers of seconds.
pub(crate) const fn rules(first: u64, interval: u64) -> PollRules {
    PollRules { first: Duration::from_secs(first), interval: Duration::from_secs(interval) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::ClassicDialect;
    use crate::json::JsonDialect;

    #[test]
    fn pictures_are_polled_soon_and_tokens_later() {
        let first = |rules: KindRules| {
            ["image", "turnstile", "never seen"].map(|kind| rules.of(kind).first.as_secs())
        };
        assert_eq!(
            ClassicDialect::ALL.map(|dialect| first(dialect.facts().poll_rules)),
            [[1, 5, 5], [2, 5, 5]]
        );
        assert_eq!(
            JsonDialect::ALL.map(|dialect| first(dialect.facts().limits.poll_rules)),
            [[2, 5, 5], [2, 5, 5], [1, 1, 1], [1, 3, 3]]
        );
    }
}

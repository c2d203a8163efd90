//! The key of an account at another service. Every call sends it, and it must not come back in a reply that is kept
//! or read.

use bytes::Bytes;
use std::fmt;

/// The least length of a key that is removed from replies: a shorter one could occur by accident.
const TELLING_KEY_BYTES: usize = 16;

/// The key of the provider's account. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the request to the provider only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the text can be a key: not empty, and only printable ASCII without blanks.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Removes the key from a text: a server may repeat what it received.
    #[must_use]
    pub fn conceal(&self, words: String) -> String {
        if self.0.is_empty() || !words.contains(&self.0) { words } else { words.replace(&self.0, "(key)") }
    }

    /// Removes the key from a reply.
    #[must_use]
    pub fn taken_out_of(&self, body: Bytes) -> Bytes {
        let key = self.0.as_bytes();
        let is_repeated = || body.windows(key.len()).any(|window| window == key);
        if key.len() < TELLING_KEY_BYTES || !is_repeated() {
            return body;
        }
        Bytes::from(self.conceal(String::from_utf8_lossy(&body).into_owned()))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_itself() {
        let key = ApiKey::new("hunter2");
        assert!(!format!("{key:?}").contains("hunter2"));
        assert_eq!(key.conceal("no such key: hunter2".to_owned()), "no such key: (key)");
        assert!(!ApiKey::new("").is_plausible() && !ApiKey::new("a b").is_plausible());
        let long = ApiKey::new("0123456789abcdef");
        assert_eq!(long.taken_out_of(Bytes::from_static(b"<0123456789abcdef>")), "<(key)>");
        assert_eq!(key.taken_out_of(Bytes::from_static(b"hunter2")), "hunter2", "it may be an answer");
    }
}

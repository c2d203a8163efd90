//! A server's real reply, for the person who has to understand it. It is cut to a limit, and has no secret with which
//! a reader could act in our name, however the server wrote it.

use crate::ApiKey;
use std::sync::OnceLock;

/// How many bytes of a reply are searched: more than are kept, so that no secret is cut in the middle and missed.
const LOOKED_AT_BYTES_MAX: usize = 4096;

/// The base URL of our callbacks. A caller with such a URL could deliver an answer.
#[derive(Debug, Default)]
pub struct CallbackBase(OnceLock<String>);

impl CallbackBase {
    /// Learns the base URL from one callback URL. Only the last segment differs between orders.
    pub fn learn(&self, callback: &str) {
        if let Some((base, _)) = callback.rsplit_once('/').filter(|(base, _)| base.contains("://")) {
            self.0.get_or_init(|| format!("{base}/"));
        }
    }

    fn conceal(&self, words: String) -> String {
        let Some(base) = self.0.get() else { return words };
        let percent = base.replace(':', "%3A").replace('/', "%2F");
        let spellings = [base.clone(), base.replace('/', "\\/"), percent.to_ascii_lowercase(), percent];
        spellings.iter().fold(words, |words, base| without_addresses(&words, base))
    }
}

/// The text without `base` and the rest of each URL that begins with it.
fn without_addresses(words: &str, base: &str) -> String {
    let mut parts = words.split(base);
    let mut visible = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_address = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
        visible += "(callback address)";
        visible += part.trim_start_matches(is_address);
    }
    visible
}

/// The beginning of a reply, without our key and without our callback URLs.
#[must_use]
pub fn without_secrets(body: &[u8], key: &ApiKey, callbacks: &CallbackBase) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(LOOKED_AT_BYTES_MAX)]).into_owned();
    callbacks.conceal(key.conceal(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_key_nor_callback_address_is_repeated_however_it_is_spelled() {
        let (key, callbacks) = (ApiKey::new("0123456789abcdef"), CallbackBase::default());
        let redacted = |body: &str| without_secrets(body.as_bytes(), &key, &callbacks);
        assert_eq!(
            redacted("at http://us:80/callback/abc"),
            "at http://us:80/callback/abc",
            "it is not known yet"
        );
        callbacks.learn("http://us:80/callback/first.mac");
        for body in [
            "bad key 0123456789abcdef, pingback http://us:80/callback/a1-b2.c3 refused",
            r#"{"key":"0123456789abcdef","url":"http:\/\/us:80\/callback\/a1-b2.c3"}"#,
            "key=0123456789abcdef&pingback=http%3A%2F%2Fus%3A80%2Fcallback%2Fa1-b2.c3&x=1",
            "key=0123456789abcdef&pingback=http%3a%2f%2fus%3a80%2fcallback%2fa1-b2.c3&x=1",
        ] {
            let redacted = redacted(body);
            assert!(!redacted.contains("0123456789abcdef") && !redacted.contains("a1-b2"), "{redacted}");
            assert!(redacted.contains("(key)") && redacted.contains("(callback address)"), "{redacted}");
        }
        assert_eq!(redacted("<b>down</b> \u{1b}"), "<b>down</b> \u{1b}", "as it came");
        assert_eq!(redacted(&"x".repeat(9000)).len(), LOOKED_AT_BYTES_MAX);
    }
}

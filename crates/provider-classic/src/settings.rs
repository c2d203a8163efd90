//! What a provider needs to know before the first call, checked once: an address that would not work, or would carry a
//! secret to where it does not belong, is refused here and not at the first order.

use hyper::Uri;
use quittance_classic::profile::{PollQuota, Profile};
use quittance_lifecycle::FaultClass;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The key of the provider's account. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The same words without the key: a server may repeat what it was sent.
    pub(crate) fn conceal(&self, words: String) -> String {
        if self.0.is_empty() || !words.contains(&self.0) { words } else { words.replace(&self.0, "(key)") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Corrections to the profile's tempo; what is `None` stays as it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaceSettings {
    /// The least span between two submits.
    pub submit_interval: Option<Duration>,
    /// How many calls of `res.php` are allowed for each task, and besides.
    pub poll_quota: Option<PollQuota>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// What people call this provider.
    pub name: String,
    pub profile: Profile,
    /// The address without `in.php`: `https://ocr.captchaai.com`.
    pub url: String,
    pub key: ApiKey,
    /// For finding the host, the connection and TLS together.
    pub connect_timeout: Duration,
    /// From the first byte of a submit to the last of its answer. With the wait for its turn and the connection it
    /// should stay below the policy's `submit_wait`.
    pub submit_timeout: Duration,
    pub poll_timeout: Duration,
    pub poll_batch_max: Option<usize>,
    /// What the operator knows better about codes.
    pub codes: BTreeMap<String, FaultClass>,
    pub response_bytes_max: usize,
    pub pace: PaceSettings,
    /// Certificates in PEM to trust besides the usual ones.
    pub extra_ca: Vec<u8>,
    /// How long a connection may rest and still be used again. Servers close theirs after five seconds and more;
    /// a connection that closes just as a submit is written on it makes a doubt.
    pub idle_max: Duration,
    /// How many connections may rest.
    pub idle_connections_max: usize,
}

impl Settings {
    #[must_use]
    pub fn new(name: impl Into<String>, profile: Profile, url: impl Into<String>, key: ApiKey) -> Self {
        Self {
            name: name.into(),
            profile,
            url: url.into(),
            key,
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(15),
            poll_timeout: Duration::from_secs(10),
            poll_batch_max: None,
            codes: BTreeMap::new(),
            response_bytes_max: 256 * 1024,
            pace: PaceSettings::default(),
            extra_ca: Vec::new(),
            idle_max: Duration::from_secs(4),
            idle_connections_max: 64,
        }
    }
}

/// What is wrong with the settings. It never shows the address, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum BadSettings {
    #[error("provider.url {why}")]
    Url { why: &'static str },
    #[error("provider.key is empty or has a character that no key has")]
    Key,
    #[error("provider.extra_ca cannot be used: {why}")]
    ExtraCa { why: String },
    #[error("TLS cannot be set up: {why}")]
    Tls { why: String },
}

/// Where to call.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as the request names them.
    pub(crate) authority: String,
    path: String,
}

impl Base {
    pub(crate) fn read(url: &str) -> Result<Self, BadSettings> {
        let bad = |why| BadSettings::Url { why };
        if url.contains('#') {
            return Err(bad("has a fragment (#...): take it out"));
        }
        let uri: Uri =
            url.trim().parse().map_err(|_| bad("is not an address such as https://example.com"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or(bad("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("has a user name or a password: the key belongs in provider.key"));
        }
        if uri.query().is_some() {
            return Err(bad("has a query (?...): the key belongs in provider.key"));
        }
        let path = uri.path().trim_end_matches('/');
        if path.ends_with(".php") {
            return Err(bad("names a script: give the address without in.php or res.php"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("names no host"));
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().ends_with(':') => return Err(bad("has a colon and no port")),
            None if is_tls => 443,
            None => 80,
        };
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port,
            authority: authority.as_str().to_owned(),
            path: path.to_owned(),
        })
    }

    /// The path of a script; it never holds more than that.
    pub(crate) fn path(&self, script: &str) -> String {
        format!("{}/{script}", self.path)
    }
}

pub(crate) fn check_key(key: &ApiKey) -> Result<(), BadSettings> {
    let key = key.reveal();
    let is_fine = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_fine { Ok(()) } else { Err(BadSettings::Key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let base = Base::read("https://ocr.example.com").unwrap();
        assert_eq!((base.is_tls, base.host.as_str(), base.port), (true, "ocr.example.com", 443));
        assert_eq!(base.path("in.php"), "/in.php");
        let base = Base::read("http://127.0.0.1:8080/api/").unwrap();
        assert_eq!((base.is_tls, base.port, base.path("res.php").as_str()), (false, 8080, "/api/res.php"));
        assert_eq!(Base::read("http://[::1]:81").unwrap().host, "::1");
    }

    #[test]
    fn an_address_with_a_secret_or_a_mistake_is_refused_without_repeating_it() {
        let cases = [
            ("https://ada:hunter2@example.com", "password"),
            ("https://example.com/?key=hunter2", "query"),
            ("https://example.com/in.php", "in.php"),
            ("https://example.com/#hunter2", "fragment"),
            ("ftp://hunter2.example.com", "http://"),
            ("hunter2.example.com", "http://"),
            ("https://", "address"),
            ("https://exa mple.com", "address"),
        ];
        for (url, word) in cases {
            let said = Base::read(url).unwrap_err().to_string();
            assert!(said.contains(word), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_key_never_shows_itself() {
        let key = ApiKey::new("hunter2");
        let settings = Settings::new("x", Profile::CaptchaAi, "http://127.0.0.1", key.clone());
        assert!(!format!("{settings:?} {key:?}").contains("hunter2"));
        assert_eq!(key.conceal("no such key: hunter2".to_owned()), "no such key: (key)");
        assert!(check_key(&ApiKey::new("")).is_err() && check_key(&ApiKey::new("a b")).is_err());
    }
}

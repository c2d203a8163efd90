//! Checks the URL of a service before the first call. A URL that cannot work, or that would send a secret to the
//! wrong place, is refused.

use crate::BadSettings;
use hyper::Uri;

/// A checked URL of a service.
#[derive(Clone, Debug)]
pub struct Base {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port, as the `Host` header has them.
    pub(crate) authority: String,
    path: String,
}

impl Base {
    pub fn read(url: &str) -> Result<Self, BadSettings> {
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

    /// The path of a script on the wire. It holds no query.
    #[must_use]
    pub fn path(&self, script: &str) -> String {
        format!("{}/{script}", self.path)
    }

    /// Host and port, for messages.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }
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
            ("https://example.com/#hunter2", "fragment"),
            ("ftp://hunter2.example.com", "http://"),
            ("hunter2.example.com", "http://"),
            ("https://", "address"),
            ("https://exa mple.com", "address"),
        ];
        for (url, word) in cases {
            let message = Base::read(url).unwrap_err().to_string();
            assert!(message.contains(word), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}

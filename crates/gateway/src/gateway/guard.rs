//! Who may come in where nobody needs a key: this machine's own user and his programs, but no web page that happens to be
//! open in his browser. A page can make a browser send us requests, under a name of its own that leads to us, or across
//! sites; both show in the head.

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use std::net::IpAddr;

pub(super) const WHY: &str =
    "Without tenants only programs on this machine are let in, by the name localhost or a loopback address.";

/// The same where only codes are understood.
pub(super) const CODE: &str = "ERROR_IP_NOT_ALLOWED";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(super) fn is_from_elsewhere(head: &Parts) -> bool {
    let named = [head.uri.host(), text(&head.headers, &HOST).map(host_of)];
    if named.into_iter().flatten().any(|host| !is_loopback(host)) {
        return true;
    }
    match text(&head.headers, &ORIGIN) {
        // Extensions and the like have origins of their own, and their user has chosen them.
        Some(origin) => match origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) {
            Some(authority) => !is_loopback(host_of(authority)),
            None => origin == "null",
        },
        None => text(&head.headers, &FETCH_SITE) == Some("cross-site"),
    }
}

/// What is no text is nobody's name, and not let in either.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn is_refused(headers: &[(HeaderName, &str)]) -> bool {
        let mut request = Request::new(());
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        is_from_elsewhere(&request.into_parts().0)
    }

    #[test]
    fn only_loopback_names_are_our_own() {
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.8.9.10:65535", "[::1]", "[::1]:8080"] {
            assert!(!is_refused(&[(HOST, host)]), "{host}");
        }
        for host in
            ["example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1:80", "0.0.0.0"]
        {
            assert!(is_refused(&[(HOST, host)]), "{host}");
        }
        assert!(!is_refused(&[]), "a browser always says it");
    }

    #[test]
    fn a_page_of_another_site_cannot_act_for_the_user() {
        let host = (HOST, "127.0.0.1:8080");
        for origin in ["https://example.com", "http://127.0.0.1.example.com", "null"] {
            assert!(is_refused(&[host.clone(), (ORIGIN, origin)]), "{origin}");
        }
        for origin in
            ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:1", "chrome-extension://abc"]
        {
            assert!(!is_refused(&[host.clone(), (ORIGIN, origin)]), "{origin}");
        }
        assert!(is_refused(&[host.clone(), (FETCH_SITE, "cross-site")]));
        assert!(!is_refused(&[host, (FETCH_SITE, "none")]));
    }
}

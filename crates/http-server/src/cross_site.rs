//! Which requests are accepted when no key is needed: those of the user of this machine and of the user's programs,
//! but not those of a web page in the user's browser. A page can make a browser send us requests, under its own host
//! name that resolves to us, or across sites. The headers show both.

use crate::OverTls;
use hyper::header::{ACCEPT, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN, REFERER, USER_AGENT};
use hyper::http::request::Parts;
use quittance_engine::targets::HostPattern;
use std::net::IpAddr;

/// How many characters of an unknown host an error repeats.
const HOST_CHARS_MAX: usize = 100;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrossSite {
    #[error(
        "this gateway has no tenants, so it takes only requests for localhost or a loopback address, and this one is for \
         the host `{host}`: if that name is yours, list it in `listener.hosts`; or add a tenant"
    )]
    Host { host: String },
    #[error(
        "this gateway has no tenants, so it takes no request from a browser, which any web page can send: add a tenant \
         (`quittance tenant new`) and send its key, or send no browser's headers (User-Agent, Origin, Referer)"
    )]
    Browser,
}

/// What a request can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestReach {
    /// The request changes nothing. A page of another site can send it, but cannot read the response.
    Reads,
    /// The request may place an order.
    Acts,
}

/// Why a request is refused, if it may come from a page of another site. `ours` are the host names that the operator
/// has listed.
///
/// A page cannot set or omit a browser's own headers. Browsers differ in which of them they send for images, scripts
/// and forms. But every browser calls itself `Mozilla/`. So without proof that our own page sent it, that alone is
/// enough to refuse a request that acts.
#[must_use]
pub fn is_from_elsewhere(head: &Parts, reach: RequestReach, ours: &[HostPattern]) -> Option<CrossSite> {
    let is_listed = |host: &str| {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        ours.iter().any(|own| own.covers(&host))
    };
    let is_ours = |host: &str| is_loopback(host) || is_listed(host);
    let named = [head.uri.host(), text(&head.headers, &HOST).map(host_of)];
    if let Some(host) = named.into_iter().flatten().find(|host| !is_ours(host)) {
        return Some(CrossSite::Host { host: host.chars().take(HOST_CHARS_MAX).collect() });
    }
    let header = |name: &HeaderName| text(&head.headers, name).map(str::to_ascii_lowercase);
    let own = OwnOrigin::of(head, is_listed);
    // An `Origin` that is none of ours is refused whatever its scheme: another server on this machine is another site.
    let (is_foreign, is_known) = match (header(&ORIGIN), header(&FETCH_SITE).as_deref()) {
        (Some(origin), _) => (!own.is(&origin), true),
        (None, Some("same-origin")) => (false, true),
        // An address that the person typed, or a link that leads here from another program.
        (None, Some("none")) => (reach == RequestReach::Acts, true),
        (None, Some(_)) => (true, false),
        (None, None) => match header(&REFERER) {
            Some(referer) => (!own.is(&referer), true),
            None => (false, false),
        },
    };
    let is_browser = || {
        let agent = header(&USER_AGENT).unwrap_or_default();
        let accept = header(&ACCEPT).unwrap_or_default();
        // Only browsers send these (Node.js sends `sec-fetch-mode`), and clients of the protocols send no cookies.
        let marks = ["sec-ch-", "sec-fetch-dest", "sec-fetch-user", "sec-purpose"];
        let is_mark = |name: &HeaderName| marks.iter().any(|mark| name.as_str().starts_with(mark));
        let is_hinted = head.headers.keys().any(is_mark);
        is_hinted
            || head.headers.contains_key(COOKIE)
            || ["mozilla/", "opera/", "ucweb/"].iter().any(|name| agent.contains(name))
            || ["image/", "audio/", "video/", "text/html", "text/css"]
                .iter()
                .any(|kind| accept.contains(kind))
    };
    let is_foreign = is_foreign || (reach == RequestReach::Acts && !is_known && is_browser());
    is_foreign.then_some(CrossSite::Browser)
}

/// The origin under which a request reached us: its scheme, host and port.
struct OwnOrigin {
    is_over_tls: bool,
    authority: String,
    /// Whether the listed host name may belong to a proxy that does TLS for us.
    may_be_behind_proxy: bool,
}

impl OwnOrigin {
    fn of(head: &Parts, is_listed: impl Fn(&str) -> bool) -> Self {
        let in_uri = head.uri.authority().map(hyper::http::uri::Authority::as_str);
        let authority = in_uri.or_else(|| text(&head.headers, &HOST)).unwrap_or_default();
        Self {
            is_over_tls: head.extensions.get::<OverTls>().is_some(),
            authority: authority.to_ascii_lowercase(),
            may_be_behind_proxy: is_listed(host_of(authority)),
        }
    }

    /// Whether an `Origin` or `Referer`, in lower case, is this origin.
    fn is(&self, address: &str) -> bool {
        let Some((scheme, rest)) = address.trim().split_once("://") else { return false };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_scheme_ours = match scheme {
            "https" => self.is_over_tls || self.may_be_behind_proxy,
            "http" => !self.is_over_tls,
            _ => false,
        };
        let is_same = |default: &str| place_of(authority, default) == place_of(&self.authority, default);
        is_scheme_ours && !authority.is_empty() && is_same(if scheme == "https" { "443" } else { "80" })
    }
}

/// The host and the port of an authority.
fn place_of<'a>(authority: &'a str, default_port: &'a str) -> (&'a str, &'a str) {
    let host = host_of(authority);
    let behind = authority.rsplit(']').next().unwrap_or_default();
    let port = behind.rsplit_once(':').map_or("", |(_, port)| port);
    (host.trim_end_matches('.'), if port.is_empty() { default_port } else { port })
}

/// The text of a header, or `?` if it is not text. That is no name of ours, so the request is refused.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn host_of(authority: &str) -> &str {
    // A name in front of a host is no part of a `Host`, and readers disagree about which of the two it is.
    if authority.contains('@') {
        return authority;
    }
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
        is_from_elsewhere(
            &request.into_parts().0,
            RequestReach::Acts,
            &[HostPattern::parse("q.example.org").unwrap()],
        )
        .is_some()
    }

    #[test]
    fn only_loopback_names_are_our_own() {
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.8.9.10:65535", "[::1]", "[::1]:8080"] {
            assert!(!is_refused(&[(HOST, host)]), "{host}");
        }
        for host in [
            "example.com",
            "localhost:80@example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1:80",
            "0.0.0.0",
        ] {
            assert!(is_refused(&[(HOST, host)]), "{host}");
        }
        assert!(!is_refused(&[]), "a browser always says it");
        assert!(!is_refused(&[(HOST, "Q.example.org:8780")]), "the operator listed it");
    }

    #[test]
    fn a_page_of_another_site_cannot_act_for_the_user() {
        let host = (HOST, "127.0.0.1:8080");
        for origin in [
            "https://example.com",
            "http://127.0.0.1.example.com",
            "null",
            "http://localhost:3000",
            "http://127.0.0.1:3000",
            "http://127.0.0.1",
            "http://localhost:8080",
            "https://127.0.0.1:8080",
            "http://[::1]:1",
            "http://a@127.0.0.1:8080",
            "chrome-extension://abc",
            "chrome-extension://127.0.0.1:8080",
            "moz-extension://abc",
            "file://",
        ] {
            assert!(is_refused(&[host.clone(), (ORIGIN, origin)]), "{origin}");
        }
        for referer in ["http://127.0.0.1:3000/evil", "http://localhost:8080/", "about:blank", ""] {
            assert!(is_refused(&[host.clone(), (REFERER, referer)]), "{referer}");
        }
        assert!(is_refused(&[host.clone(), (FETCH_SITE, "cross-site")]));
        assert!(!is_refused(&[host.clone(), (ORIGIN, "HTTP://127.0.0.1:8080")]));
        for (host, origin) in [
            ("localhost", "http://localhost"),
            ("localhost:80", "http://localhost"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("q.example.org", "https://q.example.org"),
            ("q.example.org:8780", "http://q.example.org:8780"),
        ] {
            assert!(!is_refused(&[(HOST, host), (ORIGIN, origin)]), "{origin}");
        }
        assert!(is_refused(&[(HOST, "q.example.org:8780"), (ORIGIN, "https://q.example.org")]));
    }

    #[test]
    fn over_tls_our_own_origin_is_one_of_https() {
        let is_refused = |origin: &str| {
            let mut request = Request::new(());
            request.headers_mut().insert(HOST, "localhost:8443".parse().unwrap());
            request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
            request.extensions_mut().insert(OverTls);
            is_from_elsewhere(&request.into_parts().0, RequestReach::Acts, &[]).is_some()
        };
        assert!(!is_refused("https://localhost:8443"));
        assert!(is_refused("http://localhost:8443"));
        assert!(is_refused("https://localhost"));
    }

    #[test]
    fn an_address_that_was_typed_into_a_browser_opens_the_page_and_places_no_order() {
        let typed = |reach: RequestReach| {
            let mut request = Request::new(());
            for (name, value) in [
                (HOST, "127.0.0.1:8080"),
                (FETCH_SITE, "none"),
                (USER_AGENT, "Mozilla/5.0"),
                (ACCEPT, "text/html"),
            ] {
                request.headers_mut().insert(name, value.parse().unwrap());
            }
            is_from_elsewhere(&request.into_parts().0, reach, &[])
        };
        assert_eq!(typed(RequestReach::Acts), Some(CrossSite::Browser));
        assert_eq!(typed(RequestReach::Reads), None);
    }

    #[test]
    fn what_a_page_makes_a_browser_send_places_no_order_whatever_headers_are_missing() {
        let host = (HOST, "127.0.0.1:8080");
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_13_6) AppleWebKit/605.1.15 Version/12.1 Safari/605.1.15";
        for seen in [
            vec![(USER_AGENT, safari)],
            vec![(COOKIE, "session=1")],
            vec![(HeaderName::from_static("sec-ch-ua"), "\"Not A Brand\"")],
            vec![(ACCEPT, "text/css,*/*;q=0.1")],
            vec![(ACCEPT, "video/webm")],
            vec![(USER_AGENT, safari), (ACCEPT, "image/png,image/*;q=0.8")],
            vec![(ACCEPT, "image/webp,*/*")],
            vec![(REFERER, "https://evil.example.com/page")],
            vec![(REFERER, "https://127.0.0.1@evil.example.com/")],
            vec![(ORIGIN, "HTTPS://evil.example.com")],
            vec![(ORIGIN, "NULL")],
            vec![(FETCH_SITE, "Cross-Site")],
            vec![(FETCH_SITE, "same-site")],
        ] {
            let headers: Vec<_> = [host.clone()].into_iter().chain(seen).collect();
            assert!(is_refused(&headers), "{headers:?}");
        }
        let own_page = [
            (FETCH_SITE, "same-origin"),
            (ORIGIN, "http://127.0.0.1:8080"),
            (REFERER, "http://127.0.0.1:8080/page/"),
        ];
        for own in own_page {
            assert!(!is_refused(&[host.clone(), (USER_AGENT, safari), own.clone()]), "{own:?}");
        }
        let node = (HeaderName::from_static("sec-fetch-mode"), "cors");
        assert!(!is_refused(&[host.clone(), (USER_AGENT, "node"), (ACCEPT, "*/*"), node]));
        for program in ["python-requests/2.32", "curl/8.5", "axios/1.7", "Go-http-client/1.1"] {
            assert!(!is_refused(&[host.clone(), (USER_AGENT, program), (ACCEPT, "*/*")]), "{program}");
        }
    }
}

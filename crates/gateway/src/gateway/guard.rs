//! Who may come in where nobody needs a key: this machine's own user and his programs, but no web page that happens to be
//! open in his browser. A page can make a browser send us requests, under a name of its own that leads to us, or across
//! sites; both show in the head.

use hyper::header::{ACCEPT, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN, REFERER, USER_AGENT};
use hyper::http::request::Parts;
use quittance_engine::targets::HostPattern;
use std::net::IpAddr;

/// Of a host that is not ours so much is repeated.
const HOST_CHARS_MAX: usize = 100;

/// What is told where only codes are understood.
pub(super) const CODE: &str = "ERROR_IP_NOT_ALLOWED";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Elsewhere {
    #[error(
        "this gateway has no tenants, so it takes only requests for localhost or a loopback address, and this one is for \
         the host `{host}`: if that name is yours, list it in `listener.hosts`; or add a tenant"
    )]
    Host { host: String },
    #[error(
        "this gateway has no tenants, so it takes no request that a web page may have made a browser send: add a tenant \
         (`quittance tenant new`) and send its key, or send no browser's headers (User-Agent, Origin, Referer)"
    )]
    Browser,
}

/// What a request can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It changes nothing: a page of another site can send it, and cannot read the answer.
    Reads,
    /// It may place an order.
    Acts,
}

/// `ours` are the names that the operator has listed.
/// A page cannot choose or leave out a browser's own headers. Which of them a browser sends with the request of an image, a
/// script or a form differs; all browsers name themselves `Mozilla/`, so where nothing proves that our own page sent it, that
/// alone is enough to refuse what acts.
pub(super) fn is_from_elsewhere(head: &Parts, reach: Reach, ours: &[HostPattern]) -> Option<Elsewhere> {
    let is_listed = |host: &str| {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        ours.iter().any(|own| own.covers(&host))
    };
    let is_ours = |host: &str| is_loopback(host) || is_listed(host);
    let named = [head.uri.host(), text(&head.headers, &HOST).map(host_of)];
    if let Some(host) = named.into_iter().flatten().find(|host| !is_ours(host)) {
        return Some(Elsewhere::Host { host: host.chars().take(HOST_CHARS_MAX).collect() });
    }
    let header = |name: &HeaderName| text(&head.headers, name).map(str::to_ascii_lowercase);
    // Extensions and the like have origins of their own, and their user has chosen them.
    let (is_foreign, is_known) = match header(&ORIGIN).as_deref().map(site_of) {
        Some(Site::Web(host)) => (!is_ours(host), true),
        Some(Site::Nowhere) => (true, false),
        Some(Site::Other) => (false, true),
        None => match header(&FETCH_SITE).as_deref() {
            Some("same-origin" | "none") => (false, true),
            Some(_) => (true, false),
            None => match header(&REFERER).as_deref().map(site_of) {
                Some(Site::Web(host)) => (!is_ours(host), true),
                Some(_) => (true, false),
                None => (false, false),
            },
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
    let is_foreign = is_foreign || (reach == Reach::Acts && !is_known && is_browser());
    is_foreign.then_some(Elsewhere::Browser)
}

/// Where a request comes from, as an `Origin` or a `Referer` in small letters says.
enum Site<'a> {
    Web(&'a str),
    /// `null`, or nothing that makes sense.
    Nowhere,
    Other,
}

fn site_of(address: &str) -> Site<'_> {
    let address = address.trim();
    match address.split_once("://") {
        Some(("http" | "https", rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            Site::Web(host_of(authority.rsplit('@').next().unwrap_or_default()))
        }
        Some(_) => Site::Other,
        None => Site::Nowhere,
    }
}

/// What is no text is nobody's name, and not let in either.
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
            Reach::Acts,
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
            (REFERER, "http://localhost/page/"),
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

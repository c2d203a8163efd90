//! The page: a few files inside the program, so that it works offline and needs no build. They contain no secret; the
//! page reads all data from `/v1` with the operator's key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use quittance_gateway::PAGE_PATH;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The content security policy: only our own files, nothing inline, and no text that becomes markup. Browsers with
/// trusted types refuse every way to do that.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal $kind:ident;)*) => {
        [$(($name, $kind, include_str!(concat!("../page/", $name)))),*]
    };
}

const FILES: [(&str, &str, &str); 28] = files! {
    "index.html" HTML;
    "app.css" CSS;
    "views.css" CSS;
    "icon.svg" SVG;
    "theme.js" SCRIPT;
    "app.js" SCRIPT;
    "alerts.js" SCRIPT;
    "ask.js" SCRIPT;
    "usage.js" SCRIPT;
    "budgets.js" SCRIPT;
    "bulks.js" SCRIPT;
    "csv.js" SCRIPT;
    "actions.js" SCRIPT;
    "dialog.js" SCRIPT;
    "dom.js" SCRIPT;
    "figures.js" SCRIPT;
    "dead_letters.js" SCRIPT;
    "live.js" SCRIPT;
    "login.js" SCRIPT;
    "order.js" SCRIPT;
    "overview.js" SCRIPT;
    "plot.js" SCRIPT;
    "pools.js" SCRIPT;
    "providers.js" SCRIPT;
    "search.js" SCRIPT;
    "settings.js" SCRIPT;
    "share.js" SCRIPT;
    "status.js" SCRIPT;
};

/// The digest of each file: a browser asks each time, and downloads only changed files.
static TAGS: LazyLock<[HeaderValue; FILES.len()]> = LazyLock::new(|| {
    FILES.map(|(_, _, text)| {
        let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(Sha256::digest(text)));
        HeaderValue::try_from(tag).expect("the alphabet is visible ASCII")
    })
});

fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The file at a path; `None` if there is none. `/` redirects browsers to the page, and no other clients.
pub(crate) fn serve(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Full<Bytes>>> {
    if path == "/" && !prefers_html(headers) {
        return None;
    }
    let name = match path.strip_prefix(PAGE_PATH) {
        Some("") => "index.html",
        Some(name) => name,
        None => return Some(see_page()),
    };
    let number = FILES.iter().position(|(file, ..)| *file == name)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = respond(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "Not with this method.");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    let (_, kind, text) = FILES[number];
    let tag = &TAGS[number];
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|seen| names(seen, tag));
    let mut response = if is_known {
        respond(StatusCode::NOT_MODIFIED, kind, Bytes::new())
    } else {
        respond(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()))
    };
    response.headers_mut().insert(ETAG, tag.clone());
    add_policy(response.headers_mut());
    Some(response)
}

fn see_page() -> Response<Full<Bytes>> {
    let mut response = respond(StatusCode::SEE_OTHER, PLAIN, "The page is at /page/.");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PAGE_PATH));
    add_policy(response.headers_mut());
    response
}

fn add_policy(headers: &mut HeaderMap) {
    let lines: [(HeaderName, &'static str); 5] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    headers.extend(lines.map(|(name, value)| (name, HeaderValue::from_static(value))));
}

/// Whether the client prefers HTML. A browser names `text/html`; other clients send `*/*`.
fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let name = kind.split(';').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("text/html")
    })
}

/// Whether this line of `If-None-Match` names the tag. A proxy that compresses files marks tags as weak.
fn names(seen: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(seen), Ok(tag)) = (seen.to_str(), tag.to_str()) else { return false };
    seen.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::collections::BTreeSet;

    fn answer(method: &Method, path: &str, headers: &[(HeaderName, &str)]) -> Option<Response<Full<Bytes>>> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        serve(method, path, &map)
    }

    fn read(path: &str) -> Response<Full<Bytes>> {
        answer(&Method::GET, path, &[]).unwrap_or_else(|| panic!("{path} is not there"))
    }

    fn line<'a>(response: &'a Response<Full<Bytes>>, name: &HeaderName) -> &'a str {
        response.headers().get(name).unwrap_or_else(|| panic!("{name}")).to_str().unwrap()
    }

    #[test]
    fn every_file_of_the_page_is_served_with_the_policy() {
        for (name, kind, _) in FILES {
            let response = read(&format!("/page/{name}"));
            assert_eq!((response.status(), line(&response, &CONTENT_TYPE)), (StatusCode::OK, kind));
            assert_eq!(line(&response, &X_CONTENT_TYPE_OPTIONS), "nosniff");
            assert_eq!(line(&response, &REFERRER_POLICY), "no-referrer");
            assert_eq!(line(&response, &CACHE_CONTROL), "no-cache");
            let policy = line(&response, &CONTENT_SECURITY_POLICY);
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
        }
    }

    #[tokio::test]
    async fn the_address_of_the_page_is_its_index() {
        let whole = read("/page/").into_body().collect().await.unwrap().to_bytes();
        assert!(whole.starts_with(b"<!doctype html>"));
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = read("/page/app.js");
        let tag = line(&first, &ETAG);
        for seen in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let again = answer(&Method::GET, "/page/app.js", &[(IF_NONE_MATCH, &seen)]).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{seen}");
            assert_eq!(line(&again, &ETAG), tag);
        }
        let other = answer(&Method::GET, "/page/app.css", &[(IF_NONE_MATCH, tag)]).unwrap();
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn a_browser_at_the_root_is_led_to_the_page_and_a_client_is_not() {
        let browser = [(ACCEPT, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];
        let led = answer(&Method::GET, "/", &browser).unwrap();
        assert_eq!((led.status(), line(&led, &LOCATION)), (StatusCode::SEE_OTHER, "/page/"));
        assert!(answer(&Method::GET, "/", &[(ACCEPT, "*/*")]).is_none());
        assert!(answer(&Method::GET, "/", &[]).is_none());
        assert_eq!(line(&read("/page"), &LOCATION), "/page/");
    }

    #[test]
    fn what_is_not_there_is_not_found_and_nothing_is_written() {
        for path in ["/page/../Cargo.toml", "/page/app.js/", "/page/APP.JS", "/page//", "/page/%2e%2e/x"] {
            assert!(answer(&Method::GET, path, &[]).is_none(), "{path}");
        }
        let posted = answer(&Method::POST, "/page/", &[]).unwrap();
        assert_eq!((posted.status(), line(&posted, &ALLOW)), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
    }

    /// If a file imports a name that is not served, the page stays white.
    #[test]
    fn whatever_a_file_of_the_page_names_is_served() {
        let served: BTreeSet<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        let mut named = BTreeSet::from(["index.html"]);
        for (_, kind, text) in FILES {
            let mark = if kind == HTML { "=\"" } else { "from './" };
            let end = if kind == HTML { '"' } else { '\'' };
            let found = text.split(mark).skip(1).filter_map(|rest| rest.split_once(end));
            let is_file = |name: &&str| {
                [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end)) && !name.contains('/')
            };
            named.extend(found.map(|(name, _)| name).filter(is_file));
        }
        assert_eq!(named, served);
    }

    /// A browser does not report a name that the API never sends: the page then only shows nothing for it.
    #[test]
    fn every_event_cause_and_phase_that_the_page_names_exists() {
        let file = |name: &str| FILES.iter().find(|(file, ..)| *file == name).unwrap().2;
        let between = |name: &str, begin: &str, end: &str| {
            let (_, rest) = file(name).split_once(begin).unwrap_or_else(|| panic!("{begin} in {name}"));
            rest.split_once(end).unwrap().0
        };
        let keys = |table: &'static str| table.split(',').filter_map(|pair| pair.split_once(':'));
        let events = include_str!("timeline.rs");
        for (event, _) in keys(between("order.js", "const EVENT_STYLES = {", "};")) {
            assert!(events.contains(&format!("=> (\"{}\", ", event.trim())), "{event}");
        }
        for (cause, _) in keys(between("status.js", "export const CAUSES = {", "};")) {
            assert!(quittance_lifecycle::DeadLetterCause::named(cause.trim()).is_some(), "{cause}");
        }
        let phases = serde_json::to_value(quittance_telemetry::OpenPhases::default()).unwrap();
        for phase in between("overview.js", "const PHASES = [", "];").split("['").skip(1) {
            let name = phase.split('\'').next().unwrap().to_lowercase().replace(' ', "_");
            assert!(phases.get(&name).is_some(), "{name}");
        }
    }

    /// The policy refuses most of these in the browser. This test finds them before a release.
    #[test]
    fn no_file_of_the_page_makes_markup_of_text_or_calls_a_stranger() {
        let banned =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"];
        for (name, _, text) in FILES {
            for word in banned.iter().chain(&["DOMParser", "srcdoc", " style=", "javascript:", "onclick"]) {
                assert!(!text.contains(word), "{name} has {word}");
            }
            let strange = text.split("http").skip(1).find(|rest| {
                let is_address = rest.starts_with("://") || rest.starts_with("s://");
                is_address && !rest.starts_with("://www.w3.org/2000/svg")
            });
            assert!(strange.is_none(), "{name} names {strange:?}");
        }
    }
}

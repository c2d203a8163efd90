//! Which sites may be automated. The operator lists page hosts; an order for any other is refused before anything is
//! paid for. What has no page, a picture, has a switch of its own.

use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Draft, Kind, Shape, Value};
use std::fmt;

/// The hosts that stand for nobody's site: always allowed, for the simulator and for examples.
const NOBODYS: [&str; 2] = ["example.com", "test"];

/// A pattern that a person may list: `shop.example.org`, `*.example.org` for that host and all below it, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a host pattern: write `shop.example.org`, `*.example.org` (that host and all below it), or `*`", .0.escape_debug())]
pub struct BadPattern(String);

impl HostPattern {
    pub fn parse(pattern: &str) -> Result<Self, BadPattern> {
        let host = pattern.strip_prefix("*.").unwrap_or(pattern);
        let is_host = |host: &str| page_host(&format!("http://{host}/")).is_ok_and(|found| found == host);
        if pattern == "*" || (is_host(host) && !host.contains(':')) {
            Ok(Self(pattern.to_ascii_lowercase()))
        } else {
            Err(BadPattern(pattern.into()))
        }
    }

    /// Whether this host, in small letters and without a dot at its end, is meant.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        match self.0.strip_prefix("*.") {
            Some(domain) => is_within(host, domain),
            None => self.0 == "*" || self.0 == host,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_within(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    pub allow: Vec<HostPattern>,
    /// Whether orders that name no page, such as pictures, are taken.
    pub images: bool,
}

impl Default for Targets {
    fn default() -> Self {
        Self { allow: Vec::new(), images: true }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error(
        "`{host}` is not a host that may be automated: if you may automate it, add it to `targets.allow`"
    )]
    Host { host: String },
    #[error("pictures are switched off: set `targets.images = true` to take orders of kind {kind}")]
    Images { kind: String },
    #[error(
        "an order of kind {kind} must say in `pageurl` which page it is for: only known hosts are automated"
    )]
    NoPage { kind: String },
}

impl Targets {
    /// Whether an order may be placed. What is not an address at all is left for the check of the parameters.
    pub fn check(&self, kind: &Kind, draft: &Draft) -> Result<(), NotAllowed> {
        let mut pages = kind.fields.iter().filter(|field| field.shape == Shape::PageAddress).peekable();
        if pages.peek().is_none() {
            return if self.images {
                Ok(())
            } else {
                Err(NotAllowed::Images { kind: kind.name.to_string() })
            };
        }
        let mut named = 0;
        for field in pages {
            let Some(Value::Text(address)) = draft.params.get(field.name) else { continue };
            named += 1;
            if let Ok(host) = page_host(address) {
                self.check_host(host)?;
            }
        }
        // A kind that needs its page says so itself, and better. The others must not slip through without one.
        let needs_none = kind.fields.iter().all(|field| field.shape != Shape::PageAddress || !field.required);
        if named == 0 && needs_none && !self.allow.iter().any(|pattern| pattern.0 == "*") {
            return Err(NotAllowed::NoPage { kind: kind.name.to_string() });
        }
        Ok(())
    }

    fn check_host(&self, host: &str) -> Result<(), NotAllowed> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_nobodys = NOBODYS.iter().any(|domain| is_within(&host, domain));
        if is_nobodys || self.allow.iter().any(|pattern| pattern.covers(&host)) {
            return Ok(());
        }
        Err(NotAllowed::Host { host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(allow: &[&str]) -> Targets {
        Targets {
            allow: allow.iter().map(|pattern| HostPattern::parse(pattern).unwrap()).collect(),
            images: true,
        }
    }

    #[test]
    fn only_listed_hosts_and_nobodys_are_automated() {
        let listed = targets(&["*.example.org", "Shop.Example.net"]);
        for host in [
            "example.org",
            "a.b.example.org",
            "shop.example.net",
            "SHOP.example.net.",
            "example.com",
            "x.example.com",
            "a.test",
        ] {
            assert_eq!(listed.check_host(host), Ok(()), "{host}");
        }
        for host in
            ["badexample.org", "example.org.evil.net", "a.shop.example.net", "example.comx", "latest", ""]
        {
            assert!(listed.check_host(host).is_err(), "{host}");
        }
        assert_eq!(targets(&["*"]).check_host("anything.at.all"), Ok(()));
    }

    #[test]
    fn a_pattern_that_would_not_match_what_its_author_means_is_refused() {
        for pattern in [
            "",
            "https://example.org",
            "example.org/",
            "*.",
            "*example.org",
            "a.*.org",
            "a b",
            "host:80",
            "**",
        ] {
            assert!(HostPattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}

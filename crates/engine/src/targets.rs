//! Which sites may be automated. The operator lists page hosts; an order for any other is refused before anything is
//! paid for. What has no page, a picture, has a switch of its own.

use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Field, Identity, Kind, Shape, Value};
use std::collections::BTreeMap;
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
    #[error(
        "orders that name no page are switched off: set `targets.images = true` to take those of kind {kind}"
    )]
    Images { kind: String },
}

impl Targets {
    /// Whether an order may be placed. What is not an address at all is left for the check of the parameters.
    pub fn check(&self, kind: &Kind, params: &BTreeMap<String, Value>) -> Result<(), NotAllowed> {
        let is_page = |field: &Field| field.shape == Shape::PageAddress;
        let is_page_field = |name: &str| kind.fields.iter().any(|field| is_page(field) && field.name == name);
        // Of a kind that nobody has described, any address may be that of the page.
        let is_undescribed = kind.identity == Identity::Everything;
        let mut named = 0;
        for (name, value) in params {
            let Value::Text(address) = value else { continue };
            if !is_page_field(name) && !is_undescribed {
                continue;
            }
            match page_host(address) {
                Ok(host) => {
                    named += 1;
                    self.check_host(host)?;
                }
                Err(_) if is_page_field(name) => named += 1,
                Err(_) => {}
            }
        }
        // A kind that needs its page says so itself, and better.
        let needs_page = kind.fields.iter().any(|field| is_page(field) && field.required);
        if named > 0 || needs_page || self.images {
            return Ok(());
        }
        Err(NotAllowed::Images { kind: kind.name.to_string() })
    }

    pub(crate) fn check_host(&self, host: &str) -> Result<(), NotAllowed> {
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
    use quittance_lifecycle::Draft;

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

    fn undescribed(params: &[(&str, &str)], listed: &Targets) -> Result<(), NotAllowed> {
        let draft = params.iter().fold(Draft::new("t"), |draft, (name, value)| draft.with(name, *value));
        listed.check(&quittance_catalog::open_kind("brand_new"), &draft.params)
    }

    #[test]
    fn any_address_in_an_order_that_nobody_has_described_may_be_its_page() {
        let listed = targets(&["*.example.org"]);
        assert_eq!(undescribed(&[("redirect_uri", "https://shop.example.org/x")], &listed), Ok(()));
        let elsewhere = Err(NotAllowed::Host { host: "evil.example.net".into() });
        for name in ["pageurl", "redirect_uri", "whatever"] {
            let params = [("pageurl", "https://shop.example.org/"), (name, "https://evil.example.net/")];
            assert_eq!(undescribed(&params, &listed), elsewhere, "{name}");
        }
    }

    #[test]
    fn what_names_no_page_has_a_switch_of_its_own() {
        let mut listed = targets(&["*.example.org"]);
        assert_eq!(undescribed(&[("body", "aaaa"), ("steps", "[1,2]")], &listed), Ok(()));
        listed.images = false;
        assert!(matches!(undescribed(&[("body", "aaaa")], &listed), Err(NotAllowed::Images { .. })));
        assert_eq!(undescribed(&[("url", "https://shop.example.org/x")], &listed), Ok(()));
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

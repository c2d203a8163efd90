//! Which sites may be automated. The operator lists hosts; an order for any other host is refused before anything is
//! paid for. Orders without a page, such as images, have their own setting.

use crate::inspect::{Inspection, Step, fields_of, inspect};
pub use quittance_hosts::canonical as canonical_host;
use quittance_lifecycle::terms::{self, page_host};
use quittance_lifecycle::{Kind, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Hosts that belong to no real site. They are always allowed, for the mock provider and for examples.
const NOBODYS: [&str; 2] = ["example.com", "test"];

/// A pattern in a list of hosts: `shop.example.org`, `*.example.org` for that host and all below it, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a host pattern: write `shop.example.org`, `*.example.org` (that host and all below it), or `*`", .0.escape_debug())]
pub struct BadPattern(String);

impl HostPattern {
    pub fn parse(pattern: &str) -> Result<Self, BadPattern> {
        let host = pattern.strip_prefix("*.").unwrap_or(pattern);
        let is_host = |host: &str| page_host(&format!("http://{host}/")).is_ok_and(|record| record == host);
        if pattern == "*" || (is_host(host) && !host.contains(':')) {
            Ok(Self(
                pattern
                    .strip_prefix("*.")
                    .map_or_else(|| canonical_host(pattern), |host| format!("*.{}", canonical_host(host))),
            ))
        } else {
            Err(BadPattern(pattern.into()))
        }
    }

    /// How narrow the pattern is: an exact host is narrower than every wildcard, and a longer wildcard is narrower than a
    /// shorter one.
    #[must_use]
    pub fn narrowness(&self) -> impl Ord + use<> {
        (!self.0.starts_with('*'), self.0.len())
    }

    /// Whether the pattern covers this host, written as [`canonical_host`] writes it.
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

/// The host of a page address, as [`canonical_host`] writes it. `None` if the address has no host. Whatever depends on
/// the host of a page uses this spelling: the usage, lifetimes, reuse and filters.
#[must_use]
pub fn host_of_page(address: &str) -> Option<String> {
    page_host(address).ok().map(canonical_site)
}

/// The [site](quittance_lifecycle::Terms::site) of an order with these parameters, or an empty text.
#[must_use]
pub fn site(kind: &Kind, params: &BTreeMap<String, Value>) -> String {
    canonical_site(&terms::site(kind, params))
}

fn canonical_site(host: &str) -> String {
    // Only an IPv6 address has colons, and its brackets were cut off.
    if host.contains(':') { canonical_host(&format!("[{host}]")) } else { canonical_host(host) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    pub allow: Vec<HostPattern>,
    /// Whether orders that name no page, such as pictures, are taken.
    pub images: bool,
    /// Whether orders of open kinds are taken. Unset, they are on nodes without tenants.
    pub undescribed: Option<bool>,
    /// Hosts of captcha vendors, by kind, beside those that the catalogue knows.
    pub vendors: BTreeMap<String, Vec<HostPattern>>,
}

impl Default for Targets {
    fn default() -> Self {
        Self { allow: Vec::new(), images: true, undescribed: None, vendors: BTreeMap::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error(
        "`{host}` is not a host that may be automated (it is in `{}`): if you may automate it, add it to `targets.allow`, and to `hosts` of the tenant if it has that list", .field.escape_debug()
    )]
    Host { host: String, field: String },
    #[error(
        "`{host}` in `{}` is not a host of the vendor of {kind}: if it is, add it to `targets.vendors.{kind}`", .field.escape_debug()
    )]
    Vendor { host: String, field: String, kind: String },
    #[error(
        "orders that name no page are switched off: set `targets.images = true` to take those of kind {kind}"
    )]
    Images { kind: String },
    #[error("the kind `{}` is not described, and orders of such kinds are switched off: set `targets.undescribed = true` to take them, or see `quittance kinds`", .kind.escape_debug())]
    Undescribed { kind: String },
    #[error("`{}` is not the address of a page: give it in full, like https://example.com/login", .field.escape_debug())]
    NoPage { field: String },
    #[error("`{}` is not an address of the captcha's vendor: give it in full, like https://api.example.com/x, or its host alone", .field.escape_debug())]
    NoVendorAddress { field: String },
    #[error("`{}` is not a proxy: write it as host:port or login:password@host:port", .field.escape_debug())]
    NoProxy { field: String },
    #[error("`{}` must be one of: {}", .field.escape_debug(), .words.join(", "))]
    NoChoice { field: String, words: &'static [&'static str] },
    #[error("the value of `{}` is not UTF-8 text, and this parameter takes no file: send it as text", .field.escape_debug())]
    NotText { field: String },
    #[error("the provider cannot be sent this order: {why}")]
    CannotSend { why: String },
    #[error("`{}` is wrapped in too many layers of encoding to see which hosts it names: send it plain", .field.escape_debug())]
    Unreadable { field: String },
    #[error("`{}` is compressed, so the hosts that it names cannot be seen: send it plain", .field.escape_debug())]
    Packed { field: String },
    #[error(
        "the order has two names for one parameter, or a wrong name for a known one ({why}): correct the names and place it again"
    )]
    Unclear { why: String },
    #[error("{}", name_words(field, other))]
    Name { field: String, other: String },
    #[error("the order's tenant `{}` is not known here: add the tenant, or drop the order", .tenant.escape_debug())]
    Tenant { tenant: String },
    #[error("the order is not complete ({why}): place it again as it is meant")]
    Incomplete { why: String },
    #[error(
        "the kind `{kind}` is not among the `kinds` of the order's tenant: add it there, or drop the order"
    )]
    Kind { kind: String },
}

/// Why a field cannot have this name.
fn name_words(field: &str, other: &str) -> String {
    if field == other {
        return format!("`{field}` is a field of the request to the provider, not a parameter: leave it out");
    }
    format!(
        "`{}` is, to some readers, another name of `{other}`, which has a meaning of its own: leave it out, or give it by that name",
        field.escape_debug()
    )
}

/// The part of an order that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAllowedPart<'a> {
    /// A host that this parameter names, or may name.
    Host(&'a str),
    /// The value of this parameter.
    Param(&'a str),
    /// The parameters together.
    Params,
    /// The kind, for this caller or at all.
    Kind,
}

impl NotAllowed {
    #[must_use]
    pub fn part(&self) -> NotAllowedPart<'_> {
        match self {
            Self::Host { field, .. }
            | Self::Vendor { field, .. }
            | Self::NoPage { field }
            | Self::NoVendorAddress { field }
            | Self::Unreadable { field }
            | Self::Packed { field } => NotAllowedPart::Host(field),
            Self::NoProxy { field }
            | Self::Name { field, .. }
            | Self::NoChoice { field, .. }
            | Self::NotText { field } => NotAllowedPart::Param(field),
            Self::Unclear { .. } | Self::CannotSend { .. } | Self::Incomplete { .. } => {
                NotAllowedPart::Params
            }
            Self::Images { .. } | Self::Undescribed { .. } | Self::Tenant { .. } | Self::Kind { .. } => {
                NotAllowedPart::Kind
            }
        }
    }
}

impl Targets {
    /// Whether an order may be placed. A value that is not an address is left to the check of the parameters.
    pub fn check(&self, kind: &Kind, params: &BTreeMap<String, Value>) -> Result<(), NotAllowed> {
        let fields = fields_of(params);
        inspect(&Inspection { step: Step::Place, kind, fields: &fields, operator: self, tenant: None })
    }

    /// Whether a host, as [`canonical_host`] writes it, may be automated.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let is_nobodys = NOBODYS.iter().any(|domain| is_within(host, domain));
        is_nobodys || self.allow.iter().any(|pattern| pattern.covers(host))
    }

    pub(crate) fn check_host(&self, host: &str) -> Result<(), NotAllowed> {
        let host = canonical_host(host);
        if self.allows(&host) { Ok(()) } else { Err(NotAllowed::Host { host, field: "site".into() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Draft;

    fn targets(allow: &[&str]) -> Targets {
        Targets {
            allow: allow.iter().map(|pattern| HostPattern::parse(pattern).unwrap()).collect(),
            ..Targets::default()
        }
    }

    #[test]
    fn only_listed_hosts_and_reserved_names_are_automated() {
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
        listed.check(&quittance_protocol::kinds::open_kind("brand_new"), &draft.params)
    }

    #[test]
    fn any_address_in_an_order_of_an_open_kind_may_be_its_page() {
        let listed = targets(&["*.example.org"]);
        assert_eq!(undescribed(&[("redirect_uri", "https://shop.example.org/x")], &listed), Ok(()));
        let elsewhere =
            |field: &str| Err(NotAllowed::Host { host: "evil.example.net".into(), field: field.into() });
        for name in ["pageurl", "redirect_uri", "whatever"] {
            let params = [("pageurl", "https://shop.example.org/"), (name, "https://evil.example.net/")];
            assert_eq!(undescribed(&params, &listed), elsewhere(name), "{name}");
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

    #[test]
    fn the_host_of_a_page_has_one_spelling() {
        for (page, host) in [
            ("https://SHOP.example.org./login", "shop.example.org"),
            ("https://münchen.example.org/", "xn--mnchen-3ya.example.org"),
            ("http://u:p@MÜNCHEN.example.org:8080?x", "xn--mnchen-3ya.example.org"),
            ("https://xn--mnchen-3ya.example.org#x", "xn--mnchen-3ya.example.org"),
            ("https://[2606:2800:0220:1::1]:443/", "2606:2800:220:1::1"),
            ("https://shop_1.example.org/", "shop_1.example.org"),
        ] {
            assert_eq!(host_of_page(page).as_deref(), Some(host), "{page}");
        }
        assert_eq!(host_of_page("shop.example.org"), None);
    }
}

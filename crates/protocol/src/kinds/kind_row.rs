//! The type of a row in the table of kinds, and the functions to write one with. A row has only what is
//! special about its kind. The rest comes from one of four patterns: picture, token, cookie, or open.

use crate::kinds::order_fields::ORDER_FIELDS;
use core::time::Duration;
use quittance_lifecycle::{Field, HostRules, Identity, Kind, Pace, Role, Shape};
use std::borrow::Cow;

/// A [`Kind`] that can be written as a constant on top of a pattern (`..TOKEN`).
#[derive(Clone, Copy)]
pub(crate) struct KindRow {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) identity: Identity,
    pub(crate) immaterial: &'static [&'static str],
    pub(crate) address_fields: &'static [&'static str],
    pub(crate) bound_to_address: bool,
    pub(crate) lasts: Lasts,
    pub(crate) pace: Pace,
    /// The hosts that vendor addresses of this kind may name: see [`vendor`].
    pub(crate) vendors: &'static [&'static str],
    /// Addresses of the vendor's scripts on a shared host, each ending at a name boundary.
    pub(crate) scripts: &'static [&'static str],
}

/// How long an answer is good, and for how many uses.
#[derive(Clone, Copy)]
pub(crate) enum Lasts {
    ForEver,
    /// The site takes it once.
    Once {
        life_s: u64,
        margin_s: u64,
    },
    /// The caller can use the answer again until it expires.
    Again {
        life_s: u64,
        margin_s: u64,
    },
}

impl KindRow {
    pub(crate) fn kind(&self) -> Kind {
        let (life_s, margin_s, single_use) = match self.lasts {
            Lasts::ForEver => (None, 0, false),
            Lasts::Once { life_s, margin_s } => (Some(life_s), margin_s, true),
            Lasts::Again { life_s, margin_s } => (Some(life_s), margin_s, false),
        };
        Kind {
            name: Cow::Borrowed(self.name),
            fields: self.fields,
            identity: self.identity,
            immaterial: self.immaterial,
            address_fields: self.address_fields,
            bound_to_address: self.bound_to_address,
            life: life_s.map(Duration::from_secs),
            margin: Duration::from_secs(margin_s),
            single_use,
            pace: self.pace,
            hosts: HostRules {
                is_described: !self.name.is_empty(),
                vendors: self.vendors,
                scripts: self.scripts,
                roles: ROLES,
                known: KNOWN,
                control: CONTROL,
            },
        }
    }
}

/// Fields that are about the request and not about the task. `method` is one of them, because the kind already says
/// it, and one kind can have several methods (`post` and `base64` for a picture). The options of an order
/// (`idempotency_key`, `deadline_s`, ...) are for Quittance: no provider gets them.
pub const CONTROL: &[&str] =
    &joined::<{ PROTOCOL_FIELDS.len() + ORDER_FIELDS.len() }>(PROTOCOL_FIELDS, &ORDER_FIELDS);

/// Control fields of the protocols themselves.
const PROTOCOL_FIELDS: &[&str] = &[
    "callbackUrl",
    "clientKey",
    "debug_dump",
    "header_acao",
    "json",
    JSON_TEXTS,
    "key",
    "method",
    "pingback",
    "softId",
    "soft_id",
];

/// Fields about the visit: the page, and the visitor.
const VISIT_FIELDS: &[&str] = &["cookies", "json_cookies", "pageurl", "proxy", "proxytype", "userAgent"];

/// Joins two lists. `N` is the sum of their lengths.
const fn joined<const N: usize>(first: &[&'static str], second: &[&'static str]) -> [&'static str; N] {
    let mut all = [""; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// Lists the parameters of an open kind that were text in JSON although they look like another type.
pub const JSON_TEXTS: &str = "json_texts";

/// The fields that do not identify a picture: a picture has the same answer on every page and for every caller.
const CONTROL_AND_VISIT: &[&str] = &joined::<{ CONTROL.len() + VISIT_FIELDS.len() }>(CONTROL, VISIT_FIELDS);

/// Parameters that an order of any kind can have.
const ROLES: &[(&str, Role)] = &[
    ("cookies", Role::Plain),
    ("data[blob]", Role::Token),
    ("instructions", Role::Plain),
    ("json_cookies", Role::Plain),
    ("lang", Role::Key),
    ("language", Role::Key),
    ("languagePool", Role::Key),
    ("proxy", Role::Proxy),
    ("proxytype", Role::Choice(&["http", "https", "socks4", "socks5"])),
    ("textcaptcha", Role::Plain),
    ("textinstructions", Role::Plain),
    ("userAgent", Role::Plain),
];

/// Parameters that a kind knows as text, but that are no keys.
const KNOWN: &[(&str, Role)] = &[
    ("action", Role::Word),
    ("anchor", Role::Html),
    ("data", Role::Word),
    ("datadome_cookie", Role::Plain),
    ("html", Role::Html),
    ("html_page_base64", Role::Html),
    ("htmlPageBase64", Role::Html),
    ("incapsulaCookies", Role::Plain),
    ("script", Role::Script),
    ("tspd_cookie", Role::Plain),
];

const PROXY: &[&str] = &["proxy", "proxytype"];

/// A question that holds all that is needed to answer it: the same bytes always have the same answer. Every parameter
/// counts unless it is known to be irrelevant. An unknown hint may change the answer, and a wrong answer would be
/// kept for ever.
pub(crate) const PICTURE: KindRow = KindRow {
    name: "",
    fields: &[],
    identity: Identity::Everything,
    immaterial: CONTROL_AND_VISIT,
    address_fields: &[],
    bound_to_address: false,
    lasts: Lasts::ForEver,
    pace: pace(5, 20, 45),
    vendors: &[],
    scripts: &[],
};

/// An answer that a site takes once, within two minutes unless the kind says otherwise. No shorter life is known of a
/// token without a one-time challenge.
pub(crate) const TOKEN: KindRow = KindRow {
    name: "",
    fields: &[],
    identity: Identity::Everything,
    immaterial: CONTROL,
    address_fields: PROXY,
    bound_to_address: false,
    lasts: Lasts::Once { life_s: 120, margin_s: 40 },
    pace: pace(15, 60, 100),
    vendors: &[],
    scripts: &[],
};

/// A cookie that admits one visitor for a while. It works only with its proxy and browser, so both count. The site
/// sets its life, from a quarter of an hour up; we assume the shortest.
pub(crate) const COOKIE: KindRow = KindRow {
    bound_to_address: true,
    lasts: Lasts::Again { life_s: 900, margin_s: 40 },
    pace: pace(15, 60, 120),
    ..TOKEN
};

/// An open kind, whose meaning is not known. It may be bound to its proxy, so the proxy counts. Its page address is
/// checked, because every order is checked for the sites that may be automated.
pub(crate) const OPEN: KindRow =
    KindRow { fields: &[Field { required: false, ..PAGE }], bound_to_address: true, ..TOKEN };

/// The usual solve times of a kind, as percentiles in seconds.
pub(crate) const fn pace(p50: u64, p95: u64, p99: u64) -> Pace {
    Pace { p50: Duration::from_secs(p50), p95: Duration::from_secs(p95), p99: Duration::from_secs(p99) }
}

/// The page that the answer is for.
pub(crate) const PAGE: Field = Field { shape: Shape::PageAddress, ..required("pageurl") };

/// The page on which a picture was found. Some providers solve better if they know it.
pub(crate) const FOUND_ON: Field = Field { required: false, identifies: false, default: Some(""), ..PAGE };

/// The smallest and the largest picture that any provider takes: 2captcha wants 100 bytes, and CaptchaAI's newer
/// documentation allows 1024 kB. A provider that allows less rejects the picture and charges nothing. A stricter
/// limit would refuse what the next provider takes.
const PICTURE_SHAPE: Shape = Shape::File { bytes_min: 100, bytes_max: 1024 * 1024 };

/// The file that the order is about.
pub(crate) const BODY: Field = Field { shape: PICTURE_SHAPE, ..required("body") };

/// A text without which no provider takes the order.
pub(crate) const fn required(name: &'static str) -> Field {
    Field { name, shape: Shape::Text, required: true, substitutes: &[], identifies: true, default: None }
}

/// A text that asks for a different answer. Many clients send an empty text for what they do not set, so an absent
/// field means an empty text.
pub(crate) const fn optional(name: &'static str) -> Field {
    defaulted(name, "")
}

/// A text that asks for a different answer, with the default on which the providers agree.
pub(crate) const fn defaulted(name: &'static str, default: &'static str) -> Field {
    Field { required: false, default: Some(default), ..required(name) }
}

/// An address or a host of the captcha's vendor. It is not the page, so the operator does not list it. It must be in
/// the kind's `vendors`, in the operator's additions, or in the list of hosts that may be automated.
pub(crate) const fn vendor(name: &'static str) -> Field {
    Field { shape: Shape::VendorAddress, ..optional(name) }
}

/// A vendor address without which no provider takes the order.
pub(crate) const fn required_vendor(name: &'static str) -> Field {
    Field { shape: Shape::VendorAddress, ..required(name) }
}

/// A text that goes to the provider and changes how it solves, but not what the answer is good for.
pub(crate) const fn aside(name: &'static str) -> Field {
    Field { identifies: false, ..optional(name) }
}

/// A further file that asks for a different answer.
pub(crate) const fn file(name: &'static str) -> Field {
    Field { shape: PICTURE_SHAPE, required: false, default: None, ..required(name) }
}

/// A document or a picture that is sent as text, in base64.
pub(crate) const fn document(name: &'static str) -> Field {
    Field { shape: Shape::Document, ..optional(name) }
}

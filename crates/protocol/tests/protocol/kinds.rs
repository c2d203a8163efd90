//! Tests of the table of kinds with real orders: a good order gets a key, a bad one a reason.

mod addresses;
mod bad_input;
mod keys;
mod prices;
mod rows;

use quittance_lifecycle::{
    BadRequest, Draft, Key, KeySettings, Kind, Policy, Reuse, Shape, Terms, Timestamp,
};
use quittance_protocol::kinds::{kind, open_kind};

const NOON: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const PAGE: &str = "https://example.com/login";

/// The described kind, or an open kind with this name.
fn known(name: &str) -> Kind {
    kind(name).unwrap_or_else(|| open_kind(name))
}

fn check_with(kind: &Kind, draft: &Draft, settings: KeySettings) -> Result<(Key, Terms), BadRequest> {
    draft.clone().check(kind, settings, &Policy::DEFAULT, NOON, 1)
}

fn check(kind: &str, draft: &Draft) -> Result<(Key, Terms), BadRequest> {
    check_with(&known(kind), draft, KeySettings::default())
}

fn key(kind: &str, draft: &Draft) -> Key {
    check(kind, draft).unwrap_or_else(|why| panic!("{kind}: {why}")).0
}

/// A picture slightly above the least size. Each `n` gives another picture, with the same first hundred bytes.
fn picture(n: u32) -> Vec<u8> {
    let mut bytes = vec![0x89; 100];
    bytes.extend(n.to_le_bytes());
    bytes
}

/// An order with only the required parameters of its kind.
fn least(kind: &Kind) -> Draft {
    kind.fields.iter().filter(|field| field.required).fold(alice(), |draft, field| match field.shape {
        Shape::Text | Shape::VendorAddress | Shape::Document => draft.with(field.name, "x"),
        Shape::PageAddress => draft.with(field.name, PAGE),
        Shape::File { .. } => draft.with(field.name, picture(0)),
    })
}

/// An order with shared reuse, because these tests are about which orders are equal.
fn alice() -> Draft {
    Draft { reuse: Some(Reuse::Shared), ..Draft::new("alice") }
}

fn recaptcha() -> Draft {
    alice().with("googlekey", "6Lc").with("pageurl", PAGE)
}

fn site() -> Draft {
    alice().with("sitekey", "0x4A").with("pageurl", PAGE)
}

fn image(n: u32) -> Draft {
    alice().with("body", picture(n))
}

fn challenge() -> Draft {
    alice().with("pageurl", PAGE).with("proxy", "10.0.0.1:8080").with("proxytype", "HTTP")
}

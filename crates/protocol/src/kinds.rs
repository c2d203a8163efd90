//! The kinds of order, as data.
//!
//! Each kind is one row that a person can read and correct: the parameters that it takes, which of them ask for
//! a different answer, how long the answer lives and how long it takes. Parameters have the names of the classic
//! protocol, whichever API an order came through.

mod cookies;
mod kind_row;
mod order_fields;
mod pictures;
mod prices;
mod tokens;
mod undescribed;

use kind_row::KindRow;
pub use kind_row::{CONTROL, JSON_TEXTS};
pub use order_fields::{ORDER_FIELDS, order_field, order_field_meant};
pub use prices::{PriceList, price_list, price_lists};
use quittance_lifecycle::{Kind, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
pub use undescribed::{PARAMETERS, UNDESCRIBED};

/// A kind and its parameters, in the words of the catalogue: what each protocol reads from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderParams {
    pub kind: String,
    pub params: BTreeMap<String, Value>,
}

fn rows() -> impl Iterator<Item = &'static KindRow> {
    [pictures::ROWS, tokens::ROWS, cookies::ROWS].into_iter().flatten()
}

/// Every kind that has been described.
pub fn kinds() -> impl Iterator<Item = Kind> {
    rows().map(KindRow::kind)
}

/// The kind of this name, if it has been described. Names are exact: no kind has two.
#[must_use]
pub fn kind(name: &str) -> Option<Kind> {
    rows().find(|row| row.name == name).map(KindRow::kind)
}

/// What a kind is called where the number of names must not grow with what callers write: all open kinds have one
/// name there.
#[must_use]
pub fn label(name: &str) -> &str {
    if rows().any(|row| row.name == name) { name } else { "other" }
}

/// What to assume about an open kind: new ones appear every few months, and an order of one must work. It errs
/// towards paying twice, never towards handing out an answer that does not fit.
#[must_use]
pub fn open_kind(name: impl Into<String>) -> Kind {
    Kind { name: Cow::Owned(name.into()), ..kind_row::OPEN.kind() }
}

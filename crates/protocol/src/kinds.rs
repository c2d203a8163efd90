//! The kinds of order, as data.
//!
//! Each kind is one row: the parameters that it takes, which of them ask for a different answer, how long the answer
//! lives and how long it takes. Parameters have the names of the classic protocol in every API.

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

/// A kind and its parameters, in the names of the catalogue: what each protocol reads from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderParams {
    pub kind: String,
    pub params: BTreeMap<String, Value>,
}

fn rows() -> impl Iterator<Item = &'static KindRow> {
    [pictures::ROWS, tokens::ROWS, cookies::ROWS].into_iter().flatten()
}

/// Every described kind.
pub fn kinds() -> impl Iterator<Item = Kind> {
    rows().map(KindRow::kind)
}

/// The described kind with this name. Names are exact, and no kind has two.
#[must_use]
pub fn kind(name: &str) -> Option<Kind> {
    rows().find(|row| row.name == name).map(KindRow::kind)
}

/// The name of a kind for metrics, where callers must not add names: all open kinds share one.
#[must_use]
pub fn label(name: &str) -> &str {
    if rows().any(|row| row.name == name) { name } else { "other" }
}

/// The assumptions about an open kind. New kinds appear every few months, and an order for one must work. These
/// assumptions may lead to paying twice, but never to an answer that does not fit.
#[must_use]
pub fn open_kind(name: impl Into<String>) -> Kind {
    Kind { name: Cow::Owned(name.into()), ..kind_row::OPEN.kind() }
}

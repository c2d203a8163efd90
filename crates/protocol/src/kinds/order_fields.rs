//! The fields of an order that are for Quittance itself, and the names that are nearly theirs. One rule for every API.

/// The fields that say which job an order is, how long it may take, and how fresh and how shared its answer may be.
pub const ORDER_FIELDS: [&str; 6] =
    ["deadline_s", "idempotency_key", "min_life_s", "no_stock", "nocache", "reuse"];

/// How the names of these fields begin, squeezed. No service has a field that begins so.
const BEGINNINGS: [(&str, &str); 6] = [
    ("idemp", "idempotency_key"),
    ("deadline", "deadline_s"),
    ("minlife", "min_life_s"),
    ("nostock", "no_stock"),
    ("nocache", "nocache"),
    ("reuse", "reuse"),
];

fn squeezed(name: &str, is_left_out: impl Fn(u8) -> bool) -> Vec<u8> {
    name.bytes().filter(|byte| !is_left_out(*byte)).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// The field that a client means by this name. Case, underscores and hyphens do not count: `idempotencyKey` is
/// `idempotency_key`.
#[must_use]
pub fn order_field(name: &str) -> Option<&'static str> {
    let is_left_out = |byte: u8| matches!(byte, b'_' | b'-');
    let name = squeezed(name, is_left_out);
    ORDER_FIELDS.into_iter().find(|known| squeezed(known, is_left_out) == name)
}

/// The field that is most likely meant by a name that is none, but begins like one: `idempotency`, `deadline_ms`. To
/// ignore such a name would buy a job again that its client takes to be safe.
#[must_use]
pub fn order_field_meant(name: &str) -> Option<&'static str> {
    let squeezed = squeezed(name, |byte| !byte.is_ascii_alphanumeric());
    let meant = BEGINNINGS.into_iter().find(|(beginning, _)| squeezed.starts_with(beginning.as_bytes()));
    meant.filter(|_| order_field(name).is_none()).map(|(_, meant)| meant)
}

//! The options of an order that are for Quittance itself, and names that are nearly theirs. Every API uses
//! these rules.

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

/// The field that is most likely meant by a name that is none: it begins like one (`idempotency`, `deadline_ms`), has the whole of
/// one in it (`x-idempotency-key`), or is one with a slip of the fingers (`indempotency_key`). To ignore such a name would buy a
/// job again that its client takes to be safe.
#[must_use]
pub fn order_field_meant(name: &str) -> Option<&'static str> {
    if order_field(name).is_some() {
        return None;
    }
    let squeezed = |name: &str| squeezed(name, |byte| !byte.is_ascii_alphanumeric());
    let typed = String::from_utf8(squeezed(name)).ok()?;
    let beginning = BEGINNINGS.into_iter().find(|(beginning, _)| typed.starts_with(beginning));
    let is_near = |known: &&'static str| {
        let known = String::from_utf8(squeezed(known)).unwrap_or_default();
        let most = if known.len() > 8 { 2 } else { 1 };
        strsim::osa_distance(&typed, &known) <= most
    };
    match beginning {
        Some((_, meant)) => Some(meant),
        None if typed.contains("idempotency") => Some("idempotency_key"),
        None => ORDER_FIELDS.into_iter().find(is_near),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{CONTROL, PARAMETERS};

    #[test]
    fn a_slip_of_the_fingers_is_noticed() {
        for (typed, meant) in [
            ("indempotency_key", "idempotency_key"),
            ("idmpotency_key", "idempotency_key"),
            ("x-idempotency-key", "idempotency_key"),
            ("min_lief_s", "min_life_s"),
            ("mn_life_s", "min_life_s"),
            ("dealine_s", "deadline_s"),
            ("resue", "reuse"),
            ("reus", "reuse"),
            ("no_stok", "no_stock"),
            ("nocahe", "nocache"),
        ] {
            assert_eq!(order_field_meant(typed), Some(meant), "{typed}");
        }
    }

    #[test]
    fn no_field_that_a_service_has_is_taken_for_one_of_ours() {
        for name in PARAMETERS.iter().chain(CONTROL).filter(|name| order_field(name).is_none()) {
            assert_eq!(order_field_meant(name), None, "{name}");
        }
    }
}

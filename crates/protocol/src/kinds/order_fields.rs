//! The options of an order that are for Quittance itself, and misspellings of their names. Every API uses these
//! rules.

/// The longest name that is compared with known ones.
const NAME_BYTES_MAX: usize = 64;

/// The fields that select the job of an order, its deadline and retries, how urgent it is, and how fresh and how shared
/// its answer can be.
pub const ORDER_FIELDS: [&str; 10] = [
    "deadline_s",
    "idempotency_key",
    "max_retries",
    "min_life_s",
    "no_stock",
    "nocache",
    "priority",
    "retry_base_s",
    "retry_cap_s",
    "reuse",
];

/// The beginnings of these fields, without case and separators. No service has a field with such a beginning.
const BEGINNINGS: [(&str, &str); 10] = [
    ("idemp", "idempotency_key"),
    ("deadline", "deadline_s"),
    ("maxretr", "max_retries"),
    ("minlife", "min_life_s"),
    ("nostock", "no_stock"),
    ("nocache", "nocache"),
    ("retrybase", "retry_base_s"),
    ("retrycap", "retry_cap_s"),
    ("priorit", "priority"),
    ("reuse", "reuse"),
];

fn squeezed(name: &str, is_left_out: impl Fn(u8) -> bool) -> Vec<u8> {
    name.bytes().filter(|byte| !is_left_out(*byte)).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// The order field with this name. Case, underscores and hyphens do not count: `idempotencyKey` is `idempotency_key`.
#[must_use]
pub fn order_field(name: &str) -> Option<&'static str> {
    let is_left_out = |byte: u8| matches!(byte, b'_' | b'-');
    let name = squeezed(name, is_left_out);
    ORDER_FIELDS.into_iter().find(|known| squeezed(known, is_left_out) == name)
}

/// The order field that a name probably means, although it is none. The name has the same beginning (`idempotency`,
/// `deadline_ms`), contains `idempotency` (`x-idempotency-key`), or has a typing error (`indempotency_key`). Ignoring
/// it could buy a job again that the client believes to be safe.
#[must_use]
pub fn order_field_meant(name: &str) -> Option<&'static str> {
    // The cost of the comparison grows with the length, and no slip makes a name this long.
    if name.len() > NAME_BYTES_MAX || order_field(name).is_some() {
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
            ("prioirty", "priority"),
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

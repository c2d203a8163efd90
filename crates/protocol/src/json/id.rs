//! Ids of tasks. Ours are decimal numbers. If clients of a dialect expect a UUID, the number is encoded in one, so no
//! table of ids is needed. An order can be read through any API.

use quittance_lifecycle::order::TASK_BYTES_MAX;
use serde_json::Value;
use std::fmt;

/// Our id of a task, as clients see it. It is never larger than a JavaScript number can hold exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Spreads a number over 64 bits. The result fills the rest of a UUID, and tells our UUIDs from others.
const fn scatter(id: u64) -> u64 {
    let mut x = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number as a UUID of version 8 (custom): its own bits, and a check of them.
#[must_use]
pub fn uuid_of(id: u64) -> String {
    let check = scatter(id);
    let mask = check & 0x0fff_ffff;
    let (first, tail) = (check >> 32, id & 0xf_ffff);
    let (top, middle, low) = (id >> 48, (id >> 36) & 0xfff, (id >> 22) & 0x3fff);
    let last = (tail << 28) | mask;
    // Two bits of the number found no room between the fixed ones.
    let first = (first & !3) | ((id >> 20) & 3);
    format!("{first:08x}-{top:04x}-8{middle:03x}-{:04x}-{last:012x}", 0x8000 | low)
}

/// The number in a UUID of [`uuid_of`], or `None` for any other text.
#[must_use]
pub fn id_of_uuid(text: &str) -> Option<u64> {
    if text.len() != 36 || !text.is_ascii() {
        return None;
    }
    let part = |from: usize, to: usize| u64::from_str_radix(&text[from..to], 16).ok();
    let (first, top, middle) = (part(0, 8)?, part(9, 13)?, part(15, 18)?);
    let (low, last) = (part(19, 23)? & 0x3fff, part(24, 36)?);
    let id = (top << 48) | (middle << 36) | (low << 22) | ((first & 3) << 20) | (last >> 28);
    uuid_of(id).eq_ignore_ascii_case(text).then_some(id)
}

/// The task that a client names: a number, a number in quotes, or our UUID.
#[must_use]
pub fn read_task_id(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let text = text.trim();
            let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_decimal { text.parse().ok() } else { id_of_uuid(text) }
        }
        _ => None,
    }
}

/// A provider's task id of any JSON type, if a task can be polled by it.
pub(crate) fn foreign_task(value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(number) if number.is_u64() => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let is_a_name = text.bytes().all(|byte| byte.is_ascii_graphic()) && text.len() <= TASK_BYTES_MAX;
    (is_a_name && !text.is_empty()).then_some(text)
}

/// A task id as JSON: a number if the id can have been one, else text.
#[must_use]
pub fn spell_task(task: &str) -> Value {
    let is_canonical = task.len() == 1 || !task.starts_with('0');
    match task.parse::<u64>() {
        Ok(number) if is_canonical && !task.starts_with('+') => Value::from(number),
        _ => Value::from(task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_and_its_uuid_name_the_same_task() {
        let ids = [0, 1, 2, 74_327_409_378, (1 << 53) - 1, 1 << 53, u64::MAX, 0xf_ffff, 0x30_0000, 1 << 35];
        for id in ids {
            let uuid = uuid_of(id);
            assert_eq!(id_of_uuid(&uuid), Some(id), "{uuid}");
            assert_eq!(id_of_uuid(&uuid.to_uppercase()), Some(id));
            let places: Vec<_> = uuid.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at).collect();
            assert_eq!((places, uuid.len()), (vec![8, 13, 18, 23], 36));
            for value in [json!(id), json!(id.to_string()), json!(uuid)] {
                assert_eq!(read_task_id(&value), Some(id));
            }
        }
    }

    #[test]
    fn what_is_not_ours_names_nothing() {
        let strange = [
            json!("61138bb6-19fb-11ec-a9c8-0242ac110006"),
            json!(""),
            json!("x"),
            json!(-1),
            json!(1.5),
            json!(null),
            json!([1]),
            json!("+1"),
            json!("99999999999999999999999"),
            json!("é1138bb6-19fb-11ec-a9c8-0242ac11000"),
        ];
        for value in strange {
            assert_eq!(read_task_id(&value), None, "{value}");
        }
        let changed = uuid_of(7).replace('8', "9");
        assert_eq!(id_of_uuid(&changed), None);
    }

    #[test]
    fn a_providers_task_goes_back_with_the_type_it_came_with() {
        for value in [json!(74_327_409_378_u64), json!("61138bb6-19fb-11ec"), json!("007"), json!(0)] {
            assert_eq!(spell_task(&foreign_task(&value).unwrap()), value);
        }
        for value in [json!(null), json!(""), json!("a b"), json!(-3), json!({}), json!("x".repeat(500))] {
            assert_eq!(foreign_task(&value), None);
        }
    }
}

//! Records that are damaged or from a later version: no panic, no guess, and no secret in the error.

use super::AnyRecord;
use super::any::Any;
use super::cases::{self, SECRET};
use super::names::{NAMED, every_name};
use crate::{Flaw, RecordError, VERSION};
use serde_json::{Map, Value, json};

/// Fields that contain names from outside.
const OPEN: [&str; 4] = ["params", "extras", "retries", "demand"];

/// Fails if the error, written in any way, shows content of the record.
fn check_silence(name: &str, error: &RecordError) {
    for message in [format!("{error}"), format!("{error:?}")] {
        assert!(!message.contains(SECRET), "{name}: {message}");
    }
}

fn json(value: &AnyRecord) -> Value {
    serde_json::from_slice(&value.encode()).unwrap()
}

/// Calls `change` on a copy of `whole` for each object in it, with the path to that object.
fn for_each_object(
    whole: &Value,
    mut change: impl FnMut(&mut Map<String, Value>, &str, &dyn Fn(Map<String, Value>) -> Value),
) {
    fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.push(path.into());
                fields.iter().for_each(|(name, inner)| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    paths(inner, &format!("{path}/{name}"), found);
                });
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, inner)| paths(inner, &format!("{path}/{n}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    paths(whole, "", &mut found);
    for path in found {
        let mut object = whole.pointer(&path).unwrap().as_object().unwrap().clone();
        let put_back = |object: Map<String, Value>| {
            let mut copy = whole.clone();
            *copy.pointer_mut(&path).unwrap() = Value::Object(object);
            copy
        };
        change(&mut object, &path, &put_back);
    }
}

fn decode(value: &AnyRecord, json: &Value) -> Result<AnyRecord, RecordError> {
    value.decode(&serde_json::to_vec(json).unwrap())
}

#[test]
fn a_flipped_bit_anywhere_never_panics_and_gives_nothing_away() {
    for (name, value) in cases::all() {
        let whole = value.encode();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                if let Err(error) = value.decode(&bytes) {
                    check_silence(name, &error);
                }
            }
        }
    }
}

#[test]
fn a_record_that_breaks_off_anywhere_is_an_error() {
    for (name, value) in cases::all() {
        let whole = value.encode();
        for length in 0..whole.len() {
            let error = value.decode(&whole[..length]).expect_err(name);
            assert!(matches!(error, RecordError::Unreadable { flaw: Flaw::Short, .. }), "{name}: {error}");
        }
    }
}

#[test]
fn noise_never_panics() {
    let (_, order) = cases::all().into_iter().find(|(name, _)| *name == "order-queued").unwrap();
    for seed in 0..2000 {
        let mut any = Any(seed);
        let length = any.below(200);
        let noise: Vec<u8> = (0..length).map(|_| any.number().to_le_bytes()[0]).collect();
        assert!(order.decode(&noise).is_err());
    }
    let deep = format!("{{\"v\":1,\"phase\":{}", "{\"phase\":[".repeat(100_000));
    assert!(order.decode(deep.as_bytes()).is_err());
}

#[test]
fn a_field_from_the_future_is_passed_over_wherever_it_stands() {
    for (name, value) in cases::all() {
        for_each_object(&json(&value), |object, path, put_back| {
            if OPEN.iter().any(|open| path.ends_with(&format!("/{open}"))) {
                return;
            }
            object.insert("from_the_future".into(), json!({ "is": ["anything", null, 1.5] }));
            assert_eq!(decode(&value, &put_back(object.clone())), Ok(value.clone()), "{name} at {path}");
        });
    }
}

#[test]
fn a_name_from_the_future_is_an_error_that_says_what_was_found_and_what_is_understood() {
    let mut checked = 0;
    for (name, value) in cases::all() {
        for_each_object(&json(&value), |object, path, put_back| {
            for field in NAMED.iter().filter(|field| object.contains_key(**field)) {
                let mut object = object.clone();
                object.insert((*field).into(), json!("from_the_future"));
                let error = decode(&value, &put_back(object)).expect_err(name);
                let RecordError::UnknownName { field: place, found, understood } = &error else {
                    panic!("{name} at {path}: {error}")
                };
                assert!(place.ends_with(field), "{place}");
                assert_eq!(found, "`from_the_future`");
                assert!(understood.iter().all(|name| every_name().contains(name)));
                checked += 1;
            }
        });
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn an_unknown_name_is_reported_with_its_place_and_what_to_do() {
    let (_, order) = cases::all().into_iter().find(|(name, _)| *name == "order-every-progress").unwrap();
    let mut json = json(&order);
    json["attempts"][7]["is"] = json!("mislaid");
    assert_eq!(
        decode(&order, &json).unwrap_err().to_string(),
        "`attempts[7].is` says `mislaid`, and this version of Quittance knows only sent, solving, trailing, \
         given_up, faulted, answered, surplus: leave the record as it is, and read it with the version that wrote \
         it or a later one"
    );
}

#[test]
fn a_name_that_is_no_name_is_not_shown() {
    let (_, order) = cases::all().into_iter().find(|(name, _)| *name == "order-queued").unwrap();
    for found in [SECRET, "", "Password", "a b", &"a".repeat(33)] {
        let mut json = json(&order);
        json["phase"]["is"] = json!(found);
        let error = decode(&order, &json).unwrap_err();
        assert!(error.to_string().contains("`phase.is` says something that is no name"), "{error}");
    }
}

#[test]
fn a_retry_class_from_the_future_is_an_error_because_its_limit_would_begin_again() {
    let (_, order) = cases::all().into_iter().find(|(name, _)| *name == "order-one-retry").unwrap();
    let mut json = json(&order);
    json["retries"]["tired"] = json!(2);
    let error = decode(&order, &json).unwrap_err();
    assert!(matches!(error, RecordError::UnknownName { field, .. } if field == "retries"));
}

#[test]
fn an_unknown_version_is_an_error_whatever_else_the_record_says() {
    for (name, value) in cases::all() {
        for other in [0, VERSION + 1, u64::MAX] {
            let mut changed = json(&value);
            changed["v"] = json!(other);
            let expected = RecordError::UnknownVersion { found: other, understood: VERSION };
            assert_eq!(decode(&value, &changed), Err(expected.clone()), "{name}");
            let strange = json!({ "v": other, "key": [], "phase": "gone", "event": 1, "params": false });
            assert_eq!(decode(&value, &strange), Err(expected), "{name}");
        }
        let nothing = decode(&value, &json!({})).unwrap_err();
        assert_eq!(nothing, RecordError::Missing { field: "v".into() });
    }
}

#[test]
fn a_field_that_is_missing_is_named_or_has_its_default() {
    for (name, value) in cases::all() {
        for_each_object(&json(&value), |object, path, put_back| {
            if OPEN.iter().any(|open| path.ends_with(&format!("/{open}"))) {
                return;
            }
            for field in object.clone().keys() {
                let mut object = object.clone();
                object.remove(field);
                match decode(&value, &put_back(object)) {
                    Err(RecordError::Missing { field: place }) => {
                        let last = place.rsplit('.').next().unwrap();
                        // Some have a choice of what to say, and then any of it will do.
                        let is_named = last.split(" or ").any(|one| one == field);
                        assert!(is_named, "{name} at {path}: {place}");
                    }
                    Err(error) => panic!("{name} at {path}: {error}"),
                    Ok(read) => assert_ne!(read, value, "{name} at {path}: `{field}` means nothing"),
                }
            }
        });
    }
}

#[test]
fn a_value_of_the_wrong_type_is_an_error_that_gives_nothing_away() {
    let wrong = [json!(SECRET), json!(-1), json!(1.5), json!([SECRET]), json!({ "x": SECRET })];
    for (name, value) in cases::all() {
        for_each_object(&json(&value), |object, _, put_back| {
            for field in object.clone().keys() {
                for wrong in &wrong {
                    let mut object = object.clone();
                    object.insert(field.clone(), wrong.clone());
                    if let Err(error) = decode(&value, &put_back(object)) {
                        check_silence(name, &error);
                    }
                }
            }
        });
    }
}

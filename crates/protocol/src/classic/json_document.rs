//! Reads a JSON document in which no object has two different values under one name, and every number is kept exactly.
//! JSON itself does not say which of two values counts, so two readers of one request could see two different orders.
//! A number that is rounded could name another thing: two long ids would become one.

mod exact_number;

use exact_number::NumberTexts;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Why a document is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    #[error("the JSON is not valid at line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error("`{name}` was sent twice in one object, with different values: send it once")]
    SentTwice { name: String },
    /// Such as an id with 24 digits.
    #[error("the number in `{name}` cannot be kept exactly: send it as text, in quotes")]
    InexactNumber { name: String },
}

/// Why reading stopped, if the text is JSON.
enum Stop {
    SentTwice { name: String },
    InexactNumber { name: Option<String> },
}

/// Reads a document. Two equal values under one name count as one.
pub fn read(json: &[u8]) -> Result<Value, BadDocument> {
    let state = State { stop: RefCell::new(None), numbers: NumberTexts::of(json) };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = DocumentPart { state: &state }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match state.stop.take() {
        Some(Stop::SentTwice { name }) => BadDocument::SentTwice { name },
        Some(Stop::InexactNumber { name: Some(name) }) => BadDocument::InexactNumber { name },
        // A number that is in no object has no name.
        Some(Stop::InexactNumber { name: None }) | None => {
            BadDocument::NotJson { line: error.line(), column: error.column() }
        }
    })
}

/// A text that holds JSON, or `None` if it is no JSON or if a number in it would be rounded.
pub(crate) fn in_text(text: &str) -> Option<Value> {
    match read(text.as_bytes()) {
        Ok(value) => Some(value),
        Err(BadDocument::InexactNumber { .. }) => None,
        Err(BadDocument::NotJson { .. } | BadDocument::SentTwice { .. }) => serde_json::from_str(text).ok(),
    }
}

struct State<'a> {
    stop: RefCell<Option<Stop>>,
    numbers: NumberTexts<'a>,
}

/// The part of a document that is read next.
#[derive(Clone, Copy)]
struct DocumentPart<'a> {
    state: &'a State<'a>,
}

impl<'de> DeserializeSeed<'de> for DocumentPart<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentPart<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON document")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.state.numbers.skip();
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.state.numbers.skip();
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        let Some(value) = self.state.numbers.next_exact() else {
            self.state.stop.replace(Some(Stop::InexactNumber { name: None }));
            return Err(E::custom("a number cannot be kept exactly"));
        };
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = match members.next_value_seed(self) {
                Ok(value) => value,
                Err(error) => {
                    if let Some(Stop::InexactNumber { name: unnamed @ None }) =
                        &mut *self.state.stop.borrow_mut()
                    {
                        *unnamed = Some(name);
                    }
                    return Err(error);
                }
            };
            if object.get(&name).is_some_and(|known| *known != value) {
                self.state.stop.replace(Some(Stop::SentTwice { name }));
                return Err(A::Error::custom("a name has two values"));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_any_reader_does() {
        for json in [
            "null",
            "true",
            "-7",
            "18446744073709551615",
            "1.5e-3",
            r#""a\u00e9\n""#,
            r#"[1,[],{"a":[null]}]"#,
            r#"{"b":{"a":1},"a":"x"}"#,
        ] {
            assert_eq!(
                read(json.as_bytes()).unwrap(),
                serde_json::from_str::<Value>(json).unwrap(),
                "{json}"
            );
        }
        for broken in ["", "{", "{} {}", "[1,]", "nul", "\"\u{7}\"", &"[".repeat(200)] {
            assert!(matches!(read(broken.as_bytes()), Err(BadDocument::NotJson { .. })), "{broken}");
        }
    }

    #[test]
    fn two_values_under_one_name_are_an_error_at_any_depth_and_equal_ones_are_one() {
        for doubled in
            [r#"{"page":1,"page":2}"#, r#"[{"a":{"page":"x","page":"y"}}]"#, r#"{"page":null,"page":0}"#]
        {
            let name = "page".to_owned();
            assert_eq!(read(doubled.as_bytes()), Err(BadDocument::SentTwice { name }), "{doubled}");
        }
        let equal = read(br#"{"page":[1],"page":[1]}"#).unwrap();
        assert_eq!(equal, serde_json::json!({ "page": [1] }));
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused_with_the_name_of_its_field() {
        for rounded in [
            "202611190000000000000001",
            "18446744073709551616",
            "-9223372036854775809",
            "1180591620717411303424",
            "0.12345678901234567891",
            "9007199254740993.0",
            "1e-400",
        ] {
            let name = "id".to_owned();
            for json in [
                format!(r#"{{"id":{rounded}}}"#),
                format!(r#"{{"7":[8,-9],"a":"1,\"2","b":0.5,"task":{{"id":[[{rounded}]]}},"c":1}}"#),
            ] {
                assert_eq!(
                    read(json.as_bytes()),
                    Err(BadDocument::InexactNumber { name: name.clone() }),
                    "{json}"
                );
            }
        }
        let alone = read(b" 18446744073709551616");
        assert!(matches!(alone, Err(BadDocument::NotJson { .. })), "it has no name");
    }

    /// Clients write the same double with more or fewer digits: PHP sends 0.3 as 0.29999999999999999.
    #[test]
    fn a_number_that_is_kept_exactly_is_read_however_many_digits_it_has() {
        for (json, text) in [
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("0.3", "0.3"),
            ("0.30", "0.3"),
            ("0.29999999999999999", "0.3"),
            ("0.299999999999999988897769753748434595763683319091796875", "0.3"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1e3", "1000.0"),
            ("10E+2", "1000.0"),
            ("1.0", "1.0"),
            ("0.0e9", "0.0"),
            ("-0", "-0.0"),
            ("5e-324", "5e-324"),
            ("1732000000.123456", "1732000000.123456"),
        ] {
            assert_eq!(read(json.as_bytes()).unwrap().to_string(), text, "{json}");
        }
    }

    #[test]
    fn a_text_whose_number_would_be_rounded_stays_a_text() {
        assert_eq!(in_text(r#"{"a":[1.5,2]}"#), Some(serde_json::json!({ "a": [1.5, 2] })));
        assert_eq!(in_text(r#"{"a":[202611190000000000000001]}"#), None);
        assert_eq!(in_text("{"), None);
    }
}

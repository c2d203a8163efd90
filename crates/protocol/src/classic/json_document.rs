//! Reads a JSON document in which no object has two different values under one name. JSON itself does not say which
//! value counts, so two readers of one request could see two different orders.

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
}

/// Reads a document. Two equal values under one name count as one.
pub fn read(json: &[u8]) -> Result<Value, BadDocument> {
    let doubled = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = DocumentPart { doubled: &doubled }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match doubled.take() {
        Some(name) => BadDocument::SentTwice { name },
        None => BadDocument::NotJson { line: error.line(), column: error.column() },
    })
}

/// The part of a document that is read next.
#[derive(Clone, Copy)]
struct DocumentPart<'a> {
    /// The name that has two values.
    doubled: &'a RefCell<Option<String>>,
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
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
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
            let value = members.next_value_seed(self)?;
            if object.get(&name).is_some_and(|known| *known != value) {
                self.doubled.replace(Some(name));
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
}

//! Replaces the entities that an XML document defines itself, as `<!ENTITY s "//">` does.

use crate::Unclear;
use std::collections::BTreeMap;

/// How often an entity may stand in another, and how much longer a document may become.
const ROUNDS_MAX: usize = 4;
const BYTES_MAX: usize = 1024 * 1024;

/// The document with its own entities replaced.
pub(crate) fn expanded(text: &str) -> Result<String, Unclear> {
    let entities = defined(text)?;
    let mut text = text.to_owned();
    if entities.is_empty() {
        return Ok(text);
    }
    for _ in 0..ROUNDS_MAX {
        let next = replaced(&text, &entities)?;
        if next == text {
            return Ok(text);
        }
        text = next;
    }
    Err(Unclear::TooDeep)
}

/// The entities with a text of their own. An entity from another file names its address, which is found as it stands.
fn defined(text: &str) -> Result<BTreeMap<String, String>, Unclear> {
    let mut entities = BTreeMap::new();
    for (at, mark) in text.match_indices("<!ENTITY") {
        let rest = text[at + mark.len()..].trim_start();
        // An entity for definitions can hide what is defined.
        if rest.starts_with('%') {
            return Err(Unclear::TooDeep);
        }
        let Some((name, value)) = rest.split_once(char::is_whitespace) else { continue };
        let value = value.trim_start();
        let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        if let Some((value, _)) = value[1..].split_once(quote) {
            entities.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(entities)
}

fn replaced(text: &str, entities: &BTreeMap<String, String>) -> Result<String, Unclear> {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        output.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let value = after.split_once(';').and_then(|(name, behind)| Some((entities.get(name)?, behind)));
        match value {
            Some((value, behind)) => {
                output.push_str(value);
                rest = behind;
            }
            None => {
                output.push('&');
                rest = after;
            }
        }
        if output.len() > BYTES_MAX {
            return Err(Unclear::TooDeep);
        }
    }
    output.push_str(rest);
    Ok(output)
}

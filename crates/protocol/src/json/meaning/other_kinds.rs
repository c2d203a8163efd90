//! Parameters that ask for another kind than the order's own. The method or the type decides at one provider, the
//! parameter at the next, so an order with both would be bought as another kind than the one that was allowed and
//! counted.

use super::{MeantParams, is_same, is_same_name};
use crate::classic::method;
use quittance_lifecycle::{BadRequest, Kind};

/// Switches of the classic protocol that also say other things elsewhere, so they tell a kind only beside the method
/// that has them.
const AMBIGUOUS: [&str; 3] = ["body", "file", "version"];
/// A switch that an undescribed kind may have for itself.
const OF_PICTURES: &str = "grid_size";
/// The parameters of a picture or a sound. A question in words has none: with one, no provider could know which of the
/// two to answer.
const FILES: [&str; 2] = ["body", "file"];
/// The kind of a question in words.
const QUESTION: &str = "text";
/// What tells a kind in the JSON protocol, whatever the type is.
const IN_JSON: [(&str, Option<&str>); 2] =
    [("cloudflareTaskType", Some("cf_clearance")), ("cloudflareTaskType", Some("wait_room"))];

/// Refuses a question in words that comes with a picture or a sound. To some providers it is one kind, to others another.
pub(super) fn check_question(kind: &Kind, params: &MeantParams) -> Result<(), BadRequest> {
    let is_given =
        |name: &str| params.get(name).is_some_and(|value| !value.as_bytes().trim_ascii().is_empty());
    match FILES.into_iter().find(|name| kind.name == QUESTION && is_given(name)) {
        Some(name) => Err(BadRequest::OtherKind { kind: kind.name.to_string(), name: name.to_owned() }),
        None => Ok(()),
    }
}

/// Refuses a parameter that asks for another kind and is none of this kind's own.
pub(super) fn check(kind: &Kind, params: &MeantParams) -> Result<(), BadRequest> {
    let is_own = |tell: &str| {
        kind.fields.iter().any(|field| field.name == tell)
            || method::marks(&kind.name).any(|(mark, _)| mark == tell)
            || (!kind.hosts.is_described && tell == OF_PICTURES)
    };
    for (tell, text) in method::all_tells().chain(IN_JSON) {
        if AMBIGUOUS.contains(&tell) || is_own(tell) {
            continue;
        }
        let tells = |(name, value): &(&String, &quittance_lifecycle::Value)| {
            is_same_name(name, tell)
                && text.map_or_else(|| !value.as_bytes().trim_ascii().is_empty(), |text| is_same(value, text))
        };
        if let Some((name, _)) = params.iter().find(tells) {
            return Err(BadRequest::OtherKind { kind: kind.name.to_string(), name: name.clone() });
        }
    }
    Ok(())
}

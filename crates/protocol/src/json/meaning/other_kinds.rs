//! Refuses parameters that ask for another kind than the order's own. One provider follows the method or type and
//! another the parameter, so such an order could be bought as a kind that was neither allowed nor counted.

use super::{MeantParams, is_same, is_same_name};
use crate::classic::method;
use quittance_lifecycle::{BadRequest, Kind};

/// Fields of the classic protocol that also have other meanings. They decide the kind only with the method that uses
/// them.
const AMBIGUOUS: [&str; 3] = ["body", "file", "version"];
/// A field that an undescribed kind may use in its own way.
const OF_PICTURES: &str = "grid_size";
/// The parameters of a picture or a sound. An order for a question in words must not have them: a provider would not
/// know whether to answer the question or the file.
const FILES: [&str; 2] = ["body", "file"];
/// The kind of a question in words.
const QUESTION: &str = "text";
/// Fields that decide the kind in the JSON protocol with any task type.
const IN_JSON: [(&str, Option<&str>); 2] =
    [("cloudflareTaskType", Some("cf_clearance")), ("cloudflareTaskType", Some("wait_room"))];

/// Refuses a question in words that comes with a picture or a sound, because providers disagree about its kind.
pub(super) fn check_question(kind: &Kind, params: &MeantParams) -> Result<(), BadRequest> {
    let is_given =
        |name: &str| params.get(name).is_some_and(|value| !value.as_bytes().trim_ascii().is_empty());
    match FILES.into_iter().find(|name| kind.name == QUESTION && is_given(name)) {
        Some(name) => Err(BadRequest::OtherKind { kind: kind.name.to_string(), name: name.to_owned() }),
        None => Ok(()),
    }
}

/// Refuses a parameter that asks for another kind and does not belong to this kind.
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

//! Which names a record uses, and where. With this, a test that claims to try every variant can be checked.

use crate::arrival::{CallbackResultName, DeliveryName, EventName, PollName, ReportName, SubmitName};
use crate::attempt::ProgressName;
use crate::attempt_account::RouteName;
use crate::document::DocumentName;
use crate::fields::NamedVariant;
use crate::follow_up::{DeliveryStateName, ReportStateName};
use crate::phase::{DeadName, FailName, PhaseName};
use crate::timeline::TimelineEventName;
use quittance_lifecycle::{AtLimit, FaultClass, Reuse, Via, WhyPassedOver, WhyShort};
use quittance_ports::ProviderMode;
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields that contain names of ours.
pub(super) const NAMED: [&str; 5] = ["is", "class", "via", "reuse", "at_limit"];

/// Every place where names occur, with the names that can occur there.
const PLACES: [(&str, &[&str]); 33] = [
    ("/is", DocumentName::NAMES),
    ("(gate)/gate/is", ProviderMode::NAMES),
    ("/event(served_from_stock)/made/is", &["answered"]),
    ("/reuse", Reuse::NAMES),
    ("/phase/is", PhaseName::NAMES),
    ("/phase(failed)/cause/is", FailName::NAMES),
    ("/phase(dead)/cause/is", DeadName::NAMES),
    ("/attempts/is", ProgressName::NAMES),
    ("/retries", FaultClass::NAMES),
    ("/timeline/is", TimelineEventName::NAMES),
    ("/timeline/class", FaultClass::NAMES),
    ("/timeline/via", Via::NAMES),
    ("/timeline(faulted)/fault/class", FaultClass::NAMES),
    ("/timeline(moved_to_dead_letters)/cause/is", DeadName::NAMES),
    ("/event/is", EventName::NAMES),
    ("/event(woken)/route/is", RouteName::NAMES),
    ("/event(woken)/route(to)/passed_over/is", &["busy"]),
    ("/event(woken)/route(no_budget)/shortage/is", WhyShort::NAMES),
    ("/event(woken)/route(no_budget)/shortage/at_limit", AtLimit::NAMES),
    ("/phase(dead)/cause(no_budget)/shortage/is", &["spent"]),
    ("/phase(dead)/cause(no_budget)/shortage/at_limit", &["refuse"]),
    ("/timeline(routed)/passed_over/is", WhyPassedOver::NAMES),
    ("/event(submitted)/outcome/is", SubmitName::NAMES),
    ("/event(polled)/outcome/is", PollName::NAMES),
    ("/event(called_back)/outcome/is", CallbackResultName::NAMES),
    ("/event(report_passed)/outcome/is", ReportName::NAMES),
    ("/event(webhook_tried)/outcome/is", DeliveryName::NAMES),
    ("/attempts(answered)/report/is", ReportStateName::NAMES),
    ("/webhooks/is", DeliveryStateName::NAMES),
    ("/phase(failed)/cause(rejected)/fault/class", &["caller"]),
    ("/phase(dead)/cause(spent)/fault/class", &["busy"]),
    ("/event(submitted)/outcome(rejected)/fault/class", &["unsolvable"]),
    ("/event(called_back)/outcome(faulted)/fault/class", &["unsolvable"]),
];

/// Every possible use of every name, such as `/phase(dead)/cause/is=spent`.
pub(super) fn every_use() -> BTreeSet<String> {
    PLACES.iter().flat_map(|(place, names)| names.iter().map(move |name| format!("{place}={name}"))).collect()
}

pub(super) fn every_name() -> BTreeSet<&'static str> {
    PLACES.iter().flat_map(|(_, names)| names.iter().copied()).collect()
}

pub(super) fn uses_in(record: &[u8]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    walk(&serde_json::from_slice(record).unwrap(), "", &mut paths);
    paths
}

fn walk(value: &Value, place: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, place, paths)),
        Value::Object(fields) if place == "/retries" => {
            paths.extend(fields.keys().map(|class| format!("{place}={class}")));
        }
        Value::Object(fields) => {
            let is = fields.get("is").and_then(Value::as_str).map(|is| format!("({is})")).unwrap_or_default();
            for (field, inner) in fields {
                match inner {
                    Value::String(name) if NAMED.contains(&field.as_str()) => {
                        paths.insert(format!("{place}/{field}={name}"));
                    }
                    _ => walk(inner, &format!("{place}{is}/{field}"), paths),
                }
            }
        }
        _ => {}
    }
}

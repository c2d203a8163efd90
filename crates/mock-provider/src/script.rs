//! Scripted faults: a list of rules, each with a place, a condition and an action. Each rule counts the requests that
//! meet its conditions. If several rules fire at once, all shape the task, and the first one decides about the reply.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) const RULES_MAX: usize = 1_000;

/// The place at which a rule applies, for both protocols. `in.php` includes `solve.php` and createTask; `res.php`
/// includes all other requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RulePlace {
    #[serde(rename = "in.php", alias = "createTask")]
    Submit,
    #[serde(rename = "res.php", alias = "getTaskResult")]
    Poll,
    #[serde(rename = "pingback")]
    Pingback,
}

/// The action of a rule. `taken` says whether the request is still acted upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub enum FaultAction {
    RequestLost,
    ReplyLost,
    /// An error code instead of the answer.
    Code(String),
    Status {
        status: u16,
        taken: bool,
    },
    Html {
        taken: bool,
    },
    Garbage {
        taken: bool,
    },
    Truncated {
        taken: bool,
    },
    /// No reply for `ms` milliseconds, then the connection ends.
    Hang {
        ms: u64,
        taken: bool,
    },
    /// The answer comes `ms` milliseconds later.
    Delay {
        ms: u64,
    },
    FewerParts,
    Unsolvable,
    Vanish,
    /// The time that the task takes, in milliseconds, overriding the settings.
    SolveMs(u64),
    /// The answer of the task.
    Answer(String),
    Lost,
    Doubled,
    Early,
    Forged,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadScript {
    #[error("`do` names one thing, and perhaps `taken`; this names {0}")]
    NotOne(usize),
    #[error("the action `{0}` does not accept that value: see the list of actions")]
    UnknownAction(String),
    #[error("rule {rule}: `{action}` cannot be done on {place:?}")]
    WrongPlace { rule: usize, action: &'static str, place: RulePlace },
    #[error("rule {rule}: counting starts at 1")]
    CountsFromOne { rule: usize },
    #[error("more than {RULES_MAX} rules")]
    TooLong,
}

impl TryFrom<Map<String, Value>> for FaultAction {
    type Error = BadScript;

    fn try_from(mut words: Map<String, Value>) -> Result<Self, BadScript> {
        let outer = words.remove("taken").and_then(|taken| taken.as_bool());
        let count = words.len();
        let (Some((name, value)), 1) = (words.into_iter().next(), count) else {
            return Err(BadScript::NotOne(count));
        };
        let taken = outer.or_else(|| value.get("taken")?.as_bool());
        let number = value.as_u64();
        let action = match (name.as_str(), number, value.as_str()) {
            ("request_lost", ..) => Self::RequestLost,
            ("reply_lost", ..) => Self::ReplyLost,
            ("code", _, Some(code)) => Self::Code(code.to_owned()),
            ("status", Some(status @ 400..=599), _) => {
                Self::Status { status: u16::try_from(status).unwrap_or(500), taken: taken.unwrap_or(false) }
            }
            ("html", ..) => Self::Html { taken: taken.unwrap_or(true) },
            ("garbage", ..) => Self::Garbage { taken: taken.unwrap_or(true) },
            ("truncated", ..) => Self::Truncated { taken: taken.unwrap_or(true) },
            ("hang_ms", Some(ms), _) => Self::Hang { ms, taken: taken.unwrap_or(true) },
            ("delay_ms", Some(ms), _) => Self::Delay { ms },
            ("fewer_parts", ..) => Self::FewerParts,
            ("unsolvable", ..) => Self::Unsolvable,
            ("vanish", ..) => Self::Vanish,
            ("solve_ms", Some(ms), _) => Self::SolveMs(ms),
            ("answer", _, Some(answer)) => Self::Answer(answer.to_owned()),
            ("lost", ..) => Self::Lost,
            ("doubled", ..) => Self::Doubled,
            ("early", ..) => Self::Early,
            ("forged", ..) => Self::Forged,
            _ => return Err(BadScript::UnknownAction(name)),
        };
        Ok(action)
    }
}

impl From<FaultAction> for Map<String, Value> {
    fn from(action: FaultAction) -> Self {
        let name = action.name().to_owned();
        let (value, taken) = match action {
            FaultAction::Code(text) | FaultAction::Answer(text) => (json!(text), None),
            FaultAction::Status { status, taken } => (json!(status), Some(taken)),
            FaultAction::Hang { ms, taken } => (json!(ms), Some(taken)),
            FaultAction::Delay { ms } | FaultAction::SolveMs(ms) => (json!(ms), None),
            FaultAction::Html { taken }
            | FaultAction::Garbage { taken }
            | FaultAction::Truncated { taken } => (json!({}), Some(taken)),
            _ => (json!({}), None),
        };
        let mut words = Self::new();
        words.insert(name, value);
        words.extend(taken.map(|taken| ("taken".to_owned(), json!(taken))));
        words
    }
}

impl FaultAction {
    /// The name of the action in the script, and in the ledger's count of faults.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RequestLost => "request_lost",
            Self::ReplyLost => "reply_lost",
            Self::Code(_) => "code",
            Self::Status { .. } => "status",
            Self::Html { .. } => "html",
            Self::Garbage { .. } => "garbage",
            Self::Truncated { .. } => "truncated",
            Self::Hang { .. } => "hang_ms",
            Self::Delay { .. } => "delay_ms",
            Self::FewerParts => "fewer_parts",
            Self::Unsolvable => "unsolvable",
            Self::Vanish => "vanish",
            Self::SolveMs(_) => "solve_ms",
            Self::Answer(_) => "answer",
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Early => "early",
            Self::Forged => "forged",
        }
    }

    /// Whether the request is acted upon under this action.
    pub(crate) fn is_taken(&self) -> bool {
        match self {
            Self::RequestLost | Self::Code(_) => false,
            Self::Status { taken, .. }
            | Self::Html { taken }
            | Self::Garbage { taken }
            | Self::Truncated { taken }
            | Self::Hang { taken, .. } => *taken,
            _ => true,
        }
    }

    /// Whether the action changes the task, and not the reply to this request.
    pub(crate) fn shapes_the_task(&self) -> bool {
        matches!(self, Self::Unsolvable | Self::Vanish | Self::SolveMs(_) | Self::Answer(_))
    }

    fn can_be_done_on(&self, place: RulePlace) -> bool {
        match self {
            Self::Code(_) | Self::Delay { .. } => true,
            Self::Lost | Self::Doubled | Self::Early | Self::Forged => place == RulePlace::Pingback,
            Self::FewerParts => place == RulePlace::Poll,
            Self::Vanish => place != RulePlace::Pingback,
            Self::Unsolvable | Self::SolveMs(_) | Self::Answer(_) => place == RulePlace::Submit,
            _ => place != RulePlace::Pingback,
        }
    }
}

/// One rule. Without conditions it fires for every request at its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRule {
    pub on: RulePlace,
    /// Only the nth request that meets the other conditions, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Every nth request that meets the other conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Milliseconds after the start, or the last reset, from which the rule fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// Parameters that the request, or else the task that it asks for, must have. `*` at the end of a value matches
    /// any ending.
    #[serde(default, rename = "match", skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<String, String>,
    #[serde(rename = "do")]
    pub action: FaultAction,
    /// How often the rule fires at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

impl ScriptRule {
    /// A rule that fires for every request at this place.
    #[must_use]
    pub fn always(on: RulePlace, action: FaultAction) -> Self {
        Self {
            on,
            nth: None,
            every: None,
            from_ms: None,
            to_ms: None,
            matches: BTreeMap::new(),
            action,
            times: None,
        }
    }

    /// A rule that fires for the nth request at this place.
    #[must_use]
    pub fn nth(on: RulePlace, nth: u64, action: FaultAction) -> Self {
        Self { nth: Some(nth), ..Self::always(on, action) }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RuleScript(Vec<RuleCounter>);

#[derive(Debug)]
struct RuleCounter {
    rule: ScriptRule,
    matches: u64,
    done: u64,
}

impl RuleScript {
    pub(crate) fn new(rules: Vec<ScriptRule>) -> Result<Self, BadScript> {
        if rules.len() > RULES_MAX {
            return Err(BadScript::TooLong);
        }
        for (index, rule) in rules.iter().enumerate() {
            if !rule.action.can_be_done_on(rule.on) {
                let action = rule.action.name();
                return Err(BadScript::WrongPlace { rule: index, action, place: rule.on });
            }
            if rule.nth == Some(0) || rule.every == Some(0) {
                return Err(BadScript::CountsFromOne { rule: index });
            }
        }
        Ok(Self(rules.into_iter().map(|rule| RuleCounter { rule, matches: 0, done: 0 }).collect()))
    }

    pub(crate) fn rules(&self) -> Vec<ScriptRule> {
        self.0.iter().map(|counted| counted.rule.clone()).collect()
    }

    /// The actions that are due now. `param` looks up a parameter of the request.
    pub(crate) fn due(
        &mut self,
        on: RulePlace,
        age_ms: u64,
        param: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<FaultAction> {
        let mut due = Vec::new();
        for counted in self.0.iter_mut().filter(|counted| counted.rule.on == on) {
            let rule = &counted.rule;
            let is_time = age_ms >= rule.from_ms.unwrap_or(0) && age_ms < rule.to_ms.unwrap_or(u64::MAX);
            let is_meant = |(name, wanted): (&String, &String)| {
                param(name).is_some_and(|value| match wanted.strip_suffix('*') {
                    Some(beginning) => value.starts_with(beginning),
                    None => value == *wanted,
                })
            };
            if !is_time || !rule.matches.iter().all(is_meant) {
                continue;
            }
            counted.matches += 1;
            let is_turn = rule.nth.is_none_or(|nth| counted.matches == nth)
                && rule.every.is_none_or(|every| counted.matches.is_multiple_of(every));
            if is_turn && rule.times.is_none_or(|times| counted.done < times) {
                counted.done += 1;
                due.push(rule.action.clone());
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rules(text: &str) -> Vec<ScriptRule> {
        serde_json::from_str(text).expect("a good script")
    }

    #[test]
    fn a_script_is_read_as_it_is_written() {
        let text = r#"[
            {"on":"in.php","nth":3,"do":{"reply_lost":{}}},
            {"on":"res.php","every":5,"do":{"code":"ERROR_X"},"times":2},
            {"on":"in.php","from_ms":10,"to_ms":20,"do":{"status":502,"taken":true}},
            {"on":"in.php","match":{"pageurl":"https://a.test/*"},"do":{"html":{}}},
            {"on":"pingback","do":{"delay_ms":50}}]"#;
        let read = rules(text);
        assert_eq!(read[0], ScriptRule::nth(RulePlace::Submit, 3, FaultAction::ReplyLost));
        assert_eq!(read[2].action, FaultAction::Status { status: 502, taken: true });
        assert_eq!(read[3].action, FaultAction::Html { taken: true });
        let written = serde_json::to_string(&read).expect("rules are JSON");
        assert_eq!(rules(&written), read);
    }

    #[test]
    fn a_rule_counts_the_requests_that_it_applies_to() {
        let mut script = RuleScript::new(rules(
            r#"[{"on":"in.php","match":{"a":"x*"},"every":2,"times":2,"do":{"html":{}}}]"#,
        ))
        .expect("good rules");
        let values = ["x1", "y", "x2", "x3", "x4", "x5", "x6"];
        let fired: Vec<bool> = values
            .iter()
            .map(|value| !script.due(RulePlace::Submit, 0, &|_| Some((*value).to_owned())).is_empty())
            .collect();
        assert_eq!(fired, [false, false, true, false, true, false, false]);
        assert!(script.due(RulePlace::Poll, 0, &|_| Some("x".to_owned())).is_empty());
    }

    #[test]
    fn a_rule_can_hold_for_a_while() {
        let mut script = RuleScript::new(rules(
            r#"[{"on":"res.php","from_ms":10,"to_ms":20,"do":{"hang_ms":5,"taken":false}}]"#,
        ))
        .expect("good rules");
        let fired = [9, 10, 19, 20].map(|age| script.due(RulePlace::Poll, age, &|_| None).len());
        assert_eq!(fired, [0, 1, 1, 0]);
    }

    #[test]
    fn what_cannot_be_done_is_refused_when_it_is_written() {
        for bad in [
            r#"[{"on":"in.php","do":{}}]"#,
            r#"[{"on":"in.php","do":{"html":{},"code":"X"}}]"#,
            r#"[{"on":"in.php","do":{"code":5}}]"#,
            r#"[{"on":"in.php","do":{"status":99}}]"#,
            r#"[{"on":"in.php","do":{"dance":{}}}]"#,
            r#"[{"on":"out.php","do":{"html":{}}}]"#,
            r#"[{"on":"in.php","nht":3,"do":{"html":{}}}]"#,
        ] {
            assert!(serde_json::from_str::<Vec<ScriptRule>>(bad).is_err(), "{bad}");
        }
        let early = RuleScript::new(vec![ScriptRule::always(RulePlace::Submit, FaultAction::Early)]);
        assert_eq!(
            early.err(),
            Some(BadScript::WrongPlace { rule: 0, action: "early", place: RulePlace::Submit })
        );
        let zeroth = RuleScript::new(vec![ScriptRule::nth(RulePlace::Submit, 0, FaultAction::ReplyLost)]);
        assert_eq!(zeroth.err(), Some(BadScript::CountsFromOne { rule: 0 }));
    }
}

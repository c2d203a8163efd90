//! Which part of a parameter may be shown. Parameters appear in logs, on screens and in bug reports, so secrets are
//! left out, also if a provider quotes them. This is the only list of secrets.

use crate::event::{CallbackResult, Event, PollOutcome, SubmitOutcome};
use crate::terms::Value;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub const CONCEALED: &str = "***";

/// Words that make a parameter's name that of a secret.
const SECRET_WORDS: [&str; 12] = [
    "cookie",
    "pass",
    "login",
    "clientkey",
    "apikey",
    "api_key",
    "api-key",
    "pingback",
    "token",
    "secret",
    "authorization",
    "headers",
];

/// The shortest part that is removed: shorter ones occur in many words.
const PART_BYTES_MIN: usize = 4;

fn is_secret(name: &str) -> bool {
    name == "key" || SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[must_use]
pub fn shown<'a>(name: &str, text: &'a str) -> Cow<'a, str> {
    let name = name.to_ascii_lowercase();
    if is_secret(&name) {
        return CONCEALED.into();
    }
    if name.contains("proxy") {
        return match text.rsplit_once('@') {
            Some((_, address)) => format!("{CONCEALED}@{address}").into(),
            // As in `host:port:user:password`, which some write.
            None if text.split(':').count() > 3 && !text.contains('[') => CONCEALED.into(),
            None => text.into(),
        };
    }
    without_user(text)
}

/// A parameter, text or bytes, as it may be shown.
#[must_use]
pub fn harmless_param(name: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => shown(name, text).into_owned(),
        Value::Bytes(bytes) => format!("({} bytes)", bytes.len()),
    }
}

/// The parts of a parameter that must not be quoted: the whole text, the values of its pairs, or the password in an
/// address.
fn parts<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
    let name = name.to_ascii_lowercase();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let whole = if is_secret(&name) || shown(&name, text) == CONCEALED {
        text
    } else if shown(&name, text) != text {
        let host_ends = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        rest[..host_ends].rsplit_once('@').map_or(text, |(user, _)| user)
    } else {
        return Vec::new();
    };
    let pairs = whole.split([';', '&', ',']).filter_map(|pair| pair.split_once(['=', ':']));
    let mut parts: Vec<&str> = pairs.map(|(_, value)| value.trim()).chain([whole]).collect();
    parts.retain(|part| part.len() >= PART_BYTES_MIN);
    parts
}

impl Event {
    /// The reply without the order's own secrets, because a provider may quote what it was sent.
    pub(crate) fn without_secrets_of(mut self, params: &BTreeMap<String, Value>) -> Self {
        let reply_texts = match &mut self {
            Self::Submitted { outcome: SubmitOutcome::Rejected(fault), .. }
            | Self::Polled {
                outcome: PollOutcome::Faulted(fault) | PollOutcome::NoSuchTask(fault), ..
            }
            | Self::CalledBack { word: CallbackResult::Faulted(fault), .. } => {
                [&mut fault.code, &mut fault.text]
            }
            Self::Submitted { outcome: SubmitOutcome::InDoubt(evidence), .. } => {
                [&mut evidence.summary, &mut evidence.text]
            }
            _ => return self,
        };
        let texts = params.iter().filter_map(|(name, value)| match value {
            Value::Text(text) => Some(parts(name, text)),
            Value::Bytes(_) => None,
        });
        let mut secrets: Vec<&str> = texts.flatten().collect();
        // The longest first: it may hold others.
        secrets.sort_by_key(|secret| core::cmp::Reverse(secret.len()));
        for text in reply_texts {
            for secret in &secrets {
                if text.contains(secret) {
                    *text = text.replace(secret, CONCEALED);
                }
            }
        }
        self
    }
}

/// An address without the name and password that may stand before its host.
fn without_user(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let host_ends = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..host_ends].rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{CONCEALED}@{}", &rest[user.len() + 1..]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, FaultClass};
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn what_opens_an_account_is_not_shown() {
        for (name, text, expected) in [
            ("housekey", "0x4A", "0x4A"),
            ("keyboard", "6Le", "6Le"),
            ("key", "abc", "***"),
            ("Cookies", "sid=1", "***"),
            ("proxyPassword", "hunter2", "***"),
            ("client_secret", "s", "***"),
            ("api_key", "k", "***"),
            ("proxy", "ada:pw@10.0.0.1:80", "***@10.0.0.1:80"),
            ("proxy", "http://10.0.0.1:80", "http://10.0.0.1:80"),
            ("proxy", "10.0.0.1:80:ada:pw", "***"),
            ("page", "https://ada:p@ss@shop.example.org/a@b", "https://***@shop.example.org/a@b"),
            ("page", "https://shop.example.org/a@b", "https://shop.example.org/a@b"),
            ("page", "https://ada:pw@host?x", "https://***@host?x"),
            ("textinstructions", "a@b", "a@b"),
        ] {
            assert_eq!(shown(name, text), expected, "{name} {text}");
        }
        assert_eq!(harmless_param("body", &Value::Bytes(vec![0; 3])), "(3 bytes)");
    }

    #[test]
    fn a_provider_that_quotes_what_it_was_sent_is_quoted_without_it() {
        let params = BTreeMap::from([
            ("proxy".to_string(), Value::Text("ada:S3cretPw@10.0.0.1:3128".into())),
            ("cookies".to_string(), Value::Text("lang=en; sess=C00kieSecret".into())),
            ("page".to_string(), Value::Text("https://bob:hunter22@shop.example.org/a".into())),
            ("housekey".to_string(), Value::Text("0x4AAAA".into())),
        ]);
        let message = "ERROR_PROXY ada:S3cretPw@10.0.0.1:3128 for https://bob:hunter22@shop.example.org/a, \
                    0x4AAAA, C00kieSecret, S3cretPw";
        let fault = Fault::new(FaultClass::UnlistedCode, "ERROR_PROXY S3cretPw").with_text(message);
        let event = Event::Submitted { attempt: 1, outcome: SubmitOutcome::Rejected(fault) };
        let Event::Submitted { outcome: SubmitOutcome::Rejected(fault), .. } =
            event.without_secrets_of(&params)
        else {
            unreachable!("it is the same event")
        };
        let shown = "ERROR_PROXY ***@10.0.0.1:3128 for https://***@shop.example.org/a, 0x4AAAA, ***, ***";
        assert_eq!((fault.code.as_str(), fault.text.as_str()), ("ERROR_PROXY ***", shown));
    }
}

//! What of a parameter may be shown: such words end in logs, on screens and in bug reports, so whatever opens an account
//! somewhere is left out of them. There is no other list.

use quittance_lifecycle::Value;
use std::borrow::Cow;

pub(crate) const CONCEALED: &str = "***";

/// What makes a name that of a secret.
const SECRET_WORDS: [&str; 9] =
    ["cookie", "pass", "login", "clientkey", "apikey", "api_key", "pingback", "token", "secret"];

pub(crate) fn shown<'a>(name: &str, text: &'a str) -> Cow<'a, str> {
    let name = name.to_ascii_lowercase();
    if name == "key" || SECRET_WORDS.iter().any(|word| name.contains(word)) {
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

/// The same for a parameter of either shape.
#[must_use]
pub fn shown_param(name: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => shown(name, text).into_owned(),
        Value::Bytes(bytes) => format!("({} bytes)", bytes.len()),
    }
}

/// An address may hold a name and a password before its host.
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

    #[test]
    fn what_opens_an_account_is_not_shown() {
        for (name, text, expected) in [
            ("sitekey", "0x4A", "0x4A"),
            ("googlekey", "6Le", "6Le"),
            ("key", "abc", "***"),
            ("Cookies", "sid=1", "***"),
            ("proxyPassword", "hunter2", "***"),
            ("client_secret", "s", "***"),
            ("api_key", "k", "***"),
            ("proxy", "ada:pw@10.0.0.1:80", "***@10.0.0.1:80"),
            ("proxy", "http://10.0.0.1:80", "http://10.0.0.1:80"),
            ("proxy", "10.0.0.1:80:ada:pw", "***"),
            ("pageurl", "https://ada:p@ss@shop.example.org/a@b", "https://***@shop.example.org/a@b"),
            ("pageurl", "https://shop.example.org/a@b", "https://shop.example.org/a@b"),
            ("pageurl", "https://ada:pw@host?x", "https://***@host?x"),
            ("textinstructions", "a@b", "a@b"),
        ] {
            assert_eq!(shown(name, text), expected, "{name} {text}");
        }
        assert_eq!(shown_param("body", &Value::Bytes(vec![0; 3])), "(3 bytes)");
    }
}

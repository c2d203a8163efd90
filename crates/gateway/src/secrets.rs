//! What of a parameter may be shown: such words end in logs, on screens and in bug reports, so whatever opens an account
//! somewhere is left out of them.

use std::borrow::Cow;

pub(crate) const CONCEALED: &str = "***";

/// What makes a name that of a secret.
const SECRET_WORDS: [&str; 6] = ["cookie", "pass", "login", "clientkey", "pingback", "token"];

pub(crate) fn shown<'a>(name: &str, text: &'a str) -> Cow<'a, str> {
    let name = name.to_ascii_lowercase();
    if name == "key" || SECRET_WORDS.iter().any(|word| name.contains(word)) {
        return CONCEALED.into();
    }
    match text.rsplit_once('@').filter(|_| name.contains("proxy")) {
        Some((_, address)) => format!("{CONCEALED}@{address}").into(),
        None => text.into(),
    }
}

//! What was understood of a request, shown to whoever asks for it with `debug_dump`: written as PHP writes it, and with
//! nothing in it that is a secret, because such answers end in logs and in bug reports.

use quittance_classic::{Form, Part};
use std::fmt::Write;

/// What is longer is a picture, and its size tells more.
const SHOWN_BYTES_MAX: usize = 1024;
const CONCEALED: &str = "***";

pub(super) fn dump(form: &Form) -> String {
    let mut text = String::from("Array\n(\n");
    for (name, part) in &form.0 {
        _ = writeln!(text, "    [{}] => {}", name.escape_debug(), shown(name, part));
    }
    text.push_str(")\n");
    text
}

fn shown(name: &str, part: &Part) -> String {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "key"
            || ["cookie", "pass", "login", "clientkey", "pingback", "token"]
                .iter()
                .any(|word| name.contains(word))
    };
    match part {
        Part::File(bytes) => format!("({} bytes)", bytes.len()),
        Part::Text(_) if is_secret(name) => CONCEALED.to_owned(),
        Part::Text(text) if text.len() > SHOWN_BYTES_MAX => format!("({} bytes)", text.len()),
        Part::Text(text) => {
            match text.rsplit_once('@').filter(|_| name.to_ascii_lowercase().contains("proxy")) {
                Some((_, address)) => format!("{CONCEALED}@{address}"),
                None => text.clone(),
            }
        }
    }
}

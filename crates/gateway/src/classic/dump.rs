//! What was understood of a request, shown to whoever asks for it with `debug_dump`: written as PHP writes it, and with
//! nothing in it that is a secret, because such answers end in logs and in bug reports.

use quittance_lifecycle::secrets;
use quittance_protocol::classic::{Form, Part};
use std::fmt::Write;

/// What is longer is a picture, and its size tells more.
const SHOWN_BYTES_MAX: usize = 1024;

pub(super) fn dump(form: &Form) -> String {
    let mut text = String::from("Array\n(\n");
    for (name, part) in &form.0 {
        _ = writeln!(text, "    [{}] => {}", name.escape_debug(), shown(name, part));
    }
    text.push_str(")\n");
    text
}

fn shown(name: &str, part: &Part) -> String {
    match part {
        Part::File(bytes) => format!("({} bytes)", bytes.len()),
        Part::Text(text) => match secrets::shown(name, text) {
            shown if shown.len() > SHOWN_BYTES_MAX => format!("({} bytes)", text.len()),
            shown => shown.into_owned(),
        },
    }
}

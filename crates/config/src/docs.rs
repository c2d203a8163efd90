//! Compares docs/config.md with the table of settings, from which its tables are written.

use crate::duration;
use crate::setting::{Defaults, Setting};
use crate::setting_table::{needs_restart, settings};
use quittance_lifecycle::Preset;
use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
const BEGIN: &str = "<!-- settings: written from the registry -->\n";
const END: &str = "<!-- settings: end -->\n";
const AGAIN: &str = "UPDATE_DOCS=1 cargo test -p quittance-config docs_config";

/// The part of the path that is the header of the file's table.
fn table(row: &Setting) -> String {
    let above = row.path.rsplit_once('.').map_or("", |(above, _)| above);
    match above {
        "" => "At the top".into(),
        "provider.*" | "tenant.*" | "budget.*" | "lifetimes.*" => {
            format!("`[[{}]]`", above.trim_end_matches(".*"))
        }
        _ => format!("`[{}]`", above.replace("provider.*.", "provider.").replace('*', "NAME")),
    }
}

fn tables() -> String {
    let (mut text, mut last) = (String::new(), String::new());
    let defaults = Defaults::of(Preset::Patient);
    for row in settings() {
        let table = table(row);
        if table != last {
            _ = write!(
                text,
                "\n### {table}\n\n| setting | default | what it is | may be | change |\n| --- | --- | --- | --- | --- |\n"
            );
            last = table;
        }
        let default = row.default(&defaults).map_or("-".into(), |value| format!("`{value}`"));
        let leaf = if row.leaf() == "*" { "NAME" } else { row.leaf() };
        let may_be = row.shape.describe().replace(&format!(": {}", duration::FORM), "").replace('|', "\\|");
        let change = if needs_restart(row) { "restart" } else { "live" };
        _ = writeln!(text, "| `{leaf}` | {default} | {} | {may_be} | {change} |", row.help);
    }
    text.push('\n');
    text
}

#[test]
fn docs_config_shows_every_setting_as_the_registry_has_it() {
    let text = std::fs::read_to_string(PATH).expect("docs/config.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the tables begin");
    let (found, after) = rest.split_once(END).expect("the mark where they end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PATH, format!("{before}{BEGIN}{}{END}{after}", tables())).expect("it can be written");
        return;
    }
    assert!(found == tables(), "docs/config.md is not what the registry says: {AGAIN}");
}

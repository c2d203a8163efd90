//! Dead letters for people and for programs: a list that is printed as it is read, however long it is, and one of them with its
//! whole story.

use super::filter::{number, short, text};
use super::one::find;
use crate::client::ApiClient;
use crate::exit::{CliError, Exit};
use crate::output;
use crate::output::{cut, harmless, roughly};
use quittance::SystemClock;
use quittance::gateway::plain_json;
use quittance::lifecycle::{Money, PriceSum, Timestamp};
use quittance_config::decimal;
use quittance_ports::Clock;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How many are asked for at once.
const PAGE: usize = 200;

/// Calls `each` with a page of letters at a time, from the first, until it has seen `limit` of them.
async fn pages(
    client: &ApiClient,
    query: &str,
    limit: usize,
    mut each: impl FnMut(&[Value]) -> Result<(), CliError>,
) -> Result<usize, CliError> {
    let (mut seen, mut after) = (0, String::new());
    loop {
        let path = format!("/v1/admin/dead?limit={}{after}&{query}", PAGE.min(limit - seen));
        let told: Value = client.read(path.trim_end_matches('&')).await?;
        let letters = told["orders"].as_array().map(Vec::as_slice).unwrap_or_default();
        seen += letters.len();
        each(letters)?;
        match told["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(seen),
        }
        if seen >= limit {
            break;
        }
    }
    // Where to go on is also told when nothing is left there.
    let path = format!("/v1/admin/dead?limit=1{after}&{query}");
    let rest: Value = client.read(path.trim_end_matches('&')).await?;
    if rest["next"].is_string() || rest["orders"].as_array().is_some_and(|letters| !letters.is_empty()) {
        output::tell(&format!("the first {seen}; --limit N shows more\n"));
    }
    Ok(seen)
}

/// As scripts have known it: `order` is the key.
pub(super) fn with_order(letter: &Value) -> Value {
    let mut object = letter.clone();
    object["order"] = letter["key"].clone();
    object["readable"] = json!(!is_unreadable(letter));
    object
}

pub(super) async fn list(
    client: &ApiClient,
    query: &str,
    limit: usize,
    as_json: bool,
) -> Result<Exit, CliError> {
    if as_json {
        let mut divider = "[";
        pages(client, query, limit, |letters| {
            let mut lines = String::new();
            for letter in letters {
                _ = write!(lines, "{divider}{}", plain_json(&with_order(letter).to_string()));
                divider = ",\n";
            }
            output::print(&lines)
        })
        .await?;
        output::print(if divider == "[" { "[]\n" } else { "]\n" })?;
        return Ok(Exit::Done);
    }
    let mut table = DeadLetters::default();
    let seen = pages(client, query, limit, |letters| output::print(&table.rows(letters))).await?;
    match seen {
        0 if query.is_empty() => output::print("No dead letters: nothing waits for a person.\n")?,
        0 => output::print("No dead letters of this sort.\n")?,
        _ => {}
    }
    Ok(Exit::Done)
}

fn age(letter: &Value, field: &str) -> String {
    roughly(SystemClock.now().since(Timestamp::from_millis(number(letter, field))))
}

/// A table that is told as it is read. It has a column for tenants from where there is more than one of them, under a heading of
/// its own if that is late.
#[derive(Default)]
struct DeadLetters {
    tenants: BTreeSet<String>,
    /// Whether the heading that was told last has the column; nothing, if none was.
    headed: Option<bool>,
}

impl DeadLetters {
    fn rows(&mut self, letters: &[Value]) -> String {
        let mut lines = String::new();
        self.tenants.extend(letters.iter().filter_map(|letter| letter["tenant"].as_str()).map(str::to_owned));
        let has_tenants = self.tenants.len() > 1;
        if !letters.is_empty() && self.headed != Some(has_tenants) {
            self.headed = Some(has_tenants);
            let tenant = column(has_tenants, "TENANT");
            _ = writeln!(
                lines,
                "{:<14}{:<8}{tenant}{:<16}{:<10}{:<34}CAUSE",
                "ORDER", "AGE", "KIND", "ATTEMPTS", "PAGE"
            );
        }
        letters.iter().for_each(|letter| row(&mut lines, letter, has_tenants));
        lines
    }
}

fn column(is_there: bool, tenant: &str) -> String {
    if is_there { format!("{:<16}", cut(&harmless(tenant), 14)) } else { String::new() }
}

fn row(lines: &mut String, letter: &Value, has_tenants: bool) {
    let key = short(text(letter, "key"));
    if is_unreadable(letter) {
        // What stands in for a key that is lost begins like all of its sort.
        let is_stand_in = key.bytes().all(|digit| digit == b'0');
        let key = if is_stand_in { text(letter, "key") } else { key };
        _ = writeln!(lines, "{key:<13} the record cannot be read: {}", harmless(text(letter, "why")));
        return;
    }
    let page = letter["page"].as_str().unwrap_or("-");
    let note = letter["note"].as_str().map(|note| format!(" [{}]", cut(note, 60))).unwrap_or_default();
    _ = writeln!(
        lines,
        "{key:<14}{:<8}{}{:<16}{:<10}{:<34}{}",
        age(letter, "dead_ms"),
        column(has_tenants, text(letter, "tenant")),
        harmless(text(letter, "kind")),
        number(letter, "attempts"),
        cut(&harmless(page), 32),
        harmless(&format!("{}{note}", text(letter, "why"))),
    );
}

pub(super) fn is_unreadable(letter: &Value) -> bool {
    text(letter, "cause") == "unreadable"
}

/// All that is known of a record that nobody can read.
fn unread_as_text(letter: &Value) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(lines, "{name:<10} {}", harmless(words));
    line("order", text(letter, "key"));
    line("cause", "unreadable: the record is there, and nobody can read it");
    line("why", text(letter, "why"));
    line("replay", "impossible: nobody knows what was ordered, nor whether it was paid for");
    let drop = format!(
        "`quittance dead drop {}` removes the record and frees the key; one that a later version wrote is left for it",
        text(letter, "key")
    );
    line("drop", &drop);
    lines
}

pub(super) async fn show(client: &ApiClient, typed: &str, as_json: bool) -> Result<Exit, CliError> {
    let letter = find(client, typed).await?;
    if is_unreadable(&letter) {
        match as_json {
            true => output::print_json(&with_order(&letter))?,
            false => output::print(&unread_as_text(&letter))?,
        }
        return Ok(Exit::Done);
    }
    let timeline: Value = client.read(&format!("/v1/admin/orders/{}", text(&letter, "key"))).await?;
    match as_json {
        true => output::print_json(&with_order(&timeline))?,
        false => output::print(&as_text(&timeline))?,
    }
    Ok(Exit::Done)
}

fn as_text(timeline: &Value) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(lines, "{name:<10} {}", harmless(words));
    line("order", text(timeline, "key"));
    line("id", text(timeline, "id"));
    line("kind", text(timeline, "kind"));
    line("tenant", text(timeline, "tenant"));
    line("site", text(timeline, "site"));
    line("provider", text(timeline, "provider"));
    match timeline["letter"].as_object() {
        Some(letter) => {
            line("cause", letter["why"].as_str().unwrap_or_default());
            line("since", letter["since"].as_str().unwrap_or_default());
        }
        None => line("phase", text(timeline, "phase")),
    }
    let attempts = timeline["attempts"].as_array().map(Vec::len).unwrap_or_default();
    let doubles = number(timeline, "possible_doubles");
    line("attempts", &format!("{attempts} ({doubles} while an earlier one may have been paid for)"));
    let currency = timeline["currency"].as_str().map(harmless).unwrap_or_default();
    let spent =
        PriceSum { sum: Money(number(timeline, "spent_micros")), unpriced: number(timeline, "unpriced") };
    line("spent", &spent.words(&currency));
    line("replay", timeline["on_replay"]["words"].as_str().unwrap_or("there is nothing to replay"));
    match timeline["on_replay"].get("price_micros").map(Value::as_u64) {
        Some(Some(price)) => {
            line("costs", &format!("up to about {}", decimal::with_currency(Money(price), &currency)));
        }
        Some(None) => line("costs", "the price of an answer, which is not known"),
        None => {}
    }
    lines.push_str("\nparameters\n");
    for (name, value) in timeline["params"].as_object().into_iter().flatten() {
        let value = cut(&harmless(value.as_str().unwrap_or_default()), 200);
        _ = writeln!(lines, "  {:<18} {value}", harmless(name));
    }
    lines.push_str("\ntimeline (seconds after the first entry)\n");
    let events = timeline["timeline"].as_array().map(Vec::as_slice).unwrap_or_default();
    let born = events.first().map_or(0, |event| number(event, "at_ms"));
    for (n, event) in events.iter().enumerate() {
        if timeline["left_out_after"].as_u64() == Some(n as u64) {
            _ = writeln!(
                lines,
                "              ... {} entries are left out here",
                number(timeline, "left_out")
            );
        }
        let ms = number(event, "at_ms").saturating_sub(born);
        _ = writeln!(lines, "  {:>6}.{:03}  {}", ms / 1000, ms % 1000, harmless(text(event, "what")));
        if let ("faulted", Some(said)) = (text(event, "name"), event["fault"]["said"].as_str()) {
            _ = writeln!(lines, "              said: {}", harmless(said));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(tenant: &str) -> Value {
        json!({ "key": "9d".repeat(32), "tenant": tenant, "kind": "turnstile", "attempts": 1, "dead_ms": 0, "why": "no word" })
    }

    #[test]
    fn tenants_have_a_column_from_where_there_is_more_than_one() {
        let mut table = DeadLetters::default();
        let alone = table.rows(&[letter("anna")]);
        assert!(alone.contains("CAUSE") && !alone.contains("TENANT") && !alone.contains("anna"), "{alone}");
        let both = table.rows(&[letter("anna"), letter("bert")]);
        assert!(both.contains("TENANT") && both.contains("anna") && both.contains("bert"), "{both}");
        let more = table.rows(&[letter("bert")]);
        assert!(!more.contains("TENANT") && more.contains("bert"), "{more}");
    }
}

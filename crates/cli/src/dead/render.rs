//! Dead letters as text and JSON: a list that is printed page by page, and one dead letter with its timeline.

use super::by_key::find;
use super::filter::short;
use crate::exit::{CliError, Exit};
use crate::output::{self, cut, harmless, roughly};
use crate::pool::price_sum;
use quittance::SystemClock;
use quittance::gateway::plain_json;
use quittance::lifecycle::{Money, Timestamp};
use quittance_admin::dead::DeadLetters;
use quittance_admin::dead_letter::{AnyDeadLetter, UnreadDeadLetter};
use quittance_admin::timeline::OrderTimeline;
use quittance_config::decimal;
use quittance_daemon::ApiClient;
use quittance_ports::Clock;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How many are requested at once.
const PAGE: usize = 200;

pub(super) fn key_of(letter: &AnyDeadLetter) -> &str {
    match letter {
        AnyDeadLetter::Read(letter) => &letter.found.order.key,
        AnyDeadLetter::Unread(letter) => &letter.key,
    }
}

pub(super) fn why_of(letter: &AnyDeadLetter) -> &str {
    match letter {
        AnyDeadLetter::Read(letter) => &letter.why,
        AnyDeadLetter::Unread(letter) => &letter.why,
    }
}

pub(super) const fn is_unreadable(letter: &AnyDeadLetter) -> bool {
    matches!(letter, AnyDeadLetter::Unread(_))
}

async fn page(client: &ApiClient, query: &str, limit: usize, after: &str) -> Result<DeadLetters, CliError> {
    let path = format!("/v1/admin/dead?limit={limit}{after}&{query}");
    Ok(client.get(path.trim_end_matches('&')).await?)
}

/// Calls `each` with page after page of dead letters, up to `limit` of them. Returns their number.
async fn pages(
    client: &ApiClient,
    query: &str,
    limit: usize,
    mut each: impl FnMut(&[AnyDeadLetter]) -> Result<(), CliError>,
) -> Result<usize, CliError> {
    let (mut seen, mut after) = (0, String::new());
    loop {
        let DeadLetters { orders, next } = page(client, query, PAGE.min(limit - seen), &after).await?;
        seen += orders.len();
        each(&orders)?;
        match next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(seen),
        }
        if seen >= limit {
            break;
        }
    }
    // There may be a `next` although there are no more dead letters.
    let rest = page(client, query, 1, &after).await?;
    if rest.next.is_some() || !rest.orders.is_empty() {
        output::tell(&format!("the first {seen}; --limit N shows more\n"));
    }
    Ok(seen)
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
                _ = write!(lines, "{divider}{}", plain_json(&output::to_json(letter)?.to_string()));
                divider = ",\n";
            }
            output::print(&lines)
        })
        .await?;
        output::print(if divider == "[" { "[]\n" } else { "]\n" })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::default();
    let seen = pages(client, query, limit, |letters| output::print(&table.rows(letters))).await?;
    match seen {
        0 if query.is_empty() => output::print("There are no dead letters.\n")?,
        0 => output::print("No dead letter matches.\n")?,
        _ => {}
    }
    Ok(Exit::Done)
}

/// A table that is printed page by page. When a page has a second tenant, a new heading adds a column for tenants.
#[derive(Default)]
struct Table {
    tenants: BTreeSet<String>,
    /// Whether the last heading has the column for tenants; `None` before the first heading.
    has_heading_with_tenants: Option<bool>,
}

impl Table {
    fn rows(&mut self, letters: &[AnyDeadLetter]) -> String {
        let mut lines = String::new();
        self.tenants.extend(letters.iter().filter_map(|letter| match letter {
            AnyDeadLetter::Read(letter) => Some(letter.found.tenant.clone()),
            AnyDeadLetter::Unread(_) => None,
        }));
        let has_tenants = self.tenants.len() > 1;
        if !letters.is_empty() && self.has_heading_with_tenants != Some(has_tenants) {
            self.has_heading_with_tenants = Some(has_tenants);
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

fn row(lines: &mut String, letter: &AnyDeadLetter, has_tenants: bool) {
    let key = short(key_of(letter));
    let letter = match letter {
        AnyDeadLetter::Read(letter) => letter,
        AnyDeadLetter::Unread(letter) => {
            // The keys that stand for lost keys all begin with the same digits.
            let is_stand_in = key.bytes().all(|digit| digit == b'0');
            let key = if is_stand_in { &letter.key } else { key };
            _ = writeln!(lines, "{key:<13} the record cannot be read: {}", harmless(&letter.why));
            return;
        }
    };
    let note = letter.note.as_deref().map(|note| format!(" [{}]", cut(note, 60))).unwrap_or_default();
    _ = writeln!(
        lines,
        "{key:<14}{:<8}{}{:<16}{:<10}{:<34}{}",
        roughly(SystemClock.now().since(Timestamp::from_millis(letter.dead_ms))),
        column(has_tenants, &letter.found.tenant),
        harmless(&letter.found.order.kind),
        letter.found.order.attempts,
        cut(&harmless(letter.found.page.as_deref().unwrap_or("-")), 32),
        harmless(&format!("{}{note}", letter.why)),
    );
}

fn unread_as_text(letter: &UnreadDeadLetter) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(lines, "{name:<10} {}", harmless(words));
    line("order", &letter.key);
    line("cause", "unreadable: there is a record, and it cannot be read");
    line("why", &letter.why);
    line("replay", "impossible: it is not known what was ordered, nor whether it was paid");
    let drop = format!(
        "`quittance dead drop {}` removes the record and frees the key; a record that a later version wrote is kept",
        letter.key
    );
    line("drop", &drop);
    lines
}

pub(super) async fn show(client: &ApiClient, typed: &str, as_json: bool) -> Result<Exit, CliError> {
    match find(client, typed).await? {
        AnyDeadLetter::Unread(letter) => output::show(as_json, &letter, || unread_as_text(&letter)),
        AnyDeadLetter::Read(letter) => {
            let path = format!("/v1/admin/orders/{}", letter.found.order.key);
            let timeline: OrderTimeline = client.get(&path).await?;
            output::show(as_json, &timeline, || as_text(&timeline))
        }
    }
}

fn as_text(order: &OrderTimeline) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(lines, "{name:<10} {}", harmless(words));
    line("order", &order.key);
    line("id", &order.id);
    line("kind", &order.kind);
    line("tenant", &order.tenant);
    line("site", &order.site);
    line("provider", &order.provider);
    match &order.dead_letter {
        Some(letter) => {
            line("cause", &letter.why);
            line("since", &letter.since);
        }
        None => line("phase", &order.phase),
    }
    let (attempts, doubles) = (order.attempts.len(), order.possible_doubles);
    line("attempts", &format!("{attempts} ({doubles} while an earlier one may have been paid)"));
    line("spent", &price_sum(order.spent_micros, order.unpriced).words(&order.currency));
    let replay = order.on_replay.as_ref();
    line("replay", replay.map_or("there is nothing to replay", |replay| &replay.words));
    match replay.and_then(|replay| replay.price_micros) {
        Some(Some(price)) => {
            line("costs", &format!("up to about {}", decimal::with_currency(Money(price), &order.currency)));
        }
        Some(None) => line("costs", "the price of an answer, which is not known"),
        None => {}
    }
    lines.push_str("\nparameters\n");
    for (name, value) in &order.params {
        _ = writeln!(lines, "  {:<18} {}", harmless(name), cut(&harmless(value), 200));
    }
    lines.push_str("\ntimeline (seconds after the first entry)\n");
    let first_ms = order.timeline.first().map_or(0, |entry| entry.at_ms);
    for (n, entry) in order.timeline.iter().enumerate() {
        if order.left_out_after == Some(n) {
            _ = writeln!(lines, "              ... {} entries are left out here", order.left_out);
        }
        let ms = entry.at_ms.saturating_sub(first_ms);
        _ = writeln!(lines, "  {:>6}.{:03}  {}", ms / 1000, ms % 1000, harmless(&entry.what));
        let fault = entry.fault.as_ref().filter(|fault| entry.name == "faulted" && !fault.text.is_empty());
        if let Some(fault) = fault {
            _ = writeln!(lines, "              reply: {}", harmless(&fault.text));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn letter(tenant: &str) -> AnyDeadLetter {
        let letter = json!({
            "id": "1", "key": "9d".repeat(32), "kind": "turnstile", "phase": "dead", "status": "dead", "attempts": 1,
            "created_at": "", "deadline_at": "", "reuse": "shared", "priority": "normal", "tenant": tenant, "site": "",
            "provider": "main", "cause": "deadline", "why": "too late", "dead_at": "", "dead_ms": 0,
            "spent_micros": 0, "unpriced": 0, "currency": "USD", "possible_doubles": 0, "note": null,
        });
        serde_json::from_value(letter).unwrap()
    }

    #[test]
    fn tenants_have_a_column_from_the_second_tenant_on() {
        let mut table = Table::default();
        let alone = table.rows(&[letter("anna")]);
        assert!(alone.contains("CAUSE") && !alone.contains("TENANT") && !alone.contains("anna"), "{alone}");
        let both = table.rows(&[letter("anna"), letter("bert")]);
        assert!(both.contains("TENANT") && both.contains("anna") && both.contains("bert"), "{both}");
        let more = table.rows(&[letter("bert")]);
        assert!(!more.contains("TENANT") && more.contains("bert"), "{more}");
    }
}

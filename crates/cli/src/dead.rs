//! `quittance dead`: what needs a person, and what he can do about it. Listing, showing and dropping only open the
//! store; replaying carries the order out, because whoever replays wants to see what becomes of it.

use crate::config::Config;
use crate::exit::{Exit, Trouble};
use crate::output::{harmless, roughly};
use crate::{node, outcome, output, solve};
use clap::{Args, Subcommand};
use quittance::lifecycle::{Order, Phase, Progress, Telling, Timestamp, Value as Param};
use quittance::{Key, Quittance, StoreError, SystemClock, Unreadable, Which};
use quittance_ports::Clock;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// How many records are read at once.
const PAGE: usize = 256;
/// The shortest beginning of a key that is taken for the whole.
const PREFIX_MIN: usize = 6;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance dead list                what waits for a person
  quittance dead show 3f9a2c         its whole story, and what a replay would do
  quittance dead replay 3f9a2c       try again, and wait for the outcome
  quittance dead drop 3f9a2c         give it up for good
  quittance dead list --json | jq -r '.[].order'

A key may be shortened to its first 6 or more digits, as long as they name one dead letter only.
Dead letters are never removed by themselves.

Exit codes:
  0  done (replay: all of them were answered)
  1  there is no such dead letter, or a replay came to nothing
  2  the command was not understood, or the key names more than one
  3  the result could not be written
  4  the configuration is wrong
  5  the store cannot be opened or used
  6  the provider does not accept the account; the order is kept";

#[derive(Args, Debug)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    command: DeadCommand,
}

#[derive(Subcommand, Debug)]
enum DeadCommand {
    /// List the dead letters
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one with its story, and what a replay would do
    Show {
        #[arg(value_name = "ORDER")]
        key: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Send dead letters on their way again, and wait for the outcome
    Replay {
        #[arg(value_name = "ORDER", required_unless_present = "all")]
        keys: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "keys")]
        all: bool,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Give dead letters up for good
    Drop {
        #[arg(value_name = "ORDER", required = true)]
        keys: Vec<String>,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: DeadArgs, config: &Config) -> Result<Exit, Trouble> {
    match args.command {
        DeadCommand::List { limit, json } => list(&node::open(config).await?, limit, json).await,
        DeadCommand::Show { key, json } => show(&node::open(config).await?, &key, json).await,
        DeadCommand::Replay { keys, all, json } => replay(config, &keys, all, json).await,
        DeadCommand::Drop { keys, json } => drop_letters(&node::open(config).await?, &keys, json).await,
    }
}

type Letter = Result<Arc<Order>, Unreadable>;

fn store_trouble(error: &StoreError) -> Trouble {
    Trouble::of(Exit::Store, error)
}

/// Up to `limit` dead letters, from the first.
async fn letters(node: &Quittance, limit: usize) -> Result<Vec<Letter>, Trouble> {
    let mut found: Vec<Letter> = Vec::new();
    let mut after: Option<Key> = None;
    while found.len() < limit {
        let page = PAGE.min(limit - found.len());
        let more =
            node.list(Which::Dead, after.as_ref(), page).await.map_err(|error| store_trouble(&error))?;
        let Some(last) = more.last() else { break };
        after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
        found.extend(more.into_iter().map(|letter| letter.map(|found| found.order)));
    }
    Ok(found)
}

/// The one dead letter that this key, or its beginning, names.
async fn find(node: &Quittance, typed: &str) -> Result<Letter, Trouble> {
    let typed = typed.to_ascii_lowercase();
    let is_hex = typed.chars().all(|c| c.is_ascii_hexdigit());
    if !is_hex || typed.len() < PREFIX_MIN || typed.len() > 64 {
        let what = format!(
            "`{}` is not an order: give {PREFIX_MIN} to 64 of its hexadecimal digits",
            harmless(&typed)
        );
        return Err(Trouble::new(Exit::Usage, what));
    }
    let key_of =
        |letter: &Letter| letter.as_ref().map_or_else(|unreadable| unreadable.key, |order| order.key);
    let mut matching: Vec<Letter> = Vec::new();
    for letter in letters(node, usize::MAX).await? {
        if key_of(&letter).to_string().starts_with(&typed) {
            matching.push(letter);
        }
    }
    if matching.len() > 1 {
        let what = format!("{} dead letters begin with {typed}: give more digits", matching.len());
        return Err(Trouble::new(Exit::Usage, what));
    }
    matching.pop().ok_or_else(|| {
        let what =
            format!("there is no dead letter {typed}: `quittance dead list` shows those that there are");
        Trouble::new(Exit::Bad, what)
    })
}

/// Callers who asked to be called and never took it: when that was given up, and why.
fn not_told(order: &Order) -> impl Iterator<Item = (Timestamp, &str)> {
    order.listeners.iter().filter_map(|listener| match &listener.telling {
        Telling::Dead { at, why } => Some((*at, why.as_str())),
        Telling::Owed { .. } => None,
    })
}

fn cause(order: &Order) -> String {
    match (&order.phase, not_told(order).next()) {
        (Phase::Dead { cause, .. }, _) => cause.to_string(),
        (_, Some((_, why))) => {
            format!("{} who asked to be called could not be: {why}", not_told(order).count())
        }
        (phase, None) => phase.name().to_owned(),
    }
}

fn died_at(order: &Order) -> Option<Timestamp> {
    match order.phase {
        Phase::Dead { at, .. } => Some(at),
        _ => not_told(order).map(|(at, _)| at).max(),
    }
}

fn page(order: &Order) -> &str {
    match order.terms.params.get("pageurl") {
        Some(Param::Text(page)) => page,
        _ => "-",
    }
}

fn age(order: &Order) -> String {
    roughly(SystemClock.now().since(died_at(order).unwrap_or(order.placed)))
}

/// What a replay would do: it is the life cycle that decides, here it is only said beforehand.
fn on_replay(order: &Order) -> &'static str {
    let progress =
        |wanted: fn(&Progress) -> bool| order.attempts.iter().any(|attempt| wanted(&attempt.progress));
    if !matches!(order.phase, Phase::Dead { .. }) {
        "calls again whoever could not be called; nothing is bought"
    } else if progress(|progress| matches!(progress, Progress::Trailing { .. } | Progress::Solving { .. })) {
        "goes on with the task that is paid for, while the provider still has it; else pays for a new one"
    } else if progress(|progress| matches!(progress, Progress::Sent | Progress::GivenUp { .. })) {
        "submits it again, although an earlier attempt may have been paid for"
    } else {
        "submits it again; no earlier attempt is known to wait for an answer"
    }
}

fn summary_json(letter: &Letter) -> Value {
    match letter {
        Ok(order) => json!({
            "order": order.key.to_string(), "kind": order.terms.kind, "tenant": order.terms.tenant,
            "page": page(order), "cause": cause(order), "attempts": order.last_attempt,
            "possible_doubles": order.possible_doubles, "placed_ms": order.placed.as_millis(),
            "dead_ms": died_at(order).map(Timestamp::as_millis),
            "readable": true,
        }),
        Err(Unreadable { key, detail }) => {
            json!({ "order": key.to_string(), "cause": detail, "readable": false })
        }
    }
}

async fn list(node: &Quittance, limit: usize, as_json: bool) -> Result<Exit, Trouble> {
    let found = letters(node, limit).await?;
    if as_json {
        let all: Vec<Value> = found.iter().map(summary_json).collect();
        output::print(&format!("{}\n", Value::Array(all)))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    if found.is_empty() {
        text.push_str("No dead letters: nothing waits for a person.\n");
    } else {
        _ = writeln!(text, "{:<14}{:<8}{:<16}{:<10}{:<34}CAUSE", "ORDER", "AGE", "KIND", "ATTEMPTS", "PAGE");
    }
    for letter in &found {
        _ = match letter {
            Ok(order) => writeln!(
                text,
                "{:<14}{:<8}{:<16}{:<10}{:<34}{}",
                &order.key.to_string()[..12],
                age(order),
                harmless(&order.terms.kind),
                order.last_attempt,
                cut(&harmless(page(order)), 32),
                harmless(&cause(order)),
            ),
            Err(Unreadable { key, detail }) => {
                writeln!(
                    text,
                    "{:<14}the record cannot be read: {}",
                    &key.to_string()[..12],
                    harmless(detail)
                )
            }
        };
    }
    output::print(&text)?;
    Ok(Exit::Done)
}

fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars - 1).chain(['…']).collect()
}

/// Parameters that may be secret are named, and not shown.
pub(crate) fn shown(name: &str, value: &Param) -> String {
    let is_secret = ["proxy", "cookie", "key", "password", "token"].iter().any(|word| name.contains(word));
    match value {
        Param::Text(text) if is_secret && name != "googlekey" && name != "sitekey" && name != "publickey" => {
            format!("({} characters, not shown)", text.chars().count())
        }
        Param::Text(text) => cut(&harmless(text), 200),
        Param::Bytes(bytes) => format!("(a file of {} bytes)", bytes.len()),
    }
}

async fn show(node: &Quittance, typed: &str, as_json: bool) -> Result<Exit, Trouble> {
    let letter = find(node, typed).await?;
    let order = match &letter {
        Ok(order) => order,
        Err(Unreadable { key, detail }) => {
            let what = format!(
                "the record of {key} cannot be read: {detail}. It is set aside and nothing else waits for it; \
                 docs/operating.md says how to look at it with sqlite3"
            );
            return Err(Trouble::new(Exit::Store, what));
        }
    };
    let params = order.terms.params.iter().map(|(name, value)| (harmless(name), shown(name, value)));
    let story =
        order.story.entries.iter().map(|entry| (entry.at.as_millis(), harmless(&entry.beat.to_string())));
    if as_json {
        let mut object = summary_json(&letter);
        object["params"] =
            params.map(|(name, value)| (name, json!(value))).collect::<serde_json::Map<_, _>>().into();
        object["story"] =
            story.map(|(at, beat)| json!({ "at_ms": at, "what": beat })).collect::<Vec<_>>().into();
        object["on_replay"] = json!(on_replay(order));
        output::print(&format!("{object}\n"))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    _ = writeln!(text, "order      {}", order.key);
    _ = writeln!(text, "kind       {}", harmless(&order.terms.kind));
    _ = writeln!(text, "tenant     {}", harmless(&order.terms.tenant));
    _ = writeln!(text, "cause      {}", harmless(&cause(order)));
    _ = writeln!(
        text,
        "attempts   {} ({} while an earlier one may have been paid for)",
        order.last_attempt, order.possible_doubles
    );
    _ = writeln!(text, "replay     {}\n\nparameters", on_replay(order));
    for (name, value) in params {
        _ = writeln!(text, "  {name:<18} {value}");
    }
    _ = writeln!(text, "\nstory (seconds after it was first placed)");
    let born = order.born.as_millis();
    for (at, beat) in story {
        let seconds = at.saturating_sub(born) / 1000;
        let millis = at.saturating_sub(born) % 1000;
        _ = writeln!(text, "  {seconds:>6}.{millis:03}  {beat}");
    }
    if order.story.left_out > 0 {
        _ = writeln!(text, "  ({} entries in the middle are left out)", order.story.left_out);
    }
    output::print(&text)?;
    Ok(Exit::Done)
}

/// The order behind a dead letter that can be acted upon.
fn readable(letter: Letter) -> Result<Arc<Order>, Trouble> {
    letter.map_err(|Unreadable { key, detail }| {
        Trouble::new(Exit::Store, format!("the record of {key} cannot be read: {detail}"))
    })
}

async fn replay(config: &Config, typed: &[String], all: bool, as_json: bool) -> Result<Exit, Trouble> {
    let node = node::start(config).await?;
    let replayed = replay_on(&node, typed, all, as_json).await;
    node::stop(&node).await;
    replayed
}

async fn replay_on(node: &Quittance, typed: &[String], all: bool, as_json: bool) -> Result<Exit, Trouble> {
    let mut orders = Vec::new();
    if all {
        orders.extend(letters(node, usize::MAX).await?.into_iter().flatten());
    }
    for typed in typed {
        orders.push(readable(find(node, typed).await?)?);
    }
    let mut exit = Exit::Done;
    for order in orders {
        let key = order.key;
        let is_replayed = node.replay(&key).await.map_err(|error| store_trouble(&error))?;
        let Some(ticket) = node.ticket(&key).await.map_err(|error| store_trouble(&error))? else { continue };
        if !is_replayed {
            output::tell(&format!("{key} is no dead letter any more\n"));
        }
        let line = match solve::follow(node, &ticket).await? {
            Ok(solved) if as_json => Value::Object(outcome::solved_json(&solved)).to_string(),
            Ok(solved) => format!("{} answered: {}", &key.to_string()[..12], harmless(solved.text())),
            Err(error) => {
                exit = Exit::Bad;
                match as_json {
                    true => {
                        json!({ "order": key.to_string(), "error": outcome::error_json(&error) }).to_string()
                    }
                    false => {
                        format!("{} no answer: {}", &key.to_string()[..12], harmless(&error.to_string()))
                    }
                }
            }
        };
        output::print(&format!("{line}\n"))?;
    }
    Ok(exit)
}

async fn drop_letters(node: &Quittance, typed: &[String], as_json: bool) -> Result<Exit, Trouble> {
    for typed in typed {
        let order = readable(find(node, typed).await?)?;
        let is_dropped = node.drop_dead(&order.key).await.map_err(|error| store_trouble(&error))?;
        let line = match as_json {
            true => json!({ "order": order.key.to_string(), "dropped": is_dropped }).to_string(),
            false => format!(
                "{} {}",
                &order.key.to_string()[..12],
                if is_dropped { "dropped" } else { "was not dead any more" }
            ),
        };
        output::print(&format!("{line}\n"))?;
    }
    Ok(Exit::Done)
}

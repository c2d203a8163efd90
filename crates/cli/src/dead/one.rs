//! One dead letter, or a few that are named: found by the beginning of its key, sent on its way, given up, noted.

use super::filter::{short, text};
use super::outcome::is_accepted;
use super::shown::is_unreadable;
use crate::client::{ApiClient, Refusal};
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::{outcome, output, solve};
use hyper::Method;
use quittance::gateway::plain_json;
use quittance::lifecycle::{KeyHead, KeyPrefix};
use quittance::{Key, Quittance};
use quittance_gateway::OrderId;
use serde_json::{Value, json};
use std::time::Duration;

/// How often a daemon is asked how an order stands.
const LOOK: Duration = Duration::from_millis(500);
/// In how many of these looks it is asked about the provider.
const LOOKS: u32 = 4;

/// The one dead letter that this key, its beginning, or the id that its caller was given names. What begins a key means that.
pub(super) async fn find(client: &ApiClient, typed: &str) -> Result<Value, CliError> {
    let (key, id) = (KeyPrefix::parse(typed), of_id(typed));
    if key.is_none() && id.is_none() {
        let what = format!(
            "`{}` is not an order: give {} to 64 of its hexadecimal digits, or the id that its caller was given",
            harmless(typed),
            KeyPrefix::DIGITS_MIN
        );
        return Err(CliError::new(Exit::Usage, what));
    }
    for prefix in [key, id].into_iter().flatten() {
        if let Some(letter) = begun_with(client, &prefix).await? {
            return Ok(letter);
        }
    }
    let what = format!(
        "there is no dead letter {}: `quittance dead list` shows those that there are",
        harmless(typed)
    );
    Err(CliError::new(Exit::Bad, what))
}

/// How the key begins of the order that has this id.
fn of_id(typed: &str) -> Option<KeyPrefix> {
    let id: OrderId = typed.parse().ok()?;
    KeyPrefix::parse(&format!("{:01$x}", id.head().bits(), KeyHead::BITS as usize / 4))
}

/// What begins so stands in one place, so two are enough to read.
async fn begun_with(client: &ApiClient, prefix: &KeyPrefix) -> Result<Option<Value>, CliError> {
    let after = prefix.before().map(|key| format!("&after={key}")).unwrap_or_default();
    let told: Value = client.read(&format!("/v1/admin/dead?limit=2{after}")).await?;
    let mut letters = told["orders"].as_array().cloned().unwrap_or_default();
    letters.retain(|letter| Key::parse(text(letter, "key")).is_ok_and(|key| prefix.begins(&key)));
    if letters.len() > 1 {
        let what = format!("more than one dead letter begins with {prefix}: give more digits");
        return Err(CliError::new(Exit::Usage, what));
    }
    Ok(letters.pop())
}

/// The key of a dead letter that can be sent on its way, or noted.
async fn readable(client: &ApiClient, typed: &str, done: &str) -> Result<String, CliError> {
    let letter = find(client, typed).await?;
    if !is_unreadable(&letter) {
        return Ok(text(&letter, "key").to_owned());
    }
    let what = format!(
        "the record of {} cannot be read, so it cannot be {done}: {}. `quittance dead drop {}` removes the record and frees the \
         key, unless a later version wrote it",
        text(&letter, "key"),
        text(&letter, "why"),
        text(&letter, "key")
    );
    Err(CliError::new(Exit::Bad, what))
}

/// What became of a letter.
enum Done {
    Yes,
    /// Nobody could read its record, and it is gone.
    Discarded,
    WasNoDeadLetter,
}

/// Does it to this letter.
async fn tell(client: &ApiClient, key: &str, action: &str) -> Result<Done, CliError> {
    let path = format!("/v1/admin/dead/{key}/{action}");
    match client.ask::<Value>(Method::POST, &path, None).await {
        Ok(told) if told["discarded"] == true => Ok(Done::Discarded),
        Ok(_) => Ok(Done::Yes),
        Err(Refusal::Said { code, .. }) if code == "not_dead" => Ok(Done::WasNoDeadLetter),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) async fn replay(client: &ApiClient, typed: &[String], as_json: bool) -> Result<Exit, CliError> {
    let mut keys = Vec::new();
    for typed in typed {
        keys.push(readable(client, typed, "replayed").await?);
    }
    let mut exit = Exit::Done;
    for key in keys {
        if matches!(tell(client, &key, "replay").await?, Done::WasNoDeadLetter) {
            output::tell(&format!("{key} is no dead letter any more\n"));
        }
        let (is_answered, line) = match client {
            ApiClient::Here(node) => followed(node, &key, as_json).await?,
            ApiClient::There(_) => watched(client, &key, as_json).await?,
        };
        if !is_answered {
            exit = Exit::Bad;
        }
        output::print(&format!("{}\n", if as_json { plain_json(&line) } else { line.as_str().into() }))?;
    }
    Ok(exit)
}

/// What became of an order that this process carries out.
async fn followed(node: &Quittance, key: &str, as_json: bool) -> Result<(bool, String), CliError> {
    let store = |error| CliError::of(Exit::Store, &error);
    let gone = || CliError::new(Exit::Bad, format!("the record of {key} is gone"));
    let parsed = Key::parse(key).map_err(|_| gone())?;
    let ticket = node.ticket(&parsed).await.map_err(store)?.ok_or_else(gone)?;
    Ok(match solve::follow(node, &ticket).await? {
        Ok(solved) if as_json => {
            (true, Value::Object(outcome::solved_json(&solved, node.currency())).to_string())
        }
        Ok(solved) => (true, format!("{} answered: {}", short(key), harmless(solved.text()))),
        Err(error) if as_json => {
            (false, json!({ "order": key, "error": outcome::error_json(&error) }).to_string())
        }
        Err(error) => (false, format!("{} no answer: {}", short(key), harmless(&error.to_string()))),
    })
}

/// What became of an order that the daemon carries out. The answer is for whoever placed it, and not told here.
async fn watched(client: &ApiClient, key: &str, as_json: bool) -> Result<(bool, String), CliError> {
    let mut progress = output::Progress::start(&format!("order {}", short(key)));
    let mut looks = 0;
    let order = loop {
        let order: Value = client.read(&format!("/v1/admin/orders/{key}")).await?;
        if text(&order, "status") != "pending" {
            break order;
        }
        looks += 1;
        if looks % LOOKS == 0 && text(&order, "phase") == "queued" {
            is_accepted(client).await?;
        }
        progress.show(text(&order, "phase"));
        tokio::time::sleep(LOOK).await;
    };
    drop(progress);
    let (status, why) = (text(&order, "status"), order["error"]["message"].as_str().unwrap_or_default());
    // An answer that has expired meanwhile was one.
    let is_answered = matches!(status, "solved" | "expired");
    let line = match (as_json, is_answered) {
        (true, _) => json!({ "order": key, "status": status, "error": order["error"] }).to_string(),
        (false, true) => format!("{} answered", short(key)),
        (false, false) => format!("{} no answer: {}", short(key), harmless(why)),
    };
    Ok((is_answered, line))
}

pub(super) async fn drop_dead_letters(
    client: &ApiClient,
    typed: &[String],
    as_json: bool,
) -> Result<Exit, CliError> {
    for typed in typed {
        let letter = find(client, typed).await?;
        let key = text(&letter, "key");
        let done = tell(client, key, "drop").await?;
        let line = match done {
            _ if as_json => {
                let (is_dropped, is_discarded) =
                    (!matches!(done, Done::WasNoDeadLetter), matches!(done, Done::Discarded));
                json!({ "order": key, "dropped": is_dropped, "discarded": is_discarded }).to_string()
            }
            Done::Yes => format!("{} dropped", short(key)),
            Done::Discarded => {
                format!(
                    "{} dropped: nobody could read its record, which is gone; the key is free",
                    short(key)
                )
            }
            Done::WasNoDeadLetter => format!("{} was not dead any more", short(key)),
        };
        output::print(&format!("{line}\n"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn note(client: &ApiClient, typed: &str, words: &str) -> Result<Exit, CliError> {
    let key = readable(client, typed, "noted").await?;
    let path = format!("/v1/admin/orders/{key}/note");
    let _: Value = client.ask(Method::POST, &path, Some(&json!({ "text": words }))).await?;
    output::print(&format!("{} noted\n", short(&key)))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_beginning_of_its_key() {
        for first in [0x00, 0x9d, 0xff] {
            let key = Key([first; 32]);
            for is_from_stock in [false, true] {
                let prefix = of_id(&OrderId::new(&key, is_from_stock).to_string()).unwrap();
                assert!(prefix.begins(&key) && prefix.to_string().len() == 13, "{prefix}");
            }
        }
        assert!(of_id("9d9d9d").is_none() && of_id("0").is_none() && of_id("").is_none());
    }
}

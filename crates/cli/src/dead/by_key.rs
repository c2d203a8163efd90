//! Dead letters that are named by key, by its first digits, or by the caller's id: replay, drop and note.

use super::await_replays::is_accepted;
use super::filter::short;
use super::render::{is_unreadable, key_of, why_of};
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::{exit_reason, output, solve};
use hyper::Method;
use quittance::gateway::plain_json;
use quittance::lifecycle::{KeyHead, KeyPrefix};
use quittance::{Key, Quittance, Solved};
use quittance_admin::dead::{DeadLetters, DroppedDeadLetter};
use quittance_admin::dead_letter::{AnyDeadLetter, Found};
use quittance_admin::timeline::{NewNote, OrderTimeline};
use quittance_daemon::{ApiClient, ApiError};
use quittance_gateway::OrderId;
use quittance_gateway::v1::Status;
use serde_json::{Value, json};
use std::time::Duration;

/// How often a daemon is asked about an order.
const LOOK: Duration = Duration::from_millis(500);
/// After how many reads the daemon is asked about the provider, too.
const LOOKS: u32 = 4;

/// The dead letter with this key, first digits of a key, or caller's id. Digits that can be both are first read as a
/// key.
pub(super) async fn find(client: &ApiClient, typed: &str) -> Result<AnyDeadLetter, CliError> {
    let (key, id) = (KeyPrefix::parse(typed), of_id(typed));
    if key.is_none() && id.is_none() {
        let what = format!(
            "`{}` is not an order: give {} to 64 of its hexadecimal digits, or the id that its caller got",
            harmless(typed),
            KeyPrefix::DIGITS_MIN
        );
        return Err(CliError::new(Exit::Usage, what));
    }
    for prefix in [key, id].into_iter().flatten() {
        if let Some(letter) = with_prefix(client, &prefix).await? {
            return Ok(letter);
        }
    }
    let what = format!("there is no dead letter {}: `quittance dead list` lists them", harmless(typed));
    Err(CliError::new(Exit::Bad, what))
}

/// The first digits of the key of the order with this id.
fn of_id(typed: &str) -> Option<KeyPrefix> {
    let id: OrderId = typed.parse().ok()?;
    KeyPrefix::parse(&format!("{:01$x}", id.head().bits(), KeyHead::BITS as usize / 4))
}

/// The dead letter whose key has this prefix. Keys are sorted, so it is enough to read two dead letters.
async fn with_prefix(client: &ApiClient, prefix: &KeyPrefix) -> Result<Option<AnyDeadLetter>, CliError> {
    let after = prefix.before().map(|key| format!("&after={key}")).unwrap_or_default();
    let DeadLetters { mut orders, .. } = client.get(&format!("/v1/admin/dead?limit=2{after}")).await?;
    orders.retain(|letter| Key::parse(key_of(letter)).is_ok_and(|key| prefix.begins(&key)));
    if orders.len() > 1 {
        let what = format!("more than one dead letter begins with {prefix}: give more digits");
        return Err(CliError::new(Exit::Usage, what));
    }
    Ok(orders.pop())
}

/// The key of a dead letter whose record can be read.
async fn readable(client: &ApiClient, typed: &str, done: &str) -> Result<String, CliError> {
    let letter = find(client, typed).await?;
    let key = key_of(&letter);
    if !is_unreadable(&letter) {
        return Ok(key.to_owned());
    }
    let what = format!(
        "the record of {key} cannot be read, so it cannot be {done}: {}. `quittance dead drop {key}` removes the record and frees the \
         key, unless a later version wrote it",
        why_of(&letter)
    );
    Err(CliError::new(Exit::Bad, what))
}

/// The result; `None` if the order is no dead letter any more.
fn unless_not_dead<T>(result: Result<T, ApiError>) -> Result<Option<T>, CliError> {
    match result {
        Err(ApiError::Problem(problem)) if problem.code == "not_dead" => Ok(None),
        result => Ok(Some(result?)),
    }
}

pub(super) async fn replay(client: &ApiClient, typed: &[String], as_json: bool) -> Result<Exit, CliError> {
    let mut keys = Vec::new();
    for typed in typed {
        keys.push(readable(client, typed, "replayed").await?);
    }
    let mut exit = Exit::Done;
    for key in keys {
        let replayed = client.call::<Found>(Method::POST, &format!("/v1/admin/dead/{key}/replay")).await;
        if unless_not_dead(replayed)?.is_none() {
            output::tell(&format!("{key} is no dead letter any more\n"));
        }
        let solved = match client {
            ApiClient::InProcess(local) => follow(&local.node, &key).await?,
            ApiClient::Daemon(_) => None,
        };
        let order = ended(client, &key).await?;
        let is_answered = match client {
            ApiClient::InProcess(_) => solved.is_some(),
            // An answer may have expired meanwhile.
            ApiClient::Daemon(_) => matches!(order.status, Status::Solved | Status::Expired),
        };
        if !is_answered {
            exit = Exit::Bad;
        }
        let answer = solved.as_ref().map(|solved| format!(": {}", harmless(solved.text())));
        let why = order.error.as_ref().map(|error| format!(": {}", harmless(&error.message)));
        let (short, answer, why) = (short(&key), answer.unwrap_or_default(), why.unwrap_or_default());
        let line = match (as_json, is_answered) {
            (true, _) => plain_json(&replayed_json(&order, solved.as_ref()).to_string()).into_owned(),
            (false, true) => format!("{short} answered{answer}"),
            (false, false) => format!("{short} no answer{why}"),
        };
        output::print(&format!("{line}\n"))?;
    }
    Ok(exit)
}

/// The outcome of a replay. The operator's API shows no answers, so `answer` and `extras` are null beside a daemon.
fn replayed_json(order: &OrderTimeline, solved: Option<&Solved>) -> Value {
    json!({
        "order": order.key,
        "status": order.status,
        "answer": solved.map(exit_reason::answer_json),
        "extras": solved.map(|solved| &solved.answer.payload.extras),
        "error": order.error.as_ref().map(|error| json!({ "code": error.code, "message": error.message })),
    })
}

/// Waits for the end of an order that this process handles. Returns its answer, if it has one.
async fn follow(node: &Quittance, key: &str) -> Result<Option<Solved>, CliError> {
    let store = |error| CliError::of(Exit::Store, &error);
    let gone = || CliError::new(Exit::Bad, format!("the record of {key} is gone"));
    let parsed = Key::parse(key).map_err(|_| gone())?;
    let ticket = node.ticket(&parsed).await.map_err(store)?.ok_or_else(gone)?;
    let mut progress = output::ProgressLine::start(&format!("order {key}"));
    Ok(solve::follow(node, &ticket, &mut progress).await?.ok())
}

/// The order, once it has ended.
async fn ended(client: &ApiClient, key: &str) -> Result<OrderTimeline, CliError> {
    let mut progress = output::ProgressLine::start(&format!("order {}", short(key)));
    let mut looks = 0;
    loop {
        let order: OrderTimeline = client.get(&format!("/v1/admin/orders/{key}")).await?;
        if order.status != Status::Pending {
            return Ok(order);
        }
        looks += 1;
        if looks % LOOKS == 0 && order.phase == "queued" {
            is_accepted(client).await?;
        }
        progress.show(&order.phase);
        tokio::time::sleep(LOOK).await;
    }
}

pub(super) async fn drop_dead_letters(
    client: &ApiClient,
    typed: &[String],
    as_json: bool,
) -> Result<Exit, CliError> {
    for typed in typed {
        let letter = find(client, typed).await?;
        let key = key_of(&letter);
        let dropped = client.call(Method::POST, &format!("/v1/admin/dead/{key}/drop")).await;
        let dropped: Option<DroppedDeadLetter> = unless_not_dead(dropped)?;
        let is_discarded = matches!(dropped, Some(DroppedDeadLetter::Record(_)));
        let line = match (&dropped, is_discarded) {
            _ if as_json => {
                json!({ "order": key, "dropped": dropped.is_some(), "discarded": is_discarded }).to_string()
            }
            (Some(_), false) => format!("{} dropped", short(key)),
            (Some(_), true) => {
                format!(
                    "{} dropped: its record could not be read and is removed; the key is free",
                    short(key)
                )
            }
            (None, _) => format!("{} was no dead letter any more", short(key)),
        };
        output::print(&format!("{line}\n"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn note(client: &ApiClient, typed: &str, text: &str) -> Result<Exit, CliError> {
    let key = readable(client, typed, "noted").await?;
    let note = NewNote { text: text.to_owned() };
    let _: Value = client.send(Method::POST, &format!("/v1/admin/orders/{key}/note"), &note).await?;
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

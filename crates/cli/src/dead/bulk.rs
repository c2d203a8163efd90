//! A great many dead letters at once: first what it would cost, then a question, then the work, which stands in the store and
//! goes on there whatever becomes of this process.

use super::cost::Cost;
use super::filter::{number, text};
use super::outcome::{Outcome, is_accepted, settle};
use crate::client::ApiClient;
use crate::exit::{CliError, Exit};
use crate::output::{self, harmless};
use hyper::Method;
use quittance::document::BulkAction;
use serde_json::{Map, Value};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How often somebody looks how far it is.
const LOOK: Duration = Duration::from_millis(300);
/// In how many of these looks a daemon is asked about the provider.
const LOOKS: u64 = 5;

pub(super) struct Many {
    pub(super) action: BulkAction,
    pub(super) filter: Map<String, Value>,
    pub(super) rate: u32,
    pub(super) as_json: bool,
}

/// What was begun before, in the order in which it began.
#[derive(Default)]
struct Begun {
    numbers: Vec<u64>,
    /// Whether letters are left to be seen to.
    has_open: bool,
}

/// So many a second, as in `50/s` or `50`.
pub(super) fn rate(typed: &str) -> Result<u32, String> {
    let wrong = || "write it as 50/s: at least one in a second, and at most 1000".to_owned();
    let digits = typed.strip_suffix("/s").unwrap_or(typed);
    digits.parse().ok().filter(|number| (1..=1000).contains(number)).ok_or_else(wrong)
}

impl Many {
    const fn verb(&self) -> &'static str {
        match self.action {
            BulkAction::Replay => "replay",
            BulkAction::Drop => "drop",
        }
    }

    const fn participle(&self) -> &'static str {
        match self.action {
            BulkAction::Replay => "replayed",
            BulkAction::Drop => "dropped",
        }
    }

    fn wish(&self) -> Value {
        let mut wish = self.filter.clone();
        wish.insert("action".into(), self.verb().into());
        Value::Object(wish)
    }

    /// Whether to go on: whoever wants to know first is told, and whoever has not said yes is asked.
    pub(super) async fn may_begin(
        &self,
        client: &ApiClient,
        is_dry_run: bool,
        is_sure: bool,
    ) -> Result<bool, CliError> {
        if is_sure && !is_dry_run {
            return Ok(true);
        }
        let can_be_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
        if !is_dry_run && !can_be_asked {
            let what = format!(
                "to {} a great many at once needs --yes; --dry-run says how many there are, and what it would cost",
                self.verb()
            );
            return Err(CliError::new(Exit::Usage, what));
        }
        let cost = self.rehearse(client, self.wish()).await?;
        if is_dry_run {
            let told = if self.as_json { cost.json().to_string() } else { cost.words(self.action) };
            output::print(&format!("{told}\n"))?;
            return Ok(false);
        }
        if cost.letters == 0 {
            // There is nothing to ask for; but what was replayed before may still be on its way.
            return Ok(true);
        }
        output::tell(&format!("{}. Go on? [y/N] ", cost.words(self.action)));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            _ => Err(CliError::new(Exit::Usage, "nothing was done")),
        }
    }

    /// A request reads so many letters and no more: the sums are ours to add up.
    async fn rehearse(&self, client: &ApiClient, mut wish: Value) -> Result<Cost, CliError> {
        wish["dry_run"] = true.into();
        let mut cost = Cost::default();
        loop {
            let told: Value = client.ask(Method::POST, "/v1/admin/dead/bulk", Some(&wish)).await?;
            cost.add(&told);
            match &told["next"] {
                Value::String(next) => wish["after"] = next.clone().into(),
                _ => return Ok(cost),
            }
        }
    }

    /// Begins it, or goes on with what was begun, and waits until it has come to something.
    pub(super) async fn carry_out(&self, client: &ApiClient, is_resumed: bool) -> Result<Exit, CliError> {
        let Begun { mut numbers, has_open } = self.begun(client, is_resumed).await?;
        if numbers.is_empty() && is_resumed {
            output::tell("nothing is under way\n");
            return Ok(Exit::Done);
        }
        if !numbers.is_empty() {
            output::tell("going on with what was begun before\n");
        }
        if !is_resumed && !has_open {
            let mut wish = self.wish();
            wish["per_second"] = self.rate.into();
            let told: Value = client.ask(Method::POST, "/v1/admin/dead/bulk", Some(&wish)).await?;
            numbers.push(number(&told, "number"));
        }
        let mut exit = Exit::Done;
        for number in numbers {
            if self.follow(client, number).await.map_err(|trouble| self.interrupted(trouble))? == Exit::Bad {
                exit = Exit::Bad;
            }
        }
        Ok(exit)
    }

    /// Work of this sort that was begun before, any or the same that is wanted now, and is not done: letters are left, or orders
    /// that were sent on their way and that nobody may be at any more.
    async fn begun(&self, client: &ApiClient, any: bool) -> Result<Begun, CliError> {
        let told: Value = client.read("/v1/admin/dead/bulk").await?;
        let bulks = told["bulks"].as_array().map(Vec::as_slice).unwrap_or_default();
        // An age is another moment each time that it is typed.
        let is_same = |bulk: &Value| {
            let exact = ["cause", "kind", "site", "tenant"];
            let said = |name: &str| self.filter.get(name).cloned().unwrap_or_default();
            exact.iter().all(|name| bulk[*name] == said(name))
                && ["before", "since"].iter().all(|name| bulk[*name].is_null() == said(name).is_null())
        };
        let mut begun = Begun::default();
        let such = |bulk: &&Value| text(bulk, "action") == self.verb() && (any || is_same(bulk));
        for bulk in bulks.iter().filter(such) {
            let (number, is_open) = (number(bulk, "number"), bulk["ended_at"].is_null());
            begun.has_open |= is_open;
            if is_open || (self.action == BulkAction::Replay && Outcome::open(client, number).await? > 0) {
                begun.numbers.push(number);
            }
        }
        Ok(begun)
    }

    /// Whoever was waiting when the store or the daemon went away must know that nothing is lost, and how to go on.
    fn interrupted(&self, trouble: CliError) -> CliError {
        if trouble.exit != Exit::Store {
            return trouble;
        }
        let what = format!(
            "{}; what was begun stands in the store: `quittance dead {} --resume` goes on with it, and so does the daemon when it is back",
            trouble.what,
            self.verb()
        );
        CliError::new(trouble.exit, what)
    }

    async fn follow(&self, client: &ApiClient, bulk: u64) -> Result<Exit, CliError> {
        let path = format!("/v1/admin/dead/bulk/{bulk}");
        let mut progress = output::Progress::start("dead letters");
        let mut looks = 0;
        let told = loop {
            let told: Value = client.read(&path).await?;
            if !told["ended_at"].is_null() {
                break told;
            }
            looks += 1;
            if self.action == BulkAction::Replay
                && (looks % LOOKS == 0 || matches!(client, ApiClient::Here(_)))
            {
                is_accepted(client).await?;
            }
            progress.show(&format!("{} {}", number(&told, "done"), self.participle()));
            tokio::time::sleep(LOOK).await;
        };
        let outcome = match self.action {
            BulkAction::Replay => settle(client, bulk, &mut progress).await?,
            BulkAction::Drop => Outcome::default(),
        };
        drop(progress);
        self.tell(told, &outcome)?;
        Ok(if outcome.is_good() { Exit::Done } else { Exit::Bad })
    }

    fn tell(&self, mut bulk: Value, outcome: &Outcome) -> Result<(), CliError> {
        let Outcome { answered, failed, dead, .. } = *outcome;
        if self.as_json {
            for (name, count) in [("answered", answered), ("failed", failed), ("dead_again", dead)] {
                bulk[name] = count.into();
            }
            return output::print_json(&bulk);
        }
        let mut words = format!("{} dead letters {}", number(&bulk, "done"), self.participle());
        if number(&bulk, "passed_over") > 0 {
            words += &format!(", {} passed over", number(&bulk, "passed_over"));
        }
        if self.action == BulkAction::Replay && answered + failed + dead > 0 {
            words += &format!("; {answered} were answered");
        }
        if failed > 0 {
            words += &format!("; {failed} failed");
        }
        if dead > 0 {
            words += &format!("; {dead} have died again: `quittance dead list`");
        }
        if bulk["was_stopped"] == true {
            words += "; it was stopped before all were seen to";
        }
        output::print(&format!("{}\n", harmless(&words)))
    }
}

/// Ends work that is under way, or all of it if none is named. What was done stays done.
pub(super) async fn stop(client: &ApiClient, named: Option<u64>, as_json: bool) -> Result<Exit, CliError> {
    let numbers = match named {
        Some(named) => vec![named],
        None => {
            let told: Value = client.read("/v1/admin/dead/bulk").await?;
            let bulks = told["bulks"].as_array().map(Vec::as_slice).unwrap_or_default();
            let open = bulks.iter().filter(|bulk| bulk["ended_at"].is_null());
            open.map(|bulk| number(bulk, "number")).collect()
        }
    };
    if numbers.is_empty() {
        output::tell("nothing is under way\n");
    }
    for bulk in numbers {
        let path = format!("/v1/admin/dead/bulk/{bulk}");
        let told: Value = client.ask(Method::DELETE, &path, None).await?;
        if as_json {
            output::print_json(&told)?;
            continue;
        }
        let state = if told["was_stopped"] == true { "is stopped" } else { "had ended already" };
        let words = format!("{} {bulk} {state}: {} done", text(&told, "action"), number(&told, "done"));
        output::print(&format!("{}\n", harmless(&words)))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_interrupted_is_told_how_to_go_on() {
        let many = Many { action: BulkAction::Replay, filter: Map::new(), rate: 50, as_json: false };
        let told = many.interrupted(CliError::new(Exit::Store, "the daemon does not answer"));
        assert!(told.exit == Exit::Store && told.what.contains("`quittance dead replay --resume`"), "{told}");
        let other = many.interrupted(CliError::new(Exit::Provider, "no balance"));
        assert_eq!(other.what, "no balance", "that says itself how to go on");
    }

    #[test]
    fn a_rate_is_so_many_a_second() {
        assert_eq!((rate("50/s"), rate("1"), rate("1000/s")), (Ok(50), Ok(1), Ok(1000)));
        for odd in ["", "0", "1001", "-1", "50/min", "fast", "/s", "5.5/s"] {
            assert!(rate(odd).is_err(), "{odd}");
        }
    }
}

//! Bulk actions: shows the estimated cost, asks the user, and then does the work. The store records an action, so it
//! continues after a crash.

use super::await_replays::{self, is_accepted, settle};
use super::cost::Cost;
use crate::exit::{CliError, Exit};
use crate::output::{self, harmless};
use hyper::Method;
use quittance::document::BulkAction;
use quittance_admin::bulk::{Bulk, BulkList, DryRun, NewBulk};
use quittance_admin::dead_letter::ShownFilter;
use quittance_admin::replay_outcome::ReplayOutcome;
use quittance_daemon::ApiClient;
use std::io::{self, IsTerminal};
use std::time::Duration;

const BULK: &str = "/v1/admin/dead/bulk";
/// How often the progress is read.
const LOOK: Duration = Duration::from_millis(300);
/// After how many reads of the progress a daemon is asked about the provider, too.
const LOOKS: u64 = 5;

pub(super) struct Many {
    pub(super) action: BulkAction,
    pub(super) filter: ShownFilter,
    pub(super) rate: u32,
    pub(super) as_json: bool,
}

/// Bulk actions that were begun earlier, sorted by start.
#[derive(Default)]
struct Begun {
    numbers: Vec<u64>,
    /// Whether some of them still have dead letters to handle.
    has_open: bool,
}

/// A number per second, as in `50/s` or `50`.
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

    fn request(&self) -> NewBulk {
        let ShownFilter { cause, kind, site, tenant, before, since } = self.filter.clone();
        let action = self.verb().to_owned();
        NewBulk { action, cause, kind, site, tenant, before, since, ..NewBulk::default() }
    }

    /// Whether to begin. A dry run only prints the cost. Without --yes, the user is asked.
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
                "{} of many dead letters needs --yes; --dry-run says how many there are, and what a replay would cost",
                self.verb()
            );
            return Err(CliError::new(Exit::Usage, what));
        }
        let cost = self.dry_run(client).await?;
        if is_dry_run {
            let text = if self.as_json { cost.json().to_string() } else { cost.words(self.action) };
            output::print(&format!("{text}\n"))?;
            return Ok(false);
        }
        if cost.letters == 0 {
            // There is nothing to confirm; orders that were replayed before may still be open.
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

    /// The estimated cost. A response covers a limited number of dead letters.
    async fn dry_run(&self, client: &ApiClient) -> Result<Cost, CliError> {
        let mut request = NewBulk { dry_run: Some(true), ..self.request() };
        let mut cost = Cost::default();
        loop {
            let page: DryRun = client.send(Method::POST, BULK, &request).await?;
            cost.add(&page);
            match page.next {
                Some(next) => request.after = Some(next),
                None => return Ok(cost),
            }
        }
    }

    /// Begins the work, or resumes earlier work, and waits for the outcome.
    pub(super) async fn carry_out(&self, client: &ApiClient, is_resumed: bool) -> Result<Exit, CliError> {
        let Begun { mut numbers, has_open } = self.begun(client, is_resumed).await?;
        if numbers.is_empty() && is_resumed {
            output::tell("no bulk action is in progress\n");
            return Ok(Exit::Done);
        }
        if !numbers.is_empty() {
            output::tell("resuming the bulk actions that were begun before\n");
        }
        if !is_resumed && !has_open {
            let request = NewBulk { per_second: Some(self.rate), ..self.request() };
            let begun: Bulk = client.send(Method::POST, BULK, &request).await?;
            numbers.push(begun.number);
        }
        let mut exit = Exit::Done;
        for number in numbers {
            if self.follow(client, number).await.map_err(|error| self.interrupted(error))? == Exit::Bad {
                exit = Exit::Bad;
            }
        }
        Ok(exit)
    }

    /// Unfinished work with this action: dead letters are left, or replayed orders are open. Without `any`, only work
    /// with an equal filter.
    async fn begun(&self, client: &ApiClient, any: bool) -> Result<Begun, CliError> {
        let BulkList { bulks } = client.get(BULK).await?;
        // An age is another moment each time that it is typed.
        let exact = |filter: &ShownFilter| {
            let ShownFilter { cause, kind, site, tenant, before, since } = filter.clone();
            (cause, kind, site, tenant, before.is_some(), since.is_some())
        };
        let is_same = |bulk: &Bulk| exact(&bulk.filter) == exact(&self.filter);
        let mut begun = Begun::default();
        for bulk in bulks.iter().filter(|bulk| bulk.action == self.verb() && (any || is_same(bulk))) {
            let is_open = bulk.ended_at.is_none();
            begun.has_open |= is_open;
            let has_replays = self.action == BulkAction::Replay;
            if is_open || (has_replays && await_replays::read(client, bulk.number, "open").await?.open > 0) {
                begun.numbers.push(bulk.number);
            }
        }
        Ok(begun)
    }

    /// The error if the store or the daemon became unavailable: nothing is lost, and how to resume.
    fn interrupted(&self, error: CliError) -> CliError {
        if error.exit != Exit::Store {
            return error;
        }
        let what = format!(
            "{}; the bulk action is recorded in the store: `quittance dead {} --resume` resumes it, and so does the daemon when it runs again",
            error.what,
            self.verb()
        );
        CliError::new(error.exit, what)
    }

    async fn follow(&self, client: &ApiClient, number: u64) -> Result<Exit, CliError> {
        let path = format!("{BULK}/{number}");
        let mut progress = output::ProgressLine::start("dead letters");
        let mut looks = 0;
        let bulk = loop {
            let bulk: Bulk = client.get(&path).await?;
            if bulk.ended_at.is_some() {
                break bulk;
            }
            looks += 1;
            if self.action == BulkAction::Replay
                && (looks % LOOKS == 0 || matches!(client, ApiClient::InProcess(_)))
            {
                is_accepted(client).await?;
            }
            progress.show(&format!("{} {}", bulk.done, self.participle()));
            tokio::time::sleep(LOOK).await;
        };
        let outcome = match self.action {
            BulkAction::Replay => settle(client, number, &mut progress).await?,
            BulkAction::Drop => ReplayOutcome::default(),
        };
        drop(progress);
        self.print(&bulk, &outcome)?;
        Ok(if outcome.failed == 0 && outcome.dead == 0 { Exit::Done } else { Exit::Bad })
    }

    fn print(&self, bulk: &Bulk, outcome: &ReplayOutcome) -> Result<(), CliError> {
        let ReplayOutcome { answered, failed, dead, .. } = *outcome;
        if self.as_json {
            let mut object = output::to_json(bulk)?;
            for (name, count) in [("answered", answered), ("failed", failed), ("dead_again", dead)] {
                object[name] = count.into();
            }
            return output::print_json(&object);
        }
        let mut words = format!("{} dead letters {}", bulk.done, self.participle());
        if bulk.skipped > 0 {
            words += &format!(", {} skipped", bulk.skipped);
        }
        if self.action == BulkAction::Replay && answered + failed + dead > 0 {
            words += &format!("; {answered} were answered");
        }
        if failed > 0 {
            words += &format!("; {failed} failed");
        }
        if dead > 0 {
            words += &format!("; {dead} are dead letters again: `quittance dead list`");
        }
        if bulk.was_stopped {
            words += "; the bulk action was stopped before the end";
        }
        output::print(&format!("{words}\n"))
    }
}

/// Stops a bulk action, or all of them if none is named. Work that is done stays done.
pub(super) async fn stop(client: &ApiClient, named: Option<u64>, as_json: bool) -> Result<Exit, CliError> {
    let numbers: Vec<u64> = match named {
        Some(named) => vec![named],
        None => {
            let BulkList { bulks } = client.get(BULK).await?;
            bulks.iter().filter(|bulk| bulk.ended_at.is_none()).map(|bulk| bulk.number).collect()
        }
    };
    if numbers.is_empty() {
        output::tell("no bulk action is in progress\n");
    }
    for number in numbers {
        let bulk: Bulk = client.call(Method::DELETE, &format!("{BULK}/{number}")).await?;
        if as_json {
            output::print_json(&output::to_json(&bulk)?)?;
            continue;
        }
        let state = if bulk.was_stopped { "is stopped" } else { "had ended already" };
        let words = format!("{} {number} {state}: {} done", bulk.action, bulk.done);
        output::print(&format!("{}\n", harmless(&words)))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_says_how_to_resume() {
        let filter = crate::dead::filter::FilterArgs::default().filter().unwrap();
        let many = Many { action: BulkAction::Replay, filter, rate: 50, as_json: false };
        let error = many.interrupted(CliError::new(Exit::Store, "the daemon does not answer"));
        assert!(
            error.exit == Exit::Store && error.what.contains("`quittance dead replay --resume`"),
            "{error}"
        );
        let other = many.interrupted(CliError::new(Exit::Provider, "no balance"));
        assert_eq!(other.what, "no balance", "this error says itself what to do");
    }

    #[test]
    fn a_rate_is_a_number_per_second() {
        assert_eq!((rate("50/s"), rate("1"), rate("1000/s")), (Ok(50), Ok(1), Ok(1000)));
        for odd in ["", "0", "1001", "-1", "50/min", "fast", "/s", "5.5/s"] {
            assert!(rate(odd).is_err(), "{odd}");
        }
    }
}

//! A great many dead letters at once: first what it would cost, then a question, then the work, which stands in the store and
//! goes on there whatever becomes of this process.

use super::filter::{number, text};
use crate::config::money;
use crate::exit::{Exit, Trouble};
use crate::office::Office;
use crate::output::{self, harmless};
use hyper::Method;
use quittance::lifecycle::{Money, Order, Timestamp};
use quittance::sheet::Deed;
use quittance::{Quittance, Which};
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How often somebody looks how far it is.
const LOOK: Duration = Duration::from_millis(300);
/// The same for orders that are on their way: all of them are read for it.
const SETTLE_LOOK: Duration = Duration::from_secs(1);
/// How many orders are read at once.
const PAGE: usize = 256;

pub(super) struct Many {
    pub(super) deed: Deed,
    pub(super) filter: Map<String, Value>,
    pub(super) rate: u32,
    pub(super) as_json: bool,
}

/// What it would come to.
#[derive(Default)]
struct Cost {
    letters: u64,
    would_pay: u64,
    micros: u64,
    unreadable: u64,
}

/// So many a second, as in `50/s` or `50`.
pub(super) fn rate(typed: &str) -> Result<u32, String> {
    let wrong = || "write it as 50/s: at least one in a second, and at most 1000".to_owned();
    let digits = typed.strip_suffix("/s").unwrap_or(typed);
    digits.parse().ok().filter(|number| (1..=1000).contains(number)).ok_or_else(wrong)
}

impl Many {
    const fn verb(&self) -> &'static str {
        match self.deed {
            Deed::Replay => "replay",
            Deed::Drop => "drop",
        }
    }

    const fn participle(&self) -> &'static str {
        match self.deed {
            Deed::Replay => "replayed",
            Deed::Drop => "dropped",
        }
    }

    fn wish(&self) -> Value {
        let mut wish = self.filter.clone();
        wish.insert("deed".into(), self.verb().into());
        Value::Object(wish)
    }

    /// Whether to go on: whoever wants to know first is told, and whoever has not said yes is asked.
    pub(super) async fn may_begin(
        &self,
        office: &Office,
        is_dry_run: bool,
        is_sure: bool,
    ) -> Result<bool, Trouble> {
        if is_sure && !is_dry_run {
            return Ok(true);
        }
        let can_be_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
        if !is_dry_run && !can_be_asked {
            let what = format!(
                "to {} a great many at once needs --yes; --dry-run says how many there are, and what it would cost",
                self.verb()
            );
            return Err(Trouble::new(Exit::Usage, what));
        }
        let cost = self.rehearse(office, self.wish()).await?;
        if is_dry_run {
            let told = match self.as_json {
                true => json!({ "dry_run": true, "letters": cost.letters, "would_pay": cost.would_pay,
                    "cost": money::render(Money(cost.micros)), "cost_micros": cost.micros, "unreadable": cost.unreadable })
                .to_string(),
                false => self.words(&cost),
            };
            output::print(&format!("{told}\n"))?;
            return Ok(false);
        }
        if cost.letters == 0 {
            output::print(&format!("{}\n", self.words(&cost)))?;
            return Ok(false);
        }
        output::tell(&format!("{}. Go on? [y/N] ", self.words(&cost)));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|error| Trouble::new(Exit::Usage, error.to_string()))?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            _ => Err(Trouble::new(Exit::Usage, "nothing was done")),
        }
    }

    fn words(&self, cost: &Cost) -> String {
        let Cost { letters, would_pay, micros, unreadable } = cost;
        let price = match (self.deed, micros) {
            (Deed::Drop, _) => "nothing is paid for".to_owned(),
            (Deed::Replay, 0) if *would_pay > 0 => {
                format!("{would_pay} of them may be paid for, at a price that nobody knows yet")
            }
            (Deed::Replay, _) => {
                format!("{would_pay} of them may be paid for, about {}", money::render(Money(*micros)))
            }
        };
        let unread = match unreadable {
            0 => String::new(),
            unreadable => format!("; {unreadable} cannot be read, and are passed over"),
        };
        format!("{letters} dead letters would be {}; {price}{unread}", self.participle())
    }

    /// A request reads so many letters and no more: the sums are ours to add up.
    async fn rehearse(&self, office: &Office, mut wish: Value) -> Result<Cost, Trouble> {
        wish["dry_run"] = true.into();
        let mut cost = Cost::default();
        loop {
            let told: Value = office.ask(Method::POST, "/v1/admin/dead/bulk", Some(&wish)).await?;
            cost.letters += number(&told, "letters");
            cost.would_pay += number(&told, "would_pay");
            cost.micros = cost.micros.saturating_add(number(&told, "cost_micros"));
            cost.unreadable += number(&told, "unreadable");
            match &told["next"] {
                Value::String(next) => wish["after"] = next.clone().into(),
                _ => return Ok(cost),
            }
        }
    }

    /// Begins it, or goes on with what was begun, and waits until it has ended.
    pub(super) async fn carry_out(&self, office: &Office, is_resumed: bool) -> Result<Exit, Trouble> {
        let begun = self.under_way(office, is_resumed).await?;
        let numbers: Vec<u64> = match begun.is_empty() {
            true if is_resumed => {
                output::tell("nothing is under way\n");
                return Ok(Exit::Done);
            }
            true => {
                let mut wish = self.wish();
                wish["per_second"] = self.rate.into();
                let told: Value = office.ask(Method::POST, "/v1/admin/dead/bulk", Some(&wish)).await?;
                vec![number(&told, "number")]
            }
            false => {
                output::tell("going on with what was begun before\n");
                begun
            }
        };
        let mut exit = Exit::Done;
        for number in numbers {
            if self.follow(office, number).await? == Exit::Bad {
                exit = Exit::Bad;
            }
        }
        Ok(exit)
    }

    /// Work of this sort that was begun before: any, or the same that is wanted now.
    async fn under_way(&self, office: &Office, any: bool) -> Result<Vec<u64>, Trouble> {
        let told: Value = office.read("/v1/admin/dead/bulk").await?;
        let bulks = told["bulks"].as_array().map(Vec::as_slice).unwrap_or_default();
        // An age is another moment each time that it is typed.
        let is_same = |bulk: &Value| {
            let exact = ["cause", "kind", "site", "tenant"];
            let said = |name: &str| self.filter.get(name).cloned().unwrap_or_default();
            exact.iter().all(|name| bulk[*name] == said(name))
                && ["before", "since"].iter().all(|name| bulk[*name].is_null() == said(name).is_null())
        };
        let open =
            bulks.iter().filter(|bulk| bulk["ended_at"].is_null() && text(bulk, "deed") == self.verb());
        Ok(open.filter(|bulk| any || is_same(bulk)).map(|bulk| number(bulk, "number")).collect())
    }

    async fn follow(&self, office: &Office, bulk: u64) -> Result<Exit, Trouble> {
        let path = format!("/v1/admin/dead/bulk/{bulk}");
        let mut progress = output::Progress::start("dead letters");
        let bulk = loop {
            let bulk: Value = office.read(&path).await?;
            if !bulk["ended_at"].is_null() {
                break bulk;
            }
            progress.show(&format!("{} {}", number(&bulk, "done"), self.participle()));
            tokio::time::sleep(LOOK).await;
        };
        let begun = Timestamp::from_millis(number(&bulk, "begun_ms"));
        if let (Office::Here(node), Deed::Replay) = (office, self.deed) {
            settle(node, begun, &mut progress).await?;
        }
        drop(progress);
        let again = match self.deed {
            Deed::Replay => self.died_again(office, &bulk).await?,
            Deed::Drop => 0,
        };
        self.tell(&bulk, again)?;
        Ok(if again > 0 { Exit::Bad } else { Exit::Done })
    }

    /// How many are dead letters again, since it began.
    async fn died_again(&self, office: &Office, bulk: &Value) -> Result<u64, Trouble> {
        let fields = ["cause", "kind", "site", "tenant"].into_iter().filter(|name| !bulk[*name].is_null());
        let mut wish: Map<String, Value> = fields.map(|name| (name.to_owned(), bulk[name].clone())).collect();
        wish.insert("deed".into(), "replay".into());
        wish.insert("since".into(), bulk["begun_at"].clone());
        Ok(self.rehearse(office, Value::Object(wish)).await?.letters)
    }

    fn tell(&self, bulk: &Value, again: u64) -> Result<(), Trouble> {
        if self.as_json {
            let mut object = bulk.clone();
            object["dead_again"] = again.into();
            return output::print_json(&object);
        }
        let mut words = format!("{} dead letters {}", number(bulk, "done"), self.participle());
        if number(bulk, "passed_over") > 0 {
            words += &format!(", {} passed over", number(bulk, "passed_over"));
        }
        if again > 0 {
            words += &format!("; {again} have died since it began: `quittance dead list`");
        }
        if bulk["was_stopped"] == true {
            words += "; it was stopped before all were seen to";
        }
        output::print(&format!("{}\n", harmless(&words)))
    }
}

/// Whether this order was sent on its way again since then: that is a new life of an old record.
fn is_replayed_since(order: &Order, begun: Timestamp) -> bool {
    order.born < begun && order.placed >= begun
}

/// Waits until what was replayed has come to something. To end it before loses nothing: the orders stand in the store.
async fn settle(node: &Quittance, begun: Timestamp, progress: &mut output::Progress) -> Result<(), Trouble> {
    loop {
        let (mut open, mut held, mut after) = (0, 0, None);
        loop {
            let page = node.list(Which::Open, after.as_ref(), PAGE).await;
            let page = page.map_err(|error| Trouble::of(Exit::Store, &error))?;
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
            for found in page.iter().flatten().filter(|found| is_replayed_since(&found.order, begun)) {
                open += 1;
                held += u64::from(found.order.phase.is_held());
            }
        }
        if open == 0 {
            return Ok(());
        }
        if let Some(fault) = node.paused().filter(|_| held == open) {
            let what = format!(
                "the provider does not accept the account: {fault}; see `quittance errors {}`. The orders are kept and nothing \
                 was paid: mend the account, then `quittance serve` goes on with them",
                fault.code.escape_debug()
            );
            return Err(Trouble::new(Exit::Provider, what));
        }
        progress.show(&format!("{open} on their way; it is safe to interrupt"));
        tokio::time::sleep(SETTLE_LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_is_so_many_a_second() {
        assert_eq!((rate("50/s"), rate("1"), rate("1000/s")), (Ok(50), Ok(1), Ok(1000)));
        for odd in ["", "0", "1001", "-1", "50/min", "fast", "/s", "5.5/s"] {
            assert!(rate(odd).is_err(), "{odd}");
        }
    }
}

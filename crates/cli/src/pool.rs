//! `quittance pool`: standing instructions to keep a target warm. They stand in the store, so this opens it and starts no
//! node; whichever node runs on it hears of a change within seconds. A daemon that has the store to itself is asked.

mod set;
mod shown;
pub(crate) mod told;

use crate::config::nearest::nearest;
use crate::config::{Config, Environment, money, span};
use crate::exit::{Exit, Trouble};
use crate::stockroom::Stockroom;
use crate::{output, solve};
use clap::{Args, Subcommand};
use quittance::lifecycle::Money;
use quittance::{Hours, PlaceError, PoolError};
use serde_json::{Value, json};
use std::time::Duration;
use told::Pool;

pub(crate) use shown::{as_json, as_table, percent, share};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance pool set login --kind turnstile -p sitekey=0x4A... -p pageurl=https://shop.example.org/login \\
      --service-level 0.95 --budget-per-hour 2
  quittance pool set login --hours 08:00-20:00         changes only that
  quittance pool show login                            its level, and why it is that
  quittance pool list --json | jq '.[] | select(.level.size == 0) | .level.why'
  quittance pool set login --off
  quittance pool remove login

What it costs: an answer that is handed out from the shelf costs what it would have cost anyway; what
spoils there is for nothing. A pool with a service level holds as few as serve that part of the orders, and
never so many that more than about a twentieth of them spoils. --budget-per-hour stops its refills for the
rest of the hour of the clock.

A target that is asked for less than about three times in an answer's usable life (its life less the
margin: 80 s for most kinds) is not worth a pool: most of what it held would spoil. Such a pool
says so and holds nothing, with --service-level; a fixed --size is held all the same, for as long as
somebody asks at all (ten usable lives without an order, and it is given up until the next one).

Pools serve orders whose answers can be used once only. `[pools.NAME]` in the config file describes pools,
too; `serve` sets those when it starts.

A daemon that has an embedded store to itself is asked over HTTP; where it listens stands in the store's
folder. If an operator's key is configured (`admin`), put it into QUITTANCE_ADMIN_KEY.

Exit codes:
  0  done
  1  there is no such pool, no room for another, or one for the same target already
  2  the command, or what it asks for, makes no sense; nothing was changed
  3  the result could not be written
  4  the configuration is wrong, or the operator's key
  5  the store cannot be opened or used, or the daemon that has it does not answer";

#[derive(Args, Debug)]
pub(crate) struct PoolArgs {
    #[command(subcommand)]
    command: PoolCommand,
}

#[derive(Subcommand, Debug)]
enum PoolCommand {
    /// All pools, and how they stand
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// One pool: what it keeps, its level and why, what it has served and spent
    Show {
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Create a pool, or change what is said and leave the rest as it is
    ///
    /// A new pool needs --kind, its parameters, and either --service-level or --size.
    #[command(after_help = AFTER_HELP)]
    Set(Box<SetArgs>),
    /// Take a pool away; what it has bought is handed out until it spoils
    Remove {
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// What the pool is called
    name: String,
    /// What sort of captcha it keeps: see `quittance kinds`
    #[arg(long)]
    kind: Option<String>,
    /// A parameter of what it keeps, such as sitekey=0x4A; `NAME=` takes one away
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = solve::pair)]
    params: Vec<(String, String)>,
    /// The part of orders that the shelf is to serve, such as 0.95; the pool sizes itself
    #[arg(long, value_name = "PART", value_parser = part, conflicts_with = "size")]
    service_level: Option<u32>,
    /// So many answers, as long as somebody asks
    #[arg(long, value_name = "N")]
    size: Option<u32>,
    /// The most that it may spend in an hour of the clock, in the provider's currency; or none
    #[arg(long, value_name = "AMOUNT", value_parser = budget)]
    budget_per_hour: Option<OrNot<Money>>,
    /// A part of the day in UTC, such as 08:00-20:00; may be repeated; or always
    #[arg(long, value_name = "FROM-TO", value_parser = part_of_day)]
    hours: Vec<OrNot<Hours>>,
    /// How much life its answers must have when they are handed out, such as 60s; or default
    #[arg(long, value_name = "SPAN", value_parser = min_life)]
    min_life: Option<OrNot<Duration>>,
    /// Whose orders it serves
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Switch it on again
    #[arg(long, conflicts_with = "off")]
    on: bool,
    /// Remember it, and buy nothing
    #[arg(long)]
    off: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A value, or the word that takes away what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrNot<T> {
    Is(T),
    Not,
}

impl<T: Copy> OrNot<T> {
    fn read(typed: &str, word: &str, read: impl FnOnce() -> Result<T, String>) -> Result<Self, String> {
        if typed == word { Ok(Self::Not) } else { read().map(Self::Is) }
    }

    const fn value(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Not => None,
        }
    }
}

fn part(typed: &str) -> Result<u32, String> {
    let share = typed.strip_prefix("0.").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let permille =
        share.filter(|digits| (1..=3).contains(&digits.len())).map(|digits| format!("{digits:0<3}"));
    let permille = permille.and_then(|digits| digits.parse().ok()).filter(|permille| *permille > 0);
    permille.ok_or_else(|| "write a part from 0.001 to 0.999, such as 0.95".into())
}

fn budget(typed: &str) -> Result<OrNot<Money>, String> {
    let wrong = || format!("write {}, or none", money::FORM);
    OrNot::read(typed, "none", || money::parse(typed).ok_or_else(wrong))
}

fn part_of_day(typed: &str) -> Result<OrNot<Hours>, String> {
    OrNot::read(typed, "always", || Hours::parse(typed).map_err(|error| error.to_string()))
}

fn min_life(typed: &str) -> Result<OrNot<Duration>, String> {
    let wrong = || format!("write it as {}, or default", span::FORM);
    OrNot::read(typed, "default", || span::parse(typed).ok_or_else(wrong))
}

pub(crate) async fn run(args: PoolArgs, config: &Config, environment: &Environment) -> Result<Exit, Trouble> {
    let stockroom = match args.command {
        PoolCommand::Set(_) => Stockroom::find_or_make(config, environment).await?,
        _ => Stockroom::find(config, environment).await?,
    };
    match args.command {
        PoolCommand::List { json } => {
            let pools = stockroom.pools().await?;
            let objects = || pools.iter().map(as_json).collect::<Vec<_>>();
            output::print(&if json { format!("{:#}\n", Value::Array(objects())) } else { as_table(&pools) })?;
            Ok(Exit::Done)
        }
        PoolCommand::Show { name, json } => {
            let found = find(&stockroom, &name).await?;
            let text = if json { format!("{:#}\n", as_json(&found)) } else { shown::as_text(&found) };
            output::print(&text)?;
            Ok(Exit::Done)
        }
        PoolCommand::Set(args) => set::run(*args, &stockroom, config).await,
        PoolCommand::Remove { name, json } => remove(&stockroom, config, &name, json).await,
    }
}

async fn find(stockroom: &Stockroom, name: &str) -> Result<Pool, Trouble> {
    let mut pools = stockroom.pools().await?;
    let names: Vec<String> = pools.iter().map(|pool| pool.spec.name.clone()).collect();
    match names.iter().position(|known| known == name) {
        Some(at) => Ok(pools.swap_remove(at)),
        None => Err(no_such(name, names)),
    }
}

fn no_such(name: &str, names: Vec<String>) -> Trouble {
    let hint = match nearest(name, names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`quittance pool list` shows those that there are".into(),
    };
    Trouble::new(Exit::Bad, format!("there is no pool `{}`: {hint}", name.escape_debug()))
}

async fn remove(stockroom: &Stockroom, config: &Config, name: &str, as_json: bool) -> Result<Exit, Trouble> {
    // Whoever misspells it wants to hear which there are.
    find(stockroom, name).await?;
    let is_removed = stockroom.remove(name).await?;
    output::print(&match as_json {
        true => format!("{}\n", json!({ "name": name, "removed": is_removed })),
        false => format!("removed {name}; what it has bought is handed out until it spoils\n"),
    })?;
    if config.pools.iter().any(|spec| spec.name == name) {
        output::tell(
            "note: the configuration describes this pool, too: `serve` sets it again when it starts\n",
        );
    }
    Ok(Exit::Done)
}

/// Who must act.
pub(crate) const fn exit_of(error: &PoolError) -> Exit {
    match error {
        PoolError::Store(_) | PoolError::Place(PlaceError::Store(_)) => Exit::Store,
        PoolError::NoRoom | PoolError::Conflict | PoolError::SameTarget { .. } => Exit::Bad,
        _ => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_less_than_the_whole_and_more_than_nothing() {
        for (typed, permille) in [("0.95", 950), ("0.999", 999), ("0.001", 1), ("0.5", 500), ("0.50", 500)] {
            assert_eq!(part(typed), Ok(permille), "{typed}");
        }
        for typed in ["", "0", "1", "0.", "0.0", "0.000", "1.0", "95", "95%", "0.9999", "-0.5", "0.x", ".5"] {
            assert!(part(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn what_was_said_before_can_be_taken_back() {
        assert_eq!(budget("none"), Ok(OrNot::Not));
        assert_eq!(budget("0.5"), Ok(OrNot::Is(Money(500_000))));
        assert_eq!(part_of_day("always"), Ok(OrNot::Not));
        assert_eq!(min_life("default"), Ok(OrNot::Not));
        assert!(budget("much").unwrap_err().contains("0.75"));
        assert!(part_of_day("8-9").unwrap_err().contains("08:00"));
        assert!(min_life("soon").unwrap_err().contains("90s"));
    }
}

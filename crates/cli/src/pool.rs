//! `quittance pool`: pools keep the stock of a target at a level. Pools are in the store, and its nodes apply a
//! change within seconds.

mod render;
mod set;

use crate::exit::{CliError, Exit};
use crate::output;
use clap::{Args, Subcommand};
use hyper::Method;
use quittance::Hours;
use quittance::lifecycle::Money;
use quittance_admin::pools::{PoolList, ShownPool};
use quittance_config::nearest;
use quittance_config::{Config, decimal, duration};
use quittance_daemon::{ApiClient, api_client::segment};
use serde_json::json;
use std::time::Duration;

pub(crate) use render::{as_table, percent, price_sum};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance pool set login --kind turnstile -p sitekey=0x4A... \\
      -p pageurl=https://shop.example.org/login \\
      --service-level 0.95 --budget-per-hour 2
  quittance pool set login --hours 08:00-20:00    changes only the hours
  quittance pool show login                       its level, and the reason
  quittance pool list --json | jq '.[] | select(.level.size == 0).level.why'
  quittance pool set login --off
  quittance pool remove login

Cost: an answer from the stock costs the same as one bought on demand. Answers
that expire in the stock are wasted. A pool with a service level keeps as few
answers as it needs for that level, and at most about one in 20 of its answers
expires. --budget-per-hour stops refills for the rest of the clock hour.

A pool is not worth it for fewer than about three orders per usable life of an
answer (life - margin: 80 s for most kinds), because most answers would expire.
With --service-level, such a pool says so and keeps nothing. With --size, it
keeps its answers while there is demand: after ten usable lives without an order
it stops, until the next order.

Pools serve orders with single-use answers. [pools.NAME] in the config file
also defines pools; `serve` sets them when it starts.

If a daemon uses the embedded store, the command asks the daemon over HTTP, at
the address in the store's folder. If an operator's key is configured (`admin`),
set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  done
  1  no such pool, too many pools, or another pool for the same target
  2  the command or a value is invalid; nothing was changed
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  the store cannot be opened or used, or its daemon does not answer";

#[derive(Args, Debug)]
pub(crate) struct PoolArgs {
    #[command(subcommand)]
    command: PoolCommand,
}

#[derive(Subcommand, Debug)]
enum PoolCommand {
    /// List all pools and their state
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one pool: its target, its level and the reason, orders served, spending
    Show {
        /// Name of the pool
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Create a pool, or change the given values of one
    ///
    /// A new pool needs --kind, its parameters, and either --service-level or --size.
    #[command(after_help = AFTER_HELP)]
    Set(Box<SetArgs>),
    /// Remove a pool; its answers are handed out until they expire
    Remove {
        /// Name of the pool
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug, Default)]
pub(crate) struct SetArgs {
    /// Name of the pool
    name: String,
    /// Kind of captcha: see `quittance kinds`
    #[arg(long)]
    kind: Option<String>,
    /// Parameter of the orders to buy, such as sitekey=0x4A; `NAME=` removes the parameter
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = crate::typed::pair)]
    params: Vec<(String, String)>,
    /// Ratio of orders that the stock should serve, such as 0.95; the pool sizes itself
    #[arg(long, value_name = "RATIO", value_parser = part, conflicts_with = "size")]
    service_level: Option<u32>,
    /// Number of answers to keep, as long as there is demand
    #[arg(long, value_name = "N")]
    size: Option<u32>,
    /// Most that the pool may spend per clock hour, in the provider's currency; `none`: no limit
    #[arg(long, value_name = "AMOUNT", value_parser = budget)]
    budget_per_hour: Option<OrNot<Money>>,
    /// Time of day in UTC to fill the pool, such as 08:00-20:00; may be repeated; `always`: no limit
    #[arg(long, value_name = "FROM-TO", value_parser = part_of_day)]
    hours: Vec<OrNot<Hours>>,
    /// Life that an answer must have left when it is handed out, such as 60s; `default`: that of the kind
    #[arg(long, value_name = "DURATION", value_parser = min_life)]
    min_life: Option<OrNot<Duration>>,
    /// Tenant whose orders the pool serves
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Switch the pool on
    #[arg(long, conflicts_with = "off")]
    on: bool,
    /// Keep the pool, but buy nothing
    #[arg(long)]
    off: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A value, or the word that removes the present value.
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
    let wrong = || format!("write {}, or none", decimal::MONEY_FORM);
    OrNot::read(typed, "none", || decimal::money(typed).ok_or_else(wrong))
}

fn part_of_day(typed: &str) -> Result<OrNot<Hours>, String> {
    OrNot::read(typed, "always", || Hours::parse(typed).map_err(|error| error.to_string()))
}

fn min_life(typed: &str) -> Result<OrNot<Duration>, String> {
    let wrong = || format!("write it as {}, or default", duration::FORM);
    OrNot::read(typed, "default", || duration::parse(typed).ok_or_else(wrong))
}

pub(crate) async fn run(args: PoolArgs, config: &Config) -> Result<Exit, CliError> {
    let client = match args.command {
        PoolCommand::Set(_) => ApiClient::find_or_make(config).await?,
        _ => ApiClient::find(config).await?,
    };
    match args.command {
        PoolCommand::List { json } => {
            let pools = list(&client).await?;
            output::show(json, &pools, || as_table(&pools))
        }
        PoolCommand::Show { name, json } => {
            let pool = find(&client, &name).await?;
            output::show(json, &pool, || render::as_text(&pool))
        }
        PoolCommand::Set(args) => set::run(*args, &client, config).await,
        PoolCommand::Remove { name, json } => remove(&client, config, &name, json).await,
    }
}

/// All pools, sorted by name.
pub(crate) async fn list(client: &ApiClient) -> Result<Vec<ShownPool>, CliError> {
    let PoolList { pools } = client.get("/v1/pools").await?;
    Ok(pools)
}

/// A pool, or an error that names a similar one.
async fn find(client: &ApiClient, name: &str) -> Result<ShownPool, CliError> {
    let mut pools = list(client).await?;
    match pools.iter().position(|pool| pool.name == name) {
        Some(at) => Ok(pools.swap_remove(at)),
        None => Err(no_such(name, pools.into_iter().map(|pool| pool.name).collect())),
    }
}

fn no_such(name: &str, names: Vec<String>) -> CliError {
    let hint = match nearest(name, names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`quittance pool list` lists the pools".into(),
    };
    CliError::new(Exit::Bad, format!("there is no pool `{}`: {hint}", name.escape_debug()))
}

async fn remove(client: &ApiClient, config: &Config, name: &str, as_json: bool) -> Result<Exit, CliError> {
    find(client, name).await?;
    let (): () = client.call(Method::DELETE, &format!("/v1/pools/{}", segment(name))).await?;
    output::show(as_json, &json!({ "name": name, "removed": true }), || {
        format!("removed {name}; its answers are handed out until they expire\n")
    })?;
    if config.pools.iter().any(|spec| spec.name == name) {
        output::tell(
            "note: the configuration describes this pool too, and `serve` sets it again when it starts\n",
        );
    }
    Ok(Exit::Done)
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
    fn a_value_that_is_set_can_be_removed() {
        assert_eq!(budget("none"), Ok(OrNot::Not));
        assert_eq!(budget("0.5"), Ok(OrNot::Is(Money(500_000))));
        assert_eq!(part_of_day("always"), Ok(OrNot::Not));
        assert_eq!(min_life("default"), Ok(OrNot::Not));
        assert!(budget("much").unwrap_err().contains("0.75"));
        assert!(part_of_day("8-9").unwrap_err().contains("08:00"));
        assert!(min_life("soon").unwrap_err().contains("90s"));
    }
}

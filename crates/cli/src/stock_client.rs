//! Whoever knows about pools and the stock: the store itself, or the daemon that has it to itself and is asked instead. What
//! is told is the same.

use crate::daemon::{Daemon, NoAnswer};
use crate::exit::{CliError, Exit};
use crate::pool::exit_of;
use crate::pool::told::{Pool, ToldPools, as_request, untold};
use crate::stock::rows::{self, Rows, ToldStock};
use crate::{day, node, place};
use hyper::Method;
use quittance::{Day, PoolSpec, Quittance, StoreOpenError, SystemClock};
use quittance_config::{Config, Environment};
use quittance_ports::Clock;
use quittance_telemetry::money::in_currency;

pub(crate) enum StockClient {
    Here(Box<Quittance>),
    There(Daemon),
}

impl StockClient {
    pub(crate) async fn find(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        match place::missing(&config.store) {
            Some(missing) => Err(missing),
            None => Self::find_or_make(config, environment).await,
        }
    }

    /// A client for a command that writes to the store. Makes the store if there is none.
    pub(crate) async fn find_or_make(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let held = match node::open_unless_held(config).await? {
            Ok(node) => return Ok(Self::Here(Box::new(node))),
            Err(held) => held,
        };
        if let Some(daemon) = Daemon::that_has_it(&held, config, environment)? {
            return Ok(Self::There(daemon));
        }
        let mut trouble = place::trouble(&StoreOpenError::Embedded(held));
        trouble.what = format!(
            "{}; a `quittance serve` that is ready would be asked instead, and this is none",
            trouble.what
        );
        Err(trouble)
    }

    /// By name.
    pub(crate) async fn pools(&self) -> Result<Vec<Pool>, CliError> {
        match self {
            Self::Here(node) => {
                let (now, pools) = (SystemClock.now(), node.pools().await);
                let pools = pools.map_err(|error| CliError::of(Exit::Store, &error))?;
                Ok(pools.into_iter().map(|pool| Pool::of_store(pool, now)).collect())
            }
            Self::There(daemon) => {
                let ToldPools { pools } = daemon.read("/v1/pools").await?;
                let pools: Result<_, _> = pools.into_iter().map(Pool::of_daemon).collect();
                pools.map_err(|why| daemon.strange(&why))
            }
        }
    }

    pub(crate) async fn set(&self, spec: &PoolSpec) -> Result<(), CliError> {
        match self {
            Self::Here(node) => match node.set_pool(spec.clone()).await {
                Ok(_) => Ok(()),
                Err(error) => Err(CliError::of(exit_of(&error), &error)),
            },
            Self::There(daemon) => {
                if let [first, ..] = untold(spec)[..] {
                    let what = format!(
                        "the daemon does not tell what `{first}` is, so it cannot be kept: say it again with `-p \
                         {first}=...`, or take it away with `-p {first}=`"
                    );
                    return Err(CliError::new(Exit::Usage, what));
                }
                let set = daemon.ask(Method::PUT, &address(&spec.name), Some(&as_request(spec))).await;
                match set {
                    Ok(_) => Ok(()),
                    // Without the pool there would be no such path, and it is there to be made.
                    Err(NoAnswer::Nothing) => Err(daemon.strange("it makes no pools")),
                    Err(NoAnswer::CliError(trouble)) => Err(trouble),
                }
            }
        }
    }

    /// Whether there was one.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, CliError> {
        match self {
            Self::Here(node) => {
                node.remove_pool(name).await.map_err(|error| CliError::of(Exit::Store, &error))
            }
            Self::There(daemon) => match daemon.ask(Method::DELETE, &address(name), None).await {
                Ok(_) => Ok(true),
                Err(NoAnswer::Nothing) => Ok(false),
                Err(NoAnswer::CliError(trouble)) => Err(trouble),
            },
        }
    }

    /// What the stock has done in these days, both included.
    pub(crate) async fn stock(&self, from: Day, to: Day, config: &Config) -> Result<Rows, CliError> {
        match self {
            Self::Here(node) => {
                let trouble = |error| CliError::of(Exit::Store, &error);
                let usage = node.usage(from, to).await.map_err(trouble)?;
                let usage = in_currency(usage, node.currency());
                let trusts = node.trusts().await.map_err(trouble)?;
                Ok(rows::of_store(usage, trusts, SystemClock.now(), config))
            }
            Self::There(daemon) => {
                let path = format!("/v1/stock?from={}&to={}", day::render(from), day::render(to));
                let told: ToldStock = daemon.read(&path).await?;
                Ok(rows::of_daemon(told, config))
            }
        }
    }
}

/// A name may be anything that somebody typed.
fn address(name: &str) -> String {
    let mut path = "/v1/pools/".to_owned();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => path.push(byte.into()),
            _ => path += &format!("%{byte:02X}"),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_anywhere_else() {
        assert_eq!(address("login-2_A"), "/v1/pools/login-2_A");
        assert_eq!(address("../x?y=é "), "/v1/pools/%2E%2E%2Fx%3Fy%3D%C3%A9%20");
    }
}

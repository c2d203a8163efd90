//! `quittance provider`: the state of each provider and of its account, and what an operator does with one: pause,
//! resume, drain. What is set here holds for all nodes of the store.

mod accounts;
mod render;

use crate::exit::{self, CliError, Exit};
use crate::output;
use clap::{Args, Subcommand};
use hyper::Method;
use quittance_admin::providers::{ChangedProvider, ProviderDetail, ProviderList, Resumed};
use quittance_config::{Config, nearest};
use quittance_daemon::ApiClient;
use quittance_daemon::api_client::{ApiError, segment};
use std::collections::BTreeMap;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance provider list
  quittance provider show main
  quittance provider pause main     its open tasks are still polled
  quittance provider drain main     the same, and shown as such, to remove it
  quittance provider resume main
  quittance provider resume         all of them
  quittance provider list --json | jq -r '.providers[] | select(.state != \"ok\").name'

States:
  ok         it gets orders
  throttled  it is busy: submits are kept apart
  tripped    it does not answer: one order tries it from time to time
  paused     its account is blocked or empty, or a person has paused it
  drained    it finishes the tasks that it has, and gets no more
  -          not known: no daemon was asked

`throttled` and `tripped` are what the daemon that is asked has met. Everything
else holds for all nodes of the store, which follow within a second. Without a
daemon, the next one follows when it starts.

An account that was blocked or empty is resumed when its balance rises, or by
`quittance provider resume`. docs/providers.md says how providers are chosen.

If a daemon uses the embedded store, the command asks the daemon over HTTP. If
an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  done
  1  there is no provider of this name
  2  the command is invalid
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  there is no store, it cannot be opened or used, or its daemon does not
     answer";

#[derive(Args, Debug)]
pub(crate) struct ProviderArgs {
    #[command(subcommand)]
    command: ProviderCommand,
}

#[derive(Subcommand, Debug)]
enum ProviderCommand {
    /// List the providers: state, balance, open tasks
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show one provider: its state and why, its account, its measured times
    Show {
        /// Name of the provider
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Submit nothing to a provider until it is resumed
    Pause {
        /// Name of the provider
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Submit to a provider again, or to all, after a pause of any kind
    Resume {
        /// Name of the provider; absent: all
        name: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a provider finish its open tasks, and give it no more
    Drain {
        /// Name of the provider
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: ProviderArgs, config: &Config) -> Result<Exit, CliError> {
    let client = ApiClient::find(config).await?;
    let exit = act(args.command, &client, config).await;
    exit::close(&client).await;
    exit
}

async fn act(command: ProviderCommand, client: &ApiClient, config: &Config) -> Result<Exit, CliError> {
    match command {
        ProviderCommand::List { json } => {
            let mut list = list(client).await?;
            accounts::complete(&mut list.providers, client, config).await;
            output::show(json, &list, || render::list(&list))
        }
        ProviderCommand::Show { name, json } => {
            let path = format!("/v1/admin/providers/{}", segment(&name));
            let provider: ProviderDetail = or_unknown(client.get(&path).await, client, &name).await?;
            let mut one = [provider];
            accounts::complete(&mut one, client, config).await;
            let [provider] = one;
            output::show(json, &provider, || render::one(&provider))
        }
        ProviderCommand::Pause { name, json } => change(client, &name, "pause", json).await,
        ProviderCommand::Drain { name, json } => change(client, &name, "drain", json).await,
        ProviderCommand::Resume { name: Some(name), json } => change(client, &name, "resume", json).await,
        ProviderCommand::Resume { name: None, json } => {
            let resumed: Resumed = client.call(Method::POST, "/v1/admin/resume").await?;
            output::show(json, &resumed, || render::resumed("all providers are", resumed.continued))
        }
    }
}

async fn list(client: &ApiClient) -> Result<ProviderList, CliError> {
    Ok(client.get("/v1/admin/providers").await?)
}

/// Why providers get no orders, by the name of the provider, as the daemon knows it. Without a daemon, as the store knows
/// it; empty if neither can be asked.
pub(crate) async fn without_orders(config: &Config) -> BTreeMap<String, String> {
    let Ok(client) = ApiClient::find(config).await else { return BTreeMap::new() };
    let list = list(&client).await;
    exit::close(&client).await;
    let reason = |detail: &ProviderDetail| Some((detail.provider.name.clone(), render::no_orders(detail)?));
    list.map(|list| list.providers.iter().filter_map(reason).collect()).unwrap_or_default()
}

async fn change(client: &ApiClient, name: &str, action: &str, as_json: bool) -> Result<Exit, CliError> {
    let path = format!("/v1/admin/providers/{}/{action}", segment(name));
    let changed: ChangedProvider = or_unknown(client.call(Method::POST, &path).await, client, name).await?;
    output::show(as_json, &changed, || render::changed(&changed))
}

/// What was asked for, or an error that names the providers if none has this name.
async fn or_unknown<T>(asked: Result<T, ApiError>, client: &ApiClient, name: &str) -> Result<T, CliError> {
    match asked {
        Err(ApiError::Problem(problem)) if problem.code == "unknown_provider" => {
            let known: Vec<String> =
                list(client).await?.providers.into_iter().map(|one| one.provider.name).collect();
            Err(CliError::new(Exit::Bad, unknown(name, &known)))
        }
        asked => Ok(asked?),
    }
}

/// The error if no provider has this name.
pub(crate) fn unknown(name: &str, known: &[String]) -> String {
    let meant = nearest(name, known.iter().cloned());
    let hint = match (meant, known.is_empty()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, true) => "the configuration has none: run `quittance init`".to_owned(),
        (None, false) => format!("there are: {}", known.join(", ")),
    };
    format!("no provider is called `{}`: {hint}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_one_or_with_all() {
        let known = ["main".to_owned(), "spare".to_owned()];
        assert_eq!(unknown("mian", &known), "no provider is called `mian`: did you mean `main`?");
        assert_eq!(unknown("other\n", &known), "no provider is called `other\\n`: there are: main, spare");
        assert!(unknown("main", &[]).ends_with("run `quittance init`"));
    }
}

//! `quittance budget`: what may be spent, what is spent of it, and when it is used up.

mod render;

use crate::exit::{self, CliError, Exit};
use crate::output;
use clap::{Args, Subcommand};
use quittance_admin::budgets::{BudgetList, ShownBudget};
use quittance_config::{Config, nearest};
use quittance_daemon::ApiClient;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance budget list
  quittance budget show team-a
  quittance budget list --json | jq -r '.budgets[] | select(.stopped).name'

Columns:
  SPENT     charged in the present period, by all nodes
  RESERVED  held for attempts in progress, and by nodes for their next ones
  LEFT      limit - spent - reserved: what may still be spent
  ENDS      when the next period begins
  RUNS OUT  when the limit is reached if spending goes on as in this period

Budgets are set in the configuration, as `[[budget]]`. A budget allows no order
whose price is not known. docs/budgets.md says what is counted, and what happens
at the limit.

If a daemon uses the embedded store, the command asks the daemon over HTTP. If
an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  shown
  1  there is no budget of this name
  2  the command is invalid
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  there is no store, it cannot be opened or used, or its daemon does not
     answer";

#[derive(Args, Debug)]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    command: BudgetCommand,
}

#[derive(Subcommand, Debug)]
enum BudgetCommand {
    /// List the budgets: spent, left, and when each is used up
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show one budget: what it counts, its period, and why it is stopped
    Show {
        /// Name of the budget
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: BudgetArgs, config: &Config) -> Result<Exit, CliError> {
    let client = ApiClient::find(config).await?;
    let list = list(&client).await;
    exit::close(&client).await;
    let list = list?;
    match args.command {
        BudgetCommand::List { json } => output::show(json, &list, || render::list(&list)),
        BudgetCommand::Show { name, json } => {
            let budget = find(&list, &name)?;
            output::show(json, budget, || render::one(budget))
        }
    }
}

/// All budgets, in the order of the configuration.
pub(crate) async fn list(client: &ApiClient) -> Result<BudgetList, CliError> {
    Ok(client.get("/v1/admin/budgets").await?)
}

fn find<'a>(list: &'a BudgetList, name: &str) -> Result<&'a ShownBudget, CliError> {
    let names = || list.budgets.iter().map(|budget| budget.name.clone());
    let unknown = || {
        let hint = match (nearest(name, names()), list.budgets.is_empty()) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, true) => "the configuration has none: add a `[[budget]]`".to_owned(),
            (None, false) => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        CliError::new(Exit::Bad, format!("no budget is called `{}`: {hint}", name.escape_debug()))
    };
    list.budgets.iter().find(|budget| budget.name == name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use render::tests::budget;
    use serde_json::json;

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_one_or_with_all() {
        let names = ["day", "team-a"].map(|name| budget(&json!({ "name": name })));
        let list = BudgetList { budgets: names.into() };
        let why = |list: &BudgetList, name: &str| find(list, name).unwrap_err().what;
        assert_eq!(find(&list, "team-a").unwrap().name, "team-a");
        assert_eq!(why(&list, "taem-a"), "no budget is called `taem-a`: did you mean `team-a`?");
        assert_eq!(why(&list, "other\n"), "no budget is called `other\\n`: there are: day, team-a");
        assert!(why(&BudgetList { budgets: Vec::new() }, "day").ends_with("add a `[[budget]]`"));
    }
}

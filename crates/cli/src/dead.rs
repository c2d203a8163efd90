//! `quittance dead`: lists, inspects, replays and drops dead letters. A replay in this process also processes the orders.

mod await_replays;
mod bulk;
mod by_key;
mod cost;
mod endpoints;
mod filter;
mod render;
mod transfer;

use crate::exit::{self, CliError, Exit};
use crate::interruption::Interruption;
use crate::output;
use bulk::Many;
use clap::{Args, Subcommand};
use filter::FilterArgs;
use quittance::document::BulkAction;
use quittance_config::Config;
use quittance_daemon::ApiClient;
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance dead list                list the dead letters
  quittance dead list --cause in_doubt --older-than 2h
  quittance dead show 3f9a2c         its timeline, and what a replay would do
  quittance dead note 3f9a2c 'asked the provider, ticket 4711'
  quittance dead replay 3f9a2c       try again, and wait for the outcome
  quittance dead drop 3f9a2c         give up; an unreadable record is removed
  quittance dead replay --all --dry-run      how many, and what it would cost
  quittance dead replay --site shop.example.org --rate 20/s --yes
  quittance dead replay --resume     resume after an interruption
  quittance dead stop                stop a bulk action; what is done stays done
  quittance dead export --out dead.jsonl && quittance dead import dead.jsonl
  quittance dead endpoints           list the hosts that webhooks cannot reach
  quittance dead endpoints --on hooks.example.org --tenant archive
  quittance dead list --json | jq -r '.[].key'

The first 6 or more digits of a key are enough, if they match only one dead
letter. The decimal id that the caller got also names the order.
Dead letters are never removed automatically. An export contains every
parameter, secrets too: protect it like the store.

With --all or a filter, the work is recorded in the store. It survives a crash
of this process and of the daemon, handles each dead letter once, and skips
orders that become dead letters again meanwhile. The same command, --resume or a
daemon continues it. A replay waits until each replayed order has an outcome,
and says how many were answered. Ctrl-C only ends the wait: a daemon continues
until `quittance dead stop`.

If a daemon uses the embedded store, the command asks the daemon over HTTP. If
an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  done (replay: all of them were answered)
  1  no such dead letter, a replayed order failed or died again, or its record
     cannot be read
  2  the command was not understood, the key matches more than one dead letter,
     or the bulk action is large and needs --yes
  3  the result could not be written; export: the file exists already
  4  the configuration is wrong
  5  the store cannot be opened or used
  6  the provider does not accept the account; the orders are kept
  130,143  stopped by a signal";

#[derive(Args, Debug)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    command: DeadCommand,
}

#[derive(Subcommand, Debug)]
enum DeadCommand {
    /// List the dead letters
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// Most dead letters to list
        #[arg(long, value_name = "N", value_parser = filter::limit, default_value = "1000")]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one dead letter, its timeline, and what a replay would do
    Show {
        /// Key, its first 6 or more digits, or the id that the caller got
        #[arg(value_name = "ORDER")]
        key: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Replay dead letters, and wait for the outcome
    Replay(ManyArgs),
    /// Drop dead letters for good
    Drop(ManyArgs),
    /// Stop a bulk action; what is done stays done
    Stop {
        /// Number of the bulk action, from --json [default: all bulk actions in progress]
        #[arg(value_name = "NUMBER")]
        number: Option<u64>,
        /// Print one JSON line for each
        #[arg(long)]
        json: bool,
    },
    /// Export complete dead letters as JSON lines
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// File to write, which must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Import exported dead letters; existing ones stay unchanged
    Import {
        /// File to read; `-` is standard input
        file: PathBuf,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the hosts that webhooks cannot reach, or switch one on again
    Endpoints {
        /// Host to switch on, after it was switched off
        #[arg(long, value_name = "HOST", requires = "tenant")]
        on: Option<String>,
        /// Tenant whose webhooks call the host
        #[arg(long, value_name = "NAME", requires = "on")]
        tenant: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Add a note to a dead letter
    Note {
        /// Key, its first 6 or more digits, or the id that the caller got
        #[arg(value_name = "ORDER")]
        key: String,
        /// Text of the note
        text: String,
    },
}

#[derive(Args, Debug)]
struct ManyArgs {
    /// Keys, their first 6 or more digits, or the ids that callers got
    #[arg(value_name = "ORDER", required_unless_present_any = ["all", "resume", "cause", "kind", "site", "tenant", "older_than", "newer_than"])]
    keys: Vec<String>,
    /// All dead letters
    #[arg(long, conflicts_with = "keys")]
    all: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only show how many dead letters match, and what the action would cost
    #[arg(long, conflicts_with = "keys")]
    dry_run: bool,
    /// Most dead letters per second
    #[arg(long, value_name = "N/s", value_parser = bulk::rate, default_value = "50/s", conflicts_with = "keys")]
    rate: u32,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "keys")]
    yes: bool,
    /// Resume the bulk actions that are not finished
    #[arg(long, conflicts_with_all = ["keys", "all", "dry_run"])]
    resume: bool,
    /// Print one JSON line for each named key; for a bulk action, one summary line
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DeadArgs, config: &Config) -> Result<Exit, CliError> {
    let find = || ApiClient::find(config);
    match args.command {
        DeadCommand::List { filter, limit, json } => {
            tell_unknown_names(&filter, config);
            render::list(&find().await?, &filter.query()?, limit, json).await
        }
        DeadCommand::Show { key, json } => render::show(&find().await?, &key, json).await,
        DeadCommand::Export { filter, out } => {
            tell_unknown_names(&filter, config);
            transfer::export(&find().await?, &filter.query()?, out).await
        }
        DeadCommand::Import { file, json } => {
            let file = transfer::ExportedFile::open(&file)?;
            transfer::import(&ApiClient::find_or_make(config).await?, file, json).await
        }
        DeadCommand::Stop { number, json } => bulk::stop(&find().await?, number, json).await,
        DeadCommand::Endpoints { on: Some(host), tenant, json } => {
            endpoints::switch_on(&find().await?, &host, &tenant.unwrap_or_default(), json).await
        }
        DeadCommand::Endpoints { json, .. } => endpoints::list(&find().await?, json).await,
        DeadCommand::Note { key, text } => by_key::note(&find().await?, &key, &text).await,
        DeadCommand::Replay(args) if !args.keys.is_empty() => {
            let client = ApiClient::at_work(config).await?;
            let replayed = by_key::replay(&client, &args.keys, args.json).await;
            exit::close(&client).await;
            replayed
        }
        DeadCommand::Drop(args) if !args.keys.is_empty() => {
            by_key::drop_dead_letters(&find().await?, &args.keys, args.json).await
        }
        DeadCommand::Replay(args) => Box::pin(many(BulkAction::Replay, args, config)).await,
        DeadCommand::Drop(args) => Box::pin(many(BulkAction::Drop, args, config)).await,
    }
}

fn tell_unknown_names(filter: &FilterArgs, config: &Config) {
    for note in filter.unknown_names(config) {
        output::tell(&format!("note: {}\n", output::harmless(&note)));
    }
}

async fn many(action: BulkAction, args: ManyArgs, config: &Config) -> Result<Exit, CliError> {
    tell_unknown_names(&args.filter, config);
    let many = Many { action, filter: args.filter.filter()?, rate: args.rate, as_json: args.json };
    if !args.resume {
        let client = ApiClient::find(config).await?;
        if !many.may_begin(&client, args.dry_run, args.yes).await? {
            return Ok(Exit::Done);
        }
    }
    let client = ApiClient::at_work(config).await?;
    let done = match client {
        // Signals keep their default effect, so Ctrl-C ends this process.
        ApiClient::InProcess(_) => many.carry_out(&client, args.resume).await,
        ApiClient::Daemon(_) => Box::pin(or_interrupted(many.carry_out(&client, args.resume))).await,
    };
    exit::close(&client).await;
    done
}

/// Waits for the work. A signal ends only the wait: the daemon continues.
async fn or_interrupted(work: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let interruption = Interruption::listen()?;
    tokio::select! {
        done = work => done,
        exit = interruption.came() => {
            output::tell("\nthe daemon continues; `quittance dead stop` stops the work\n");
            Ok(exit)
        }
    }
}

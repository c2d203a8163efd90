//! `quittance dead`: what needs a person, and what he can do about it. Everything is asked of `/v1`, in this process or of the
//! daemon that has the store; replaying also carries orders out, because whoever replays wants to see what becomes of it.

mod bulk;
mod carry;
mod cost;
mod filter;
mod one;
mod outcome;
mod shown;

use crate::config::{Config, Environment};
use crate::exit::{Exit, Trouble};
use crate::interruption::Interruption;
use crate::office::Office;
use crate::output;
use bulk::Many;
use clap::{Args, Subcommand};
use filter::FilterArgs;
use quittance::sheet::Deed;
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance dead list                what waits for a person
  quittance dead list --cause doubt --older-than 2h
  quittance dead show 3f9a2c         its whole story, and what a replay would do
  quittance dead note 3f9a2c 'asked the provider, ticket 4711'
  quittance dead replay 3f9a2c       try again, and wait for the outcome
  quittance dead drop 3f9a2c         give it up for good; of what cannot be read, the record is removed
  quittance dead replay --all --dry-run               how many, and what it would cost
  quittance dead replay --site shop.example.org --rate 20/s --yes
  quittance dead replay --resume     go on with what was interrupted
  quittance dead stop                end what is under way; what was done stays done
  quittance dead export --out letters.jsonl && quittance dead import letters.jsonl
  quittance dead list --json | jq -r '.[].order'

A key may be shortened to its first 6 or more digits, as long as they name one dead letter only. The decimal id that
a caller was given names its order, too.
Dead letters are never removed by themselves. An export holds every parameter, secrets too: keep it as you keep the store.

With --all or a filter, what is to be done stands in the store: it survives a crash of this process and of
the daemon, does each letter once, and leaves alone what dies again meanwhile. The same command again, --resume,
or a daemon goes on with it. A replay waits until all that was replayed has come to something, here or in the daemon,
and says how many were answered. Ctrl-C ends the wait only: a daemon goes on until `quittance dead stop`.

A daemon that has an embedded store to itself is asked over HTTP; if an operator's key is configured (`admin`),
put it into QUITTANCE_ADMIN_KEY.

Exit codes:
  0  done (replay: all of them were answered)
  1  there is no such dead letter, what was replayed failed or died again, or its record cannot be read
  2  the command was not understood, the key names more than one, or a great many need --yes
  3  the result could not be written
  4  the configuration is wrong
  5  the store cannot be opened or used
  6  the provider does not accept the account; the orders are kept
  130,143  ended by a signal";

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
        /// At most so many
        #[arg(long, value_name = "N", value_parser = filter::limit, default_value = "1000")]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one with its story, and what a replay would do
    Show {
        /// Its key, the first 6 or more digits of it, or the id that its caller was given
        #[arg(value_name = "ORDER")]
        key: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Send dead letters on their way again, and wait for the outcome
    Replay(ManyArgs),
    /// Give dead letters up for good
    Drop(ManyArgs),
    /// End bulk work that is under way; what was done stays done
    Stop {
        /// Its number, as --json tells it; all that is under way, if not said
        #[arg(value_name = "NUMBER")]
        number: Option<u64>,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Write dead letters down, whole, one a line
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// Into this file, which must not be there yet; to standard output, if not said
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in dead letters that were exported elsewhere; what is here already stays as it is
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Leave a note about one, for others to read
    Note {
        /// Its key, the first 6 or more digits of it, or the id that its caller was given
        #[arg(value_name = "ORDER")]
        key: String,
        /// What others are to know
        text: String,
    },
}

#[derive(Args, Debug)]
struct ManyArgs {
    /// The key of each, the first 6 or more digits of it, or the id that its caller was given
    #[arg(value_name = "ORDER", required_unless_present_any = ["all", "resume", "cause", "kind", "site", "tenant", "older_than", "newer_than"])]
    keys: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "keys")]
    all: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only say how many there are, and what it would cost
    #[arg(long, conflicts_with = "keys")]
    dry_run: bool,
    /// At most so many a second
    #[arg(long, value_name = "N/s", value_parser = bulk::rate, default_value = "50/s", conflicts_with = "keys")]
    rate: u32,
    /// Do not ask
    #[arg(long, conflicts_with = "keys")]
    yes: bool,
    /// Go on with what was begun before and is not done
    #[arg(long, conflicts_with_all = ["keys", "all", "dry_run"])]
    resume: bool,
    /// Print a line of JSON for each that is named; of a great many, one that sums up
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DeadArgs, config: &Config, environment: &Environment) -> Result<Exit, Trouble> {
    let find = || Office::find(config, environment);
    match args.command {
        DeadCommand::List { filter, limit, json } => {
            tell_slips(&filter, config);
            shown::list(&find().await?, &filter.query()?, limit, json).await
        }
        DeadCommand::Show { key, json } => shown::show(&find().await?, &key, json).await,
        DeadCommand::Export { filter, out } => {
            tell_slips(&filter, config);
            carry::export(&find().await?, &filter.query()?, out).await
        }
        DeadCommand::Import { file, json } => {
            carry::import(&Office::find_or_make(config, environment).await?, &file, json).await
        }
        DeadCommand::Stop { number, json } => bulk::stop(&find().await?, number, json).await,
        DeadCommand::Note { key, text } => one::note(&find().await?, &key, &text).await,
        DeadCommand::Replay(args) if !args.keys.is_empty() => {
            let office = Office::at_work(config, environment).await?;
            let replayed = one::replay(&office, &args.keys, args.json).await;
            office.close().await;
            replayed
        }
        DeadCommand::Drop(args) if !args.keys.is_empty() => {
            one::drop_letters(&find().await?, &args.keys, args.json).await
        }
        DeadCommand::Replay(args) => many(Deed::Replay, args, config, environment).await,
        DeadCommand::Drop(args) => many(Deed::Drop, args, config, environment).await,
    }
}

fn tell_slips(filter: &FilterArgs, config: &Config) {
    filter.slips(config).iter().for_each(|slip| output::tell(&format!("note: {}\n", output::harmless(slip))));
}

async fn many(
    deed: Deed,
    args: ManyArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, Trouble> {
    tell_slips(&args.filter, config);
    let many = Many { deed, filter: args.filter.said()?, rate: args.rate, as_json: args.json };
    if !args.resume {
        let office = Office::find(config, environment).await?;
        if !many.may_begin(&office, args.dry_run, args.yes).await? {
            return Ok(Exit::Done);
        }
    }
    let office = Office::at_work(config, environment).await?;
    let done = match office {
        // A second Ctrl-C must end it, too: nobody listens for one where this process does the work.
        Office::Here(_) => many.carry_out(&office, args.resume).await,
        Office::There(_) => attended(many.carry_out(&office, args.resume)).await,
    };
    office.close().await;
    done
}

/// Whoever leaves a daemon at work is told so.
async fn attended(work: impl Future<Output = Result<Exit, Trouble>>) -> Result<Exit, Trouble> {
    let interruption = Interruption::listen()?;
    tokio::select! {
        done = work => done,
        exit = interruption.came() => {
            output::tell("\nthe daemon goes on with it; `quittance dead stop` stops it\n");
            Ok(exit)
        }
    }
}

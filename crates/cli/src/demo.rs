//! `quittance demo`: the whole system on this machine for a few seconds. A mock provider plays the provider over real HTTP, an
//! engine runs as a process of its own on a real store, workers ask it for answers, and it is killed in the middle.
//! Afterwards a judge holds the engine's usage against the mock provider's ledger.

mod captcha;
mod engine;
mod judge;
mod report;
mod storm;

use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::output;
use clap::Args;
use std::hash::{BuildHasher, RandomState};

/// Seeds that are drawn stay below this, so that a person can type them.
const SEED_DRAWN_MAX: u64 = 1_000_000;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance demo                        a random storm
  quittance demo --seed 7               the same captchas, faults and kills
  quittance demo --requests 200 --captchas 20
  quittance demo --json | jq .usage     for scripts

Exit codes:
  0  every promise held, and the usage equals the provider's ledger
  1  a promise was broken: this is a bug, please report it with the seed
  2  the command was not understood
  3  the result could not be written
  5  the store cannot be opened or used: no space for temporary files?

The workers ask for the same captchas repeatedly, as clients do after timeouts
and restarts, and send no keys. The demo sets `reuse.default = \"shared\"`, so
that equal orders are one job. By default, single-use answers are not shared.

The demo uses only this machine: loopback ports, and a temporary folder that it
removes. The result goes to standard output, progress to standard error.
Colours are used on terminals only.";

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Seed of the storm; by default a random one, which is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of requests that the workers make
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    requests: u32,
    /// Number of distinct captchas
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    captchas: u32,
    /// Print only one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// What is going to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) requests: u32,
    pub(crate) captchas: u32,
    pub(crate) workers: u32,
    pub(crate) kills: u32,
}

impl Plan {
    fn of(args: &DemoArgs) -> Self {
        let drawn = || RandomState::new().hash_one("seed") % SEED_DRAWN_MAX;
        Self {
            seed: args.seed.unwrap_or_else(drawn),
            requests: args.requests,
            captchas: args.captchas.min(args.requests),
            workers: 50.min(args.requests),
            kills: 2,
        }
    }
}

pub(crate) async fn run(args: DemoArgs) -> Result<Exit, CliError> {
    let plan = Plan::of(&args);
    let interruption = Interruption::listen()?.came();
    // An interruption leaves nothing behind: the drop ends the process and removes the folder.
    let evidence = tokio::select! {
        evidence = storm::run(plan) => evidence?,
        _ = interruption => return Err(CliError::new(Exit::Bad, "the demo was interrupted")),
    };
    let report = judge::judge(plan, &evidence);
    let rendered = if args.json { report.json() } else { report.text() };
    output::print(&rendered)?;
    Ok(if report.breaches.is_empty() { Exit::Done } else { Exit::Bad })
}

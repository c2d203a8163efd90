//! `quittance demo`: the whole system on this machine for a few seconds, in a storm of faults.

use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::{mock_setup, output};
use clap::Args;
use quittance_demo::{DemoError, DemoPlan};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// How often the progress is printed if the output is not a terminal.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
/// The limit of drawn seeds, which keeps them short enough to type.
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
  130, 143  interrupted (Ctrl-C, SIGTERM)

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

impl DemoArgs {
    fn plan(&self) -> DemoPlan {
        let drawn = || RandomState::new().hash_one("seed") % SEED_DRAWN_MAX;
        DemoPlan {
            seed: self.seed.unwrap_or_else(drawn),
            requests: self.requests,
            captchas: self.captchas.min(self.requests),
            workers: 50.min(self.requests),
            kills: 2,
        }
    }
}

pub(crate) async fn run(args: DemoArgs) -> Result<Exit, CliError> {
    let plan = args.plan();
    let failed = |what: &str, error| CliError::new(Exit::Bad, format!("{what}: {error}"));
    let program =
        std::env::current_exe().map_err(|error| failed("the engine could not be started", error))?;
    let port = mock_setup::free_port().map_err(|error| failed("there is no free port on loopback", error))?;
    let interruption = Interruption::listen()?.came();
    let (mut line, mut shown_at) =
        (output::ProgressLine::start(&format!("Storm, seed {}", plan.seed)), Instant::now());
    let mut progress = |state: &str| {
        if output::moves() || shown_at.elapsed() >= PROGRESS_EVERY {
            shown_at = Instant::now();
            line.tell(state);
        }
    };
    // An interruption leaves nothing behind: the drop ends the process and removes the folder.
    let report = tokio::select! {
        report = quittance_demo::run(plan, &program, port, &mut progress) => report,
        exit = interruption => {
            output::tell("\nthe demo was interrupted; nothing is left of it\n");
            return Ok(exit);
        }
    };
    drop(line);
    let report = report.map_err(|error| {
        let exit = if matches!(error, DemoError::Store(_)) { Exit::Store } else { Exit::Bad };
        CliError::of(exit, &error)
    })?;
    output::print(&if args.json { report.json() } else { report.text() })?;
    Ok(if report.breaches.is_empty() { Exit::Done } else { Exit::Bad })
}

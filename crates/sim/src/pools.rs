//! The study of pools: ten million orders at demands over three orders of magnitude, with tenfold steps, for every
//! lifetime in the catalogue. The real sizer keeps a stock without an engine, beside the best fixed level that a
//! search finds.

mod print;
mod promises;
mod rate_script;
mod stock;
mod study;

pub use print::{json, table};
pub use promises::Spends;
pub use study::{BestLevel, GOAL_PERMILLE, KINDS, RATES, StepResponse, Study, StudyRow};

use std::process::ExitCode;

const HELP: &str = "\
Studies how pools size themselves, and whether what they promise holds.

usage: quittance-sim --pools [--demands N] [--seed N] [--json]

  --demands N    how many orders in all (10000000)
  --seed N       which ones (1)
  --json         for programs
";

const NOTES: &str = "\
served: from the stock, of all orders; the goal is 95. level: the mean over the last tenth of the steady time. best: the smallest
fixed level that reaches the goal in the same demand. waste: what expired, of what was bought for the stock. $: with an answer at
$0.001, against a fixed pool of five. followed: lifetimes until the level was within one or a fifth of the best, the middle one of
all tenfold steps, and in brackets the one that nine of ten do not exceed.
(1) five serves too little here: the demand costs this much. (2) the demand is given up: it
takes a level of which over 5 % would expire.
";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the binary is for")]
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    let (mut orders, mut seed, mut as_json, mut is_named) = (10_000_000, 1, false, false);
    let switches = &mut [("--pools", &mut is_named), ("--json", &mut as_json)];
    let numbers = &mut [("--demands", &mut orders), ("--seed", &mut seed)];
    if let Err(code) = crate::args::read(args, HELP, switches, numbers) {
        return code;
    }
    let rows = Study::whole(orders, seed).run(&|progress| eprintln!("{progress}"));
    let broken = rows.iter().filter(|row| !row.broken().is_empty()).count();
    if as_json {
        print!("{}", json(&rows, seed));
    } else {
        let orders: u64 = rows.iter().map(|row| row.orders).sum();
        print!("{}\n{NOTES}\n{orders} orders, seed {seed}: ", table(&rows));
        match broken {
            0 => println!("every promise held, as far as (1) and (2) let it"),
            _ => println!("promises are BROKEN in {broken} of {} rows", rows.len()),
        }
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

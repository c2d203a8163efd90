//! Runs many lives on all cores, until the number is reached or a promise is broken.

use crate::judge::Breach;
use crate::life::{Life, live};
use crate::plants::{PLANTS, Plant};
use crate::script::Script;
use quittance_lifecycle::Counters;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The result of many lives.
#[derive(Debug, Default)]
pub struct Night {
    pub lives: u64,
    pub usage: Counters,
    /// The number of payments that the provider really got.
    pub payments: u64,
    /// Lives with a broken promise, with the first promise broken in each.
    pub broken: Vec<(u64, Breach)>,
}

/// Runs the lives with these seeds on all cores. Stops early when `enough` are broken.
pub fn run(
    first: u64,
    count: u64,
    plant: Option<Plant>,
    enough: usize,
    tell: &(dyn Fn(u64) + Sync),
) -> Night {
    let (next, done, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let night = Mutex::new(Night::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let seed = first + n;
                    let life = live(seed, &Script::draw(seed), plant, false, &mut |_| {});
                    let mut night = night.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    note(&mut night, &life);
                    if night.broken.len() >= enough {
                        over.store(true, Ordering::Relaxed);
                    }
                    drop(night);
                    tell(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut night = night.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    night.broken.sort_by_key(|(seed, _)| *seed);
    night
}

fn note(night: &mut Night, life: &Life) {
    night.lives += 1;
    night.usage += life.usage;
    night.payments += life.truth.tasks.len() as u64;
    if let Some(breach) = life.breaches.first() {
        night.broken.push((life.seed, breach.clone()));
    }
}

const HELP: &str = "\
Lives many simulated lives and checks every promise on every order.

usage: quittance-sim [--lives N] [--first SEED] [--plants]
       quittance-sim --pools [--demands N] [--seed N] [--json]

  --lives N      how many lives (20000)
  --first SEED   the seed of the first (0)
  --plants       plant each wrong idea and say how many lives it took to catch it
  --pools        let pools size themselves through ten million orders, and print how they did
  SIM_SEED=n     (environment) replay one life and print its story
";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the binary is for")]
pub fn main(args: impl Iterator<Item = String>, replay: Option<String>) -> ExitCode {
    let (mut lives, mut first, mut plants) = (20_000, 0, false);
    let numbers = &mut [("--lives", &mut lives), ("--first", &mut first)];
    if let Err(code) = crate::args::read(args, HELP, &mut [("--plants", &mut plants)], numbers) {
        return code;
    }
    match replay.map(|seed| seed.parse::<u64>()) {
        Some(Ok(seed)) => return replay_one(seed),
        Some(Err(_)) => {
            eprintln!("SIM_SEED must be a whole number");
            return ExitCode::from(2);
        }
        None => {}
    }
    if plants {
        return plant_all(first);
    }
    let is_terminal = std::io::stderr().is_terminal();
    let night = run(first, lives, None, 10, &|done| {
        if is_terminal && done % 100 == 0 {
            eprint!("\r{done} of {lives} lives");
            _ = std::io::stderr().flush();
        }
    });
    if is_terminal {
        eprintln!();
    }
    println!("{} lives, {} payments", night.lives, night.payments);
    for (name, count) in night.usage.lines() {
        println!("{name:>22} {count}");
    }
    for (seed, breach) in &night.broken {
        println!(
            "BROKEN in life {seed}: {breach}\n  replay it: SIM_SEED={seed} cargo run --release -p quittance-sim"
        );
    }
    if night.broken.is_empty() {
        println!("every promise held");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[expect(clippy::print_stdout, reason = "this is what the binary is for")]
fn replay_one(seed: u64) -> ExitCode {
    let script = Script::draw(seed);
    println!("life {seed}: {script:#?}");
    let life = live(seed, &script, None, true, &mut |_| {});
    for line in &life.trace {
        println!("{line}");
    }
    for order in &life.orders {
        println!("\n{} {} {}", order.key.short(), order.terms.kind, order.phase.name());
        for entry in &order.timeline.entries {
            println!("  {:?} {entry}", entry.at);
        }
    }
    for breach in &life.breaches {
        println!("BROKEN {breach}");
    }
    if life.breaches.is_empty() {
        println!("\nevery promise held");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The most lives that a planted bug may survive.
pub const PLANT_LIVES_MAX: u64 = 6_000;

#[expect(clippy::print_stdout, reason = "this is what the binary is for")]
fn plant_all(first: u64) -> ExitCode {
    let mut missed = 0;
    for plant in PLANTS {
        let night = run(first, PLANT_LIVES_MAX, Some(*plant), 1, &|_| {});
        match night.broken.first() {
            Some((seed, breach)) => {
                println!("{:>5} lives  {}\n             {breach} (seed {seed})", night.lives, plant.name);
            }
            None => {
                missed += 1;
                println!("    -        {}: NOT CAUGHT in {} lives", plant.name, night.lives);
            }
        }
    }
    println!("{} planted, {missed} not caught", PLANTS.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

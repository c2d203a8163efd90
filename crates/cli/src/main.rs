//! The `quittance` command: the only place with a main, an environment, the real clock and exit codes.

mod demo;
mod json;
mod text;

use clap::{Parser, Subcommand};
use demo::Report;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Pays once for what many ask.
///
/// Quittance stands between a crowd of workers and an API that sells answers. One logical request is paid for
/// once, whatever times out, crashes or is asked twice; what was paid for reaches a caller, or a person.
#[derive(Debug, Parser)]
#[command(
    name = "quittance",
    version,
    arg_required_else_help = true,
    max_term_width = 80,
    after_help = "Start here: quittance demo"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Live through one storm in the simulation, and read the books afterwards
    ///
    /// Runs three nodes, 50 callers and a provider on one thread in virtual time: nodes are killed and frozen,
    /// replies and callbacks are lost, callbacks are forged. Then it calms down, and a judge who shares no rule
    /// with the engine holds every promise against what really happened. It takes about a second, and needs no
    /// network, no key and no money.
    #[command(after_help = AFTER_DEMO)]
    Demo {
        /// Which storm: the same seed gives the same storm, and the same output
        ///
        /// Without it a seed is drawn, and printed, so that the storm can be replayed.
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// Print one JSON object, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
}

const AFTER_DEMO: &str = "\
Examples:
  quittance demo                     a storm that nobody has seen before
  quittance demo --seed 7            the same storm each time
  quittance demo --json | jq .books  for scripts

Exit codes:
  0  every promise held
  1  a promise was broken: a bug, please report it with the seed
  2  the command was not understood
  3  the result could not be written

The result goes to standard output; progress, and how long it really took, to
standard error. Colours are for terminals only, and NO_COLOR turns them off.";

/// What the shell is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Exit {
    Held = 0,
    Broken = 1,
    NotWritten = 3,
}

impl Exit {
    fn of(report: &Report) -> Self {
        if report.breaches.is_empty() { Self::Held } else { Self::Broken }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Seeds that are drawn stay below this, so that a person can type them.
const SEED_DRAWN_MAX: u64 = 1_000_000;

fn main() -> ExitCode {
    let Cli { command: Command::Demo { seed, json } } = Cli::parse();
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one("seed") % SEED_DRAWN_MAX);
    run_demo(seed, json).into()
}

fn run_demo(seed: u64, as_json: bool) -> Exit {
    let (report, took) = timed(|| {
        let mut progress = Progress::start(seed);
        demo::run(seed, &mut |done, of| progress.show(done, of))
    });
    let rendered = if as_json { json::render(&report) } else { text::render(&report, &command_name()) };
    let (minutes, seconds) = (report.virtual_ms / 60_000, took.as_secs_f64());
    let written = print(&rendered);
    tell(&format!("{minutes} minutes of virtual time took {seconds:.1} s\n"));
    match written {
        Ok(()) => Exit::of(&report),
        Err(error) => {
            tell(&format!("quittance: the result could not be written: {error}\n"));
            Exit::NotWritten
        }
    }
}

/// Writes to standard output. A reader who has seen enough and closed the pipe is no error.
fn print(rendered: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout()).lock();
    match out.write_all(rendered.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says something on standard error. If nobody listens there, nothing depends on it.
fn tell(message: &str) {
    _ = io::stderr().write_all(message.as_bytes());
}

/// One line on standard error: it moves on a terminal, and is written once elsewhere.
struct Progress {
    moves: bool,
}

/// Wide enough to cover the progress line.
const BLANK: &str = "                                                                      ";

impl Progress {
    fn start(seed: u64) -> Self {
        let moves = io::stderr().is_terminal();
        tell(&format!("One storm in the simulation, seed {seed} ...{}", if moves { "" } else { "\n" }));
        Self { moves }
    }

    fn show(&mut self, done: usize, of: usize) {
        if self.moves {
            tell(&format!("\rThe storm and the calm: {done} of {of} requests are over ..."));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.moves {
            tell(&format!("\r{BLANK}\r"));
        }
    }
}

/// How this program was called, so that the hint can be pasted; its plain name where that needs quoting.
fn command_name() -> String {
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let called = std::env::args_os().next().and_then(|name| name.into_string().ok());
    called.filter(is_plain).unwrap_or_else(|| "quittance".into())
}

#[expect(clippy::disallowed_methods, reason = "how long it really took is for the person who waited")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = std::time::Instant::now();
    let done = work();
    (done, begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_promise_held_and_a_promise_broken_exit_differently() {
        let held = demo::tests::small_report(Vec::new());
        assert_eq!(Exit::of(&held) as u8, 0);
        let broken = demo::tests::small_report(vec![demo::tests::a_loss()]);
        assert_eq!(Exit::of(&broken) as u8, 1);
    }
}

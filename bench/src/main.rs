//! Measures costs as ratios within one run. `docs/benchmarks.md` explains how to read them.

mod accepts;
mod answers;
mod apis;
mod bare;
mod callbacks;
mod child;
mod client;
mod handouts;
mod memory;
mod provider;
mod rest;
mod scene;
mod server;
mod shared;
mod stopwatch;
mod table;
mod tenants;
mod watched;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use table::BenchRow;
use tempfile::TempDir;

const USAGE: &str =
    "usage: cargo run --release -p quittance-bench -- [--quick] [--json] [--dir PATH] [SECTION ...]

  --quick      fewer rounds, and 100,000 orders where it would be 1,000,000
  --json       one array for programs, instead of a table for people
  --dir PATH   where stores are made; a disk, or the fsyncs cost nothing (default: the temporary directory)

sections, all of them if none is named:";

/// One section: its name, what it measures, and how.
struct Section {
    name: &'static str,
    about: &'static str,
    run: fn(&Scale) -> Vec<BenchRow>,
}

const SECTIONS: &[Section] = &[
    Section { name: "answers", about: "joined and cached answers a second on one core", run: answers::run },
    Section { name: "accepts", about: "durable accepts a second, against a bare log", run: accepts::run },
    Section { name: "lives", about: "fsyncs over a whole life", run: accepts::lives },
    Section { name: "memory", about: "memory of an order in flight", run: memory::run },
    Section { name: "reopen", about: "time to open after kill -9", run: rest::reopen },
    Section { name: "flat", about: "each cost with few and with many orders at rest", run: rest::flat },
    Section { name: "gateway", about: "answers over HTTP, against hyper alone", run: apis::run },
    Section {
        name: "watched",
        about: "joined orders over HTTP while people watch, against no watchers",
        run: watched::run,
    },
    Section { name: "callbacks", about: "from a callback to a caller who waits", run: callbacks::run },
    Section {
        name: "redis",
        about: "accepts and joins of many nodes, against a bare script",
        run: shared::redis,
    },
    Section { name: "postgres", about: "the same, against a bare statement", run: shared::postgres },
    Section {
        name: "tenants",
        about: "the waits of a quiet tenant beside a hostile one, against alone",
        run: tenants::run,
    },
    Section { name: "handouts", about: "a million hand-outs on every store, judged", run: handouts::run },
];

/// The size of each measurement, and the folder.
pub(crate) struct Scale {
    is_quick: bool,
    dir: PathBuf,
    crashed: rest::CrashedStore,
}

impl Scale {
    pub(crate) const fn of(&self, full: u64, quick: u64) -> u64 {
        if self.is_quick { quick } else { full }
    }

    pub(crate) const fn is_quick(&self) -> bool {
        self.is_quick
    }

    pub(crate) fn fresh_dir(&self) -> TempDir {
        TempDir::with_prefix_in("quittance-bench-", &self.dir).expect("a directory that can be written")
    }
}

/// Prints progress for the user. Without a reader it is lost.
pub(crate) fn say(what: &str) {
    _ = writeln!(std::io::stderr(), "bench: {what}");
}

struct Args {
    scale: Scale,
    is_json: bool,
    sections: Vec<&'static Section>,
}

fn parse(words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        scale: Scale { is_quick: false, dir: std::env::temp_dir(), crashed: rest::CrashedStore::default() },
        is_json: false,
        sections: Vec::new(),
    };
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => args.scale.is_quick = true,
            "--json" => args.is_json = true,
            "--dir" => args.scale.dir = words.next().ok_or("--dir wants a path")?.into(),
            name => {
                let section = SECTIONS.iter().find(|section| section.name == name);
                args.sections.push(section.ok_or_else(|| format!("there is no section `{name}`"))?);
            }
        }
    }
    if args.sections.is_empty() {
        args.sections.extend(SECTIONS);
    }
    Ok(args)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [child::WORD, ..] = words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        child::run(&words[1..]);
        return ExitCode::SUCCESS;
    }
    let Args { scale, is_json, sections } = match parse(words.into_iter()) {
        Ok(args) => args,
        Err(why) => {
            let known = SECTIONS.iter().map(|section| format!("\n  {:9} {}", section.name, section.about));
            _ = writeln!(std::io::stderr(), "{why}\n\n{USAGE}{}", known.collect::<String>());
            return ExitCode::from(2);
        }
    };
    let rows: Vec<BenchRow> = sections.iter().flat_map(|section| (section.run)(&scale)).collect();
    let output = if is_json { table::json(&rows) } else { table::text(&rows) };
    match std::io::stdout().lock().write_all(output.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

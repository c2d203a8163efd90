//! Tasks for developers. `cargo run -p xtask -- tidy` checks the rules of the code base. `cargo run -p xtask --
//! no-std` proves that the decisions link without std.

mod markdown;
mod no_std;
mod source;
mod tidy;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- <tidy | no-std>

  tidy     hold the tree to the house rules (`cargo test -p xtask` does the same)
  no-std   prove that quittance-lifecycle links without std";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a command for people at a terminal")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tree::Tree::load().and_then(|tree| tidy::verdict(&tree)),
        ["no-std"] => no_std::prove(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(good) => {
            println!("{good}");
            ExitCode::SUCCESS
        }
        Err(bad) => {
            eprintln!("{bad}");
            ExitCode::FAILURE
        }
    }
}

//! Runs many lives: `cargo run --release -p quittance-sim -- --lives 1000000`. With `SIM_SEED=n` it replays one life
//! and prints its events. With `--plants` it prints how many lives it takes to catch each planted bug. With `--pools`
//! it studies how pools size themselves.

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--pools") {
        return quittance_sim::pools::main(args.into_iter());
    }
    quittance_sim::night::main(args.into_iter(), std::env::var("SIM_SEED").ok())
}

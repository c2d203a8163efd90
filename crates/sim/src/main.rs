//! The night's run: `cargo run --release -p quittance-sim -- --lives 1000000`. With `SIM_SEED=n` it replays one
//! life and prints its story; with `--plants` it shows how many lives each planted wrong idea needs.

fn main() -> std::process::ExitCode {
    quittance_sim::night::main(std::env::args().skip(1), std::env::var("SIM_SEED").ok())
}

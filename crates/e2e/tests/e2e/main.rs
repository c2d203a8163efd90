//! Whole processes, as users run them: the built `quittance` and HTTP, and no crate of ours. What a test here sees is
//! what a user, a script or a provider sees; the simulator's ledger is the judge of what was really paid for.

mod bad_input;
mod binary;
mod commands;
mod death;
mod demo;
mod engine;
mod http;
mod provider;
mod room;
mod traps;
mod wait;

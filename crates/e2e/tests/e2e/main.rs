//! Whole processes, as users run them: the built `quittance` and HTTP, and no crate of ours. What a test here sees is
//! what a user, a script or a provider sees; the mock provider's ledger is the judge of what was really paid for.

mod bad_input;
mod binary;
mod budgets;
mod clients;
mod commands;
mod crowd;
mod dead_letters;
mod death;
mod demo;
mod either;
mod engine;
mod fuzz;
mod http;
mod lone;
mod nodes;
mod page;
mod provider;
mod sandbox;
mod serve;
mod traps;
mod usage;
mod wait;

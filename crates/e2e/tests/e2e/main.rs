//! Whole processes, as users run them: the built `quittance` and HTTP, without our crates. A test sees only what a
//! user, a script or a provider sees. The mock provider's ledger shows what was really paid for.

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
mod fail_over;
mod failover;
mod fuzz;
mod http;
mod lone;
mod nodes;
mod page;
mod provider;
mod reload;
mod sandbox;
mod serve;
mod traps;
mod usage;
mod wait;

//! Tests that the memory store keeps every promise, and that every promise can be broken.

mod crimes;
mod memory;
mod naive;
mod sabotage;
mod suite;

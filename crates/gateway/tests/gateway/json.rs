//! The JSON door as clients reach it: over a socket, beside the other doors, on one connection or many. What it answers to
//! what is tested where it stands.

mod bad_input;
mod dialects;
mod errors;
mod fixture;
mod paths;
mod scripted;
mod store_errors;
mod tenants;

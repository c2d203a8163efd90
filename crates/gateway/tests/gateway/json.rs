//! The JSON door as clients reach it: over a socket, beside the other doors, on one connection or many. What it answers to
//! what is tested where it stands.

mod fixture;
mod paths;

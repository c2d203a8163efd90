//! The stand-in seen from outside, over real sockets: what it says to the byte, what it refuses, and whether the ledger
//! agrees with what a client saw.

mod control;
mod encodings;
mod faults;
mod json;
mod json_faults;
mod pace;
mod pingbacks;
mod protocol;
mod strict;
mod wire;

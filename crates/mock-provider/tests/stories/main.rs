//! Tests of the mock provider over real sockets: the exact bytes of its replies, what it refuses, and whether the
//! ledger agrees with what a client saw.

mod control;
mod encodings;
mod faults;
mod json;
mod json_faults;
mod pace;
mod pingbacks;
mod protocol;
mod services;
mod strict;
mod wire;

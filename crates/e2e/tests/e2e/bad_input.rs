//! Bad input of every sort: the exit code says who must act, the message says what is wrong and what to do, nothing is
//! paid for, and nothing is lost.

mod orders;
mod providers;
mod settings;
mod streams;

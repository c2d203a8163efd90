//! Bad input of every sort. The exit code shows who must act, and the message says what is wrong and what to do.
//! Nothing is paid for, and nothing is lost.

mod orders;
mod providers;
mod settings;
mod streams;

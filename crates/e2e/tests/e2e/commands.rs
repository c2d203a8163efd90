//! Every command as a user sees it: its output, the streams and formats, and its exit code.

mod beside;
mod dead;
mod hostile;
mod look;
mod mock;
mod solve;
mod state;
mod usage;

//! Every command as a user sees it: what it prints where, in which form, and how it ends.

mod beside;
mod dead;
mod hostile;
mod look;
mod mock;
mod solve;
mod state;
mod usage;

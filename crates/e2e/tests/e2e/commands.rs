//! Every command as a user sees it: what it prints where, in which form, and how it ends.

mod beside;
mod books;
mod dead;
mod hostile;
mod look;
mod sim;
mod solve;
mod state;

//! A provider of the classic protocol: calls `in.php` and `res.php`.

mod account;
mod many_polls;
mod pace;
mod provider;
mod report;

pub use provider::ClassicProvider;

//! A provider of the classic protocol: calls `in.php` and `res.php`.

mod account;
mod batch;
mod exchange;
mod pace;
mod provider;
mod report;
mod settings;

pub use provider::ClassicProvider;
pub use settings::{ClassicPaceSettings, Settings};

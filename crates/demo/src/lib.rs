//! A demo of the promises. This is the only crate that may kill an engine of its own. A mock provider answers over
//! real HTTP, and an engine runs as a process on a real store. Workers send it orders, and it is killed in the
//! middle. Afterwards the engine's usage is compared with the mock provider's ledger.
#![forbid(unsafe_code)]

mod captcha;
mod demo_report;
mod engine_process;
mod verdict;
mod workers;

pub use demo_report::{DemoReport, wrapped};

use std::path::Path;

/// The settings of a demo.
#[derive(Clone, Copy, Debug)]
pub struct DemoPlan {
    pub seed: u64,
    pub requests: u32,
    pub captchas: u32,
    pub workers: u32,
    pub kills: u32,
}

/// Why the demo could not finish.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The temporary folder or the store in it cannot be used.
    #[error("{0}")]
    Store(String),
    #[error("{0}")]
    Engine(String),
}

impl DemoError {
    fn engine(what: impl Into<String>) -> Self {
        Self::Engine(what.into())
    }
}

/// Runs a demo. `program` is the `quittance` command, and `callback_port` is free. Dropping the future ends the engine and removes
/// its folder.
pub async fn run(
    plan: DemoPlan,
    program: &Path,
    callback_port: u16,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<DemoReport, DemoError> {
    let evidence = workers::run(plan, program, callback_port, progress).await?;
    Ok(verdict::judge(plan, &evidence))
}

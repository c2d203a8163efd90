//! Why a node could not be built, or its store not be used, as an operator reads it.

use std::error::Error;
use std::fmt;

/// What is to be fixed. Each class has an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupFault {
    Config,
    Store,
    Provider,
    /// Something else on this machine.
    Machine,
}

/// An error of the set-up: what is to be fixed, and a sentence that says how.
#[derive(Debug)]
pub struct SetupError {
    pub fault: SetupFault,
    pub what: String,
}

impl SetupError {
    pub fn new(fault: SetupFault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into() }
    }

    /// An error that is fixed in the configuration.
    pub fn config(error: impl Error) -> Self {
        Self::new(SetupFault::Config, with_causes(&error))
    }

    /// An error of the store.
    pub fn store(error: impl Error) -> Self {
        Self::new(SetupFault::Store, with_causes(&error))
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// An error with all its causes, in one line.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut what = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        let more = cause.to_string();
        if !what.contains(&more) {
            what = format!("{what} ({more})");
        }
        beneath = cause.source();
    }
    what
}

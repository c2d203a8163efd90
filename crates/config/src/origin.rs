//! The origin of a value, for `config show` and for every error about a value.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The layer of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    /// The value follows from another setting, such as a preset.
    Follows(String),
    File {
        path: Arc<Path>,
        line: usize,
    },
    Variable(String),
    Flag,
}

impl SettingOrigin {
    /// The strength of a layer. A value of a stronger layer overrides one of a weaker layer.
    pub(crate) const fn strength(&self) -> u8 {
        match self {
            Self::Default | Self::Follows(_) => 0,
            Self::File { .. } => 1,
            Self::Variable(_) => 2,
            Self::Flag => 3,
        }
    }

    /// A word for scripts, which never changes.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Follows(_) => "follows",
            Self::File { .. } => "file",
            Self::Variable(_) => "environment",
            Self::Flag => "flag",
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Follows(what) => write!(f, "from {what}"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(variable) => write!(f, "environment {variable}"),
            Self::Flag => f.write_str("flag --set"),
        }
    }
}

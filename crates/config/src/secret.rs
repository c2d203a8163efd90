//! Secrets: named in the configuration, kept in the environment or in a file, and never shown.

use super::effective::Effective;
use super::error::ConfigError;
use super::layers::Environment;
use super::name::Name;
use super::origin::Origin;
use base64::Engine as _;
use quittance_gateway::{KEY_BYTES, KeyDigest};
use std::path::PathBuf;
use std::{fmt, io};

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one who has to send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeper {
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(variable) => write!(f, "env {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// A secret that somebody named, whether or not it is there: only who needs it must have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Such as `provider.main.key`.
    pub name: String,
    pub keeper: Keeper,
    found: Result<Secret, String>,
}

impl Credential {
    /// The secret that `NAME_env` or `NAME_file` points to, if one of them is set.
    pub fn find(
        effective: &Effective,
        table: &Name,
        key: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, ConfigError> {
        let (by_env, by_file) = (table.below(&format!("{key}_env")), table.below(&format!("{key}_file")));
        let keeper = match (effective.text_at(&by_env), effective.text_at(&by_file)) {
            (None, None) => return Ok(None),
            (Some(variable), None) => Keeper::Variable(variable),
            (None, Some(path)) => Keeper::File(path.into()),
            (Some(_), Some(_)) => {
                let at = effective.get(&by_file).expect("it was just found").origin.clone();
                return Err(ConfigError::Unsound {
                    name: by_file.to_string(),
                    at,
                    problem: format!("says where a secret is, and so does `{by_env}`"),
                    remedy: "keep one of the two".into(),
                });
            }
        };
        let found = match &keeper {
            Keeper::Variable(variable) => from_variable(variable, environment),
            Keeper::File(path) => from_file(path),
        };
        Ok(Some(Self { name: table.below(key).to_string(), keeper, found }))
    }

    /// One that is in this variable, if that is set.
    pub fn in_variable(variable: &str, environment: &Environment) -> Option<Self> {
        environment.get(variable)?;
        let found = from_variable(variable, environment);
        Some(Self { name: "store.password".into(), keeper: Keeper::Variable(variable.into()), found })
    }

    pub fn get(&self) -> Result<&Secret, ConfigError> {
        self.found.as_ref().map_err(|why| ConfigError::NoSecret { name: self.name.clone(), why: why.clone() })
    }

    pub const fn is_set(&self) -> bool {
        self.found.is_ok()
    }

    /// Whether it is there, and where it is kept; never what it is.
    pub fn state(&self) -> String {
        let Self { keeper, .. } = self;
        if self.is_set() { format!("set (from {keeper})") } else { format!("missing ({keeper})") }
    }
}

/// A key of ours, by which we know a caller: its hash, which may stand in the file, or where the key itself is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerKey {
    Hash { name: String, digest: KeyDigest },
    Kept(Credential),
}

impl CallerKey {
    /// What `key_sha256`, `key_env` or `key_file` says, if one of them is set.
    pub fn find(
        effective: &Effective,
        table: &Name,
        environment: &Environment,
    ) -> Result<Option<Self>, ConfigError> {
        let kept = Credential::find(effective, table, "key", environment)?;
        let by_hash = table.below("key_sha256");
        let hash = effective.text_at(&by_hash).and_then(|digits| KeyDigest::parse(&digits));
        match (hash, kept) {
            (None, kept) => Ok(kept.map(Self::Kept)),
            (Some(digest), None) => Ok(Some(Self::Hash { name: table.below("key").to_string(), digest })),
            (Some(_), Some(kept)) => Err(ConfigError::Unsound {
                name: by_hash.to_string(),
                at: effective.get(&by_hash).map_or(Origin::Default, |held| held.origin.clone()),
                problem: format!("says what the key is, and so does {}", kept.keeper),
                remedy: "keep one of the two".into(),
            }),
        }
    }

    /// Such as `tenant.team-a.key`.
    pub fn name(&self) -> &str {
        match self {
            Self::Hash { name, .. } => name,
            Self::Kept(credential) => &credential.name,
        }
    }

    /// The hash of the key, whatever its length, if it is there.
    pub fn plain(&self) -> Option<KeyDigest> {
        match self {
            Self::Hash { digest, .. } => Some(*digest),
            Self::Kept(credential) => credential.get().ok().map(|key| KeyDigest::of(key.reveal())),
        }
    }

    pub fn digest(&self) -> Result<KeyDigest, ConfigError> {
        match self {
            Self::Hash { digest, .. } => Ok(*digest),
            Self::Kept(credential) => {
                let key = credential.get()?.reveal();
                if key.len() != KEY_BYTES {
                    return Err(ConfigError::KeyLength {
                        name: credential.name.clone(),
                        keeper: credential.keeper.to_string(),
                        found: key.chars().count(),
                    });
                }
                Ok(KeyDigest::of(key))
            }
        }
    }

    /// Whether it is known, and how; never what it is.
    pub fn state(&self) -> String {
        match self {
            Self::Hash { digest, .. } => format!("by hash {:.8}...", digest.to_string()),
            Self::Kept(credential) => credential.state(),
        }
    }
}

/// A secret of 32 bytes: 64 hexadecimal digits, or `whsec_` and base64.
pub fn bytes_of(text: &str) -> Option<[u8; 32]> {
    match text.strip_prefix("whsec_") {
        Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).ok()?.try_into().ok(),
        None => KeyDigest::parse(text).map(|digits| digits.0),
    }
}

fn from_variable(variable: &str, environment: &Environment) -> Result<Secret, String> {
    match environment.get(variable).map(str::trim) {
        None => Err(format!("the environment variable `{variable}` is not set: export it before the start")),
        Some("") => Err(format!("the environment variable `{variable}` is empty: put the secret into it")),
        Some(secret) => Ok(Secret(secret.to_owned())),
    }
}

fn from_file(path: &std::path::Path) -> Result<Secret, String> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Err(why) => Err(format!("the file {shown} cannot be read: {why}: {}", reading_remedy(&why))),
        Ok(text) if text.trim().is_empty() => {
            Err(format!("the file {shown} is empty: put the secret into it"))
        }
        Ok(text) => Ok(Secret(text.trim().to_owned())),
    }
}

/// What helps when a file cannot be read, by what the system says about it.
pub fn reading_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "put the file there, or correct its path in the configuration",
        io::ErrorKind::PermissionDenied => "let this user read the file and enter its folders",
        io::ErrorKind::IsADirectory => "name a file in it, not the folder",
        io::ErrorKind::InvalidData => "it must be text",
        _ => "look at the disk that it is on",
    }
}

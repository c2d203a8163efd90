//! Secrets: the configuration names them, the environment or a file contains them, and they are never shown.

use crate::effective::Effective;
use crate::error::ConfigError;
use crate::layers::Environment;
use crate::named_files::{read_file, reading_remedy};
use crate::setting_name::Name;
use base64::Engine as _;
use quittance_gateway::{KEY_BYTES, KeyDigest};
use std::fmt;
use std::path::{Path, PathBuf};

/// A secret in memory. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The place where a secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
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

/// A secret that the configuration names, whether or not it exists. Only a command that needs it fails without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The name of the setting, such as `provider.main.key`.
    pub(crate) name: String,
    pub(crate) keeper: Keeper,
    found: Result<Secret, String>,
}

impl Credential {
    /// The secret that `KEY_env` or `KEY_file` names; `None` if neither is set.
    pub(crate) fn find(
        effective: &Effective,
        table: &Name,
        key: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, ConfigError> {
        let (by_env, by_file) = (table.below(&format!("{key}_env")), table.below(&format!("{key}_file")));
        let (keeper, found) = match (effective.text_at(&by_env), effective.text_at(&by_file)) {
            (None, None) => return Ok(None),
            (Some(variable), None) => {
                let found = from_variable(&variable, environment);
                (Keeper::Variable(variable), found)
            }
            (None, Some(path)) => (Keeper::File(path.clone().into()), from_file(Path::new(&path))),
            (Some(_), Some(_)) => {
                let problem = format!("says where a secret is, and so does `{by_env}`");
                return Err(effective.unsound(&by_file, problem, "keep one of the two"));
            }
        };
        Ok(Some(Self { name: table.below(key).to_string(), keeper, found }))
    }

    /// The password of a store in this variable; `None` if the variable is not set.
    pub fn in_variable(variable: &str, environment: &Environment) -> Option<Self> {
        environment.get(variable)?;
        let found = from_variable(variable, environment);
        Some(Self { name: "store.password".into(), keeper: Keeper::Variable(variable.into()), found })
    }

    pub fn get(&self) -> Result<&Secret, ConfigError> {
        let missing =
            |why| ConfigError::about(&self.name, format!("the secret for `{}` is missing: {why}", self.name));
        self.found.as_ref().map_err(missing)
    }

    pub(crate) const fn is_set(&self) -> bool {
        self.found.is_ok()
    }

    /// Whether the secret exists, in one word.
    pub(crate) const fn word(&self) -> &'static str {
        if self.is_set() { "set" } else { "missing" }
    }

    /// Whether the secret exists, and where it is kept; never its value.
    pub fn state(&self) -> String {
        let Self { keeper, .. } = self;
        if self.is_set() { format!("set (from {keeper})") } else { format!("missing ({keeper})") }
    }

    fn bad(&self, form: &str) -> ConfigError {
        let Self { name, keeper, .. } = self;
        let message =
            format!("the secret for `{name}` is there and cannot be used: {keeper} must hold {form}");
        ConfigError::about(name, message)
    }

    /// A secret of 32 bytes: 64 hexadecimal digits.
    pub(crate) fn bytes(&self) -> Result<[u8; 32], ConfigError> {
        bytes_of(self.get()?.reveal())
            .ok_or_else(|| self.bad("64 hexadecimal digits: make them with `openssl rand -hex 32`"))
    }

    /// A secret of 32 bytes that signs webhooks: 64 hexadecimal digits, or `whsec_` and base64.
    pub(crate) fn webhook_bytes(&self) -> Result<[u8; 32], ConfigError> {
        let form = "64 hexadecimal digits (`openssl rand -hex 32`), or `whsec_` and 32 bytes in base64";
        bytes_of(self.get()?.reveal()).ok_or_else(|| self.bad(form))
    }
}

fn bytes_of(text: &str) -> Option<[u8; 32]> {
    match text.strip_prefix("whsec_") {
        Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).ok()?.try_into().ok(),
        None => KeyDigest::parse(text).map(|digits| digits.0),
    }
}

/// A caller's key: its hash, which may be in the config file, or the place where the key itself is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerKey {
    Hash { name: String, digest: KeyDigest },
    Kept(Credential),
}

impl CallerKey {
    /// What `key_sha256`, `key_env` or `key_file` names; `None` if none of them is set.
    pub(crate) fn find(
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
            (Some(_), Some(kept)) => {
                let problem = format!("says what the key is, and so does {}", kept.keeper);
                Err(effective.unsound(&by_hash, problem, "keep one of the two"))
            }
        }
    }

    /// The name of the setting, such as `tenant.team-a.key`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Hash { name, .. } => name,
            Self::Kept(credential) => &credential.name,
        }
    }

    /// The hash of the key, whatever the key's length; `None` if the key is missing.
    pub(crate) fn any_digest(&self) -> Option<KeyDigest> {
        match self {
            Self::Hash { digest, .. } => Some(*digest),
            Self::Kept(credential) => credential.get().ok().map(|key| KeyDigest::of(key.reveal())),
        }
    }

    pub fn digest(&self) -> Result<KeyDigest, ConfigError> {
        match self {
            Self::Hash { digest, .. } => Ok(*digest),
            Self::Kept(credential) => match credential.get()?.reveal() {
                key if key.len() == KEY_BYTES => Ok(KeyDigest::of(key)),
                key => {
                    let (Credential { name, keeper, .. }, found) = (credential, key.chars().count());
                    let what =
                        format!("the key for `{name}` ({keeper}) has {found} characters, and must have 32");
                    let remedy = "because clients take no other: `quittance tenant new` makes one";
                    Err(ConfigError::about(name, format!("{what}, {remedy}")))
                }
            },
        }
    }

    /// Whether the key is known, and how; never its value.
    pub fn state(&self) -> String {
        match self {
            Self::Hash { digest, .. } => format!("by hash {:.8}...", digest.to_string()),
            Self::Kept(credential) => credential.state(),
        }
    }
}

fn from_variable(variable: &str, environment: &Environment) -> Result<Secret, String> {
    match environment.get(variable).map(str::trim) {
        None => Err(format!("the environment variable `{variable}` is not set: export it before the start")),
        Some("") => Err(format!("the environment variable `{variable}` is empty: put the secret into it")),
        Some(secret) => Ok(Secret::new(secret)),
    }
}

fn from_file(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let bytes = read_file(path)
        .map_err(|why| format!("the file {shown} cannot be read: {why}: {}", reading_remedy(&why)))?;
    match String::from_utf8(bytes).as_deref().map(str::trim) {
        Err(_) => Err(format!("the file {shown} cannot be read: it must be text")),
        Ok("") => Err(format!("the file {shown} is empty: put the secret into it")),
        Ok(secret) => Ok(Secret::new(secret)),
    }
}

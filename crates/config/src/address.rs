//! The address of a store. It may contain a password only in the environment, where no backup and no list of
//! processes shows it. A displayed address never contains a password.

use crate::named_secret::Secret;
use std::fmt;

/// The sort of store that an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Embedded,
    Memory,
    Redis,
    Postgres,
}

impl Scheme {
    pub(crate) fn of(address: &str) -> Option<Self> {
        if address == "memory:" {
            return Some(Self::Memory);
        }
        if let Some(folder) = address.strip_prefix("embedded:") {
            return (!folder.is_empty()).then_some(Self::Embedded);
        }
        let (scheme, rest) = address.split_once("://")?;
        let found = match scheme.split_once('+').map_or(scheme, |(server, _)| server) {
            "redis" | "rediss" | "valkey" | "valkeys" => Self::Redis,
            "postgres" | "postgresql" => Self::Postgres,
            _ => return None,
        };
        (!rest.is_empty()).then_some(found)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "an embedded store",
            Self::Memory => "a store in memory",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// The scheme as it stands in the address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Memory => "memory",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
        }
    }

    /// Whether several nodes can work on it.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Redis | Self::Postgres)
    }
}

/// The address of a server, with its password if that is part of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(Secret);

impl ServerUrl {
    pub(crate) fn new(full: impl Into<String>) -> Self {
        Self(Secret::new(full.into().trim()))
    }

    /// The whole address, for the code that connects.
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// Whether Redis is reached over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        ["rediss", "valkeys"].iter().any(|scheme| self.reveal().starts_with(scheme))
    }

    pub(crate) fn has_password(&self) -> bool {
        has_password(self.reveal())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({})", without_password(self.reveal()))
    }
}

/// The scheme, the user with the password, and the rest. Everything before the last `@` is the user and the password:
/// a password may contain an `@` that should have been escaped, and is not shown even then.
fn user_part(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let (user, host) = rest.rsplit_once('@')?;
    Some((scheme, user, host))
}

fn is_password(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    name.contains("password") || name == "auth"
}

pub(crate) fn has_password(address: &str) -> bool {
    let in_front = user_part(address).is_some_and(|(_, user, _)| user.contains(':'));
    let behind = address.split_once('?').is_some_and(|(_, query)| query.split('&').any(is_password));
    in_front || behind
}

/// The part of an address that may be shown.
pub(crate) fn without_password(address: &str) -> String {
    let shown = match user_part(address) {
        Some((scheme, user, host)) => match user.split_once(':') {
            Some(("", _)) => format!("{scheme}://{host}"),
            Some((user, _)) => format!("{scheme}://{user}@{host}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    };
    let Some((base, query)) = shown.split_once('?') else { return shown };
    let kept: Vec<&str> = query.split('&').filter(|parameter| !is_password(parameter)).collect();
    if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_it_stands_and_is_never_shown() {
        for (address, shown) in [
            ("redis://:s3cr3t@h:6379/0", "redis://h:6379/0"),
            ("rediss://user:s3cr3t@h", "rediss://user@h"),
            ("redis://user:s3c@r3t@h", "redis://user@h"),
            ("postgres://u:s3/cr?3t@h/db?sslmode=require", "postgres://u@h/db?sslmode=require"),
            (
                "postgres://h/db?user=u&password=s3cr3t&sslmode=require",
                "postgres://h/db?user=u&sslmode=require",
            ),
            (
                "redis+sentinel://:s3cr3t@h:1,i:2/main?sentinel_password=s3cr3t",
                "redis+sentinel://h:1,i:2/main",
            ),
        ] {
            assert!(has_password(address), "{address}");
            assert_eq!(without_password(address), shown);
            assert!(!format!("{:?}", ServerUrl::new(address)).contains("s3"), "{address}");
        }
        for address in
            ["redis://h:6379/0", "postgres://u@h:5432/db?sslmode=require", "embedded:./a:b", "memory:"]
        {
            assert!(!has_password(address), "{address}");
            assert_eq!(without_password(address), address);
        }
    }

    #[test]
    fn the_scheme_says_which_store_it_is() {
        for (address, scheme) in [
            ("memory:", Some(Scheme::Memory)),
            ("embedded:x", Some(Scheme::Embedded)),
            ("embedded:", None),
            ("valkey://h", Some(Scheme::Redis)),
            ("redis+cluster://h", Some(Scheme::Redis)),
            ("redis://", None),
            ("postgresql://h", Some(Scheme::Postgres)),
            ("mysql://h", None),
            ("host=h password=p", None),
        ] {
            assert_eq!(Scheme::of(address), scheme, "{address}");
        }
    }
}

//! The services and the protocols that they speak: one name for each service, in settings, paths and tables.

use crate::classic::ClassicDialect;
use crate::json::JsonDialect;
use std::fmt;
use std::str::FromStr;

/// How one service writes the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    CaptchaAi,
    TwoCaptcha,
    AntiCaptcha,
    CapSolver,
    CapMonster,
}

impl Dialect {
    pub const ALL: [Self; 5] =
        [Self::CaptchaAi, Self::TwoCaptcha, Self::AntiCaptcha, Self::CapSolver, Self::CapMonster];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CaptchaAi => "captchaai",
            Self::TwoCaptcha => "2captcha",
            Self::AntiCaptcha => "anticaptcha",
            Self::CapSolver => "capsolver",
            Self::CapMonster => "capmonster",
        }
    }

    /// The dialect of the classic protocol, if the service speaks it.
    #[must_use]
    pub const fn classic(self) -> Option<ClassicDialect> {
        match self {
            Self::CaptchaAi => Some(ClassicDialect::CaptchaAi),
            Self::TwoCaptcha => Some(ClassicDialect::TwoCaptcha),
            Self::AntiCaptcha | Self::CapSolver | Self::CapMonster => None,
        }
    }

    /// The protocol of the service: the classic one, if the service speaks both.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        match (self.classic(), self.json()) {
            (None, Some(dialect)) => Protocol::Json(dialect),
            (dialect, _) => Protocol::Classic(match dialect {
                Some(dialect) => dialect,
                None => ClassicDialect::CaptchaAi,
            }),
        }
    }

    /// The dialect of the JSON protocol, if the service speaks it.
    #[must_use]
    pub const fn json(self) -> Option<JsonDialect> {
        match self {
            Self::CaptchaAi => None,
            Self::TwoCaptcha => Some(JsonDialect::TwoCaptcha),
            Self::AntiCaptcha => Some(JsonDialect::AntiCaptcha),
            Self::CapSolver => Some(JsonDialect::CapSolver),
            Self::CapMonster => Some(JsonDialect::CapMonster),
        }
    }
}

impl Dialect {
    /// The dialect of our replies over the classic protocol: 2captcha if the service does not speak it.
    #[must_use]
    pub const fn classic_reply(self) -> ClassicDialect {
        match self.classic() {
            Some(dialect) => dialect,
            None => ClassicDialect::TwoCaptcha,
        }
    }

    /// The dialect of our replies over the JSON protocol: 2captcha if the service does not speak it.
    #[must_use]
    pub const fn json_reply(self) -> JsonDialect {
        match self.json() {
            Some(dialect) => dialect,
            None => JsonDialect::TwoCaptcha,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such dialect: write captchaai, 2captcha, anticaptcha, capsolver or capmonster")]
pub struct UnknownDialect;

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or(UnknownDialect)
    }
}

/// A protocol, and how one service writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Classic(ClassicDialect),
    Json(JsonDialect),
}

impl Protocol {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic(_) => "classic",
            Self::Json(_) => "json",
        }
    }

    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Classic(ClassicDialect::CaptchaAi) => Dialect::CaptchaAi,
            Self::Classic(ClassicDialect::TwoCaptcha) | Self::Json(JsonDialect::TwoCaptcha) => {
                Dialect::TwoCaptcha
            }
            Self::Json(JsonDialect::AntiCaptcha) => Dialect::AntiCaptcha,
            Self::Json(JsonDialect::CapSolver) => Dialect::CapSolver,
            Self::Json(JsonDialect::CapMonster) => Dialect::CapMonster,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name_and_no_other() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        assert_eq!("CapSolver".parse::<Dialect>(), Err(UnknownDialect));
    }

    #[test]
    fn a_dialect_has_one_name_in_both_protocols() {
        for dialect in Dialect::ALL {
            let classic = dialect.classic().map(|classic| (classic.name(), Protocol::Classic(classic)));
            let json = dialect.json().map(|json| (json.name(), Protocol::Json(json)));
            assert!(classic.is_some() || json.is_some(), "{dialect}");
            for (name, protocol) in classic.into_iter().chain(json) {
                assert_eq!((name, protocol.dialect()), (dialect.name(), dialect));
            }
        }
    }
}

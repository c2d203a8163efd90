//! The format of a webhook: it follows the protocol and dialect of the request that asked for it.

use quittance_protocol::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookFormat {
    /// A form: by POST as 2captcha sends it, or by GET with the fields in the query as CaptchaAI sends it.
    Classic(Dialect),
    /// The finished task in JSON.
    Json(Dialect),
    /// The order as `/v1` shows it.
    V1,
}

impl WebhookFormat {
    /// The name of the format in the record of an order.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic(dialect) => dialect.classic_reply().name(),
            Self::Json(dialect) => match dialect {
                Dialect::TwoCaptcha | Dialect::CaptchaAi => "json:2captcha",
                Dialect::AntiCaptcha => "json:anticaptcha",
                Dialect::CapSolver => "json:capsolver",
                Dialect::CapMonster => "json:capmonster",
            },
            Self::V1 => "v1",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == Self::V1.name() {
            return Some(Self::V1);
        }
        let formats =
            Dialect::ALL.into_iter().flat_map(|dialect| [Self::Classic(dialect), Self::Json(dialect)]);
        let mut formats = formats.filter(|format| match format {
            Self::Classic(dialect) => dialect.classic().is_some(),
            Self::Json(dialect) => dialect.json().is_some(),
            Self::V1 => true,
        });
        formats.find(|format| format.name() == name)
    }

    /// The format with the same content by the other HTTP method, if there is one.
    pub(super) const fn by_other_method(self) -> Option<Self> {
        match self {
            Self::Classic(Dialect::CaptchaAi) => Some(Self::Classic(Dialect::TwoCaptcha)),
            Self::Classic(_) => Some(Self::Classic(Dialect::CaptchaAi)),
            Self::Json(_) | Self::V1 => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_parsed_as_it_is_named() {
        for name in ["2captcha", "captchaai", "json:2captcha", "json:capsolver", "json:capmonster", "v1"] {
            assert_eq!(WebhookFormat::parse(name).map(WebhookFormat::name), Some(name));
        }
        assert_eq!(WebhookFormat::parse("json:anticaptcha"), Some(WebhookFormat::Json(Dialect::AntiCaptcha)));
        for name in ["", "json:captchaai", "anticaptcha", "json:"] {
            assert_eq!(WebhookFormat::parse(name), None, "{name}");
        }
    }
}

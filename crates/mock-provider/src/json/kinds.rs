//! The task types, and the classic name of each of their fields. The ledger uses the classic names, so that its
//! readers need not know the protocol of a task.

mod list;

use super::MockDialect;
use list::{GEETEST_V4, KINDS};
use serde_json::{Map, Value};

/// Whether a task type uses the client's proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forms {
    /// The task opens no page.
    Bare,
    /// `...Task` needs a proxy, `...TaskProxyless` does not.
    Both,
    ProxylessOnly,
    /// The name has no suffix, and the task needs a proxy.
    ProxyOnly,
}

/// How one task treats a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxies {
    /// A proxy in the request is ignored.
    Ignored,
    Needed,
    Optional,
}

#[derive(Debug)]
pub(crate) struct JsonKind {
    /// The task types, without the ending `Proxyless`.
    names: &'static [&'static str],
    /// The task types as CapSolver spells them, where its capital letters differ.
    at_capsolver: &'static [&'static str],
    forms: Forms,
    pub method: &'static str,
    pub fixed: &'static [(&'static str, &'static str)],
    /// The place of each field in the task, and its classic name. If several have the same classic name, the
    /// first decides.
    pub fields: &'static [(&'static str, &'static str)],
    /// The field of the solution that holds the answer, unless the answer itself names its fields.
    pub solution: &'static str,
    /// Whether the solution also holds the user agent.
    pub has_agent: bool,
}

const EMPTY: JsonKind = JsonKind {
    names: &[],
    at_capsolver: &[],
    forms: Forms::Both,
    method: "",
    fixed: &[],
    fields: &[],
    solution: "token",
    has_agent: false,
};

impl JsonKind {
    /// The kind with exactly this name, and how the task treats a proxy.
    pub(crate) fn named(
        dialect: MockDialect,
        name: &str,
        task: &Map<String, Value>,
    ) -> Option<(&'static Self, Proxies)> {
        let is_capsolver = dialect == MockDialect::CapSolver;
        let without = name.strip_suffix("Proxyless");
        let without = without.or_else(|| name.strip_suffix("ProxyLess").filter(|_| is_capsolver));
        let stem = without.unwrap_or(name);
        let kind = KINDS.iter().find(|kind| {
            let names = if is_capsolver { kind.at_capsolver } else { kind.names };
            names.contains(&stem) && kind.has_form(without.is_some())
        })?;
        let proxies = match kind.forms {
            Forms::Bare | Forms::ProxylessOnly => Proxies::Ignored,
            Forms::Both if without.is_some() => Proxies::Ignored,
            // CapMonster has one name for both.
            Forms::Both if dialect == MockDialect::CapMonster => Proxies::Optional,
            Forms::Both | Forms::ProxyOnly => Proxies::Needed,
        };
        let is_v4 = task.get("version").and_then(Value::as_u64) == Some(4) || task.contains_key("captchaId");
        Some((if kind.method == "geetest" && is_v4 { &GEETEST_V4 } else { kind }, proxies))
    }

    fn has_form(&self, is_proxyless: bool) -> bool {
        match self.forms {
            Forms::Both => true,
            Forms::ProxylessOnly => is_proxyless,
            Forms::Bare | Forms::ProxyOnly => !is_proxyless,
        }
    }

    /// The kind of a task that was placed through the classic protocol and is polled through JSON.
    pub(crate) fn of_method(method: &str) -> &'static Self {
        const OTHER: &JsonKind = &EMPTY;
        let method = if method == "post" { "base64" } else { method };
        KINDS.iter().find(|kind| kind.method == method).unwrap_or(OTHER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_literally() {
        let named = |dialect, name| {
            let found = JsonKind::named(dialect, name, &Map::new());
            found.map(|(kind, proxies)| (kind.method, proxies))
        };
        let two = MockDialect::TwoCaptcha;
        assert_eq!(named(two, "RecaptchaV2TaskProxyless"), Some(("userrecaptcha", Proxies::Ignored)));
        assert_eq!(named(two, "RecaptchaV2Task"), Some(("userrecaptcha", Proxies::Needed)));
        assert_eq!(
            named(MockDialect::CapMonster, "RecaptchaV2Task"),
            Some(("userrecaptcha", Proxies::Optional))
        );
        for strange in ["ReCaptchaV2TaskProxyLess", "RecaptchaV3Task", "ImageToTextTaskProxyless", "", "Task"]
        {
            assert_eq!(named(two, strange), None, "{strange}");
        }
        let solver = MockDialect::CapSolver;
        assert_eq!(named(solver, "ReCaptchaV2TaskProxyLess"), Some(("userrecaptcha", Proxies::Ignored)));
        assert_eq!(named(solver, "AntiTurnstileTaskProxyLess"), Some(("turnstile", Proxies::Ignored)));
        assert_eq!(named(solver, "RecaptchaV2TaskProxyless"), None);
        assert_eq!(named(solver, "TurnstileTaskProxyless"), None);
    }
}

//! The rule about dependencies: which crate may know which, as data.

use super::TidyFinding;
use crate::tree::{DependencyKind, Tree};

struct CrateRule {
    package: &'static str,
    may_know: MayKnow,
    /// The crates that only its tests may know.
    tests_may_know: &'static [&'static str],
}

enum MayKnow {
    Only(&'static [&'static str]),
    Anything,
}
use MayKnow::{Anything, Only};

const fn rule(
    package: &'static str,
    may_know: MayKnow,
    tests_may_know: &'static [&'static str],
) -> CrateRule {
    CrateRule { package, may_know, tests_may_know }
}

const CRATE_RULES: &[CrateRule] = &[
    rule("quittance-lifecycle", Only(&["sha2"]), &[]),
    rule(
        "quittance-hosts",
        Only(&["base64", "idna_adapter", "tld", "unicode-normalization", "url"]),
        &["idna"],
    ),
    rule("quittance-ports", Only(&["quittance-lifecycle", "async-trait", "futures-util", "thiserror"]), &[]),
    rule(
        "quittance-record",
        Only(&[
            "quittance-lifecycle",
            "quittance-ports",
            "base64",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
        ]),
        &["tempfile"],
    ),
    rule(
        "quittance-engine",
        Only(&[
            "quittance-hosts",
            "quittance-lifecycle",
            "quittance-ports",
            "arc-swap",
            "futures-util",
            "hmac",
            "sha2",
            "subtle",
            "thiserror",
        ]),
        &["quittance-protocol", "async-trait"],
    ),
    rule(
        "quittance-sim",
        Only(&[
            "quittance-lifecycle",
            "quittance-protocol",
            "quittance-ports",
            "quittance-engine",
            "async-trait",
            "futures-util",
        ]),
        &["quittance-record", "tempfile"],
    ),
    rule(
        "quittance-store-embedded",
        Only(&[
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-record",
            "async-trait",
            "futures-channel",
            "hashbrown",
            "rusqlite",
            "thiserror",
            "xxhash-rust",
        ]),
        &["futures-util", "rustix", "tempfile"],
    ),
    rule(
        "quittance-store-redis",
        Only(&[
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-record",
            "async-trait",
            "futures-util",
            "redis",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
        ]),
        &["quittance-servers", "rcgen", "tempfile"],
    ),
    rule(
        "quittance-store-postgres",
        Only(&[
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-record",
            "async-trait",
            "futures-util",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-postgres",
            "tokio-postgres-rustls",
            "tokio-rustls",
            "tracing",
            "webpki-roots",
        ]),
        &["quittance-servers", "rcgen", "tempfile"],
    ),
    rule("quittance-servers", Only(&["rustix", "tempfile"]), &[]),
    rule(
        "quittance-protocol",
        Only(&[
            "quittance-hosts",
            "quittance-lifecycle",
            "base64",
            "form_urlencoded",
            "futures-util",
            "multer",
            "serde",
            "serde_json",
            "strsim",
            "thiserror",
        ]),
        &[],
    ),
    rule(
        "quittance-wire",
        Only(&[
            "bytes",
            "http-body-util",
            "hyper",
            "hyper-util",
            "socket2",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "webpki-roots",
        ]),
        &[],
    ),
    rule(
        "quittance-provider",
        Only(&[
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-protocol",
            "quittance-wire",
            "async-trait",
            "bytes",
            "futures-util",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        &["rcgen", "socket2", "tokio-rustls"],
    ),
    rule(
        "quittance-mock-provider",
        Only(&[
            "quittance-protocol",
            "base64",
            "bytes",
            "form_urlencoded",
            "http-body-util",
            "hyper",
            "hyper-util",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
        ]),
        &[],
    ),
    rule(
        "quittance-telemetry",
        Only(&[
            "quittance-engine",
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-protocol",
            "quittance-wire",
            "bytes",
            "hyper",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
            "utoipa",
        ]),
        &[],
    ),
    rule(
        "quittance-http-server",
        Only(&[
            "quittance-engine",
            "bytes",
            "futures-util",
            "http-body-util",
            "hyper",
            "hyper-util",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
        ]),
        &[],
    ),
    rule(
        "quittance-quota",
        Only(&["quittance-ports", "futures-util", "hashbrown", "tokio"]),
        &["quittance-lifecycle", "async-trait"],
    ),
    rule(
        "quittance-webhooks",
        Only(&[
            "quittance-engine",
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-protocol",
            "quittance-telemetry",
            "quittance-wire",
            "async-trait",
            "base64",
            "bytes",
            "futures-util",
            "hmac",
            "http-body-util",
            "hyper",
            "sha2",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        &[],
    ),
    rule(
        "quittance-gateway",
        Only(&[
            "quittance-lifecycle",
            "quittance-protocol",
            "quittance-ports",
            "quittance-engine",
            "quittance-telemetry",
            "quittance-http-server",
            "quittance-quota",
            "quittance-webhooks",
            "arc-swap",
            "axum",
            "base64",
            "bytes",
            "form_urlencoded",
            "futures-util",
            "hashbrown",
            "hmac",
            "http-body-util",
            "hyper",
            "serde",
            "serde_json",
            "sha2",
            "subtle",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
            "utoipa",
            "utoipa-axum",
        ]),
        &[
            "quittance-admin",
            "quittance-provider",
            "quittance-mock-provider",
            "async-trait",
            "hyper-util",
            "rcgen",
            "tokio-rustls",
        ],
    ),
    rule(
        "quittance-admin",
        Only(&[
            "quittance-engine",
            "quittance-gateway",
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-record",
            "quittance-telemetry",
            "axum",
            "base64",
            "bytes",
            "futures-util",
            "http-body-util",
            "hyper",
            "serde",
            "serde_json",
            "sha2",
            "tokio",
            "utoipa",
            "utoipa-axum",
        ]),
        &["quittance-protocol", "async-trait", "hmac", "hyper-util"],
    ),
    rule("quittance", Anything, &[]),
    rule(
        "quittance-config",
        Only(&[
            "quittance",
            "quittance-admin",
            "quittance-telemetry",
            "quittance-engine",
            "quittance-gateway",
            "quittance-lifecycle",
            "quittance-ports",
            "quittance-protocol",
            "base64",
            "humantime",
            "rustix",
            "serde_json",
            "strsim",
            "thiserror",
            "tokio-rustls",
            "toml",
            "tracing",
        ]),
        &["rcgen", "tempfile"],
    ),
    rule(
        "quittance-daemon",
        Only(&[
            "quittance",
            "quittance-admin",
            "quittance-config",
            "quittance-gateway",
            "quittance-ports",
            "quittance-protocol",
            "quittance-provider",
            "quittance-telemetry",
            "quittance-wire",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "listenfd",
            "percent-encoding",
            "rcgen",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
            "webpki-roots",
            "x509-cert",
        ]),
        &["tempfile"],
    ),
    rule(
        "quittance-top",
        Only(&[
            "quittance-admin",
            "quittance-gateway",
            "quittance-lifecycle",
            "quittance-ports",
            "ratatui",
            "tokio",
        ]),
        &["serde_json"],
    ),
    rule(
        "quittance-demo",
        Only(&[
            "quittance",
            "quittance-mock-provider",
            "anstyle",
            "base64",
            "serde_json",
            "tempfile",
            "thiserror",
            "tokio",
        ]),
        &[],
    ),
    rule("quittance-cli", Anything, &[]),
    rule("quittance-e2e", Only(&["serde_json"]), &["quittance-servers", "rustix", "tempfile", "tokio"]),
    rule("quittance-bench", Anything, &[]),
    rule("xtask", Only(&["serde_json"]), &[]),
];

pub(super) fn who_may_know_whom(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let manifest = package.manifest.as_str();
        let Some(rule) = CRATE_RULES.iter().find(|rule| rule.package == package.name) else {
            let what = format!("{} is not in the table: say who it may know", package.name);
            findings.push(TidyFinding::breach(manifest, 1, what));
            continue;
        };
        let Only(may_know) = rule.may_know else { continue };
        for (dependency, kind) in &package.dependencies {
            let is_for_tests =
                *kind == DependencyKind::Dev && rule.tests_may_know.contains(&dependency.as_str());
            if !may_know.contains(&dependency.as_str()) && !is_for_tests {
                let whose = if *kind == DependencyKind::Dev { "the tests of " } else { "" };
                let what = format!("{whose}{} may not know {dependency}", package.name);
                findings.push(TidyFinding::breach(manifest, line_of(tree, manifest, dependency), what));
            }
        }
    }
    findings
}

fn line_of(tree: &Tree, manifest: &str, dependency: &str) -> usize {
    let text = tree.text(manifest).unwrap_or_default();
    let is_it = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
            || line.contains(&format!("\"{dependency}\""))
    };
    text.lines().position(is_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Package;

    fn breaches(name: &str, dependencies: &[(&str, DependencyKind)]) -> Vec<String> {
        let manifest = "crates/x/Cargo.toml";
        let mut tree =
            Tree::of(&[(manifest, "[dependencies]\ntokio-stream = \"1\"\ntokio.workspace = true\n")]);
        let dependencies = dependencies.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        tree.packages.push(Package { name: name.to_owned(), manifest: manifest.to_owned(), dependencies });
        who_may_know_whom(&tree)
            .into_iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.what))
            .collect()
    }

    #[test]
    fn what_is_in_the_table_is_allowed() {
        assert!(breaches("quittance-lifecycle", &[("sha2", DependencyKind::Built)]).is_empty());
        assert!(breaches("quittance-engine", &[("quittance-protocol", DependencyKind::Dev)]).is_empty());
        assert!(breaches("quittance-cli", &[("tokio", DependencyKind::Built)]).is_empty());
    }

    #[test]
    fn whatever_else_is_a_breach() {
        assert_eq!(
            breaches("quittance-engine", &[("tokio", DependencyKind::Built)]),
            ["crates/x/Cargo.toml:3: quittance-engine may not know tokio"]
        );
        assert_eq!(breaches("quittance-lifecycle", &[("serde", DependencyKind::Dev)]).len(), 1);
    }

    #[test]
    fn what_tests_may_know_the_crate_itself_may_not() {
        assert_eq!(breaches("quittance-engine", &[("quittance-protocol", DependencyKind::Built)]).len(), 1);
        assert_eq!(breaches("quittance-record", &[("tempfile", DependencyKind::Built)]).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_a_breach() {
        let output = breaches("quittance-new", &[]);
        assert!(output[0].ends_with("say who it may know"), "{output:?}");
    }
}

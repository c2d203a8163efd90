//! Tests which packages the library needs with fewer features, according to `cargo tree`.

use std::collections::BTreeSet;
use std::process::Command;

/// The packages of the library with only these features, each with its own features.
fn packages(features: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--package", "quittance", "--no-default-features"])
        .args(["--features", features, "--edges", "normal", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p} [{f}]"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn of<'a>(packages: &'a BTreeSet<String>, name: &str) -> Option<&'a str> {
    packages.iter().find(|line| line.split(' ').next() == Some(name)).map(String::as_str)
}

fn has_feature(line: &str, feature: &str) -> bool {
    let features = line.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
    features.split(',').any(|listed| listed == feature)
}

const SERVER: [&str; 11] = [
    "axum",
    "quittance-admin",
    "quittance-gateway",
    "quittance-http-server",
    "quittance-quota",
    "quittance-telemetry",
    "quittance-webhooks",
    "tower",
    "tower-http",
    "utoipa",
    "utoipa-axum",
];

#[test]
fn without_the_gateway_no_server_is_compiled() {
    let all_others = packages("classic,embedded,json,postgres,redis");
    for name in SERVER {
        assert_eq!(of(&all_others, name), None);
    }
    let hyper = of(&all_others, "hyper").expect("a provider is called over HTTP");
    assert!(has_feature(hyper, "client") && !has_feature(hyper, "server"), "{hyper}");
    // The check itself can fail: with the gateway they are there.
    let with_gateway = packages("gateway");
    for name in SERVER.iter().filter(|name| **name != "tower-http") {
        assert!(of(&with_gateway, name).is_some(), "{name}");
    }
    assert!(has_feature(of(&with_gateway, "hyper").unwrap(), "server"));
}

#[test]
fn each_store_and_provider_brings_only_what_it_needs() {
    let none = packages("");
    for name in
        ["hyper", "quittance-provider", "quittance-wire", "redis", "rusqlite", "rustls", "tokio-postgres"]
    {
        assert_eq!(of(&none, name), None);
    }
    for (feature, theirs, not_theirs) in [
        ("embedded", "rusqlite", ["hyper", "redis", "tokio-postgres"]),
        ("redis", "redis", ["hyper", "rusqlite", "tokio-postgres"]),
        ("postgres", "tokio-postgres", ["hyper", "rusqlite", "redis"]),
        ("classic", "hyper", ["rusqlite", "redis", "tokio-postgres"]),
        ("json", "hyper", ["rusqlite", "redis", "tokio-postgres"]),
    ] {
        let packages = packages(feature);
        assert!(of(&packages, theirs).is_some(), "{feature} needs {theirs}");
        for name in not_theirs {
            assert_eq!(of(&packages, name), None, "{feature}");
        }
    }
}

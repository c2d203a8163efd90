//! The settings of the daemon: tenants, their keys and limits, https, webhooks and logs.

use super::{Place, config_with, show};
use quittance_config::{CallerKey, object};
use quittance_gateway::{KeyDigest, Rate, ReuseRule, TenantSettings, Tenants};
use quittance_lifecycle::{Priority, Reuse};
use quittance_protocol::Dialect;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn complains(file: &str, words: &[&str]) {
    let complaint = Place::with_file(file).complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}

fn full() -> Place {
    let hash = KeyDigest::of(KEY);
    let file = format!(
        r#"
[tls]
listen = "0.0.0.0:8743"
cert_file = "cert.pem"
key_file = "key.pem"
[admin]
key_env = "ADMIN_KEY"
[gateway]
dialect = "2captcha"
[webhooks]
allow = ["hooks.example.org", "10.0.0.7", "10.1.0.0/16", "fd00::/8"]
[log]
level = "debug"
format = "json"
[[tenant]]
name = "team-a"
key_sha256 = "{hash}"
hosts = ["*.example.org"]
kinds = ["turnstile", "image"]
reuse = "exclusive"
rate = "10/s"
open_max = 7
weight = 3
priority = "bulk"
dialect = "capsolver"
balance = true
webhook_secret_env = "HOOK"
"#
    );
    Place::with_file(&file).env(&[("ADMIN_KEY", &KEY.replace('0', "1")), ("HOOK", &"0f".repeat(32))])
}

#[test]
fn every_setting_of_a_tenant_reaches_the_gateway() {
    let config = full().load().unwrap();
    let settings = config.tenants[0].settings(&config.targets).unwrap();
    let TenantSettings { name, key, targets, kinds, reuse, rate, open_max, dialect, webhook_secret, .. } =
        settings.clone();
    assert_eq!((settings.weight, settings.priority), (Some(3), Some(Priority::Bulk)));
    let rule = config.tenants[0].rule(&config.targets);
    assert_eq!((rule.weight, rule.priority), (Some(3), Some(Priority::Bulk)));
    assert!(settings.sees_balance);
    assert_eq!((name.as_str(), key), ("team-a", KeyDigest::of(KEY)));
    assert_eq!(targets.unwrap().allow[0].to_string(), "*.example.org");
    assert_eq!(kinds.unwrap(), ["turnstile", "image"]);
    assert_eq!((reuse, open_max, dialect), (Some(Reuse::Exclusive), Some(7), Some(Dialect::CapSolver)));
    assert_eq!(rate, Some(Rate { every: Duration::from_millis(100), burst: 10 }));
    assert_eq!(webhook_secret, Some([0x0f; 32]));
    let outbound = config.webhook_settings().unwrap();
    assert_eq!(outbound.allow.len(), 4);
    assert_eq!(outbound.secrets["team-a"], [0x0f; 32]);
}

#[test]
fn the_other_settings_of_the_daemon_are_understood() {
    let place = full();
    let config = place.load().unwrap();
    assert_eq!(config.tls.listen, Some("0.0.0.0:8743".parse().unwrap()));
    let (cert, key) = config.tls.files().unwrap().unwrap();
    assert_eq!(
        (cert, key),
        (&*place.path("cert.pem"), &*place.path("key.pem")),
        "meant from where the file is"
    );
    assert_eq!(config.admin.as_ref().unwrap().digest().unwrap(), KeyDigest::of(&KEY.replace('0', "1")));
    assert_eq!(config.dialect, Some(Dialect::TwoCaptcha));
    assert_eq!((config.log.level, config.log.is_json), (tracing::Level::DEBUG, true));
    let usual = Place::empty().load().unwrap();
    assert_eq!((usual.log.level, usual.log.is_json), (tracing::Level::INFO, false));
    assert_eq!((usual.admin, usual.tls.listen), (None, None));
}

#[test]
fn a_webhook_secret_may_be_written_as_its_libraries_do() {
    let place = full().env(&[("HOOK", "whsec_Dw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8=")]);
    let config = place.load().unwrap();
    assert_eq!(config.webhook_settings().unwrap().secrets["team-a"], [0x0f; 32]);
    for wrong in ["whsec_c2hvcnQ=", "s3cr3t"] {
        let config = full().env(&[("HOOK", wrong)]).load().unwrap();
        let error = config.webhook_settings().unwrap_err().to_string();
        assert!(error.contains("tenant.team-a.webhook_secret") && error.contains("env HOOK"), "{error}");
        assert!(!error.contains(wrong), "{error}");
    }
}

#[test]
fn a_webhook_for_alerts_has_a_secret_that_its_receiver_knows() {
    let hook = "[alerts]\nwebhook = \"https://hooks.example.org/t0\"\n";
    complains(hook, &["alerts.webhook", "alerts.webhook_secret_env", "_file"]);
    let named =
        || Place::with_file(&format!("{hook}webhook_secret_env = \"HOOK\"\ncommand = [\"/no/such\"]\n"));
    let digits = "0f".repeat(32);
    let problems = |place: Place| place.load().unwrap().alerts.problems();
    assert_eq!(
        problems(named().env(&[("HOOK", &digits)])),
        ["`alerts.command` cannot be run: there is no file /no/such"]
    );
    let missing = problems(named());
    assert!(missing[0].contains("alerts.webhook_secret` is missing"), "{missing:?}");
    let wrong = named().env(&[("HOOK", "s3cr3t")]).complaint();
    assert!(
        wrong.contains("alerts.webhook_secret") && wrong.contains("is there and cannot be used"),
        "{wrong}"
    );
    assert!(!wrong.contains("s3cr3t"), "{wrong}");
}

#[test]
fn one_key_is_set_in_one_way_and_is_long_enough() {
    let hash = KeyDigest::of(KEY);
    complains(
        &format!("[[tenant]]\nname = \"a\"\nkey_sha256 = \"{hash}\"\nkey_env = \"K\""),
        &["quittance.toml:3", "tenant.a.key_sha256", "keep one of the two"],
    );
    let same = format!(
        "[[tenant]]\nname = \"a\"\nkey_sha256 = \"{hash}\"\n[[tenant]]\nname = \"b\"\nkey_env = \"K\""
    );
    let complaint = Place::with_file(&same).env(&[("K", KEY)]).complaint();
    assert!(
        complaint.contains("the same as `tenant.a.key`"),
        "a hash and a key are compared, too: {complaint}"
    );
    let short =
        Place::with_file("[[tenant]]\nname = \"a\"\nkey_env = \"K\"").env(&[("K", "s3cr3t")]).load().unwrap();
    let error = short.tenants[0].settings(&short.targets).unwrap_err().to_string();
    assert!(error.contains("has 6 characters") && error.contains("quittance tenant new"), "{error}");
    assert!(!error.contains("s3cr3t"));
}

#[test]
fn what_a_tenant_cannot_mean_is_reported_with_its_line() {
    let tenant = format!("[[tenant]]\nname = \"a\"\nkey_sha256 = \"{}\"\n", KeyDigest::of(KEY));
    for (line, words) in [
        ("rate = \"10\"", &["tenant.a.rate", "10/s"][..]),
        ("rate = 10", &["tenant.a.rate", "100/min"]),
        ("hosts = [\"https://x\"]", &["tenant.a.hosts", "*.example.org"]),
        ("kinds = [\"turnstyle\"]", &["tenant.a.kinds", "did you mean `turnstile`?"]),
        ("kinds = [\"moon_phase\"]", &["tenant.a.kinds", "kinds.moon_phase.new = true"]),
        ("open_max = 0", &["tenant.a.open_max", "from 1 to"]),
        ("weight = 0", &["tenant.a.weight", "from 1 to"]),
        ("priority = \"urgent\"", &["tenant.a.priority", "bulk"]),
        ("dialect = \"3captcha\"", &["tenant.a.dialect", "capmonster"]),
        ("key = \"s3cr3t\"", &["tenant.a.key", "_env"]),
        ("webhook_secret = \"s3cr3t\"", &["tenant.a.webhook_secret", "_file"]),
    ] {
        complains(&format!("{tenant}{line}"), words);
        complains(&format!("{tenant}{line}"), &["quittance.toml:4: "]);
    }
    complains(
        "[[tenant]]\nname = \"a\"\nkey_sha256 = \"s3cr3t\"",
        &["64 hexadecimal digits", "quittance tenant hash"],
    );
    complains("[admin]\nkey = \"s3cr3t\"", &["admin.key", "admin.key_env"]);
    complains("[webhooks]\nallow = [\"10.0.0.0/99\"]", &["webhooks.allow", "10.0.0.0/8"]);
    complains("[webhooks]\nallow = [\"*\"]", &["webhooks.allow"]);
    complains("[log]\nlevel = \"loud\"", &["log.level", "\"debug\""]);
    for file in ["[[tenant]]\nname = \"a\"\nkey_sha256 = \"s3cr3t\"", "[admin]\nkey = \"s3cr3t\""] {
        assert!(!Place::with_file(file).complaint().contains("s3cr3t"));
    }
}

#[test]
fn config_show_conceals_what_the_daemon_must_not_tell() {
    let config = full().load().unwrap();
    let (text, object) = (show(&config), object(&config));
    for shown in [&text, &object.to_string(), &format!("{config:?}")] {
        for secret in [KEY, &KEY.replace('0', "1"), &"0f".repeat(32)] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    assert!(text.contains("# key: set (from env ADMIN_KEY)"), "{text}");
    assert!(text.contains("# webhook_secret: set (from env HOOK)"), "{text}");
    assert_eq!(object["secrets"]["tenant.team-a.webhook_secret"]["state"], "set");
    assert!(matches!(config.tenants[0].key, CallerKey::Hash { .. }), "its hash is no secret and is shown");
}

#[test]
fn a_tenant_that_is_not_there_is_reported_with_the_nearest_one() {
    let config = config_with(&["tenant.team-a.key_env=A"]);
    assert_eq!(config.check_tenant("team-a"), Ok(()));
    assert!(config.check_tenant("taem-a").unwrap_err().contains("`team-a`"));
    assert!(config.check_tenant("carol").unwrap_err().contains("tenant list"));
    assert_eq!(config_with(&[]).check_tenant("carol"), Ok(()));
}

#[test]
fn a_setting_of_reuse_covers_a_page_host_in_each_of_its_spellings() {
    for pattern in ["münchen.example.org", "MÜNCHEN.example.org", "xn--mnchen-3ya.example.org"] {
        let reuse =
            Place::with_file(&format!("[reuse.targets]\n\"{pattern}\" = \"shared\"")).load().unwrap().reuse;
        let rule = move |tenant: &str, kind: &str, host: Option<&str>| reuse.setting(tenant, kind, host);
        let tenants = Tenants::new(Vec::new(), None).with_reuse(Some(ReuseRule(Arc::new(rule))));
        let tenant = TenantSettings::new("anna", KeyDigest::of(KEY));
        for host in ["münchen.example.org", "MüNCHEN.example.org.", "xn--mnchen-3ya.example.org:443"] {
            let page = format!("https://{host}/login");
            let found = tenants.reuse(&tenant, "turnstile", Some(&page)).map(|setting| setting.reuse);
            assert_eq!(found, Some(Reuse::Shared), "`{pattern}`, page {page}");
        }
        assert_eq!(tenants.reuse(&tenant, "turnstile", Some("https://munchen.example.org/")), None);
    }
}

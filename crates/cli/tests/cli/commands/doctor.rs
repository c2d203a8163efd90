//! Tests of the built binary: what `doctor` finds about a daemon's certificate, tenants, files and public address.

use crate::commands::house::House;
use quittance::SystemClock;
use quittance_ports::Clock;
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const OTHER_KEY: &str = "0123456789abcdef0123456789abcdee";
const HOUR: Duration = Duration::from_secs(3600);
const MONTHS: i32 = 90 * 24;

/// The findings of `doctor --json` with these settings and variables.
fn findings(house: &House, settings: &[&str], variables: &[(&str, &str)]) -> Vec<Value> {
    let mut args = vec!["doctor", "--json"];
    if !settings.iter().any(|setting| setting.starts_with("listen=")) {
        args.extend(["--set", "listen=127.0.0.1:0"]);
    }
    args.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
    let report = house.run_with(&args, variables).json();
    report.as_array().unwrap().clone()
}

fn named<'a>(findings: &'a [Value], about: &str, state: &str) -> Vec<&'a str> {
    let these = findings.iter().filter(|found| found["about"] == about && found["state"] == state);
    these.map(|found| found["what"].as_str().unwrap()).collect()
}

#[track_caller]
fn says(findings: &[Value], about: &str, state: &str, words: &str) {
    let found = named(findings, about, state);
    assert!(found.iter().any(|what| what.contains(words)), "`{words}` is not in {found:?}");
}

/// Writes a certificate for these names that is valid between two moments, given as hours from now.
fn write_certificate(cert: &Path, key: &Path, names: &[&str], from: i32, until: i32) {
    let now = Duration::from_millis(SystemClock.now().as_millis());
    let at = |hours: i32| {
        let span = HOUR * hours.unsigned_abs();
        rcgen::date_time_ymd(1970, 1, 1) + if hours < 0 { now - span } else { now + span }
    };
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    (params.not_before, params.not_after) = (at(from), at(until));
    let own = KeyPair::generate().unwrap();
    std::fs::write(cert, params.self_signed(&own).unwrap().pem()).unwrap();
    std::fs::write(key, own.serialize_pem()).unwrap();
}

#[test]
fn a_certificate_is_judged_by_its_files_its_dates_and_its_names() {
    let house = House::new();
    let (cert, key) = (house.path("cert.pem"), house.path("key.pem"));
    let both = [format!("tls.cert_file={}", cert.display()), format!("tls.key_file={}", key.display())];
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    let about = "certificate";
    says(&findings(&house, &both, &[]), about, "bad", "cannot be read");
    says(&findings(&house, &both[..1], &[]), about, "bad", "`tls` has no `key_file`");
    says(&findings(&house, &["tls.listen=127.0.0.1:0"], &[]), about, "note", "no certificate");
    assert!(named(&findings(&house, &[], &[]), about, "bad").is_empty());
    let both_names = ["q.example.org", "10.0.0.7"];
    for (names, from, until, state, words) in [
        (&both_names[..], -1, MONTHS, "good", "q.example.org, 10.0.0.7"),
        (&both_names, -2, -1, "bad", "has expired"),
        (&both_names, 1, MONTHS, "bad", "not valid yet"),
        (&both_names, -1, 5 * 24 + 12, "note", "in 5 days"),
        (&[], -1, MONTHS, "bad", "names no host"),
    ] {
        write_certificate(&cert, &key, names, from, until);
        says(&findings(&house, &both, &[]), about, state, words);
    }
    says(&findings(&house, &both, &[]), about, "note", "chmod 600");
}

#[test]
fn tenants_are_judged_by_their_keys_and_no_key_is_shown() {
    let (house, about) = (House::new(), "tenants");
    says(&findings(&house, &["listen=0.0.0.0:1"], &[]), about, "note", "whatever `listen` says");
    says(&findings(&house, &["public_url=http://q.test"], &[]), about, "note", "/callback/");
    let settings = ["tenant.a.key_env=A", "admin.key_env=B"];
    says(&findings(&house, &settings, &[]), about, "bad", "`A` is not set");
    let short = findings(&house, &settings, &[("A", "s3cr3t"), ("B", "s3cr3t-of-b")]);
    says(&short, about, "bad", "has 6 characters, and must have 32");
    says(&short, about, "bad", "has 11 characters");
    assert!(!Value::from(short).to_string().contains("s3cr3t"));
    let good = findings(&house, &settings, &[("A", KEY), ("B", OTHER_KEY)]);
    assert_eq!(named(&good, about, "good"), ["1, each with a key of its own"]);
    says(&findings(&house, &settings[..1], &[("A", KEY)]), about, "note", "tenant new --admin");
}

#[test]
fn tenants_without_limits_are_named_with_what_holds_for_them() {
    let settings =
        ["tenant.free.key_env=A", "tenant.set.key_env=B", "tenant.set.rate=10/s", "tenant.set.open_max=5"];
    let found = findings(&House::new(), &settings, &[("A", KEY), ("B", OTHER_KEY)]);
    let words = "free without `rate` or `open_max`: at most 5000 open orders and 100 a second, 2500 at once";
    says(&found, "tenants", "note", words);
    let notes = named(&found, "tenants", "note");
    assert!(!notes.iter().any(|what| what.contains("set without")), "{notes:?}");
}

#[cfg(unix)]
#[test]
fn a_folder_and_a_file_that_other_users_can_read_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::new();
    let (folder, key) = (house.path("orders"), house.path("key"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&key, KEY).unwrap();
    let settings =
        [format!("store.url=embedded:{}", folder.display()), format!("tenant.a.key_file={}", key.display())];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder_words = "orders, where orders and answers are: `chmod 700` it";
    let key_words = "key holds a secret, and other users of this machine can read it: `chmod 600` it";
    for (of_folder, of_key) in [(0o777, 0o644), (0o701, 0o604)] {
        set(&folder, of_folder);
        set(&key, of_key);
        let found = findings(&house, &settings, &[]);
        says(&found, "store", "bad", folder_words);
        says(&found, "secrets", "bad", key_words);
    }
    set(&folder, 0o700);
    set(&key, 0o600);
    let found = findings(&house, &settings, &[]);
    assert!(!Value::from(found).to_string().contains("chmod"), "both are for their owner only");
}

#[cfg(unix)]
#[test]
fn the_limit_of_open_files_is_reported() {
    let found = findings(&House::new(), &["listener.connections_max=1"], &[]);
    says(&found, "files", "good", "this process may open");
}

/// A port that was free a moment ago.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_call_that_arrives_is_good_over_http_and_https() {
    let house = House::new();
    let (cert, key) = (house.path("cert.pem"), house.path("key.pem"));
    write_certificate(&cert, &key, &["localhost"], -1, MONTHS);
    let (http, https) = (free(), free());
    let settings = [
        format!("listen=127.0.0.1:{http}"),
        format!("tls.listen=127.0.0.1:{https}"),
        format!("tls.cert_file={}", cert.display()),
        format!("tls.key_file={}", key.display()),
        format!("provider.main.ca_file={}", cert.display()),
        "provider.main.dialect=2captcha".into(),
        "provider.main.url=http://127.0.0.1:1".into(),
        "provider.main.key_env=K".into(),
    ];
    for (url, state, words) in [
        (format!("http://127.0.0.1:{http}/base"), "good", "leads to 127.0.0.1"),
        (format!("https://localhost:{https}"), "good", "leads to tls.listen"),
        (format!("https://127.0.0.1:{https}"), "bad", "not accepted"),
        (format!("http://127.0.0.1:{}", free()), "bad", "Connection refused"),
    ] {
        let public_url = format!("public_url={url}");
        let settings: Vec<&str> = settings.iter().map(String::as_str).chain([public_url.as_str()]).collect();
        says(&findings(&house, &settings, &[("K", KEY)]), "callbacks", state, words);
    }
}

#[test]
fn another_machine_is_not_called_unless_that_is_wanted() {
    let found = findings(&House::new(), &["public_url=http://192.0.2.7"], &[]);
    assert!(named(&found, "callbacks", "good").is_empty() && named(&found, "callbacks", "bad").is_empty());
    says(&found, "callbacks", "note", "--yes");
    says(&found, "callbacks", "note", "can be read on the way");
}

//! The store: every sort of address, passwords that are never shown, and which settings fit which store.

use super::{Place, show};
use quittance_config::{Config, StoreUrl, object};

#[track_caller]
fn says(place: &Place, words: &[&str]) {
    let complaint = place.complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
    assert!(!complaint.contains("s3cr3t"), "{complaint}");
}

fn with_url(url: &str) -> Place {
    Place::with_file(&format!("[store]\nurl = \"{url}\"\n"))
}

/// Everything about a configuration that is ever shown.
fn seen(config: &Config) -> String {
    format!("{}{}{config:?}{}", show(config), object(config), config.store.url.shown())
}

#[test]
fn every_store_has_an_address() {
    for url in [
        "redis://127.0.0.1:6379",
        "redis://user@h:6379/2",
        "rediss://h",
        "valkey://h",
        "redis+cluster://a:7000,b:7001",
        "redis+sentinel://a:26379/main",
        "postgres://quittance@h:5432/quittance",
        "postgresql://quittance@h/quittance?sslmode=require",
        "memory:",
    ] {
        let config = with_url(url).load().unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(config.store.url.shown(), url);
        assert_eq!(config.store.url.scheme().is_shared(), url != "memory:");
    }
}

#[test]
fn a_password_in_the_address_may_come_from_the_environment_only_and_is_never_shown() {
    for url in [
        "redis://:s3cr3t@h:6379",
        "rediss://user:s3cr3t@h",
        "postgres://u:s3cr3t@h/db",
        "postgres://u@h/db?password=s3cr3t",
    ] {
        says(&with_url(url), &["quittance.toml:2", "`store.url` has a password", "store.password_env"]);
        says(&Place::empty().set(&[&format!("store.url={url}")]), &["flag --set", "store.password_file"]);
        let config = Place::empty().env(&[("QUITTANCE_STORE_URL", url)]).load().unwrap();
        assert!(config.store.url.has_password());
        assert!(
            matches!(&config.store.url, StoreUrl::Redis(full) | StoreUrl::Postgres(full) if full.reveal() == url)
        );
        let seen = seen(&config);
        assert!(!seen.contains("s3cr3t"), "{seen}");
        assert!(seen.contains("password: set (in the address, from the environment)"), "{seen}");
    }
    let listen =
        Place::with_file("[store]\nurl = \"postgres://h/db\"\nlisten_url = \"postgres://u:s3cr3t@i/db\"\n");
    says(&listen, &["quittance.toml:3", "`store.listen_url` has a password"]);
    says(
        &Place::with_file("[store]\npassword = \"s3cr3t\"\n"),
        &["store.password_env", "store.password_file"],
    );
}

#[test]
fn the_password_of_a_store_is_named_and_kept_elsewhere() {
    let place = Place::with_file("[store]\nurl = \"redis://h\"\npassword_env = \"REDIS_PASSWORD\"\n");
    let config = place.env(&[("REDIS_PASSWORD", "s3cr3t")]).load().unwrap();
    assert_eq!(config.store.password.as_ref().unwrap().get().unwrap().reveal(), "s3cr3t");
    let shown = seen(&config);
    assert!(
        !shown.contains("s3cr3t") && shown.contains("# password: set (from env REDIS_PASSWORD)"),
        "{shown}"
    );
    assert_eq!(object(&config)["secrets"]["store.password"]["state"], "set");

    let twice = Place::empty().env(&[
        ("QUITTANCE_STORE_URL", "redis://:s3cr3t@h"),
        ("QUITTANCE_STORE_PASSWORD_ENV", "P"),
        ("P", "s3cr3t"),
    ]);
    says(&twice, &["store.password_env", "keep one of the two"]);
}

#[test]
fn a_stronger_layer_beats_what_was_written_for_another_store() {
    let file = "[store]\nurl = \"postgres://h/db\"\npassword_env = \"P\"\nlisten_url = \"postgres://i/db\"\nmigrate = false\n\
                home = \"spill\"\n";
    let place = Place::with_file(file).env(&[("P", "s3cr3t")]);
    let config = place.load().unwrap();
    assert!(config.store.password.is_some() && config.store.listen_url.is_some() && !config.store.migrate);
    assert_eq!(config.store.home, Some(place.path("spill")));

    let elsewhere = Place::with_file(file).set(&["store.url=memory:"]).load().unwrap().store;
    assert_eq!((elsewhere.password, elsewhere.listen_url, elsewhere.home), (None, None, None));
    let by_url =
        Place::with_file(file).env(&[("QUITTANCE_STORE_URL", "redis://:s3cr3t@h")]).load().unwrap().store;
    assert!(by_url.url.has_password() && by_url.password.is_none(), "the address has one of its own");
}

#[test]
fn what_makes_no_sense_with_the_store_is_reported() {
    for (line, words) in [
        ("password_env = \"P\"", "is for a store that is shared"),
        ("password_file = \"p\"", "is for a store that is shared"),
        ("ca_file = \"ca.pem\"", "is for a store that is shared"),
        ("home = \"x\"", "is for a store that is shared"),
        ("listen_url = \"postgres://h/db\"", "is for PostgreSQL"),
        ("migrate = false", "is for PostgreSQL"),
    ] {
        let setting = line.split(' ').next().unwrap();
        let file = format!("[store]\nurl = \"embedded:x\"\n{line}\n");
        says(
            &Place::with_file(&file),
            &["quittance.toml:3", &format!("`store.{setting}`"), words, "an embedded store"],
        );
    }
    let on_redis = Place::with_file("[store]\nurl = \"redis://h\"\nlisten_url = \"postgres://h/db\"\n");
    says(&on_redis, &["store.listen_url", "is for PostgreSQL", "names Redis"]);
    says(
        &Place::with_file("[store]\nurl = \"postgres://h/db\"\nlisten_url = \"redis://h\"\n"),
        &["PostgreSQL itself"],
    );
    let with_ca = |url: &str| Place::with_file(&format!("[store]\nurl = \"{url}\"\nca_file = \"ca.pem\"\n"));
    says(&with_ca("rediss://h"), &["store.ca_file", "cannot be read"]);
    let plain = with_ca("redis://h");
    std::fs::write(plain.path("ca.pem"), "pem").unwrap();
    says(&plain, &["quittance.toml:3", "store.ca_file", "is for TLS", "rediss://"]);
}

#[test]
fn a_node_on_a_shared_store_has_a_folder_of_its_own_beside_the_file() {
    let place = with_url("redis://h");
    assert_eq!(place.load().unwrap().store.home, Some(place.path("quittance-data")));
    assert_eq!(with_url("embedded:x").load().unwrap().store.home, None);
    let shown = show(&place.load().unwrap());
    assert!(shown.lines().any(|line| line.starts_with("home = ") && line.ends_with("# default")), "{shown}");
}

#[test]
fn a_node_may_be_given_a_name() {
    let named = |name: &str| Place::with_file(&format!("[node]\nname = \"{name}\"\n"));
    assert_eq!(
        named("web-1.example.org:8780").load().unwrap().node_name.as_deref(),
        Some("web-1.example.org:8780")
    );
    assert_eq!(Place::empty().load().unwrap().node_name, None);
    for name in ["", "two words", "a\\u001bb", &"x".repeat(65)] {
        says(&named(name), &["`node.name`", "at most 64 letters"]);
    }
}

#[test]
fn the_variables_of_a_copy_are_no_settings() {
    let place =
        Place::empty().env(&[("QUITTANCE_FROM_PASSWORD", "s3cr3t"), ("QUITTANCE_TO_PASSWORD", "s3cr3t")]);
    assert!(place.load().is_ok());
}

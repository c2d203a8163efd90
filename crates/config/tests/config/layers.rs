//! The order of the layers, and how the environment names providers and tenants.

use super::{Place, SMALL};
use std::time::Duration;

#[test]
fn the_file_gives_way_to_the_environment_and_that_to_flags() {
    let deadline = |place: Place| place.load().unwrap().policy.timeout.as_secs();
    let file = || Place::with_file("[timing]\ndeadline = \"60s\"\n");
    let variable = ("QUITTANCE_TIMING_DEADLINE", "70s");
    assert_eq!(deadline(Place::empty()), 300);
    assert_eq!(deadline(file()), 60);
    assert_eq!(deadline(file().env(&[variable])), 70);
    assert_eq!(deadline(file().env(&[variable]).set(&["timing.deadline=80s"])), 80);
    assert_eq!(
        deadline(file().set(&["timing.deadline=80s", "timing.deadline = 90s"])),
        90,
        "the last one counts"
    );
}

#[test]
fn providers_and_tenants_are_reached_by_their_names() {
    let config = Place::with_file(SMALL)
        .env(&[
            ("QUITTANCE_PROVIDER_MAIN_URL", "https://b.example"),
            ("QUITTANCE_TENANT_TEAM_A_KEY_ENV", "B"),
        ])
        .env(&[("QUITTANCE_KINDS_RECAPTCHA_V2_LIFE", "90s"), ("QUITTANCE_REUSE_KINDS_HCAPTCHA", "exclusive")])
        .set(&["provider.main.faults.\"ERROR: 1001\"=no_funds", "reuse.targets.\"*.a.org\"=exclusive"])
        .load()
        .unwrap();
    assert_eq!(config.providers[0].url(), "https://b.example");
    assert_eq!(config.tenants[0].key.state(), "missing (env B)", "a dash is an underscore there");
    assert_eq!(config.kinds.kind("recaptcha_v2").unwrap().life, Some(Duration::from_secs(90)));
    let reuse = |kind, host| config.reuse.setting("team-a", kind, host).unwrap().name;
    assert_eq!(reuse("hcaptcha", None), "reuse.kinds.hcaptcha");
    assert_eq!(reuse("hcaptcha", Some("b.a.org")), "reuse.targets.\"*.a.org\"");
}

/// A provider with only the environment, as in a container.
#[test]
fn a_provider_can_be_made_of_variables_alone() {
    let config = Place::empty()
        .env(&[
            ("QUITTANCE_PROVIDER_MAIN_DIALECT", "2captcha"),
            ("QUITTANCE_PROVIDER_MAIN_KEY_ENV", "QUITTANCE_KEY"),
        ])
        .env(&[("QUITTANCE_PROVIDER_MAIN_URL", "https://a.example"), ("QUITTANCE_KEY", "s3cr3t")])
        .load()
        .unwrap();
    assert_eq!(config.providers[0].key.get().unwrap().reveal(), "s3cr3t", "and the key may have our prefix");
}

#[test]
fn what_kubernetes_puts_there_for_a_service_of_our_name_is_not_ours() {
    let place = Place::empty().env(&[
        ("QUITTANCE_SERVICE_HOST", "10.0.0.1"),
        ("QUITTANCE_SERVICE_PORT_HTTP", "80"),
        ("QUITTANCE_PORT", "tcp://10.0.0.1:80"),
        ("QUITTANCE_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("OTHER_PROGRAM", "x"),
    ]);
    assert!(place.load().is_ok());
}

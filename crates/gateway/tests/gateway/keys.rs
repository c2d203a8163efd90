//! Tests of keys and tenants: which tenant a key belongs to, and how fast a tenant can place orders.

use quittance_gateway::{KEY_BYTES, KeyDigest, NotKnown, Rate, Tenant, TenantSettings, Tenants};
use quittance_lifecycle::Timestamp;
use std::time::Duration;

fn key(n: u8) -> String {
    format!("{n:032}")
}

fn tenants(count: u8) -> Tenants {
    let settings = |n: u8| TenantSettings::new(format!("tenant-{n}"), KeyDigest::of(&key(n)));
    Tenants::new(
        (0..count).map(settings).collect(),
        Some(KeyDigest::of("the operator's own key, any length")),
    )
}

#[test]
fn each_key_belongs_to_its_own_tenant_wherever_that_stands_in_the_list() {
    let tenants = tenants(100);
    for n in 0..100 {
        let caller = tenants.caller(&key(n)).unwrap();
        assert_eq!((caller.tenant.name(), caller.is_fresh_wanted), (format!("tenant-{n}").as_str(), false));
    }
    assert!(tenants.caller(&format!("{}__nocache", key(7))).unwrap().is_fresh_wanted);
    assert!(tenants.local().is_none() && !tenants.is_open());
}

#[test]
fn a_key_that_is_nearly_right_is_as_wrong_as_any() {
    let tenants = tenants(3);
    for at in 0..KEY_BYTES {
        let mut near = key(2).into_bytes();
        near[at] ^= 1;
        let near = String::from_utf8(near).unwrap();
        assert_eq!(tenants.caller(&near).map(drop), Err(NotKnown::WrongKey), "{near}");
    }
    let digest = KeyDigest::of(&key(1)).to_string();
    for odd in ["", "__nocache", &key(1)[1..], &format!("{} ", key(1)), &digest] {
        assert_eq!(tenants.caller(odd).map(drop), Err(NotKnown::NoKey), "{odd}");
    }
}

#[test]
fn only_the_operators_key_is_the_operators() {
    let tenants = tenants(2);
    assert!(tenants.is_admin("the operator's own key, any length"));
    assert!(!tenants.is_admin(&key(1)) && !tenants.is_admin(""));
    let without = Tenants::new(vec![TenantSettings::new("a", KeyDigest::of(&key(1)))], None);
    assert!(!without.is_admin(&key(1)) && !without.is_admin(""), "no key is, where none is configured");
    assert!(Tenants::new(Vec::new(), None).is_admin(""), "but on a machine of its own, each caller is");
}

#[test]
fn a_burst_is_let_through_and_then_one_at_a_time() {
    let mut settings = TenantSettings::new("a", KeyDigest::of(&key(1)));
    settings.rate = Some(Rate { every: Duration::from_secs(10), burst: 3 });
    let tenant = Tenant::new(settings);
    let start = Timestamp::from_millis(1_000_000_000);
    let spent: Vec<_> = (0..5).map(|_| tenant.spend(start)).collect();
    let wait = Err(Duration::from_secs(10));
    assert_eq!(spent, [Ok(()), Ok(()), Ok(()), wait, wait], "a refusal costs nothing");
    assert_eq!(tenant.spend(start + Duration::from_secs(9)), Err(Duration::from_secs(1)));
    assert_eq!(tenant.spend(start + Duration::from_secs(10)), Ok(()));
    assert!(
        tenant.spend(Timestamp::from_millis(1)).is_err_and(|wait| wait <= Duration::from_secs(10)),
        "a clock set back"
    );
}

#[test]
fn no_digest_is_in_what_is_printed() {
    let shown = format!("{:?}", tenants(1));
    assert!(!shown.contains(&KeyDigest::of(&key(0)).to_string()[..8]), "{shown}");
}

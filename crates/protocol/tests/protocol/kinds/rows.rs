//! Tests that the rows of the table are consistent, so that a mistake in a row is found before it costs money.

use crate::kinds::{check, check_with, known, least};
use quittance_lifecycle::terms::{FILE_BYTES_MAX, PARAMS_MAX};
use quittance_lifecycle::{Draft, Identity, KeySettings, Policy, Reuse, Shape};
use quittance_protocol::kinds::{ORDER_FIELDS, kind, kinds, open_kind};
use std::collections::BTreeSet;
use std::time::Duration;

const fn secs(n: u64) -> Option<Duration> {
    Some(Duration::from_secs(n))
}

#[test]
fn every_kind_has_a_name_of_its_own_and_is_found_by_it() {
    let names: BTreeSet<_> = kinds().map(|kind| kind.name).collect();
    assert_eq!(names.len(), kinds().count());
    for row in kinds() {
        assert!(row.name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_')), "{}", row.name);
        assert_eq!(kind(&row.name), Some(row));
    }
    for near in ["", "Image", "image ", "recaptcha", "hcaptcha\0"] {
        assert_eq!(kind(near), None);
    }
}

#[test]
fn the_kinds_that_people_ask_for_are_described() {
    for name in [
        "image",
        "text",
        "audio",
        "grid",
        "coordinates",
        "rotate",
        "recaptcha_v2",
        "recaptcha_v3",
        "hcaptcha",
        "turnstile",
        "cloudflare_challenge",
        "geetest",
        "geetest_v4",
        "funcaptcha",
        "datadome",
        "amazon_waf",
    ] {
        assert!(kind(name).is_some(), "{name}");
    }
}

#[test]
fn every_kind_promises_a_life_that_can_be_kept() {
    for kind in kinds().chain([open_kind("new")]) {
        let name = &kind.name;
        match kind.life {
            Some(life) => {
                assert!(kind.margin > Duration::ZERO && kind.margin < life * 3 / 4, "{name}");
            }
            None => assert!(kind.margin.is_zero() && !kind.single_use, "{name}"),
        }
        assert!(kind.pace.p50 < kind.pace.p95 && kind.pace.p95 < kind.pace.p99, "{name}");
        assert!(kind.pace.p99 <= Policy::DEFAULT.in_doubt_wait, "{name}: a doubt would be given up too soon");
    }
}

#[test]
fn every_row_says_the_truth_about_what_identifies() {
    for kind in kinds().chain([open_kind("new")]) {
        let name = &kind.name;
        let fields: BTreeSet<_> = kind.fields.iter().map(|field| field.name).collect();
        assert_eq!(fields.len(), kind.fields.len(), "{name} has a field twice");
        assert!(fields.len() <= PARAMS_MAX, "{name}");
        for field in kind.fields {
            let field_name = field.name;
            let immaterial = kind.immaterial.contains(&field_name);
            assert!(!(immaterial && field.identifies), "{name}.{field_name} matters and does not");
            assert!(!field.required || field.identifies, "{name}.{field_name} is needed for no answer");
            assert!(!field.required || field.default.is_none(), "{name}.{field_name} cannot be left out");
            if kind.identity == Identity::Everything {
                assert_eq!(field.identifies, !immaterial, "{name}.{field_name}");
            }
            if let Shape::File { bytes_min, bytes_max } = field.shape {
                assert!((1..bytes_max).contains(&bytes_min) && bytes_max <= FILE_BYTES_MAX, "{name}");
            }
        }
        for list in [kind.immaterial, kind.address_fields] {
            let names: BTreeSet<_> = list.iter().collect();
            assert_eq!(names.len(), list.len(), "{name} has a name twice");
        }
        assert!(
            ORDER_FIELDS.iter().all(|field| kind.immaterial.contains(field)),
            "{name}: they are for Quittance"
        );
        assert!(kind.address_fields.iter().all(|field| !kind.immaterial.contains(field)), "{name}");
        assert!(!kind.bound_to_address || !kind.address_fields.is_empty(), "{name} is bound to nothing");
        for control in ["debug_dump", "header_acao", "json", "key", "method", "pingback", "soft_id"] {
            assert!(kind.immaterial.contains(&control), "{name}: {control}");
        }
    }
}

/// The page address decides which sites may be automated, so every order but one for a picture must have it.
#[test]
fn every_kind_that_visits_a_site_needs_its_address() {
    for kind in kinds() {
        let pages: Vec<_> = kind.fields.iter().filter(|field| field.shape == Shape::PageAddress).collect();
        match kind.life {
            None => assert!(matches!(pages[..], [page] if !page.required), "{}", kind.name),
            Some(_) => assert!(matches!(pages[..], [page] if page.required), "{}", kind.name),
        }
    }
    assert!(open_kind("new").fields.iter().any(|field| field.shape == Shape::PageAddress));
}

#[test]
fn every_kind_takes_an_order_that_has_just_what_it_needs() {
    for kind in kinds() {
        let (_, terms) = check_with(&kind, &least(&kind), KeySettings::default())
            .unwrap_or_else(|why| panic!("{}: {why}", kind.name));
        assert_eq!(terms.kind, kind.name);
        assert_eq!((terms.life, terms.margin), (kind.life, kind.margin));
        assert_eq!(
            terms.min_life,
            core::time::Duration::ZERO,
            "its own callers get an answer while it lives"
        );
    }
}

#[test]
fn every_kind_has_its_lifetime_and_margin() {
    for (name, life, margin_s, single_use) in [
        ("image", None, 0, false),
        ("text", None, 0, false),
        ("audio", None, 0, false),
        ("grid", None, 0, false),
        ("recaptcha_v2", secs(120), 40, true),
        ("recaptcha_v3", secs(120), 40, true),
        ("hcaptcha", secs(120), 40, true),
        ("turnstile", secs(300), 50, true),
        ("geetest", secs(60), 20, true),
        ("cloudflare_challenge", secs(900), 40, false),
        ("a_kind_of_next_year", secs(120), 40, true),
    ] {
        let kind = known(name);
        let margin = Duration::from_secs(margin_s);
        assert_eq!((kind.life, kind.margin, kind.single_use), (life, margin, single_use), "{name}");
    }
}

#[test]
fn cookies_and_proxied_tokens_are_bound_to_their_address_and_other_tokens_are_not() {
    let bound: BTreeSet<_> = kinds().filter(|kind| kind.bound_to_address).map(|kind| kind.name).collect();
    let named = ["amazon_waf", "captchafox", "cloudflare_challenge", "datadome", "imperva", "tspd"];
    assert!(bound.iter().eq(named.iter()), "{bound:?}");
}

#[test]
fn single_use_answers_are_exclusive_and_the_others_shared_unless_the_order_says_otherwise() {
    for kind in kinds() {
        let reuse = |explicit: Option<Reuse>| {
            let draft = Draft { reuse: explicit, ..least(&kind) };
            check_with(&kind, &draft, KeySettings::default()).expect("it has all that is needed").1.reuse
        };
        let usual = if kind.single_use { Reuse::Exclusive } else { Reuse::Shared };
        assert_eq!(reuse(None), usual, "{}", kind.name);
        for explicit in [Reuse::Shared, Reuse::Exclusive] {
            assert_eq!(reuse(Some(explicit)), explicit, "{}", kind.name);
        }
    }
}

#[test]
fn an_open_kind_takes_whatever_it_gets() {
    let draft = quittance_lifecycle::Draft::new("alice").with("whatever", "x").with("file", vec![0]);
    assert!(check("a_kind_of_next_year", &draft).is_ok());
    assert_eq!(open_kind("a_kind_of_next_year").name, "a_kind_of_next_year");
}

//! Tests of which real orders are equal, and which are two. Each known mistake of other programs has a test here.

use crate::kinds::{PAGE, challenge, check, check_with, image, key, known, least, picture, recaptcha, site};
use quittance_lifecycle::{Draft, Identity, Key, KeySettings, Kind, Reuse, Shape, Value};
use quittance_protocol::kinds::kinds;
use std::collections::{BTreeMap, BTreeSet};

const PROXY_COUNTS: KeySettings = KeySettings { proxy_counts: true, window: None, secret: None };

fn same(kind: &str, a: &Draft, b: &Draft) {
    assert_eq!(key(kind, a), key(kind, b), "{kind}");
}

fn differ(kind: &str, a: &Draft, b: &Draft) {
    assert_ne!(key(kind, a), key(kind, b), "{kind}");
}

#[test]
fn a_thousand_pictures_that_share_their_first_hundred_bytes_have_a_thousand_keys() {
    assert_eq!(picture(0)[..100], picture(999)[..100]);
    let keys: BTreeSet<_> = (0..1000).map(|n| key("image", &image(n))).collect();
    assert_eq!(keys.len(), 1000);
}

#[test]
fn a_picture_is_the_same_order_wherever_it_was_found_and_another_with_other_instructions() {
    let plain = image(1);
    for (name, value) in [
        ("pageurl", PAGE),
        ("userAgent", "curl"),
        ("proxy", "10.0.0.1:1"),
        ("method", "base64"),
        ("cookies", "a:b"),
    ] {
        same("image", &plain, &plain.clone().with(name, value));
        let with = check_with(&known("image"), &plain.clone().with(name, value), PROXY_COUNTS);
        assert_eq!(with.expect("it is good").0, key("image", &plain), "whatever the setting is");
    }
    let hints = [
        ("textinstructions", "the red letters"),
        ("phrase", "1"),
        ("numeric", "1"),
        ("calc", "1"),
        ("min_len", "4"),
        ("max_len", "6"),
        ("regsense", "1"),
        ("regsense", "0"),
        ("lang", "de"),
        ("language", "1"),
        ("a_hint_of_next_year", "1"),
    ];
    let keys: BTreeSet<_> =
        hints.iter().map(|(name, value)| key("image", &plain.clone().with(name, *value))).collect();
    assert_eq!(keys.len(), hints.len());
    assert!(!keys.contains(&key("image", &plain)));
    differ("image", &plain, &plain.clone().with("imginstructions", picture(2)));
}

#[test]
fn a_token_is_for_one_site_key_on_one_page() {
    for (kind, site_key, draft) in [
        ("recaptcha_v2", "googlekey", recaptcha()),
        ("recaptcha_v3", "googlekey", recaptcha()),
        ("hcaptcha", "sitekey", site()),
        ("turnstile", "sitekey", site()),
    ] {
        differ(kind, &draft, &draft.clone().with(site_key, "other"));
        differ(kind, &draft, &draft.clone().with("pageurl", "https://example.com/signup"));
        for (name, value) in
            [("userAgent", "curl"), ("cookies", "a:b"), ("domain", "recaptcha.net"), ("nonsense", "1")]
        {
            same(kind, &draft, &draft.clone().with(name, value));
        }
    }
}

#[test]
fn kinds_that_take_the_same_parameters_share_no_key() {
    let keys: BTreeSet<_> =
        ["recaptcha_v2", "recaptcha_v3", "userrecaptcha_v4"].map(|kind| key(kind, &recaptcha())).into();
    assert_eq!(keys.len(), 3, "the version is in the key");
    let keys: BTreeSet<_> =
        ["hcaptcha", "turnstile", "mt_captcha", "prosopo", "new"].map(|kind| key(kind, &site())).into();
    assert_eq!(keys.len(), 5, "the method is in the key");
}

#[test]
fn a_parameter_that_asks_for_another_token_is_in_the_key() {
    for (kind, draft, name, value) in [
        ("recaptcha_v3", recaptcha(), "action", "login"),
        ("recaptcha_v3", recaptcha(), "min_score", "0.9"),
        ("recaptcha_v3", recaptcha(), "enterprise", "1"),
        ("recaptcha_v3", recaptcha(), "version", "v2"),
        ("recaptcha_v2", recaptcha(), "enterprise", "1"),
        ("recaptcha_v2", recaptcha(), "invisible", "1"),
        ("recaptcha_v2", recaptcha(), "data-s", "abc"),
        ("recaptcha_v2", recaptcha(), "action", "login"),
        ("hcaptcha", site(), "invisible", "1"),
        ("hcaptcha", site(), "data", "rq"),
        ("turnstile", site(), "action", "login"),
        ("turnstile", site(), "data", "c"),
        ("turnstile", site(), "pagedata", "p"),
    ] {
        let explicit = draft.clone().with(name, value);
        differ(kind, &draft, &explicit);
        differ(kind, &explicit, &draft.with(name, &*format!("{value}x")));
    }
}

#[test]
fn to_say_the_default_and_to_leave_it_out_is_the_same_order() {
    for kind in kinds() {
        let draft = least(&kind);
        for field in kind.fields {
            if let Some(default) = field.default {
                let (implicit, explicit) = (draft.clone(), draft.clone().with(field.name, default));
                let [implicit, explicit] =
                    [implicit, explicit].map(|draft| check(&kind.name, &draft).expect("it is good"));
                assert_eq!(implicit.0, explicit.0, "{}.{}", kind.name, field.name);
                assert_eq!(implicit.1.fingerprint, explicit.1.fingerprint, "{}.{}", kind.name, field.name);
            }
        }
    }
    same("recaptcha_v3", &recaptcha(), &recaptcha().with("action", "verify").with("min_score", "0.4"));
    same("recaptcha_v2", &recaptcha(), &recaptcha().with("invisible", "0").with("enterprise", "0"));
}

#[test]
fn a_character_moved_to_the_neighbouring_field_makes_another_order() {
    let moved = |a: &str, b: &str| recaptcha().with("googlekey", a).with("action", b);
    let keys: BTreeSet<_> =
        [("ab", "c"), ("a", "bc"), ("a:b", "c"), ("a", "b:c"), ("abc", ""), ("a\0b", "c"), ("a", "b\0c")]
            .map(|(a, b)| key("recaptcha_v3", &moved(a, b)))
            .into();
    assert_eq!(keys.len(), 7);
    let challenge =
        |gt: &str, challenge: &str| least(&known("geetest")).with("gt", gt).with("challenge", challenge);
    differ("geetest", &challenge("ab", "c"), &challenge("a", "bc"));
}

#[test]
fn two_challenges_of_one_site_are_two_orders_and_one_challenge_is_one() {
    for (kind, one_time) in [
        ("geetest", "challenge"),
        ("funcaptcha", "data[blob]"),
        ("amazon_waf", "iv"),
        ("amazon_waf", "context"),
    ] {
        let draft = least(&known(kind)).with(one_time, "first");
        same(kind, &draft, &draft.clone());
        differ(kind, &draft, &draft.clone().with(one_time, "second"));
    }
}

#[test]
fn what_only_says_how_to_talk_never_makes_another_order() {
    for kind in kinds().map(|kind| kind.name.to_string()).chain(["new".to_string()]) {
        let draft = least(&known(&kind));
        for name in ["debug_dump", "header_acao", "json", "key", "method", "pingback", "soft_id"] {
            let (_, plain) = check(&kind, &draft).expect("it is good");
            let (_, explicit) = check(&kind, &draft.clone().with(name, "x")).expect("it is good");
            assert_eq!(
                (plain.target, plain.fingerprint),
                (explicit.target, explicit.fingerprint),
                "{kind}.{name}"
            );
        }
    }
}

#[test]
fn the_proxy_counts_by_setting_for_a_token_and_always_for_what_is_bound_to_it() {
    let through = |draft: Draft, proxy: &str| draft.with("proxy", proxy).with("proxytype", "HTTP");
    for (kind, draft) in
        [("recaptcha_v2", recaptcha()), ("turnstile", site()), ("geetest", least(&known("geetest")))]
    {
        let [a, b] = ["10.0.0.1:1", "10.0.0.2:1"].map(|proxy| through(draft.clone(), proxy));
        same(kind, &a, &b);
        same(kind, &a, &draft);
        let [a, b] =
            [a, b].map(|draft| check_with(&known(kind), &draft, PROXY_COUNTS).expect("it is good").0);
        assert_ne!(a, b, "{kind}");
    }
    for kind in
        kinds().filter(|kind| kind.bound_to_address).map(|kind| kind.name.to_string()).chain(["new".into()])
    {
        let draft = least(&known(&kind));
        differ(&kind, &through(draft.clone(), "10.0.0.1:1"), &through(draft.clone(), "10.0.0.2:1"));
        differ(&kind, &draft.clone().with("userAgent", "a"), &draft.clone().with("userAgent", "b"));
        differ(&kind, &through(draft.clone(), "p").with("proxytype", "SOCKS5"), &through(draft, "p"));
    }
}

/// docs/reuse.md says which parameters may differ under one idempotency key, and that all others may not.
#[test]
fn the_same_idempotency_key_may_come_through_another_proxy_and_from_another_page_of_a_picture() {
    let keyed = |draft: &Draft| Draft { idempotency_key: Some("login-42".into()), ..draft.clone() };
    let fingerprint = |kind: &str, draft: &Draft, settings: KeySettings| {
        check_with(&known(kind), &keyed(draft), settings).expect("it is good").1.fingerprint
    };
    let visit = [
        ("pageurl", "https://b.example.com/"),
        ("proxy", "10.0.0.2:1"),
        ("proxytype", "SOCKS5"),
        ("userAgent", "other"),
        ("cookies", "a=b"),
    ];
    for kind in kinds() {
        let name = kind.name.to_string();
        let (draft, is_picture) = (least(&kind), kind.immaterial.contains(&"pageurl"));
        let plain = draft.clone().with("pageurl", "https://a.example.com/").with("proxy", "10.0.0.1:1");
        let plain = plain.with("proxytype", "HTTP");
        for (param, value) in visit {
            let other = plain.clone().with(param, value);
            let is_same = |settings: KeySettings| {
                fingerprint(&name, &plain, settings) == fingerprint(&name, &other, settings)
            };
            let is_proxy = param.starts_with("proxy");
            let may_differ = is_picture || (is_proxy && !kind.bound_to_address);
            assert_eq!(is_same(KeySettings::default()), may_differ, "{name} {param}");
            assert_eq!(is_same(PROXY_COUNTS), is_picture, "{name} {param}, where the proxy counts");
        }
        let other = plain.clone().with("made_up", "1");
        assert_ne!(
            fingerprint(&name, &plain, KeySettings::default()),
            fingerprint(&name, &other, KeySettings::default()),
            "{name}"
        );
    }
}

#[test]
fn tenants_share_nothing() {
    for kind in kinds() {
        let draft = least(&kind);
        let (of_alice, alice) = check(&kind.name, &draft).expect("it is good");
        let (of_bob, bob) = check(&kind.name, &Draft { tenant: "bob".into(), ..draft }).expect("it is good");
        assert_ne!((of_alice, alice.target), (of_bob, bob.target));
    }
}

#[test]
fn a_chosen_key_with_other_parameters_is_noticed() {
    let chosen = |draft: Draft| Draft { idempotency_key: Some("order-17".into()), ..draft };
    let ask = |kind: &str, draft: Draft| check(kind, &chosen(draft)).expect("it is good");
    let (key, terms) = ask("recaptcha_v2", recaptcha());
    for (kind, draft) in [
        ("recaptcha_v2", recaptcha().with("googlekey", "other")),
        ("recaptcha_v2", recaptcha().with("userAgent", "curl")),
        ("recaptcha_v3", recaptcha()),
        ("image", image(1)),
    ] {
        let (same_key, other) = ask(kind, draft);
        assert_eq!(key, same_key);
        assert_ne!(terms.fingerprint, other.fingerprint, "{kind}");
    }
    assert_eq!(terms.fingerprint, ask("recaptcha_v2", recaptcha().with("soft_id", "1")).1.fingerprint);
}

/// These keys were computed once. A change of a row that changes them would buy every open order of the kind again
/// while nodes of both versions run.
#[test]
fn keys_are_the_same_in_every_process_and_version() {
    let exclusive = Draft { reuse: Some(Reuse::Exclusive), ..site() };
    for (kind, draft, expected) in [
        ("image", image(1), "96968560d1a46946299b613864a2f899c897b073ab68af5c172db783ce4f1714"),
        ("recaptcha_v2", recaptcha(), "c15bc1ac10b8bb2d038c5d8c2007e31f80deb8cdaf41cd7cd52cb586fc16cc9c"),
        (
            "recaptcha_v3",
            recaptcha().with("action", "login"),
            "e8b8d62db43857614382d3abcae807c72888a938fb727f01d953a2c053a5696a",
        ),
        ("hcaptcha", site(), "4215706ddf67a4c4263fd1da6568472cff55712b4624764873dd03f0fa124aed"),
        (
            "turnstile",
            site().with("data", "c"),
            "60c737d8c93d6e48be2250339166f0b81d54a30bed07aee504246dc48b06ee03",
        ),
        ("turnstile", exclusive, "a3631716fb1c6c2d2426fc6899a305270f03efa80c48a24d1cbd13d0ea60808e"),
        (
            "cloudflare_challenge",
            challenge(),
            "a634c4aa42bea0668466198f7a04b07856ed21ed71bc13b5ba44df36aee5a2df",
        ),
        ("a_kind_of_next_year", site(), "b68db0969cdcf8b458ca3d5957be58f2b5aec0f98bfb6bfc4d3d301b446fbaeb"),
    ] {
        assert_eq!(key(kind, &draft).to_string(), expected, "{kind}");
    }
}

/// What identifies an order, in full and without a digest, so that two orders cannot collide.
fn in_full(kind: &Kind, draft: &Draft, proxy_counts: bool) -> Vec<(String, Vec<u8>)> {
    let default = |name: &str| kind.fields.iter().find(|field| field.name == name)?.default;
    let counts = |name: &str| {
        if kind.address_fields.contains(&name) {
            return kind.bound_to_address || proxy_counts;
        }
        match kind.identity {
            Identity::Everything => !kind.immaterial.contains(&name),
            Identity::Fields => kind.fields.iter().any(|field| field.name == name && field.identifies),
        }
    };
    let material = |(name, value): &(&String, &Value)| {
        counts(name) && default(name).map(str::as_bytes) != Some(value.as_bytes())
    };
    let explicit = draft.params.iter().filter(material);
    [
        ("tenant".to_string(), draft.tenant.clone().into_bytes()),
        ("kind".to_string(), kind.name.as_bytes().to_vec()),
    ]
    .into_iter()
    .chain(explicit.map(|(name, value)| (name.clone(), value.as_bytes().to_vec())))
    .collect()
}

/// A small random generator (splitmix64), so that every run tests the same orders.
struct KeyDice(u64);

impl KeyDice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).expect("it is below a usize")
    }

    fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    fn draft(&mut self, kind: &Kind) -> Draft {
        let mut draft = least(kind);
        draft.tenant = self.one_of(&["alice", "bob", "alicebob"]).into();
        for _ in 0..self.below(4) {
            let field = self.one_of(kind.fields);
            draft = match field.shape {
                Shape::Text if self.below(4) == 0 => draft.with(field.name, field.default.unwrap_or("x")),
                Shape::Text | Shape::Document => {
                    draft.with(field.name, self.one_of(&["a", "ab", "a:b", "a\0", "1", "0"]))
                }
                Shape::VendorAddress => draft.with(field.name, self.one_of(&["https://a.test/", "b.test"])),
                Shape::PageAddress => {
                    draft.with(field.name, self.one_of(&[PAGE, "https://a.test/", "https://a.test"]))
                }
                Shape::File { .. } => {
                    draft.with(field.name, picture(u32::try_from(self.below(5)).expect("small")))
                }
            };
        }
        let others = [
            "json",
            "soft_id",
            "proxy",
            "proxytype",
            "userAgent",
            "unheard_of",
            "data",
            "action",
            "pageurl_",
        ];
        for _ in 0..self.below(4) {
            draft = draft.with(self.one_of(&others), self.one_of(&["", "a", "b", ":"]));
        }
        // Left out again, where the row asks for a text: some rows refuse an empty one.
        draft.params.retain(|name, value| {
            !kind.fields.iter().any(|field| field.name == name && field.required)
                || !value.as_bytes().is_empty()
        });
        for (name, value) in least(kind).params {
            draft.params.entry(name).or_insert(value);
        }
        draft
    }
}

#[test]
fn twenty_thousand_random_orders_share_a_key_exactly_when_they_are_the_same() {
    let mut dice = KeyDice(17);
    let all: Vec<Kind> = kinds().chain([known("new")]).collect();
    for settings in [KeySettings::default(), PROXY_COUNTS] {
        let (mut by_key, mut by_order) = (BTreeMap::<Key, _>::new(), BTreeMap::new());
        for _ in 0..20_000 {
            let kind = &all[dice.below(all.len())];
            let draft = dice.draft(kind);
            let key =
                check_with(kind, &draft, settings).unwrap_or_else(|why| panic!("{}: {why}", kind.name)).0;
            let order = in_full(kind, &draft, settings.proxy_counts);
            assert_eq!(*by_key.entry(key).or_insert_with(|| order.clone()), order, "one key, two orders");
            assert_eq!(*by_order.entry(order).or_insert(key), key, "one order, two keys");
        }
        assert!(
            (2_000..18_000).contains(&by_key.len()),
            "neither all the same nor all different: {}",
            by_key.len()
        );
    }
}

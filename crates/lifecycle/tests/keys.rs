//! What makes two placements one order. The kinds here are made up, because kinds are opaque to this crate. Each
//! known mistake with keys is a test.

use quittance_lifecycle::{
    Draft, Field, HostRules, Identity, Key, KeyError, KeySettings, Kind, Pace, Policy, Reuse, Shape, Target,
    Terms, Timestamp,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NOON: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const PROXY_COUNTS: KeySettings = KeySettings { proxy_counts: true, window: None, secret: None };

const fn field(name: &'static str, identifies: bool, default: Option<&'static str>) -> Field {
    Field { name, shape: Shape::Text, required: false, substitutes: &[], identifies, default }
}

/// A kind with some fields that identify the answer.
const PARCEL: Kind = Kind {
    name: Cow::Borrowed("parcel"),
    fields: &[
        field("a", true, None),
        field("b", true, None),
        field("size", true, Some("small")),
        field("colour", false, Some("brown")),
        Field { shape: Shape::File { bytes_min: 1, bytes_max: 1 << 20 }, ..field("file", true, None) },
    ],
    identity: Identity::Fields,
    immaterial: &["reply"],
    address_fields: &["road"],
    bound_to_address: false,
    life: Some(Duration::from_secs(100)),
    margin: Duration::from_secs(10),
    single_use: true,
    hosts: HostRules::NONE,
    pace: Pace { p50: Duration::ZERO, p95: Duration::ZERO, p99: Duration::ZERO },
};

/// A kind in which every field counts, except how to reply.
const LETTER: Kind = Kind { name: Cow::Borrowed("letter"), identity: Identity::Everything, ..PARCEL };

const KINDS: [&Kind; 2] = [&PARCEL, &LETTER];

fn ask(kind: &Kind, draft: &Draft, settings: KeySettings) -> (Key, Terms) {
    draft.clone().check(kind, settings, &Policy::DEFAULT, NOON, 1).expect("the order is good")
}

fn key(kind: &Kind, draft: &Draft) -> Key {
    ask(kind, draft, KeySettings::default()).0
}

/// A draft. Equal drafts share one order, because the tests check which drafts are equal.
fn of(tenant: &str) -> Draft {
    Draft { reuse: Some(Reuse::Shared), ..Draft::new(tenant) }
}

fn draft() -> Draft {
    of("alice").with("a", "1").with("b", "2")
}

fn chosen(draft: Draft, key: &str) -> Draft {
    Draft { idempotency_key: Some(key.into()), ..draft }
}

#[test]
fn a_thousand_files_that_share_their_first_hundred_characters_have_a_thousand_keys() {
    let file = |n: u16| [vec![b'/'; 100], n.to_le_bytes().to_vec()].concat();
    for kind in KINDS {
        let keys: BTreeSet<_> = (0..1000).map(|n| key(kind, &draft().with("file", file(n)))).collect();
        assert_eq!(keys.len(), 1000);
    }
}

#[test]
fn a_character_moved_between_neighbouring_fields_makes_another_key() {
    let pairs =
        [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("a:b", "c"), ("a", "b:c"), ("a:", "b:c")];
    for kind in KINDS {
        let keys: BTreeSet<_> = pairs.map(|(a, b)| key(kind, &draft().with("a", a).with("b", b))).into();
        assert_eq!(keys.len(), pairs.len());
    }
}

#[test]
fn a_character_moved_between_a_name_and_its_value_makes_another_key() {
    let keys: BTreeSet<_> = [("x", "yz"), ("xy", "z"), ("x:y", "z"), ("x", "y:z"), ("xyz", "")]
        .map(|(name, value)| key(&LETTER, &draft().with(name, value)))
        .into();
    assert_eq!(keys.len(), 5);
}

#[test]
fn a_character_moved_between_the_tenant_and_the_kind_or_the_chosen_key_makes_another_key() {
    let named = |name: &str| Kind { name: Cow::Owned(name.into()), ..PARCEL };
    let of = |tenant: &str| Draft { tenant: tenant.into(), ..draft() };
    assert_ne!(key(&named("bc"), &of("a")), key(&named("c"), &of("ab")));
    assert_ne!(Key::chosen("a", "bc"), Key::chosen("ab", "c"));
    assert_ne!(Key::chosen("a:b", "c"), Key::chosen("a", "b:c"));
}

#[test]
fn the_kind_and_the_tenant_are_in_the_key() {
    assert_ne!(key(&PARCEL, &draft()), key(&LETTER, &draft()));
    let renamed = Kind { name: Cow::Borrowed("parcel_v2"), ..PARCEL };
    assert_ne!(key(&PARCEL, &draft()), key(&renamed, &draft()));
    for kind in KINDS {
        let bobs = Draft { tenant: "bob".into(), ..draft() };
        assert_ne!(key(kind, &draft()), key(kind, &bobs));
        assert_ne!(key(kind, &chosen(draft(), "k")), key(kind, &chosen(bobs, "k")));
    }
}

#[test]
fn a_field_that_identifies_is_in_the_key_and_to_leave_it_out_is_not_to_leave_it_empty() {
    for kind in KINDS {
        let without = of("alice").with("b", "2");
        let keys: BTreeSet<_> =
            [without.clone(), without.clone().with("a", ""), draft(), without.with("a", "2")]
                .map(|d| key(kind, &d))
                .into();
        assert_eq!(keys.len(), 4);
    }
}

#[test]
fn an_explicit_default_equals_an_absent_one_and_any_other_value_does_not() {
    for kind in KINDS {
        let (implicit, explicit) = (draft(), draft().with("size", "small").with("colour", "brown"));
        let [implicit, explicit] =
            [implicit, explicit].map(|draft| ask(kind, &draft, KeySettings::default()));
        assert_eq!((implicit.0, implicit.1.fingerprint), (explicit.0, explicit.1.fingerprint));
        assert_ne!(implicit.0, key(kind, &draft().with("size", "large")));
        assert_ne!(implicit.0, key(kind, &draft().with("size", "")));
    }
}

#[test]
fn what_does_not_matter_does_not_matter() {
    for kind in KINDS {
        let (plain, values) = (draft(), draft().with("reply", "by post"));
        let [plain, values] = [plain, values].map(|draft| ask(kind, &draft, KeySettings::default()));
        assert_eq!((plain.0, plain.1.fingerprint), (values.0, values.1.fingerprint));
    }
    assert_eq!(key(&PARCEL, &draft()), key(&PARCEL, &draft().with("colour", "blue").with("unheard_of", "x")));
    assert_ne!(key(&LETTER, &draft()), key(&LETTER, &draft().with("unheard_of", "x")));
}

#[test]
fn the_address_counts_by_setting_and_always_for_a_kind_that_is_bound_to_it() {
    let [one, two] = ["1.1.1.1", "2.2.2.2"].map(|road| draft().with("road", road));
    for kind in KINDS {
        assert_eq!(key(kind, &one), key(kind, &two));
        assert_eq!(key(kind, &one), key(kind, &draft()), "off by default");
        assert_ne!(ask(kind, &one, PROXY_COUNTS).0, ask(kind, &two, PROXY_COUNTS).0);
        assert_ne!(ask(kind, &one, PROXY_COUNTS).0, ask(kind, &draft(), PROXY_COUNTS).0);
        let bound = Kind { bound_to_address: true, ..kind.clone() };
        assert_ne!(key(&bound, &one), key(&bound, &two));
    }
}

#[test]
fn a_window_splits_time_and_without_one_time_does_not_count() {
    let at = |window: Option<Duration>, millis| {
        let settings = KeySettings { window, ..KeySettings::default() };
        let now = Timestamp::from_millis(millis);
        draft().check(&PARCEL, settings, &Policy::DEFAULT, now, 1).expect("the order is good").0
    };
    let minute = Some(Duration::from_secs(60));
    assert_eq!(at(minute, 60_000), at(minute, 119_999));
    assert_ne!(at(minute, 119_999), at(minute, 120_000));
    assert_ne!(at(minute, 0), at(None, 0), "the first window is not no window");
    assert_eq!(at(None, 0), at(None, u64::MAX));
    assert_ne!(
        at(Some(Duration::ZERO), 5),
        at(Some(Duration::ZERO), 6),
        "a window of nothing does not panic"
    );
}

#[test]
fn an_exclusive_placement_is_never_shared_and_a_chosen_key_outranks_it() {
    let exclusive = Draft { reuse: Some(Reuse::Exclusive), ..draft() };
    let with = |draft: &Draft, nonce| {
        draft
            .clone()
            .check(&PARCEL, KeySettings::default(), &Policy::DEFAULT, NOON, nonce)
            .expect("the order is good")
    };
    let keys: BTreeSet<_> = (0..1000).map(|nonce| with(&exclusive, nonce).0).collect();
    assert_eq!(keys.len(), 1000);
    assert!(!keys.contains(&key(&PARCEL, &draft())));
    assert_eq!(
        with(&exclusive, 1).1.target,
        with(&draft(), 2).1.target,
        "but they can use each other's answers"
    );
    assert_eq!(with(&draft(), 1).0, with(&draft(), 2).0, "a shared order has no nonce in it");
    let chosen = chosen(exclusive, "mine");
    assert_eq!(with(&chosen, 1).0, with(&chosen, 2).0);
    assert_eq!(with(&chosen, 1).0, Key::chosen("alice", "mine"));
}

#[test]
fn a_chosen_key_is_the_same_for_any_request_and_a_different_request_is_noticed() {
    let ask = |kind, draft| ask(kind, &chosen(draft, "mine"), KeySettings::default());
    let (key, terms) = ask(&PARCEL, draft());
    assert!(terms.keyed);
    for (kind, other) in [
        (&PARCEL, draft().with("a", "other")),
        (&PARCEL, draft().with("colour", "blue")),
        (&PARCEL, draft().with("unheard_of", "x")),
        (&PARCEL, draft().with("a", "12").with("b", "")),
        (&LETTER, draft()),
    ] {
        let (same_key, other) = ask(kind, other);
        assert_eq!(key, same_key);
        assert_ne!(terms.fingerprint, other.fingerprint);
    }
    assert_eq!(terms.fingerprint, ask(&PARCEL, draft()).1.fingerprint);
}

/// An id says nothing about its caller, so all callers of one order must have requested the same life.
#[test]
fn orders_that_ask_for_different_lives_are_different_and_a_chosen_key_belongs_to_one_of_them() {
    let with_life = |seconds: u64| Draft { min_life: Some(Duration::from_secs(seconds)), ..draft() };
    let (plain, none) = (key(&PARCEL, &draft()), key(&PARCEL, &with_life(0)));
    assert_eq!(plain, none, "no life requested");
    let lives = [key(&PARCEL, &with_life(20)), key(&PARCEL, &with_life(21))];
    assert!(lives[0] != lives[1] && !lives.contains(&plain));
    let fingerprint = |draft: Draft| ask(&PARCEL, &chosen(draft, "k"), KeySettings::default()).1.fingerprint;
    assert_eq!(fingerprint(draft()), fingerprint(with_life(0)));
    assert_eq!(fingerprint(with_life(20)), fingerprint(with_life(20)));
    assert_ne!(fingerprint(with_life(20)), fingerprint(draft()));
}

/// These keys were computed once and written down. If this test fails, nodes of the old and of the new version have
/// different keys for the same order, and pay for it twice.
#[test]
fn keys_are_the_same_in_every_process_and_version() {
    let target = Target([7; 32]);
    let shared = Key::shared(&target, Duration::ZERO, None, NOON);
    for (key, expected) in [
        (shared, "06ac277010e4ba4d6e61a4d515f9caab0335e2f2ff9e72c833ce5c6a4e0d27f7"),
        (
            Key::shared(&target, Duration::ZERO, Some(Duration::from_secs(60)), NOON),
            "a3fed863da1f3a623dac780016c593abc7a0660c9fda0eccc1064d9f65101fd9",
        ),
        (Key::exclusive(&target, 1), "00ac6d7546925a0e1f7477405e3a4e2817d00a986752499c43886947659430ef"),
        (
            Key::chosen("alice", "order-17"),
            "58fbe3a7d9cdbf256a1c2dff3bada926ed3743e33a944ba69ae89e8a605ad48e",
        ),
        (shared.surplus(NOON, 2), "539b15d58b91ccb1a6a75bac6b9aa8bc1cf90c58d32b52d35821d821780331a3"),
        (key(&PARCEL, &draft()), "86e31cb8747b540d399037e3e1ff5fbf94c7becbd02e7ff37ec0877d86ab20ae"),
        (key(&LETTER, &draft()), "bb10ed7cc75cb92f56c2de95f61a04724ae2ab7c1d198d688d8310e83a36d64e"),
    ] {
        assert_eq!(key.to_string(), expected);
        assert_eq!(Key::parse(expected), Ok(key));
        assert_eq!(Key::parse(&expected.to_uppercase()), Ok(key));
        assert_eq!(key.short(), expected[..12]);
    }
}

#[test]
fn a_spare_has_one_key_however_often_it_is_put_on_the_stock() {
    let key = Key::chosen("alice", "order-17");
    let later = NOON + Duration::from_millis(1);
    assert_eq!(key.surplus(NOON, 1), key.surplus(NOON, 1));
    let keys: BTreeSet<_> = [
        key,
        key.surplus(NOON, 1),
        key.surplus(NOON, 2),
        key.surplus(later, 1),
        key.surplus(NOON, 1).surplus(NOON, 1),
    ]
    .into();
    assert_eq!(keys.len(), 5);
}

#[test]
fn a_text_that_is_no_key_gets_the_reason() {
    let good = "0123456789abcdef".repeat(4);
    let replaced = |at: usize, with: &str| format!("{}{with}{}", &good[..at], &good[at + with.len()..]);
    for (text, why) in [
        (String::new(), KeyError::Length { found: 0 }),
        (good[1..].to_string(), KeyError::Length { found: 63 }),
        (format!("{good}0"), KeyError::Length { found: 65 }),
        (good.repeat(1000), KeyError::Length { found: 64_000 }),
        ("é".repeat(65), KeyError::Length { found: 130 }),
        (replaced(0, "g"), KeyError::NotHex { at: 0 }),
        (replaced(63, " "), KeyError::NotHex { at: 63 }),
        (replaced(10, "é"), KeyError::NotHex { at: 10 }),
        (replaced(62, "é"), KeyError::NotHex { at: 62 }),
        (replaced(61, "日"), KeyError::NotHex { at: 61 }),
        ("é".repeat(32), KeyError::NotHex { at: 0 }),
        ("\0".repeat(64), KeyError::NotHex { at: 0 }),
        (replaced(0, "0x"), KeyError::NotHex { at: 1 }),
        (replaced(0, "+"), KeyError::NotHex { at: 0 }),
    ] {
        assert_eq!(Key::parse(&text), Err(why), "{text:?}");
        let message = why.to_string();
        assert!(message.contains("an order's key is") && message.contains("hexadecimal"), "{message}");
        match why {
            KeyError::Length { found } => assert!(message.contains(&format!("has {found}"))),
            KeyError::NotHex { at } => assert!(message.contains(&format!("character {} ", at + 1))),
        }
    }
}

/// A small generator of our own (splitmix64): the same orders in every run.
struct OrderDice(u64);

impl OrderDice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).expect("it is below a usize")
    }

    /// Few and short pieces, made of separators and joiners, so that near misses are frequent.
    fn text(&mut self) -> String {
        (0..self.below(4)).map(|_| ["a", "b", ":", "\0", "=", "\u{1}"][self.below(6)]).collect()
    }

    fn draft(&mut self) -> Draft {
        let mut draft = of(["alice", "alic", "e"][self.below(3)]);
        for _ in 0..self.below(5) {
            let name = ["a", "b", "size", "colour", "reply", "road", "ab", "a:", "e"][self.below(9)];
            let value =
                if self.below(3) == 0 { ["small", "brown"][self.below(2)].into() } else { self.text() };
            draft = draft.with(name, &*value);
        }
        draft
    }
}

/// The identity of an order in full, without a digest, so that nothing can collide.
fn in_full(kind: &Kind, draft: &Draft, road_counts: bool) -> (String, String, BTreeMap<String, Vec<u8>>) {
    let counts = |name: &str| match name {
        "road" => road_counts,
        "reply" => false,
        _ => kind.identity == Identity::Everything || ["a", "b", "size"].contains(&name),
    };
    let is_default =
        |name: &str, value: &[u8]| matches!((name, value), ("size", b"small") | ("colour", b"brown"));
    let values = draft.params.iter().map(|(name, value)| (name.clone(), value.as_bytes().to_vec()));
    let material = values.filter(|(name, value)| counts(name) && !is_default(name, value)).collect();
    (draft.tenant.clone(), kind.name.to_string(), material)
}

#[test]
fn twenty_thousand_random_orders_share_a_key_exactly_when_they_are_the_same() {
    let mut dice = OrderDice(1);
    for settings in [KeySettings::default(), PROXY_COUNTS] {
        let (mut by_key, mut by_order) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..20_000 {
            let (kind, draft) = (KINDS[dice.below(2)], dice.draft());
            let key = ask(kind, &draft, settings).0;
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

//! Tests of misspelt kinds: how many are noticed, and that no documented name is taken for one.

use super::{check_values, kind};
use crate::kinds::UNDESCRIBED;
use quittance_lifecycle::Value as Param;
use std::collections::BTreeMap;

const NAMES: [&str; 23] = [
    "turnstile",
    "recaptcha_v2",
    "recaptcha_v3",
    "hcaptcha",
    "funcaptcha",
    "geetest",
    "amazon_waf",
    "datadome",
    "friendly_captcha",
    "cloudflare_challenge",
    "captchafox",
    "prosopo",
    "cybersiara",
    "cutcaptcha",
    "tencent",
    "lemin",
    "image",
    "coordinates",
    "imperva",
    "keycaptcha",
    "userrecaptcha",
    "TurnstileTaskProxyless",
    "ImageToTextTask",
];

/// A random generator with the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).unwrap()
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + u8::try_from(self.below(26)).unwrap())
    }

    /// Removes, adds, replaces or swaps a letter.
    fn edited(&mut self, name: &str) -> String {
        let mut letters: Vec<char> = name.chars().collect();
        let at = self.below(letters.len());
        match self.below(4) {
            0 => _ = letters.remove(at),
            1 => letters.insert(at, self.letter()),
            2 => letters[at] = self.letter(),
            _ if at + 1 < letters.len() => letters.swap(at, at + 1),
            _ => {}
        }
        letters.into_iter().collect()
    }
}

/// The misspelt names that are not noticed, and the number of names that were tried.
fn missed(edits: usize) -> (Vec<String>, usize) {
    let mut numbers = Numbers(5);
    let (mut missed, mut count) = (Vec::new(), 0);
    for name in NAMES {
        for _ in 0..100 {
            let typed = (0..edits).fold(name.to_owned(), |typed, _| numbers.edited(&typed));
            if NAMES.contains(&typed.as_str()) {
                continue;
            }
            count += 1;
            if kind(&typed).is_none() {
                missed.push(typed);
            }
        }
    }
    (missed, count)
}

#[test]
fn one_or_two_typing_errors_in_the_name_of_a_kind_are_noticed() {
    let (one, two) = (missed(1), missed(2));
    assert!(one.1 > 2_000 && two.1 > 2_000);
    // What is left of `image` in three letters is no name of anything.
    let is_long = |typed: &&String| typed.chars().count() > 3;
    let count = |missed: &[String]| missed.iter().filter(is_long).count();
    assert_eq!((count(&one.0), count(&two.0)), (0, 0), "of {} and {}: {one:?} {two:?}", one.1, two.1);
    for typed in ["hapcha", "fucapcha", "datadm", "turltile", "tumstile", "TurltileTaskProxyless"] {
        assert!(kind(typed).is_some(), "{typed}");
    }
}

#[test]
fn a_name_without_a_description_has_no_more_signs_in_it_than_the_service_writes() {
    for (typed, right) in [
        ("vk_image", "vkimage"),
        ("VK-Image", "vkimage"),
        ("hunt_", "hunt"),
        ("_HUNT", "hunt"),
        ("Hunt_Task", "HuntTask"),
        ("temu-image", "temuimage"),
        ("dragdrop", "drag_drop"),
        ("yandex_", "yandex"),
        ("Yidun_Task_Proxyless", "YidunTask"),
    ] {
        assert_eq!(kind(typed).as_deref(), Some(right), "{typed}");
    }
}

#[test]
fn no_name_that_a_service_documents_is_a_typing_error() {
    let others = [
        "Altcha",
        "ALIBABA",
        "Basilisk",
        "Castle",
        "HUNT",
        "Yidun",
        "Yandex",
        "VKImage",
        "VKCaptcha",
        "TemuImage",
    ];
    for name in UNDESCRIBED.iter().chain(&others) {
        assert_eq!(kind(name), None, "{name}");
    }
    // What a service may sell tomorrow under a name that is like none of today's.
    for name in
        ["brandnew", "akamai", "arkose", "botguard", "incognia", "kasada", "perimeterx", "puzzle", "slider"]
    {
        assert_eq!(kind(name), None, "{name}");
    }
}

#[test]
fn a_typing_error_at_the_first_letter_of_a_short_name_is_noticed() {
    for (typed, meant) in
        [("stpd", "tspd"), ("etxt", "text"), ("rgid", "grid"), ("acpy", "capy"), ("uhnt", "hunt")]
    {
        assert_eq!(kind(typed).as_deref(), Some(meant), "{typed}");
    }
}

#[test]
fn a_misspelt_value_that_chooses_the_kind_is_refused_with_the_right_one() {
    let check = |name: &str, value: &str| {
        check_values("CustomTask", &BTreeMap::from([(name.to_owned(), Param::from(value))]))
            .map_err(|why| why.to_string())
    };
    for (name, value, meant) in [
        ("class", "Datadmoe", "DataDome"),
        ("class", "DataDom", "DataDome"),
        ("class", "tspdd", "tspd"),
        ("class", "frendly", "friendly"),
        ("class", "Turnstlie", "turnstile"),
        ("cloudflareTaskType", "cf_clearence", "cf_clearance"),
        ("cloudflareTaskType", "tokn", "token"),
    ] {
        let refused = check(name, value).unwrap_err();
        assert!(refused.contains(&format!("did you mean `{meant}`?")), "{value}: {refused}");
    }
    for (name, value) in [
        ("class", "DataDome"),
        ("class", "datadome"),
        ("class", "altcha"),
        ("class", "Basilisk"),
        ("class", "SomethingNew"),
        ("cloudflareTaskType", "wait_room"),
    ] {
        assert_eq!(check(name, value), Ok(()), "{value}");
    }
}

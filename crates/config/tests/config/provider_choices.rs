//! Which orders the providers get: typing errors in it, settings that give no order to any provider, and one account
//! that is configured twice.

use super::Place;
use quittance_config::Config;

fn provider(name: &str, rest: &str) -> String {
    let url = format!("https://{name}.example");
    format!(
        "[[provider]]\nname = \"{name}\"\ndialect = \"2captcha\"\nurl = \"{url}\"\nkey_env = \"K\"\n{rest}\n"
    )
}

fn place(file: &str) -> Place {
    Place::with_file(file).env(&[("K", "s3cr3t"), ("SAME", "s3cr3t"), ("OTHER", "0th3r")])
}

fn load(file: &str) -> Config {
    place(file).load().unwrap_or_else(|error| panic!("{error}\n{file}"))
}

fn check(file: &str, words: &[&str]) {
    let complaint = place(file).complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}

#[test]
fn a_typing_error_in_the_kinds_of_providers_and_rules_is_found_before_an_order_is_placed() {
    let only = |kinds: &str| provider("main", kinds);
    check(
        &only("kinds = [\"image\", \"turnstyle\"]"),
        &["quittance.toml:6", "`provider.main.kinds`", "`turnstyle`", "did you mean `turnstile`?"],
    );
    check(
        &only("[routing.kinds]\nturnstyle = \"cheapest\""),
        &["quittance.toml:7", "`routing.kinds.turnstyle`", "did you mean `turnstile`?"],
    );
    check(&only("kinds = [\"moon_phase\"]"), &["provider.main.kinds", "`kinds.moon_phase.new = true`"]);
    load(&only("kinds = [\"moon_phase\", \"image\"]\n[kinds.moon_phase]\nnew = true"));
    load(&only("[routing.kinds]\nturnstile = \"cheapest\""));
}

#[test]
fn providers_that_get_no_order_at_all_are_an_error() {
    let two = |first: &str, second: &str| provider("a", first) + &provider("b", second);
    let words =
        ["quittance.toml:6", "`provider.a.kinds` is empty", "no provider gets an order", "leave it out"];
    check(&provider("a", "kinds = []"), &words);
    check(&two("kinds = []", "kinds = []"), &words);
    check(&two("kinds = []", "tenants = []"), &words);
    load(&two("kinds = []", ""));
    load(&two("", "tenants = []"));
}

#[test]
fn weights_of_which_none_counts_are_an_error_where_a_rule_uses_them() {
    let two = |weight: u32, rule: &str| {
        provider("a", "weight = 0") + &provider("b", &format!("weight = {weight}\n{rule}"))
    };
    let words = ["quittance.toml:6", "`provider.a.weight` is 0", "every provider", "`weighted`"];
    for rule in [
        "[routing]\nrule = \"weighted\"",
        "[routing.kinds]\nimage = \"weighted\"",
        "[[tenant]]\nname = \"t\"\nkey_env = \"OTHER\"\n[routing.tenants]\nt = \"weighted\"",
    ] {
        check(&two(0, rule), &words);
        load(&two(1, rule));
    }
    load(&two(0, "[routing]\nrule = \"cheapest\""));
}

#[test]
fn one_account_that_is_configured_twice_is_a_note_and_its_key_is_not_shown() {
    let second = |url: &str, key: &str| {
        let dialect = "dialect = \"2captcha\"";
        format!("[[provider]]\nname = \"b\"\n{dialect}\nurl = \"{url}\"\nkey_env = \"{key}\"\n")
    };
    let notes = |url: &str, key: &str| load(&(provider("a", "") + &second(url, key))).provider_notes();
    for key in ["K", "SAME"] {
        let notes = notes("https://a.example/", key).join("\n");
        for word in ["`provider.a`", "`provider.b`", "same account", "pace"] {
            assert!(notes.contains(word), "`{word}` is not in: {notes}");
        }
        assert!(!notes.contains("s3cr3t"), "{notes}");
    }
    for (url, key) in
        [("https://a.example", "OTHER"), ("https://b.example", "K"), ("https://a.example", "MISSING")]
    {
        assert_eq!(notes(url, key), Vec::<String>::new(), "{url} {key}");
    }
}

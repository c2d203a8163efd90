//! What answers cost, and in which currency.

use super::Place;
use quittance_config::Config;
use quittance_lifecycle::Money;

fn config(more: &str) -> Config {
    config_at("http://127.0.0.1:1", more)
}

fn config_at(url: &str, more: &str) -> Config {
    let provider = format!("[[provider]]\nname = \"a\"\nurl = \"{url}\"\nkey_env = \"K\"\n");
    Place::with_file(&format!("{provider}{more}")).load().unwrap()
}

#[test]
fn a_price_comes_from_the_operator_or_else_from_the_list_and_else_it_is_not_known() {
    let listed = config("dialect = \"2captcha\"").price_table();
    assert_eq!(listed.get("recaptcha_v2"), Some(&Money(2_990)));
    assert_eq!(listed.get("keycaptcha"), None, "no source for a price, so it is not known");
    let own = config("dialect = \"capsolver\"\nprotocol = \"json\"\n[provider.prices]\nrecaptcha_v3 = 0.002")
        .price_table();
    assert_eq!(own.get("recaptcha_v3"), Some(&Money(2_000)));
    assert_eq!(own.get("recaptcha_v3+enterprise"), None, "what the operator says is for all of the kind");
    assert_eq!(own.get("recaptcha_v2+enterprise"), Some(&Money(1_000)));
    let variant =
        "dialect = \"capsolver\"\nprotocol = \"json\"\n[prices]\n\"recaptcha_v2+enterprise\" = 0.009";
    let variant = config(variant).price_table();
    assert_eq!(
        variant.get("recaptcha_v2+enterprise"),
        Some(&Money(9_000)),
        "a variant has a price of its own"
    );
    assert_eq!(variant.get("recaptcha_v2"), Some(&Money(800)), "and leaves the others as they are");
    let flat = config("dialect = \"captchaai\"");
    assert!(flat.price_table().is_empty(), "threads are sold at a flat price");
    let sources = flat.price_sources();
    assert!(sources.len() == 1 && sources[0].words.contains("flat"), "{sources:?}");
}

#[test]
fn a_list_in_another_currency_does_not_count() {
    let rubles = config("dialect = \"2captcha\"\ncurrency = \"RUB\"");
    assert_eq!((rubles.currency(), rubles.price_table().len()), ("RUB", 0));
    assert_eq!(config("dialect = \"2captcha\"").currency(), "USD");
    for (url, currency) in [
        ("https://rucaptcha.com", "RUB"),
        ("https://api.rucaptcha.com:443/x", "RUB"),
        ("https://2captcha.com", "USD"),
        ("https://notrucaptcha.com", "USD"),
    ] {
        assert_eq!(config_at(url, "dialect = \"2captcha\"").currency(), currency, "{url}");
    }
}

#[test]
fn a_budget_without_a_price_is_reported_before_anything_starts() {
    let pool = "[pools.warm]\nkind = \"turnstile\"\nsize = 2\nbudget_per_hour = 1\n\
                [pools.warm.params]\nsitekey = \"x\"\npageurl = \"https://example.com/\"\n";
    let reported = config(&format!("dialect = \"captchaai\"\n{pool}")).budgets_that_buy_nothing();
    assert!(
        reported.len() == 1 && reported[0].contains("warm") && reported[0].contains("`prices.turnstile`"),
        "{reported:?}"
    );
    assert!(config(&format!("dialect = \"2captcha\"\n{pool}")).budgets_that_buy_nothing().is_empty());
    let free = format!("dialect = \"captchaai\"\n{pool}[prices]\nturnstile = 0\n");
    assert!(config(&free).budgets_that_buy_nothing().is_empty(), "0 is a price");
}

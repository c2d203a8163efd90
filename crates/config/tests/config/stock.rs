//! Pools and lifetimes as operators write them, and all possible mistakes in them.

use super::{Place, full, show};
use quittance::{Goal, Hours, PoolSpec, Value};
use quittance_config::{Config, object};
use quittance_engine::{ProviderRules, Settings};
use quittance_lifecycle::{Money, RoutingRule};
use std::time::Duration;

const POOL: &str = "[pools.login]\nkind = \"turnstile\"\nsize = 5\n";
const PARAMS: &str = "[pools.login.params]\nsitekey = \"0x4A\"\npageurl = \"https://example.com/\"\n";

fn pool(config: &Config, name: &str) -> PoolSpec {
    config.pools.iter().find(|spec| spec.name == name).unwrap().clone()
}

#[test]
fn a_pool_is_read_as_it_is_written() {
    let config = full().load().unwrap();
    let login = pool(&config, "login");
    assert_eq!(
        (login.tenant.as_str(), login.kind.as_str()),
        ("team-a", "turnstile"),
        "there is no other tenant"
    );
    assert_eq!(login.goal, Goal::Served { permille: 950 });
    assert_eq!(login.budget, Some(Money(750_000)));
    assert_eq!(login.hours, [Hours { from: 480, to: 720 }, Hours { from: 780, to: 1230 }]);
    assert_eq!((login.min_life, login.is_on), (Some(Duration::from_secs(60)), false));
    let night = pool(&config, "night-shift");
    assert_eq!((night.goal, night.budget, night.is_on), (Goal::Fixed { size: 5 }, None, true));
    assert_eq!(night.params["min_score"], Value::Text("0.3".into()), "a number is a text, too");
}

#[test]
fn a_pool_can_be_changed_for_once_and_its_origin_is_shown() {
    let place = Place::with_file(&format!("{POOL}{PARAMS}"))
        .env(&[
            ("QUITTANCE_POOLS_LOGIN_SIZE", "7"),
            ("QUITTANCE_POOLS_LOGIN_HOURS", "08:00-09:00, 9:30-10:00"),
        ])
        .set(&["pools.login.enabled=false"]);
    let config = place.load().unwrap();
    let login = pool(&config, "login");
    assert_eq!((login.goal, login.is_on, login.hours.len()), (Goal::Fixed { size: 7 }, false, 2));
    let text = show(&config);
    for words in ["[pools.login]\n", "[pools.login.params]\n", "environment QUITTANCE_POOLS_LOGIN_SIZE"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(object(&config)["settings"]["pools.login.hours"]["value"][1], "09:30-10:00");
    let dashed = full().env(&[("QUITTANCE_POOLS_NIGHT_SHIFT_SIZE", "2")]).load().unwrap();
    assert_eq!(
        pool(&dashed, "night-shift").goal,
        Goal::Fixed { size: 2 },
        "no variable has a dash in its name"
    );
}

#[test]
fn rules_of_lifetimes_apply_in_their_order_and_only_for_the_provider_in_use() {
    let config = full().load().unwrap();
    let [of_host, of_kind, _] = &config.lifetimes[..] else { panic!("{:?}", config.lifetimes) };
    assert_eq!(of_host.site.as_ref().map(ToString::to_string).as_deref(), Some("*.example.org"));
    assert_eq!(
        (of_host.life, of_host.margin),
        (Some(Duration::from_secs(90)), Some(Duration::from_secs(20)))
    );
    assert_eq!((of_kind.kind.as_deref(), of_kind.life), (Some("turnstile"), Some(Duration::from_secs(280))));
    let mut settings = quittance_engine::Settings::new(0, |_| None);
    config.apply(&mut settings);
    assert_eq!(settings.lifetimes, config.lifetimes);
    let changed = full().set(&["lifetimes.2.life=200s", "lifetimes.10.margin=5s", "lifetimes.9.margin=6s"]);
    let lives: Vec<_> =
        changed.load().unwrap().lifetimes.iter().map(|rule| (rule.life, rule.margin)).collect();
    let s = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(lives, [(s(90), s(20)), (s(200), None), (None, s(10)), (None, s(6)), (None, s(5))]);
}

fn provider(name: &str, rest: &str) -> String {
    format!(
        "[[provider]]\nname = \"{name}\"\ndialect = \"2captcha\"\nurl = \"http://a.test\"\nkey_env = \"K\"\n{rest}\n"
    )
}

#[test]
fn each_provider_has_its_own_prices_and_the_rules_of_the_choice_are_read() {
    let file = format!(
        "routing.rule = \"cheapest\"\nrouting.kinds.turnstile = \"weighted\"\nrouting.tenants.shop = \"best\"\n{}{}{}",
        "[[tenant]]\nname = \"shop\"\nkey_env = \"K2\"\n",
        provider("a", "prices.turnstile = \"1\"\nkinds = [\"turnstile\"]"),
        provider("b", "prices.turnstile = \"2\"\nweight = 3\ntenants = [\"shop\"]"),
    );
    let config = Place::with_file(&file).env(&[("K", "k"), ("K2", "k2")]).load().unwrap();
    let mut engine = Settings::new(0, |_| None);
    config.apply(&mut engine);
    let [a, b] = &engine.providers[..] else { panic!("{:?}", engine.providers) };
    let price = |rules: &ProviderRules| rules.prices["turnstile"].0;
    assert_eq!((a.name.as_str(), price(a), a.weight), ("a", 1_000_000, 1));
    assert_eq!((b.name.as_str(), price(b), b.weight), ("b", 2_000_000, 3));
    assert_eq!(a.kinds.as_deref(), Some(&["turnstile".to_owned()][..]));
    assert_eq!(b.tenants.as_deref(), Some(&["shop".to_owned()][..]));
    assert_eq!(engine.routing.routing.rule, RoutingRule::Cheapest);
    assert_eq!(engine.routing.kinds["turnstile"], RoutingRule::Weighted);
    assert_eq!(engine.routing.tenants["shop"], RoutingRule::Best);
}

#[test]
fn routing_for_a_tenant_that_there_is_not_is_an_error() {
    check(&provider("a", "tenants = [\"shop\"]"), &["`provider.a.tenants`", "`shop`", "tenant list"]);
    check(
        &format!("routing.tenants.shop = \"best\"\n{}", provider("a", "")),
        &["`routing.tenants.shop`", "`shop`"],
    );
    check(&format!("routing.rule = \"best price\"\n{}", provider("a", "")), &["`routing.rule`", "cheapest"]);
}

#[track_caller]
fn check(file: &str, words: &[&str]) {
    let complaint = Place::with_file(file).env(&[("K", "k")]).complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}

#[test]
fn a_pool_that_makes_no_sense_is_reported_with_what_to_do() {
    let with = |line: &str| format!("{POOL}{line}\n{PARAMS}");
    for (file, words) in [
        (with("service_level = 0.95"), &["`pools.login.size`", "`service_level`", "one or the other"][..]),
        (POOL.replace("size = 5", "service_level = 1.0"), &["`pools.login.service_level`", "0.001 to 0.999"]),
        (
            POOL.replace("size = 5", "service_level = 95"),
            &["`pools.login.service_level` is 95", "from 0 to 1"],
        ),
        (POOL.replace("size = 5", ""), &["`pools.login` has no `service_level`", "size = 5"]),
        (POOL.replace("size = 5", "size = 0"), &["`pools.login.size` is 0", "from 1 to 1000"]),
        (POOL.replace("kind = \"turnstile\"", ""), &["`pools.login` has no `kind`"]),
        (
            POOL.replace("turnstile", "turnstyle"),
            &["quittance.toml:2", "`turnstyle`", "did you mean `turnstile`?"],
        ),
        (
            POOL.replace("turnstile", "TurnstileTaskProxyless"),
            &["quittance.toml:2", "`TurnstileTaskProxyless`", "did you mean `turnstile`?"],
        ),
        (POOL.replace("turnstile", "image"), &["quittance.toml:2", "`pools.login.kind`", "never expire"]),
        (with("hours = [\"8-20\"]"), &["`pools.login.hours`", "[\"08:00-20:30\"]"]),
        (with("hours = \"08:00-20:00\""), &["`pools.login.hours`", "a list"]),
        (with("budget_per_hour = -1"), &["`pools.login.budget_per_hour` is -1", "0.75"]),
        (with("budget = 1"), &["no setting `pools.login.budget`", "config show"]),
        (with("min_life = \"280s\""), &["`pools.login`", "cannot be solved"]),
        (POOL.into(), &["`pools.login`", "`sitekey` is missing"]),
        (format!("{POOL}{PARAMS}usreAgent = \"x\"\n"), &["`pools.login`", "did you mean `userAgent`?"]),
        (
            format!("{POOL}{PARAMS}websiteURL = \"https://other.example.com/\"\n"),
            &["`pools.login`", "two names of one parameter"],
        ),
        (
            format!("{POOL}{}", PARAMS.replace("example.com", "shop.example.org")),
            &["`pools.login` asks for what may not be bought", "shop.example.org", "targets.allow"],
        ),
        (
            format!("{POOL}{PARAMS}proxy = \"u:s3cr3t@h:1\"\n"),
            &["`pools.login.params.proxy` has a password", "/v1/pools"],
        ),
        (
            format!("{POOL}{PARAMS}{}", format!("{POOL}{PARAMS}").replace("pools.login", "pools.other")),
            &["`pools.other` keeps the same target as the pool `login`", "one stock"],
        ),
        ("[pools.\"a b\"]\nsize = 1".into(), &["`pools.\"a b\"`", "letters, digits"]),
        ("pools = 3".into(), &["`pools` is a table"]),
        ("[[pools]]\nname = \"x\"".into(), &["pools"]),
    ] {
        check(&file, words);
        assert!(!Place::with_file(&file).complaint().contains("s3cr3t"), "{file}");
    }
}

#[test]
fn a_pool_serves_one_of_the_tenants_if_there_are_any() {
    let tenants = "[[tenant]]\nname = \"a\"\nkey_env = \"K\"\n[[tenant]]\nname = \"b\"\nkey_env = \"L\"\n";
    check(&format!("{tenants}{POOL}{PARAMS}"), &["`pools.login` has no `tenant`", "several tenants"]);
    let of = |tenant: &str| format!("{tenants}{POOL}tenant = \"{tenant}\"\n{PARAMS}");
    check(&of("c"), &["`pools.login.tenant` serves no tenant", "no tenant `c`"]);
    assert_eq!(pool(&Place::with_file(&of("b")).load().unwrap(), "login").tenant, "b");
}

#[test]
fn a_row_of_lifetimes_that_makes_no_sense_is_reported_with_what_to_do() {
    for (file, words) in [
        ("[[lifetimes]]\nhost = \"a.org\"", &["`lifetimes.1` has no `life`", "margin"][..]),
        // Each makes sense by itself; on a.b.org they meet.
        (
            "[[lifetimes]]\nkind = \"turnstile\"\nhost = \"a.b.org\"\nmargin = \"90s\"\n[[lifetimes]]\nkind = \"turnstile\"\nhost = \"*.b.org\"\nlife = \"100s\"",
            &["`lifetimes.2`", "a margin of 90s in a life of 100s"],
        ),
        ("[[lifetimes]]\nhost = \"https://a.org\"\nlife = \"90s\"", &["`lifetimes.1.host`", "*.example.org"]),
        ("[[lifetimes]]\nlife = \"0s\"", &["`lifetimes.1.life`", "from 1s"]),
        ("[[lifetimes]]\nlife = \"forever\"", &["`lifetimes.1.life`", "a duration"]),
        ("[[lifetimes]]\nkind = \"turnstyle\"\nlife = \"90s\"", &["`turnstyle`", "`turnstile`?"]),
        ("[[lifetimes]]\nname = \"x\"\nlife = \"90s\"", &["no setting `lifetimes.1.name`"]),
        (
            "[[lifetimes]]\nkind = \"turnstile\"\nlife = \"60s\"",
            &["`lifetimes.1`", "a margin of 50s in a life of 60s"],
        ),
        (
            "[[lifetimes]]\nlife = \"300s\"\n[[lifetimes]]\nhost = \"a.org\"\nmargin = \"250s\"",
            &["`lifetimes.2`", "three quarters"],
        ),
        ("[lifetimes]\nlife = \"90s\"", &["`lifetimes` is a list of tables", "[[lifetimes]]"]),
    ] {
        check(file, words);
    }
    let odd = Place::empty().set(&["lifetimes.first.life=90s"]).complaint();
    assert!(odd.contains("`lifetimes.first`") && odd.contains("counted from 1"), "{odd}");
    let list = Place::with_file("[lifetimes]\nlife = \"90s\"").complaint();
    assert!(!list.contains("name ="), "{list}");
}

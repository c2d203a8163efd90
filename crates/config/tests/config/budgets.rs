//! Budgets as operators write them, and all possible mistakes in them.

use super::{Place, full, show};
use quittance_config::{Config, object};
use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope, Settings};
use quittance_lifecycle::Money;

const BUDGET: &str = "[[budget]]\nname = \"day\"\nlimit = \"25.00\"\nperiod = \"day\"\n";
const TENANT: &str = "[[tenant]]\nname = \"team-a\"\nkey_env = \"K\"\n";

fn provider(name: &str, rest: &str) -> String {
    format!(
        "[[provider]]\nname = \"{name}\"\ndialect = \"2captcha\"\nurl = \"http://a.test\"\nkey_env = \"K\"\n{rest}\n"
    )
}

fn load(file: &str) -> Config {
    Place::with_file(file).env(&[("K", "k")]).load().unwrap()
}

#[test]
fn a_budget_is_read_as_it_is_written_and_reaches_the_engine() {
    let config = full().load().unwrap();
    let team = BudgetRule {
        name: "team-a-images".into(),
        scope: BudgetScope {
            tenant: Some("team-a".into()),
            target: Some("*.example.org".into()),
            kind: Some("image".into()),
            provider: Some("second-hand".into()),
            pool: None,
            hedges: false,
        },
        period: BudgetPeriod::Month,
        limit: Money(25_000_000),
        currency: "USD".into(),
        at_limit: AtLimit::CheaperProvider,
    };
    let all = BudgetRule {
        name: "all".into(),
        scope: BudgetScope::default(),
        period: BudgetPeriod::Hour,
        limit: Money(500_000),
        currency: "USD".into(),
        at_limit: AtLimit::Refuse,
    };
    assert_eq!(config.budgets, [team, all], "in the order of the file; refused if nothing is set");
    let mut engine = Settings::new(0, |_| None);
    config.apply(&mut engine);
    assert_eq!(engine.budgets, config.budgets);
    assert_eq!(config.budget_notes(), [""; 0]);
}

#[test]
fn a_budget_can_be_changed_for_once_and_its_origin_is_shown() {
    let place = Place::with_file(BUDGET)
        .env(&[("QUITTANCE_BUDGET_DAY_LIMIT", "30"), ("K", "k")])
        .set(&["budget.day.at_limit=wait"]);
    let config = place.load().unwrap();
    assert_eq!((config.budgets[0].limit, config.budgets[0].at_limit), (Money(30_000_000), AtLimit::Wait));
    let text = show(&config);
    for words in ["[[budget]]\n", "period = \"day\"", "environment QUITTANCE_BUDGET_DAY_LIMIT", "flag --set"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let settings = &object(&config)["settings"];
    assert_eq!(
        (&settings["budget.day.limit"]["value"], &settings["budget.day.limit"]["from"]),
        (&"30".into(), &"environment".into())
    );
    assert_eq!(
        load(&show(&load(BUDGET))).budgets,
        load(BUDGET).budgets,
        "what is shown has the same meaning"
    );
}

#[test]
fn the_currency_of_a_budget_is_that_of_its_provider_and_else_that_of_the_node() {
    let providers = provider("main", "") + &provider("rubles", "currency = \"RUB\"\nprices.image = 1");
    let with = |rest: &str| load(&format!("{providers}{BUDGET}{rest}")).budgets[0].currency.clone();
    assert_eq!(with("provider = \"rubles\""), "RUB");
    assert_eq!(with("provider = \"main\""), "USD");
    assert_eq!(load(BUDGET).budgets[0].currency, "USD", "without a provider");
    // The provider in rubles sells no images, so a budget of images need not count it.
    let only = provider("main", "") + &provider("rubles", "currency = \"RUB\"\nkinds = [\"turnstile\"]");
    assert_eq!(load(&format!("{only}{BUDGET}kind = \"image\"")).budgets[0].currency, "USD");
}

#[track_caller]
fn check(file: &str, words: &[&str]) {
    let complaint = Place::with_file(file).env(&[("K", "k")]).complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}

#[test]
fn a_budget_that_makes_no_sense_is_reported_with_its_line_and_what_to_do() {
    let main = provider("main", "");
    let with = |line: &str| format!("{BUDGET}{line}\n{main}");
    let two = provider("main", "") + &provider("rubles", "currency = \"RUB\"");
    for (file, words) in [
        (
            format!("{BUDGET}{BUDGET}"),
            &[
                "quittance.toml:6",
                "a second `[[budget]]` called `day`",
                "quittance.toml:2",
                "a name of its own",
            ][..],
        ),
        (BUDGET.replace("name = \"day\"\n", ""), &["quittance.toml:1", "`[[budget]]` has no name"]),
        (BUDGET.replace("\"day\"\nlimit", "\"a day\"\nlimit"), &["quittance.toml:2", "letters, digits"]),
        (BUDGET.replace("limit = \"25.00\"\n", ""), &["`budget.day` has no `limit`", "limit = \"25.00\""]),
        (
            BUDGET.replace("25.00", "25 dollars"),
            &["quittance.toml:3", "`budget.day.limit`", "such as 2 or 0.75"],
        ),
        (BUDGET.replace("25.00", "-1"), &["quittance.toml:3", "`budget.day.limit` is \"-1\""]),
        (
            BUDGET.replace("25.00", "0"),
            &["quittance.toml:3", "`budget.day.limit` is 0", "above 0", "provider pause"],
        ),
        (BUDGET.replace("period = \"day\"\n", ""), &["`budget.day` has no `period`", "\"month\""]),
        (
            BUDGET.replace("period = \"day\"", "period = \"week\""),
            &["quittance.toml:4", "`budget.day.period` is \"week\"", "\"hour\" or \"day\" or \"month\""],
        ),
        (
            with("at_limit = \"stop\""),
            &["quittance.toml:5", "\"refuse\" or \"wait\" or \"cheaper_provider\""],
        ),
        (
            with("tenant = \"team-b\""),
            &["quittance.toml:5", "`budget.day.tenant`", "add `team-b` as a `[[tenant]]`"],
        ),
        (
            format!("{}{TENANT}", with("tenant = \"team-b\"")),
            &["quittance.toml:5", "`budget.day.tenant`", "did you mean `team-a`?"],
        ),
        (with("kind = \"turnstyle\""), &["quittance.toml:5", "`turnstyle`", "did you mean `turnstile`?"]),
        (with("provider = \"mian\""), &["quittance.toml:5", "`budget.day.provider`", "did you mean `main`?"]),
        (with("provider = \"other\""), &["quittance.toml:5", "the `name` of a `[[provider]]`"]),
        (with("target = \"https://a.org/\""), &["quittance.toml:5", "`budget.day.target`", "a host"]),
        (with("pool = \"a b\""), &["quittance.toml:5", "`budget.day.pool`", "letters, digits"]),
        (with("currency = \"dollars\""), &["quittance.toml:5", "three letters"]),
        (
            with("currency = \"EUR\"\nprovider = \"main\""),
            &[
                "quittance.toml:5",
                "`budget.day.currency`",
                "provider `main`",
                "in USD",
                "`currency = \"USD\"`",
            ],
        ),
        (
            format!("{BUDGET}{two}"),
            &["`budget.day` counts USD", "provider `rubles`", "in RUB", "one budget for each currency"],
        ),
        (with("limits = 3"), &["no setting `budget.day.limits`", "did you mean `budget.day.limit`?"]),
        ("[budget]\nlimit = 1".into(), &["`budget` is a list of tables", "[[budget]]"]),
    ] {
        check(&file, words);
    }
    let flag = Place::with_file(BUDGET).set(&["budget.day.name=other"]).complaint();
    assert!(flag.contains("would rename it"), "{flag}");
}

#[test]
fn a_budget_that_buys_or_counts_nothing_is_valid_and_noted() {
    let main = provider("main", "");
    for (file, words) in [
        (
            format!("{}kind = \"turnstile\"\n{main}", BUDGET.replace("25.00", "0.002")),
            &["budget `day`: the limit of 0.002 USD", "price of one answer, 0.00299 USD", "raised"][..],
        ),
        (format!("{BUDGET}{}", main.replace("2captcha", "captchaai")), &["no price is known", "`prices`"]),
        (
            format!("{BUDGET}kind = \"keycaptcha\"\n{main}"),
            &["the price of `keycaptcha` is not known", "allows no purchase"],
        ),
        (format!("{BUDGET}pool = \"warm\"\n{main}"), &["no pool `warm`", "at run time", "pool set"]),
        (
            format!("{BUDGET}kind = \"image\"\n{}", provider("main", "kinds = [\"turnstile\"]")),
            &["no provider gets such orders", "counts nothing"],
        ),
    ] {
        let notes = load(&file).budget_notes();
        assert_eq!(notes.len(), 1, "{file}: {notes:?}");
        words.iter().for_each(|word| assert!(notes[0].contains(word), "`{word}` is not in {notes:?}"));
    }
    assert_eq!(load(&format!("{BUDGET}{main}")).budget_notes(), [""; 0]);
    assert_eq!(load(BUDGET).budget_notes(), [""; 0], "without a provider there is more to say");
}

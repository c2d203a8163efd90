//! Tests of the built binary without a store: the fault table and the kinds, with the configuration applied.

use crate::commands::house::House;
use quittance_lifecycle::Signal;
use serde_json::{Value, json};

const DIALECTS: [&str; 5] = ["captchaai", "2captcha", "anticaptcha", "capsolver", "capmonster"];

/// What a command prints, or its error.
fn print(args: &[&str], overrides: &[&str]) -> Result<String, String> {
    let settings = overrides.iter().flat_map(|setting| ["--set", *setting]);
    let args: Vec<&str> = args.iter().copied().chain(settings).collect();
    let output = House::new().run_with(&args, &[("K", "0123456789abcdef0123456789abcdef")]);
    if output.code == Some(0) { Ok(output.out) } else { Err(output.err) }
}

fn ask(code: Option<&str>, dialect: Option<&str>, json: bool, overrides: &[&str]) -> String {
    let mut args = vec!["errors"];
    args.extend(code);
    args.extend(dialect.into_iter().flat_map(|dialect| ["--dialect", dialect]));
    args.extend(json.then_some("--json"));
    print(&args, overrides).unwrap()
}

fn kinds(name: Option<&str>, json: bool, overrides: &[&str]) -> Result<String, String> {
    let args: Vec<&str> = ["kinds"].into_iter().chain(name).chain(json.then_some("--json")).collect();
    print(&args, overrides)
}

const PROVIDER: [&str; 3] =
    ["provider.main.dialect=2captcha", "provider.main.url=https://example.com", "provider.main.key_env=K"];

#[test]
fn the_whole_table_has_every_class_and_every_code() {
    let text = ask(None, None, false, &[]);
    for class in Signal::ALL {
        assert!(text.lines().any(|line| line.starts_with(class.name())), "{}", class.name());
    }
    for dialect in DIALECTS {
        let text = ask(None, Some(dialect), false, &[]);
        let table: Value = serde_json::from_str(&ask(None, Some(dialect), true, &[])).unwrap();
        let rows = table["codes"].as_array().unwrap();
        assert!(rows.len() > 20 && text.contains(&format!("meaning at {dialect}")));
        for row in rows {
            for part in ["code", "meaning"] {
                assert!(text.contains(row[part].as_str().unwrap()), "{row}");
            }
        }
    }
}

#[test]
fn the_columns_of_the_table_do_not_touch() {
    let text = ask(None, None, false, &[]);
    for class in Signal::ALL.map(|class| class.name()) {
        for line in text.lines() {
            let behind =
                line.split_once(class).filter(|(before, _)| before.is_empty() || before.ends_with(' '));
            let is_apart = behind.is_none_or(|(_, rest)| !rest.starts_with(char::is_alphanumeric));
            assert!(is_apart, "{class}: {line}");
        }
    }
}

#[test]
fn limits_and_corrections_of_the_configuration_are_in_it() {
    let own = [&PROVIDER[..], &["retry.limits.busy=9", "provider.main.faults.ERROR_BAD_PROXY=busy"]].concat();
    let text = ask(None, None, false, &own);
    assert!(text.contains("meaning at 2captcha") && text.contains("busy*"), "{text}");
    let page = ask(Some("ERROR_BAD_PROXY"), None, false, &own);
    assert!(page.contains("at most 9 times") && page.contains("your configuration"), "{page}");
    let object: Value = serde_json::from_str(&ask(None, None, true, &own)).unwrap();
    assert_eq!(object["classes"][0]["limit"], 9);
    assert!(object["codes"].as_array().unwrap().iter().any(|row| row["corrected"] == true));
}

#[test]
fn the_same_code_means_what_its_provider_means_by_it() {
    let at = |dialect| ask(Some("ERROR_ZERO_BALANCE"), Some(dialect), false, &[]);
    assert!(at("2captcha").contains("no_funds") && at("captchaai").contains("busy"));
    assert!(!at("2captcha").contains("at most"), "what is never retried has no number: {}", at("2captcha"));
}

#[test]
fn the_case_of_a_code_does_not_matter() {
    for code in ["ERROR_ZERO_BALANCE", "CAPCHA_NOT_READY", "ERROR_PAGEURL"] {
        let typed = ask(Some(&code.to_lowercase()), Some("2captcha"), false, &[]);
        assert_eq!(typed, ask(Some(code), Some("2captcha"), false, &[]), "{code}");
        let typed = ask(Some(&code.to_lowercase()), Some("2captcha"), true, &[]);
        assert_eq!(typed, ask(Some(code), Some("2captcha"), true, &[]), "{code}");
    }
    assert!(ask(Some("error_moon_phase"), None, false, &[]).contains("error_moon_phase"), "as it was typed");
}

#[test]
fn a_code_of_another_dialect_names_that_dialect_and_how_to_ask_for_it() {
    for code in ["ERROR_INVALID_TASK_DATA", "ERROR_SERVICE_UNAVALIABLE"] {
        let page = ask(Some(code), None, false, &[]);
        assert!(!page.contains("did you mean"), "{page}");
        let command = format!("it is a code of capsolver: see `quittance errors --dialect capsolver {code}`");
        assert!(page.contains(&command), "{page}");
    }
}

#[test]
fn a_code_of_the_native_api_is_ours_and_not_the_provider_s() {
    let page = ask(Some("needs_a_person"), None, false, &[]);
    assert!(page.contains("from Quittance itself") && page.contains("409"), "{page}");
    assert!(!page.contains("provider.faults") && !page.contains("from the provider"), "{page}");
    let object: Value = serde_json::from_str(&ask(Some("store_unavailable"), None, true, &[])).unwrap();
    assert_eq!((&object["class"], &object["quittance"]["status"]), (&Value::Null, &json!(503)), "{object}");
}

#[test]
fn a_pending_task_and_a_code_of_no_table_are_explained_too() {
    assert!(ask(Some("CAPCHA_NOT_READY"), None, false, &[]).contains("polled again"));
    let unseen = ask(Some("ERROR_MOON_PHASE"), None, false, &[]);
    assert!(unseen.contains("unlisted_code") && unseen.contains("[provider.faults]"), "{unseen}");
    assert!(!unseen.contains("did you mean"), "{unseen}");
    for typed in ["ERROR_PAGURL", "error_pagurl", "PAGEURL"] {
        let typo = ask(Some(typed), None, false, &[]);
        assert!(typo.contains("did you mean ERROR_PAGEURL?"), "{typo}");
    }
    let object: Value = serde_json::from_str(&ask(Some("ERROR_MOON_PHASE"), None, true, &[])).unwrap();
    assert_eq!((&object["class"], &object["is_listed"]), (&json!("unlisted_code"), &json!(false)));
}

#[test]
fn every_code_has_the_same_keys() {
    let keys = |code: &str| -> Vec<String> {
        let object: Value = serde_json::from_str(&ask(Some(code), None, true, &[])).unwrap();
        object.as_object().unwrap().keys().cloned().collect()
    };
    let listed = keys("ERROR_PAGEURL");
    assert!(listed.iter().any(|key| key == "meaning"), "{listed:?}");
    for code in ["CAPCHA_NOT_READY", "ERROR_MOON_PHASE", "store_unavailable", "ERROR_ZERO_BALANCE"] {
        assert_eq!(keys(code), listed, "{code}");
    }
}

#[test]
fn a_code_is_explained_in_the_words_of_its_own_dialect() {
    let capsolver = [
        "provider.main.protocol=json",
        "provider.main.dialect=capsolver",
        "provider.main.url=https://example.com",
        "provider.main.key_env=K",
    ];
    let page = ask(Some("ERROR_INVALID_TASK_DATA"), None, false, &capsolver);
    assert!(page.contains("at capsolver") && page.contains("caller"), "{page}");
    assert!(ask(Some("ERROR_RATE_LIMIT"), Some("capmonster"), false, &[]).contains("at capmonster"));
}

#[test]
fn what_the_gateway_means_by_a_code_comes_first() {
    for (code, words) in [
        ("ERROR_PAGEURL", "targets.allow"),
        ("ERROR_TOKEN_EXPIRED", "came too late"),
        ("ERROR_IP_ADDRES", "webhooks.allow"),
        ("ERROR_IP_NOT_ALLOWED", "listener.hosts"),
        ("ERROR_NO_SLOT_AVAILABLE", "disk is full"),
    ] {
        let page = ask(Some(code), Some("2captcha"), false, &[]);
        let (own, theirs) = (page.find("from Quittance itself"), page.find("from the provider"));
        assert!(own.is_some() && own < theirs && page.contains(words), "{page}");
    }
    for dialect in DIALECTS {
        for code in [
            "ERROR_NO_SLOT_AVAILABLE",
            "ERROR_ZERO_BALANCE",
            "ERROR_CAPTCHA_UNSOLVABLE",
            "ERROR_TOKEN_EXPIRED",
        ] {
            let page = ask(Some(code), Some(dialect), false, &[]);
            let (own, theirs) = (page.find("from Quittance itself"), page.find("from the provider"));
            assert!(own.is_some() && own < theirs && page.contains(dialect), "{dialect}: {page}");
        }
    }
    let object: Value = serde_json::from_str(&ask(Some("ERROR_PAGEURL"), None, true, &[])).unwrap();
    assert!(object["quittance"]["meaning"].as_str().unwrap().contains("targets.allow"));
    assert!(!ask(Some("ERROR_BAD_DUPLICATES"), None, false, &[]).contains("from Quittance"));
}

#[test]
fn every_kind_has_its_line_and_every_parameter_its_own() {
    let all = kinds(None, false, &[]).unwrap();
    for kind in quittance_protocol::kinds::kinds() {
        assert!(all.lines().any(|line| line.split(' ').next() == Some(&kind.name)), "{}", kind.name);
        let page = kinds(Some(&kind.name), false, &[]).unwrap();
        for field in kind.fields {
            assert!(page.contains(&format!("\n  {} ", field.name)), "{page}");
        }
    }
}

#[test]
fn what_the_operator_has_corrected_is_shown_and_marked() {
    let corrected = ["kinds.turnstile.life=200s", "kinds.brand_new.new=true"];
    let all = kinds(None, false, &corrected).unwrap();
    assert!(all.contains("turnstile*") && all.contains("brand_new*") && all.contains("200s"), "{all}");
    assert!(!kinds(None, false, &[]).unwrap().contains('*'));
    let page = kinds(Some("turnstile"), false, &corrected).unwrap();
    assert!(page.contains("lives 200s") && page.contains("[kinds.turnstile]"), "{page}");
    let object: Value = serde_json::from_str(&kinds(Some("turnstile"), true, &corrected).unwrap()).unwrap();
    assert_eq!((&object["life_ms"], &object["corrected"]), (&json!(200_000), &json!(true)));
    assert_eq!(
        object["fields"][0],
        json!({
            "name": "sitekey", "shape": "text", "required": true, "identifies": true, "default": null,
        })
    );
}

#[test]
fn a_kind_that_is_not_there_is_an_error_that_names_the_nearest() {
    let error = kinds(Some("recaptcha_v22"), false, &[]).unwrap_err();
    assert!(error.contains("recaptcha_v22") && error.contains("did you mean `recaptcha_v2`?"), "{error}");
    let error = kinds(Some("moon_phase"), true, &[]).unwrap_err();
    assert!(error.contains("`quittance kinds` lists"), "{error}");
}

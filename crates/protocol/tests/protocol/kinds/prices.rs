//! Tests of the built-in price lists: each has a source and a day, each price is of an existing kind, and the docs
//! agree.

use quittance_protocol::kinds::{kind, price_list, price_lists};
use std::collections::BTreeSet;

#[test]
fn each_service_has_one_list_with_its_day_and_its_source() {
    let dialects: BTreeSet<&str> = price_lists().iter().map(|list| list.dialect).collect();
    assert_eq!(dialects, ["2captcha", "anticaptcha", "capmonster", "capsolver", "captchaai"].into());
    for list in price_lists() {
        let is_day = list.date.len() == 10 && list.date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        assert!(is_day && list.source.starts_with("https://") && list.currency == "USD", "{list}");
    }
}

#[test]
fn every_price_is_of_a_kind_that_there_is_and_none_is_zero() {
    for list in price_lists() {
        let names: Vec<&str> = list.prices().map(|(name, _)| name).collect();
        assert!(names.is_sorted(), "{list}: in the order of names");
        for (name, price) in list.prices() {
            let (of, param) = name.split_once('+').unwrap_or((name, ""));
            let known = kind(of).unwrap_or_else(|| panic!("{list}: {name}"));
            assert!(param.is_empty() || known.fields.iter().any(|field| field.name == param), "{name}");
            // A price of 0 would be a claim that answers are free: what is not known is left out.
            assert!(price.0 > 0, "{list}: {name}");
        }
    }
    assert_eq!(price_list("captchaai").expect("it is there").prices().count(), 0, "threads at a flat price");
}

#[test]
fn docs_usage_has_the_prices_that_ship() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/usage.md");
    let docs = std::fs::read_to_string(path).expect("the docs are there");
    for list in price_lists() {
        assert!(docs.contains(&format!("| {} | {} |", list.dialect, list.date)), "{list}");
    }
    let head = docs.lines().find(|line| line.starts_with("| kind | 2captcha")).expect("the table of prices");
    let column = |dialect: &str| head.split('|').position(|cell| cell.trim() == dialect);
    for list in price_lists() {
        for (name, price) in list.prices() {
            let (of, is_variant) = (name.split('+').next().unwrap_or(name), name.contains('+'));
            let is_it = |line: &&str| {
                line.starts_with('|')
                    && line.contains(&format!("`{of}`"))
                    && line.contains("enterprise") == is_variant
            };
            let row =
                docs.lines().find(is_it).unwrap_or_else(|| panic!("docs/usage.md has no row for {name}"));
            let cell = row.split('|').nth(column(list.dialect).expect("a column")).unwrap_or_default().trim();
            assert_eq!(cell, price.to_string(), "{} {name}", list.dialect);
        }
    }
}

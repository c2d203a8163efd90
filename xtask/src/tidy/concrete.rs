//! The rule that the engine, and every crate below it, names no concrete store or provider.

use super::TidyFinding;
use crate::source::{SourceView, is_test_file, is_word, numbered};
use crate::tree::Tree;

const CHECKED_PATHS: &[&str] =
    &["crates/lifecycle/src/", "crates/ports/src/", "crates/record/src/", "crates/engine/src/"];
/// The crate of the memory store, where that store may be named.
const HOME_OF_MEMORY: &str = "crates/ports/";

const STORES: &[&str] =
    &["redis", "postgres", "postgresql", "sqlite", "rusqlite", "sqlx", "rocksdb", "redb", "sled", "fjall"];
const DRIVERS: &[&str] = &["tokio", "hyper", "axum", "reqwest", "ureq", "rustls"];
const PROVIDERS: &[&str] = &["captchaai", "2captcha", "twocaptcha", "anticaptcha", "capsolver", "capmonster"];
const MEMORY: &[&str] = &["memorystore", "memoryspill"];

/// Checks code and strings. Comments may name stores and providers, as examples.
pub(super) fn names_no_store_or_provider(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if !CHECKED_PATHS.iter().any(|path| file.path.starts_with(path)) || is_test_file(&file.path) {
            continue;
        }
        let memory = if file.path.starts_with(HOME_OF_MEMORY) { &[] } else { MEMORY };
        let source = SourceView::read(&file.text).without_tests();
        for (number, line) in numbered(&source.uncommented) {
            let words = words(line);
            let banned = [STORES, DRIVERS, PROVIDERS, memory].into_iter().flatten();
            for word in banned.filter(|word| words.iter().any(|output| output == *word)) {
                findings.push(TidyFinding::breach(&file.path, number, format!("it names `{word}`")));
            }
        }
    }
    findings
}

/// Every name on the line, whole and in parts: `RedisStore` gives redisstore, redis and store. A search for parts of
/// words would find redis in redistribute.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for name in line.split(|c| !is_word(c)) {
        let mut part = String::new();
        for c in name.chars() {
            let is_hump = c.is_uppercase() && part.ends_with(char::is_lowercase);
            if c == '_' || is_hump {
                words.push(std::mem::take(&mut part).to_lowercase());
            }
            if c != '_' {
                part.push(c);
            }
        }
        words.push(part.to_lowercase());
        words.push(name.replace('_', "").to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        names_no_store_or_provider(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn code_and_strings_that_name_one_are_found() {
        let texts = [
            "use tokio::time;",
            "RedisStore::new()",
            "let redis_url = 1;",
            "\"PostgreSQL\"",
            "struct SQLite;",
        ];
        for text in texts {
            assert_eq!(count("crates/engine/src/work.rs", text), 1, "{text}");
        }
        assert_eq!(count("crates/record/src/lib.rs", "use quittance_ports::MemoryStore;"), 1);
    }

    #[test]
    fn comments_tests_and_other_rooms_may() {
        assert_eq!(count("crates/engine/src/work.rs", "// such as Redis\nredistribute(sledge);"), 0);
        assert_eq!(
            count("crates/engine/src/work.rs", "#[cfg(test)]\nmod tests { use ports::MemoryStore; }"),
            0
        );
        assert_eq!(count("crates/engine/tests/works.rs", "use quittance_ports::MemoryStore;"), 0);
        assert_eq!(count("crates/ports/src/memory.rs", "pub struct MemoryStore;"), 0);
        assert_eq!(count("crates/cli/src/main.rs", "use tokio::time;"), 0);
    }
}

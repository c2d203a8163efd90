//! Rules about the life cycle: it must not know std or captchas. `xtask no-std` proves the first, but this reports it
//! earlier, and with a line number.

use super::TidyFinding;
use crate::source::{SourceView, is_test_file, numbered, stands_in};
use crate::tree::{File, Tree};

const ROOT: &str = "crates/lifecycle/src/lib.rs";
/// Words that must not occur, in any spelling: `hCaptcha`, `site_key` and `SiteKey` alike.
const CAPTCHA_WORDS: &[&str] = &[
    "captcha",
    "turnstile",
    "geetest",
    "sitekey",
    "pageurl",
    "googlekey",
    "datadome",
    "arkose",
    "cloudflare",
];

fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|file| file.path.starts_with("crates/lifecycle/src/"))
}

pub(super) fn knows_no_std(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in sources(tree) {
        let code = SourceView::read(&file.text).without_tests().code;
        if file.path == ROOT && !code.lines().any(|line| line.trim() == "#![no_std]") {
            findings.push(TidyFinding::breach(ROOT, 1, "#![no_std] is missing"));
        }
        if is_test_file(&file.path) {
            continue;
        }
        for (number, line) in numbered(&code) {
            if stands_in(line, "std::") || stands_in(line, "extern crate std") {
                findings.push(TidyFinding::breach(&file.path, number, "it reaches for std"));
            }
        }
    }
    findings
}

/// Checks the sources, with comments, because they show in which terms the code was designed. Only the front page may
/// say that it knows no captcha.
pub(super) fn knows_no_captcha(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in sources(tree) {
        for (number, line) in numbered(&file.text) {
            let is_front_page = file.path == ROOT && line.trim_start().starts_with("//!");
            let plain = line.to_lowercase().replace(['_', '-'], "");
            if let Some(word) =
                CAPTCHA_WORDS.iter().find(|word| plain.contains(*word)).filter(|_| !is_front_page)
            {
                findings.push(TidyFinding::breach(&file.path, number, format!("it speaks of `{word}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "//! It knows no captcha.\n#![no_std]\nuse core::fmt;\n#[cfg(test)]\nmod tests { use std::fmt; }\n";

    fn lines(rule: fn(&Tree) -> Vec<TidyFinding>, files: &[(&str, &str)]) -> Vec<(String, usize)> {
        rule(&Tree::of(files)).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn core_is_fine_and_tests_may_use_std() {
        let tests = ("crates/lifecycle/src/tests.rs", "use std::fmt;");
        assert!(lines(knows_no_std, &[(ROOT, GOOD), tests]).is_empty());
        assert!(lines(knows_no_std, &[("crates/engine/src/lib.rs", "use std::fmt;")]).is_empty());
    }

    #[test]
    fn std_is_found_and_so_is_its_return() {
        assert_eq!(lines(knows_no_std, &[(ROOT, "//! x\nuse core::fmt;\n")]), [(ROOT.to_owned(), 1)]);
        let commented = "//! x\n// #![no_std]\n";
        assert_eq!(lines(knows_no_std, &[(ROOT, commented)]).len(), 1);
        let key = "crates/lifecycle/src/key.rs";
        assert_eq!(lines(knows_no_std, &[(key, "\nuse std::fmt;")]), [(key.to_owned(), 2)]);
        assert_eq!(lines(knows_no_std, &[(key, "extern crate std;")]).len(), 1);
    }

    #[test]
    fn only_the_front_page_may_say_the_word() {
        assert!(lines(knows_no_captcha, &[(ROOT, GOOD)]).is_empty());
        assert_eq!(lines(knows_no_captcha, &[(ROOT, "fn recaptcha() {}")]).len(), 1);
        let key = "crates/lifecycle/src/key.rs";
        for text in ["//! A captcha.", "struct SiteKey;", "let site_key = 1;", "\"hCaptcha\"", "// Turnstile"]
        {
            assert_eq!(lines(knows_no_captcha, &[(key, text)]).len(), 1, "{text}");
        }
        assert!(lines(knows_no_captcha, &[(key, "struct Kind;")]).is_empty());
    }
}

//! What counts as code, and what as prose.

use super::{SourceView, is_test_file, named_after, stands_in};

#[track_caller]
fn check(text: &str, code: &str, uncommented: &str) {
    let source = SourceView::read(text);
    assert_eq!((source.code.as_str(), source.uncommented.as_str()), (code, uncommented), "{text}");
}

#[test]
fn comments_are_blanked_and_lines_keep_their_numbers() {
    check("a // b\nc", "a     \nc", "a     \nc");
    check("a /* b /* c */\n */ d", "a             \n    d", "a             \n    d");
}

#[test]
fn strings_are_prose_as_well() {
    check(r#"f("a\"b // c")"#, r#"f("         ")"#, r#"f("a\"b // c")"#);
    check("f(r#\"a\"b\"#, b\"c\")", "f(r#\"   \"#, b\" \")", "f(r#\"a\"b\"#, b\"c\")");
}

#[test]
fn a_quote_mark_in_a_character_opens_no_string_and_a_lifetime_opens_nothing() {
    check(r#"('"', '\'', x) // y"#, r"(' ', '  ', x)     ", r#"('"', '\'', x)     "#);
    check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
    check("r#type + for\"x\"", "r#type + for\" \"", "r#type + for\"x\"");
}

#[test]
fn what_is_not_closed_runs_to_the_end() {
    check("a \"é", "a \"  ", "a \"é");
    check("a /* é", "a      ", "a      ");
}

#[test]
fn tests_can_be_left_out() {
    let text = "a\n#[cfg(test)]\nmod tests { fn b() { \"}\" } }\nc\n#[cfg(test)]\nmod more;\nd";
    let source = SourceView::read(text).without_tests();
    assert_eq!(source.code.split_whitespace().collect::<Vec<_>>(), ["a", "c", ";", "d"]);
    assert_eq!(source.code.lines().count(), text.lines().count());
}

#[test]
fn names_and_words_are_whole() {
    assert_eq!(
        named_after("fn a() {}\npub async fn b_c<T>() {} fn $name\nfn(c: u8)", "fn"),
        [(1, "a"), (2, "b_c")]
    );
    assert!(stands_in("use std::fmt", "std::") && stands_in("#[ab", "#[a"));
    assert!(!stands_in("my_std::fmt", "std::"));
    assert!(is_test_file("crates/a/src/tests.rs") && is_test_file("crates/a/tests/b/main.rs"));
    assert!(!is_test_file("crates/a/src/latests.rs"));
}

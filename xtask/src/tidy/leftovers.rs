//! What is unfinished, switched off or slept through.

use super::Finding;
use crate::source::{Source, numbered, stands_in};
use crate::tree::Tree;

/// Only code counts, and these stand in quotes, so this file does not flag itself.
const LEFTOVERS: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore", "thread::sleep"];

pub(super) fn nothing_is_left_over(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in numbered(&Source::read(&file.text).code) {
            for leftover in LEFTOVERS.iter().filter(|leftover| stands_in(line, leftover)) {
                findings.push(Finding::breach(&file.path, number, format!("`{leftover}` is left over")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        nothing_is_left_over(&Tree::of(&[("crates/a/tests/b.rs", text)])).len()
    }

    #[test]
    fn each_leftover_is_found() {
        let texts =
            ["todo!()", "std::unimplemented!()", "dbg!(a)", "#[ignore = \"slow\"]", "std::thread::sleep(a)"];
        for text in texts {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(count("//! a\nfn a() { todo!() }\nfn b() { dbg!(c) }"), 2);
    }

    #[test]
    fn prose_and_longer_words_are_not() {
        assert_eq!(count("// todo!\nlet a = \"thread::sleep\";\nmy_todo!();\nfn ignore() {}"), 0);
    }
}

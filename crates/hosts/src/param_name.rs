//! How readers change the name of a parameter. In PHP, `key[0]` and `key` are one variable, a blank or a dot becomes
//! an underscore, and leading blanks are dropped. Other readers trim, decode, or ignore case.

use crate::decode::normalized;
use crate::escapes::percent;
use std::collections::BTreeSet;

/// Every name that some reader takes this name for, in lower case: up to the first bracket or dot, and with
/// underscores in their place.
#[must_use]
pub fn roots(name: &str) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    let mut readings = normalized(name);
    readings.extend(name.split('\0').next().map(str::to_owned));
    for at in 0..readings.len() {
        let decoded = percent(&readings[at]).map(|text| normalized(&text)).unwrap_or_default();
        readings.extend(decoded);
    }
    for reading in readings {
        let reading = reading.to_lowercase();
        let is_blank = |c: char| c.is_whitespace() || c == '+';
        let cut = reading.split(['[', '.']).find(|part| !part.trim_matches(is_blank).is_empty());
        let mangled: String = reading
            .trim_matches(is_blank)
            .chars()
            .map(|c| if is_blank(c) || matches!(c, '.' | '[') { '_' } else { c })
            .collect();
        for root in [cut.unwrap_or_default().trim_matches(is_blank), &mangled] {
            let root = root.trim_end_matches('_');
            if !root.is_empty() {
                roots.insert(root.to_owned());
            }
        }
    }
    roots
}

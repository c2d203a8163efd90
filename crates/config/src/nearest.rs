//! Which right word somebody meant.

/// The candidate that takes the fewest letters to get to, unless that is so many that it would be a guess.
pub fn nearest(typed: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let most = (typed.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (distance(typed, &candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to add, drop, change, or swap with their neighbour. What differs in capitals only is the same word.
fn distance(from: &str, to: &str) -> usize {
    let letters = |text: &str| text.to_ascii_lowercase().chars().collect::<Vec<_>>();
    let (from, to) = (letters(from), letters(to));
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (row, cells) in rows.iter_mut().enumerate() {
        cells[0] = row;
    }
    rows[0] = (0..=to.len()).collect();
    for row in 1..=from.len() {
        for column in 1..=to.len() {
            let changed = usize::from(from[row - 1] != to[column - 1]);
            let mut least = (rows[row - 1][column - 1] + changed)
                .min(rows[row - 1][column] + 1)
                .min(rows[row][column - 1] + 1);
            let is_swap =
                row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
            if is_swap {
                least = least.min(rows[row - 2][column - 2] + 1);
            }
            rows[row][column] = least;
        }
    }
    rows[from.len()][to.len()]
}

/// Why an entry of a list of hosts is none, to stand behind the entry.
pub(crate) fn why_no_host(entry: &str) -> &'static str {
    let host = entry.strip_prefix("*.").unwrap_or(entry);
    match host {
        "" => " (which is empty)",
        _ if host.contains("://") => " (an address: write only its host)",
        _ if host.contains('/') => " (a host with a path: write only the host)",
        _ if host.contains(':') => " (a host with a port: write only the host, which holds for every port)",
        _ if host.contains(char::is_whitespace) => " (there is a blank in it)",
        _ if host.contains('*') => " (a `*` stands only at the beginning, before a dot)",
        _ => " (no host has such a name)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_no_host_is_told_with_the_reason() {
        for (entry, why) in [
            ("https://shop.example.org/", "an address"),
            ("shop.example.org/login", "a path"),
            ("shop.example.org:443", "a port"),
            ("*.shop example.org", "a blank"),
            ("shop.*.org", "at the beginning"),
            ("", "empty"),
            ("shop..example", "no host"),
        ] {
            assert!(why_no_host(entry).contains(why), "{entry}: {}", why_no_host(entry));
        }
    }

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_word_is_not() {
        let words = || ["listen", "public_url", "timing.callback_wait"].map(str::to_owned);
        for (typed, meant) in [
            ("lisetn", Some("listen")),
            ("Listen", Some("listen")),
            ("public-url", Some("public_url")),
            ("timings.callback_wait", Some("timing.callback_wait")),
            ("tls", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, words()).as_deref(), meant, "{typed}");
        }
    }
}

//! Finds the nearest known word, to ask "did you mean?".

/// The candidate with the smallest edit distance, unless that distance is so large that it would be a guess. A swap
/// of two neighbours counts as one edit. Upper and lower case count as equal.
pub fn nearest(typed: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let distance_max = (typed.chars().count() / 3).clamp(1, 4);
    let distance =
        |known: &str| strsim::osa_distance(&typed.to_ascii_lowercase(), &known.to_ascii_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(&candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_is_understood_and_another_word_is_not() {
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

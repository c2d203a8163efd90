//! A rate as operators write it: a number for each second, minute or hour. All of it may come at once; after that,
//! one at a time.

use quittance_gateway::Rate;
use std::time::Duration;

/// What a rate looks like, to follow "must be".
pub(crate) const FORM: &str = "a number for each s, min or h, such as \"10/s\", \"100/min\" or \"5000/h\"";
const BURST_MAX: u32 = 1_000_000;

pub(crate) fn parse(text: &str) -> Option<Rate> {
    let (burst, unit) = text.split_once('/')?;
    let time = match unit.trim() {
        "s" => Duration::from_secs(1),
        "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    // `+5` is a number to `parse`, but not here.
    let burst: u32 = burst.trim().parse().ok().filter(|_| !burst.contains('+'))?;
    (1..=BURST_MAX).contains(&burst).then(|| Rate { every: time / burst, burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_for_each_unit_of_time() {
        for (text, every_ms, burst) in
            [("10/s", 100, 10), ("100/min", 600, 100), (" 3600 / h ", 1000, 3600), ("1/s", 1000, 1)]
        {
            assert_eq!(parse(text), Some(Rate { every: Duration::from_millis(every_ms), burst }), "{text}");
        }
        for text in ["", "10", "/s", "0/s", "10/", "10/d", "-1/s", "+1/s", "1.5/s", "9999999/s", "10/s/s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

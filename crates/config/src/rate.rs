//! How a rate is written: so many in so much time. All of them may come at once; after that they come back one by one.

use quittance_gateway::Rate;
use std::time::Duration;

/// What would be right, to follow "must be".
pub const FORM: &str = "so many in so much time, such as \"10/s\", \"100/min\" or \"5000/h\"";
/// More would be no limit at all.
const MOST: u32 = 1_000_000;

pub fn parse(text: &str) -> Option<Rate> {
    let (many, unit) = text.split_once('/')?;
    let span = match unit.trim() {
        "s" => Duration::from_secs(1),
        "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    let many = many.trim();
    let burst: u32 = many.bytes().all(|digit| digit.is_ascii_digit()).then(|| many.parse().ok()).flatten()?;
    (1..=MOST).contains(&burst).then(|| Rate { every: span / burst, burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_so_many_in_so_much_time_and_all_of_them_at_once_if_need_be() {
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

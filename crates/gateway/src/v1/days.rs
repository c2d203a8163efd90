//! Days as they are asked for: from one to another in UTC, both included, and only so many at once.

use super::problem::Refused;
use quittance_lifecycle::Timestamp;
use quittance_ports::Day;
use quittance_ports::moment::read_date;

/// What is not said is today, or the nearest to it that makes sense.
pub(super) fn read_days(
    from: Option<String>,
    to: Option<String>,
    now: Timestamp,
    most: u64,
) -> Result<(Day, Day), Refused> {
    let read = |field: &str, text: Option<String>| match text {
        None => Ok(None),
        Some(text) => read_date(&text)
            .map(Some)
            .ok_or_else(|| Refused::bad(field, format!("`{field}` is a day like 2026-11-16."))),
    };
    let Day(today) = Day::of(now);
    let (from, to) = (read("from", from)?, read("to", to)?);
    let to = to.unwrap_or_else(|| from.map_or(today, |from| from.max(today)));
    let from = from.unwrap_or_else(|| to.min(today));
    if from > to {
        return Err(Refused::bad("from", "`from` is after `to`."));
    }
    // Whoever asks at the prompt has typed no `from`.
    let days = to - from + 1;
    if days > most {
        return Err(Refused::bad(
            "from",
            format!("These are {days} days, and at most {most} are told at once."),
        ));
    }
    Ok((Day(from), Day(to)))
}

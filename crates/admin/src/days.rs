//! The days of a request: a limited range in UTC, both ends included.

use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::Timestamp;
use quittance_ports::Day;
use quittance_ports::moment::read_date;

/// Reads a range of days. An absent day is today, or the nearest day that makes a valid range.
pub(crate) fn read_days(
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
    let days = to - from + 1;
    if days > most {
        return Err(Refused::bad("from", format!("These are {days} days; at most {most} are allowed.")));
    }
    Ok((Day(from), Day(to)))
}

//! The books: for each partition and day one hash, with a field for each name of each line. What is added is added by
//! the script of the step that it counts.

use crate::Inner;
use crate::layout::score;
use crate::row::text;
use crate::trouble::Trouble;
use futures_util::future::{try_join, try_join_all};
use quittance_lifecycle::{Tally, Timestamp};
use quittance_ports::{Day, Line};
use redis::Value;
use std::collections::BTreeMap;

const DAY_MS: u64 = 24 * 3600 * 1000;
/// A day's books may be forgotten so long after the day.
const KEEP_DAYS: u64 = 400;
/// And those of a day long past are kept for so long at least, by the clock of Redis.
pub(crate) const GRACE_MS: &[u8] = b"3600000";

/// What is to be added to one line of a day, as the scripts want it.
pub(crate) struct Entry {
    pub(crate) day: String,
    pub(crate) keep_until: String,
    counts: Vec<(&'static str, String)>,
}

impl Entry {
    pub(crate) fn new(day: Day, tally: &Tally) -> Self {
        let counted = tally.lines().filter(|(_, count)| *count > 0);
        let counts =
            counted.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX).to_string()));
        let keep_until = day.0.saturating_add(KEEP_DAYS + 1).saturating_mul(DAY_MS);
        Self {
            day: day.0.to_string(),
            keep_until: score(Timestamp::from_millis(keep_until)).to_string(),
            counts: counts.collect(),
        }
    }

    pub(crate) fn args(&self) -> impl Iterator<Item = &[u8]> {
        self.counts.iter().flat_map(|(name, count)| [name.as_bytes(), count.as_bytes()])
    }
}

/// What every field of a line begins with: with lengths in front, so that no two lines are written alike, whatever
/// tenants, kinds and sites are called.
pub(crate) fn line_name(line: &Line) -> String {
    let Line { tenant, kind, site, .. } = line;
    format!("{}:{tenant}:{}:{kind}:{}:{site}:", tenant.len(), kind.len(), site.len())
}

fn read_field(day: Day, text: &str) -> Option<(Line, &str)> {
    let (tenant, rest) = read_part(text)?;
    let (kind, rest) = read_part(rest)?;
    let (site, name) = read_part(rest)?;
    Some((
        Line {
            day,
            tenant: tenant.to_owned(),
            kind: kind.to_owned(),
            site: site.to_owned(),
            provider: String::new(),
        },
        name,
    ))
}

fn read_part(text: &str) -> Option<(&str, &str)> {
    let (length, rest) = text.split_once(':')?;
    let (part, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((part, rest.strip_prefix(':')?))
}

type Books = BTreeMap<Line, Tally>;

/// What cannot be read counts as nothing: books must not stop the orders.
fn add(books: &mut Books, day: Day, field: &[u8], count: &[u8]) {
    let Ok(field) = std::str::from_utf8(field) else { return };
    let Some((line, name)) = read_field(day, field) else { return };
    let Some(count) = std::str::from_utf8(count).ok().and_then(|count| count.parse::<u64>().ok()) else {
        return;
    };
    let mut tally = Tally::default();
    let Some(place) = tally.line_mut(name) else { return };
    *place = count;
    *books.entry(line).or_default() += tally;
}

impl Inner {
    pub(crate) async fn read_books(&self, from: Day, to: Day) -> Result<Vec<(Line, Tally)>, Trouble> {
        let days = try_join_all(self.layout.all().map(|partition| self.days(partition, from, to))).await?;
        let asked = days.iter().zip(self.layout.all()).flat_map(|(days, partition)| {
            days.iter().map(move |day| try_join(async { Ok(*day) }, self.day(partition, *day)))
        });
        let mut books = Books::new();
        for (day, fields) in try_join_all(asked).await? {
            for (field, count) in fields {
                add(&mut books, day, &field, &count);
            }
        }
        Ok(books.into_iter().filter(|(_, tally)| *tally != Tally::default()).collect())
    }

    async fn days(&self, partition: u16, from: Day, to: Day) -> Result<Vec<Day>, Trouble> {
        let mut command = redis::cmd("ZRANGEBYSCORE");
        command.arg(self.layout.name(partition, "days")).arg(from.0).arg(to.0);
        let Value::Array(days) = self.ask(&command).await? else { return Err(Trouble::Garbled) };
        let read = |day| {
            let digits = text(day)?.ok_or(Trouble::Garbled)?;
            let number = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
            number.map(Day).ok_or(Trouble::Garbled)
        };
        days.into_iter().map(read).collect()
    }

    async fn day(&self, partition: u16, day: Day) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Trouble> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.layout.name(partition, format_args!("books:{}", day.0)));
        let fields = match self.ask(&command).await? {
            Value::Array(fields) => fields,
            Value::Map(fields) => fields.into_iter().flat_map(|(field, count)| [field, count]).collect(),
            _ => return Err(Trouble::Garbled),
        };
        let mut texts = fields.into_iter().map(|value| text(value).map(Option::unwrap_or_default));
        let mut pairs = Vec::new();
        while let (Some(field), Some(count)) = (texts.next(), texts.next()) {
            pairs.push((field?, count?));
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, line_name, read_field};
    use quittance_ports::Day;

    #[test]
    fn whatever_tenants_kinds_and_sites_are_called_no_two_lines_are_written_alike() {
        let names = ["", ":", "1:a", "a", "a:1", "\u{e9}:", "2:\u{e9}"];
        for tenant in names {
            for kind in names {
                for site in names {
                    let (tenant, kind, site) = (tenant.into(), kind.into(), site.into());
                    let line = Line { day: Day(1), tenant, kind, site, provider: String::new() };
                    let written = format!("{}asked", line_name(&line));
                    assert_eq!(read_field(Day(1), &written), Some((line, "asked")));
                }
            }
        }
    }
}

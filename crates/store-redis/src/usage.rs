//! The usage: one hash for each partition and day, with a field for each counter of each row. The script of a step
//! also adds its counters.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::layout::score;
use crate::row::text;
use futures_util::future::{try_join, try_join_all};
use quittance_lifecycle::{Counters, Timestamp};
use quittance_ports::{Day, UsageRow};
use redis::Value;
use std::collections::{BTreeMap, BTreeSet};

const DAY_MS: u64 = 24 * 3600 * 1000;
/// After how many days the usage of a day expires, if no node is left to forget it. It is longer than operators keep
/// sums.
const KEEP_DAYS: u64 = 3660;
/// The least time for which usage of an old day is kept, by the clock of Redis.
pub(crate) const GRACE_MS: &[u8] = b"3600000";

/// The counters to add to one row of a day, as arguments of the scripts.
pub(crate) struct UsageEntry {
    pub(crate) day: String,
    pub(crate) keep_until: String,
    counts: Vec<(&'static str, String)>,
}

impl UsageEntry {
    pub(crate) fn new(day: Day, counters: &Counters) -> Self {
        let counted = counters.lines().filter(|(_, count)| *count > 0);
        let counts =
            counted.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX).to_string()));
        Self { day: day.0.to_string(), keep_until: keep_until(day), counts: counts.collect() }
    }

    pub(crate) fn args(&self) -> impl Iterator<Item = &[u8]> {
        self.counts.iter().flat_map(|(name, count)| [name.as_bytes(), count.as_bytes()])
    }
}

/// When the usage of a day expires, as an argument of the scripts.
pub(crate) fn keep_until(day: Day) -> String {
    let end = day.0.saturating_add(KEEP_DAYS + 1).saturating_mul(DAY_MS);
    score(Timestamp::from_millis(end)).to_string()
}

/// The beginning of every field of a row. Each part has its length before it, so that different rows have different
/// fields for all names of tenants, kinds, sites and providers.
pub(crate) fn line_name(line: &UsageRow) -> String {
    let UsageRow { tenant, kind, site, account, .. } = line;
    [tenant, kind, site, account].map(|part| format!("{}:{part}:", part.len())).concat()
}

/// Parses a field into its row and the name of the counter. A field from before there were providers ends with the
/// site; no counter name looks like a further part.
pub(crate) fn read_field(day: Day, text: &str) -> Option<(UsageRow, &str)> {
    let (tenant, rest) = read_part(text)?;
    let (kind, rest) = read_part(rest)?;
    let (site, rest) = read_part(rest)?;
    let (account, name) = read_part(rest).unwrap_or(("", rest));
    let [tenant, kind, site, account] = [tenant, kind, site, account].map(str::to_owned);
    Some((UsageRow { day, tenant, kind, site, account }, name))
}

fn read_part(text: &str) -> Option<(&str, &str)> {
    let (length, rest) = text.split_once(':')?;
    let (part, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((part, rest.strip_prefix(':')?))
}

type DayUsage = BTreeMap<UsageRow, Counters>;

/// Adds a field to the usage. A field that cannot be parsed is ignored: usage must not stop the orders.
fn add(usage: &mut DayUsage, day: Day, field: &[u8], count: &[u8]) {
    let Ok(field) = std::str::from_utf8(field) else { return };
    let Some((line, name)) = read_field(day, field) else { return };
    let Some(count) = std::str::from_utf8(count).ok().and_then(|count| count.parse::<u64>().ok()) else {
        return;
    };
    let mut counters = Counters::default();
    let Some(place) = counters.line_mut(name) else { return };
    *place = count;
    *usage.entry(line).or_default() += counters;
}

pub(crate) fn read_days(days: Value) -> Result<Vec<Day>, RedisFailure> {
    let Value::Array(days) = days else { return Err(RedisFailure::Garbled) };
    let read = |day| {
        let digits = text(day)?.ok_or(RedisFailure::Garbled)?;
        let number = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        number.map(Day).ok_or(RedisFailure::Garbled)
    };
    days.into_iter().map(read).collect()
}

impl RedisInner {
    pub(crate) fn usage_of(&self, partition: u16, day: Day) -> String {
        self.layout.name(partition, format_args!("usage:{}", day.0))
    }

    pub(crate) async fn read_usage(
        &self,
        from: Day,
        to: Day,
    ) -> Result<Vec<(UsageRow, Counters)>, RedisFailure> {
        let days = try_join_all(self.layout.all().map(|partition| self.days(partition, from, to))).await?;
        let queries = days.iter().zip(self.layout.all()).flat_map(|(days, partition)| {
            days.iter().map(move |day| try_join(async { Ok(*day) }, self.day(partition, *day)))
        });
        let mut usage = DayUsage::new();
        for (day, fields) in try_join_all(queries).await? {
            for (field, count) in fields {
                add(&mut usage, day, &field, &count);
            }
        }
        Ok(usage.into_iter().filter(|(_, counters)| *counters != Counters::default()).collect())
    }

    async fn days(&self, partition: u16, from: Day, to: Day) -> Result<BTreeSet<Day>, RedisFailure> {
        let keys = ["days", "closed"].map(|set| self.layout.name(partition, set));
        // One that is being closed counts for half a day more.
        let (from, to) = (from.0.to_string(), format!("({}", to.0.saturating_add(1)));
        let record = self.run_plain(&self.scripts.days, &keys, &[from.as_bytes(), to.as_bytes()]).await?;
        let Value::Array(record) = record else { return Err(RedisFailure::Garbled) };
        let mut days = BTreeSet::new();
        for some in record {
            days.extend(read_days(some)?);
        }
        Ok(days)
    }

    async fn day(&self, partition: u16, day: Day) -> Result<Vec<(Vec<u8>, Vec<u8>)>, RedisFailure> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.usage_of(partition, day));
        let fields = match self.ask(&command).await? {
            Value::Array(fields) => fields,
            Value::Map(fields) => fields.into_iter().flat_map(|(field, count)| [field, count]).collect(),
            _ => return Err(RedisFailure::Garbled),
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
    use super::{UsageRow, line_name, read_field};
    use quittance_ports::Day;

    #[test]
    fn whatever_the_parts_of_lines_are_called_no_two_are_written_alike() {
        let names = ["", ":", "1:a", "a", "a:1", "\u{e9}:", "2:\u{e9}"];
        let parts = names.len().pow(4);
        for n in 0..parts {
            let part = |place: u32| names[n / names.len().pow(place) % names.len()].to_owned();
            let line =
                UsageRow { day: Day(1), tenant: part(0), kind: part(1), site: part(2), account: part(3) };
            let written = format!("{}asked", line_name(&line));
            assert_eq!(read_field(Day(1), &written), Some((line, "asked")));
        }
    }

    #[test]
    fn a_line_that_was_written_before_there_were_providers_has_none() {
        let (tenant, kind, site) = ("ann".into(), "riddle".into(), "1:a".into());
        let line = UsageRow { day: Day(1), tenant, kind, site, account: String::new() };
        assert_eq!(read_field(Day(1), "3:ann:6:riddle:3:1:a:from_stock"), Some((line, "from_stock")));
    }
}

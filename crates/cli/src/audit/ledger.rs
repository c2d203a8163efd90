//! Reads the provider's own ledger: that of the mock provider, lines of JSON, or comma-separated values. For each
//! task only what the comparison needs is kept.

use crate::csv;
use crate::exit::{CliError, Exit};
use quittance::Day;
use quittance::lifecycle::{Money, Timestamp};
use quittance_config::decimal;
use quittance_engine::targets::host_of_page;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The most tasks, which are all kept in memory: more than a large user buys in a month.
const TASKS_MAX: usize = 5_000_000;
/// The longest line of a table.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// A task in the provider's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Theirs {
    /// What the provider charged; 0 if the money was given back.
    pub(super) cost: Money,
    pub(super) is_charged: bool,
    pub(super) at_ms: Option<u64>,
    pub(super) site: Option<Box<str>>,
    /// Whether the task is outside of these days. It may still belong to an attempt at their edge.
    pub(super) is_of_other_days: bool,
}

/// The provider's ledger: its tasks by their ids.
pub(super) type ProviderLedger = BTreeMap<String, Theirs>;

/// A task, or a document with many.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LedgerEntry {
    tasks: Option<Vec<LedgerEntry>>,
    id: Option<Value>,
    task: Option<Value>,
    task_id: Option<Value>,
    #[serde(rename = "taskId")]
    task_id_too: Option<Value>,
    cost: Option<Value>,
    price: Option<Value>,
    cost_micros: Option<u64>,
    price_micros: Option<u64>,
    charged: Option<bool>,
    at_ms: Option<u64>,
    accepted_at_ms: Option<u64>,
    params: Option<Params>,
}

#[derive(Debug, Deserialize)]
struct Params {
    pageurl: Option<Value>,
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl LedgerEntry {
    fn task(self, days: (Day, Day)) -> Option<(String, Theirs)> {
        let amount = self.cost.or(self.price).and_then(text).map(|amount| decimal::money(&amount));
        let cost = match (self.cost_micros.or(self.price_micros), amount) {
            (Some(micros), _) => Money(micros),
            (None, Some(amount)) => amount?,
            (None, None) => return None,
        };
        let is_charged = self.charged.unwrap_or(true);
        let at_ms = self.at_ms.or(self.accepted_at_ms);
        let page = self.params.and_then(|params| text(params.pageurl?));
        let site = page.and_then(|page| Some(host_of_page(&page)?.into()));
        let day = at_ms.map(|at| Day::of(Timestamp::from_millis(at)));
        let name = self.id.or(self.task).or(self.task_id).or(self.task_id_too).and_then(text)?;
        let theirs = Theirs {
            cost: if is_charged { cost } else { Money::default() },
            is_charged,
            at_ms,
            site,
            is_of_other_days: day.is_some_and(|day| !(days.0..=days.1).contains(&day)),
        };
        Some((name, theirs))
    }
}

pub(super) fn read(path: &Path, from: Day, to: Day) -> Result<ProviderLedger, CliError> {
    let shown = path.display();
    let wrong = |why: String| CliError::new(Exit::Usage, format!("the ledger {shown} cannot be read: {why}"));
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|error| {
            wrong(format!("{error}; name a file with the provider's list of tasks, or - for standard input"))
        })?),
    };
    parse(BufReader::new(file), (from, to)).map_err(wrong)
}

fn parse(mut file: impl BufRead, days: (Day, Day)) -> Result<ProviderLedger, String> {
    let begun = file.fill_buf().map_err(|error| error.to_string())?;
    // Some editors put a mark in front of a text that they save.
    if begun.starts_with("\u{feff}".as_bytes()) {
        file.consume("\u{feff}".len());
    }
    loop {
        let begun = file.fill_buf().map_err(|error| error.to_string())?;
        match begun.first() {
            None => return Ok(ProviderLedger::new()),
            Some(byte) if byte.is_ascii_whitespace() => file.consume(1),
            Some(b'{' | b'[') => return json(file, days),
            Some(_) => return table(file, days),
        }
    }
}

fn add(ledger: &mut ProviderLedger, entry: LedgerEntry, days: (Day, Day)) -> Result<(), String> {
    let (task, theirs) = entry.task(days).ok_or("a task has no id, or no cost that can be read")?;
    if ledger.len() >= TASKS_MAX {
        return Err(format!("it has more than {TASKS_MAX} tasks: compare fewer days at once"));
    }
    match ledger.insert(task, theirs) {
        None => Ok(()),
        Some(_) => Err("two of its tasks have the same id".to_owned()),
    }
}

/// Reads one JSON document or several. Each is a task, a list of tasks, or what the mock provider returns.
fn json(file: impl BufRead, days: (Day, Day)) -> Result<ProviderLedger, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Document {
        Many(Vec<LedgerEntry>),
        One(Box<LedgerEntry>),
    }
    let mut ledger = ProviderLedger::new();
    for document in serde_json::Deserializer::from_reader(file).into_iter::<Document>() {
        let tasks = match document.map_err(|error| error.to_string())? {
            Document::Many(tasks) => tasks,
            Document::One(mut entry) => match entry.tasks.take() {
                Some(tasks) => tasks,
                None => vec![*entry],
            },
        };
        tasks.into_iter().try_for_each(|entry| add(&mut ledger, entry, days))?;
    }
    Ok(ledger)
}

fn table(mut file: impl BufRead, days: (Day, Day)) -> Result<ProviderLedger, String> {
    let (mut ledger, mut heading) = (ProviderLedger::new(), None);
    for number in 1.. {
        let mut line = String::new();
        let read = file.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        if read.map_err(|error| format!("line {number}: {error}"))? == 0 {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let cells = csv::read(&line).ok_or_else(|| format!("line {number}: a quote is not closed"))?;
        match &heading {
            None => heading = Some(known(cells).map_err(|why| format!("line {number}: {why}"))?),
            Some(heading) => {
                of_cells(heading, &cells)
                    .and_then(|entry| add(&mut ledger, entry, days))
                    .map_err(|why| format!("line {number}: {why}"))?;
            }
        }
    }
    Ok(ledger)
}

/// Checks that a heading identifies tasks and their prices.
fn known(heading: Vec<String>) -> Result<Vec<String>, String> {
    const NAMES: [&str; 4] = ["id", "task", "task_id", "taskId"];
    const COSTS: [&str; 4] = ["cost", "price", "cost_micros", "price_micros"];
    let has = |names: &[&str]| heading.iter().any(|cell| names.contains(&cell.trim()));
    if has(&NAMES) && has(&COSTS) {
        return Ok(heading);
    }
    let divided = match heading.as_slice() {
        [all] if all.contains(';') => "; they must be divided by commas, and these are by `;`",
        [all] if all.contains('\t') => "; they must be divided by commas, and these are by tabs",
        _ => "",
    };
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found: Vec<&str> = heading.iter().map(|cell| cell.trim()).collect();
    Err(format!(
        "its columns are {}, and there must be one of {} and one of {}{divided}",
        quoted(&found),
        quoted(&NAMES),
        quoted(&COSTS)
    ))
}

/// Reads one row. An empty cell is no value, and an unknown column is ignored.
fn of_cells(heading: &[String], cells: &[String]) -> Result<LedgerEntry, String> {
    let mut entry = Map::new();
    for (name, cell) in heading.iter().zip(cells) {
        let (name, cell) = (name.trim(), cell.trim());
        let value = match name {
            _ if cell.is_empty() => continue,
            "params" | "tasks" => continue,
            "charged" => Value::from(!matches!(cell, "false" | "0" | "no")),
            name if name.ends_with("_micros") || name.ends_with("at_ms") => {
                cell.parse().map_or(Value::Null, |number: u64| number.into())
            }
            _ => cell.into(),
        };
        entry.insert(name.to_owned(), value);
    }
    serde_json::from_value(entry.into()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAYS: (Day, Day) = (Day(20_773), Day(20_773));

    fn read(text: &str) -> Result<ProviderLedger, String> {
        parse(text.as_bytes(), DAYS)
    }

    #[test]
    fn a_ledger_is_read_in_every_form_that_it_comes_in() {
        let lines =
            "{\"id\":7,\"cost\":\"0.00299\"}\n{\"task_id\":\"8\",\"price_micros\":500,\"charged\":false}\n";
        let list = "[{\"taskId\":7,\"price\":0.00299},{\"task\":\"8\",\"cost\":0.0005,\"charged\":false}]";
        let whole = "{\"now_ms\":1,\"tasks\":[{\"id\":\"7\",\"price_micros\":2990,\"charged\":true,\"params\":{}},\
            {\"id\":\"8\",\"price_micros\":500,\"charged\":false,\"state\":\"failed\"}],\"totals\":{\"accepted\":2}}";
        let table = "task_id,colour,cost,charged\n7,red,0.00299,true\n\n\"8\",blue,0.0005,false\r\n";
        let expected = read(lines).unwrap();
        assert_eq!(expected["7"].cost, Money(2990));
        assert!(!expected["8"].is_charged && expected["8"].cost == Money(0));
        for form in [list, whole, table] {
            assert_eq!(read(form).unwrap(), expected, "{form}");
        }
        assert_eq!(read("  \n").unwrap(), ProviderLedger::new());
        assert_eq!(read(&format!("\u{feff}{table}")).unwrap(), expected, "as some editors save it");
    }

    #[test]
    fn what_they_say_of_other_days_is_known_to_be() {
        let ledger = read(
            "{\"id\":1,\"cost\":1,\"at_ms\":1794837600000}{\"id\":2,\"cost\":1,\"accepted_at_ms\":1794700000000}",
        );
        let ledger = ledger.unwrap();
        assert_eq!((ledger["1"].is_of_other_days, ledger["2"].is_of_other_days), (false, true));
    }

    #[test]
    fn a_ledger_that_is_not_valid_is_refused_with_the_place() {
        for (text, why) in [
            ("{\"id\":1}", "no cost"),
            ("{\"cost\":1}", "no id"),
            ("{\"id\":1,\"cost\":\"x\"}", "cost"),
            ("id,cost\n1,2\n1,3\n", "line 3: two of its tasks"),
            ("id,cost\n\"1,2\n", "line 2: a quote"),
            ("{\"id\":", "EOF"),
            ("id;cost\n1;2\n", "line 1: its columns are `id;cost`, and there must be one of `id`"),
            ("id;cost\n1;2\n", "divided by commas, and these are by `;`"),
            ("id\tcost\n1\t2\n", "by tabs"),
            ("number,amount\n1,2\n", "`number`, `amount`, and there must be one of `id`, `task`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}

//! The report as the API tells it, read back: each row with what it is about, and its sums by name.

use super::By;
use quittance::lifecycle::{Money, PriceSum};
use serde_json::{Map, Value};

/// Sums of the usage, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums(pub(super) Map<String, Value>);

impl Sums {
    pub(crate) const fn of(sums: Map<String, Value>) -> Self {
        Self(sums)
    }

    /// What there is none of was not counted.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    pub(crate) fn amount(&self, name: &str) -> Money {
        Money(self.count(name))
    }

    /// A sum of money that is `null` is not known.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.0.get(name) != Some(&Value::Null)
    }

    /// As a program reads it: what is not known is empty.
    pub(super) fn cell(&self, name: &str) -> String {
        let micros = match name {
            "spent" => "cost_micros",
            "saved" => "saved_micros",
            "wasted_cost" => "wasted_micros",
            name => name,
        };
        if self.is_known(micros) { self.shown(name) } else { String::new() }
    }

    fn money(&self, name: &str) -> String {
        if self.is_known(name) { self.amount(name).to_string() } else { "not known".to_owned() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().filter_map(Value::as_u64).all(|count| count == 0)
    }

    /// As it is shown: money as an amount.
    pub(crate) fn shown(&self, name: &str) -> String {
        match name {
            "spent" => self.money("cost_micros"),
            "saved" => self.money("saved_micros"),
            "wasted_cost" => self.money("wasted_micros"),
            _ => self.count(name).to_string(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// What it is about, in the order of the parts that were asked for.
    pub(super) names: Vec<String>,
    pub(super) sums: Sums,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) by: Vec<By>,
    /// What all money is in; empty if the daemon is too old to say it.
    pub(super) currency: String,
    pub(super) all: Sums,
    pub(super) rows: Vec<Row>,
    pub(super) left_out: u64,
    /// What was spent in other currencies, by currency. It is in no sum.
    pub(super) other_currencies: Vec<(String, PriceSum)>,
}

/// What a report says of other currencies.
fn other_currencies(told: &Map<String, Value>) -> Vec<(String, PriceSum)> {
    let number = |other: &Value, name: &str| other[name].as_u64().unwrap_or_default();
    let spent = |other: &Value| {
        let currency = other["currency"].as_str().unwrap_or_default().to_owned();
        (currency, PriceSum { sum: Money(number(other, "cost_micros")), unpriced: number(other, "unpriced") })
    };
    told.get("other_currencies").and_then(Value::as_array).into_iter().flatten().map(spent).collect()
}

impl Report {
    pub(super) fn read(told: Value, by: &[By]) -> Result<Self, String> {
        let Value::Object(mut told) = told else { return Err("it is no object".to_owned()) };
        let Some(Value::Object(all)) = told.remove("all") else { return Err("it has no sums".to_owned()) };
        let rows = match told.remove("rows") {
            Some(Value::Array(rows)) => rows,
            _ => return Err("it has no rows".to_owned()),
        };
        let row = |row: Value| match row {
            Value::Object(sums) => {
                let name =
                    |by: &By| sums.get(by.name()).and_then(Value::as_str).unwrap_or_default().to_owned();
                Ok(Row { names: by.iter().map(name).collect(), sums: Sums(sums) })
            }
            _ => Err("a row is no object".to_owned()),
        };
        let left_out = told.get("left_out").and_then(Value::as_u64).unwrap_or_default();
        let rows = rows.into_iter().map(row).collect::<Result<_, _>>()?;
        let currency = told.get("currency").and_then(Value::as_str).unwrap_or_default().to_owned();
        let other_currencies = other_currencies(&told);
        Ok(Self { by: by.to_vec(), currency, all: Sums(all), rows, left_out, other_currencies })
    }
}

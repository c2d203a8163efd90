//! Sums of the usage by name: every counter, and the amounts that follow from them. The names are those of the
//! counters, so none is missing.

use quittance_gateway::v1::decimal;
use quittance_lifecycle::{Counters, Money, PriceSum};
use quittance_ports::UsageRow;
use quittance_telemetry::money::savings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

const DECIMAL: &str = "^[0-9]+(\\.[0-9]{1,6})?$";

/// Counters and savings, to be added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SumsBuilder {
    pub(crate) counters: Counters,
    pub(crate) saved: PriceSum,
}

impl SumsBuilder {
    /// Each row of the usage as a sum of its own.
    pub(crate) fn of(usage: &[(UsageRow, Counters)]) -> impl Iterator<Item = (&UsageRow, Self)> {
        let lines = usage.iter().zip(savings(usage));
        lines.map(|((line, counters), saved)| (line, Self { counters: *counters, saved }))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counters += other.counters;
        self.saved += other.saved;
    }

    /// Each sum of money: its name, its name in millionths, and what is known of the sum.
    fn amounts(&self) -> [(&'static str, &'static str, Option<Money>); 3] {
        [
            ("spent", "cost_micros", self.counters.spent_known()),
            ("saved", "saved_micros", self.saved.known()),
            ("wasted_cost", "wasted_micros", self.counters.wasted_cost().known()),
        ]
    }

    /// Every counter by its name, and amounts in millionths; `None` if an amount is not known.
    pub(crate) fn lines(&self) -> BTreeMap<&'static str, Option<u64>> {
        let mut lines: BTreeMap<_, _> =
            self.counters.lines().map(|(name, count)| (name, Some(count))).collect();
        lines.insert("unpriced", Some(self.counters.spent().unpriced));
        lines.extend(self.amounts().map(|(_, micros, amount)| (micros, amount.map(|amount| amount.0))));
        lines
    }

    pub(crate) fn build(self) -> Sums {
        let counts = self.lines().into_iter().map(|(name, count)| (name, count.map(UsageSum::Count)));
        let amounts = self
            .amounts()
            .map(|(name, _, amount)| (name, amount.map(|amount| UsageSum::Amount(decimal(amount)))));
        let all = counts.chain(amounts);
        Sums(all.map(|(name, sum)| (name.to_owned(), sum.unwrap_or(UsageSum::NotKnown))).collect())
    }
}

/// Sums of the usage by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sums(pub BTreeMap<String, UsageSum>);

/// One sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UsageSum {
    Count(u64),
    /// An amount as a decimal.
    Amount(String),
    NotKnown,
}

impl Sums {
    /// A counter, or an amount in millionths. `None` if it is not known; a counter that is absent is 0.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(UsageSum::Count(count)) => Some(*count),
            Some(UsageSum::Amount(_) | UsageSum::NotKnown) => None,
            None => Some(0),
        }
    }
}

impl ToSchema for Sums {}

impl PartialSchema for Sums {
    fn schema() -> RefOr<Schema> {
        let count = || {
            let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
            ObjectBuilder::new().schema_type(Type::Integer).format(Some(format)).minimum(Some(0.0))
        };
        let or_null = |of: Type| SchemaType::from_iter([of, Type::Null]);
        let micros = || count().schema_type(or_null(Type::Integer));
        let amount = || ObjectBuilder::new().schema_type(or_null(Type::String)).pattern(Some(DECIMAL));
        let mut object = ObjectBuilder::new().description(Some(
            "Every counter of the usage by name; money in millionths of the currency, and as decimals. An amount is `null` if there \
             are answers and no price is known. `unpriced` counts attempts that were or may have been charged and are not in the cost \
             (subtract `priced_late`); `wasted_unpriced` counts wasted answers that are not in the cost of wasted answers.",
        ));
        let amounts = SumsBuilder::default().amounts();
        let is_money = |name: &str| amounts.iter().any(|(_, micros, _)| *micros == name);
        for name in Counters::NAMES.iter().copied().filter(|name| !is_money(name)) {
            object = object.property(name, count()).required(name);
        }
        for (name, in_micros, _) in amounts {
            object = object.property(in_micros, micros()).required(in_micros);
            object = object.property(name, amount()).required(name);
        }
        object.into()
    }
}

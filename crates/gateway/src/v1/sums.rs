//! The lines of the usage as they are told: every one by its name, and what follows from them about money. What is counted one
//! day and has no name here cannot be: the names are the counters's own.

use super::decimal;
use quittance_lifecycle::{Counters, Money, PriceSum};
use quittance_ports::UsageRow;
use quittance_telemetry::money::savings;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

const DECIMAL: &str = "^[0-9]+(\\.[0-9]{1,6})?$";

/// Sums of the usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) counters: Counters,
    pub(super) saved: PriceSum,
}

impl Sums {
    /// Each line of the usage as a sum of its own.
    pub(super) fn of(usage: &[(UsageRow, Counters)]) -> impl Iterator<Item = (&UsageRow, Self)> {
        let lines = usage.iter().zip(savings(usage));
        lines.map(|((line, counters), saved)| (line, Self { counters: *counters, saved }))
    }

    pub(super) fn add(&mut self, other: &Self) {
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

    /// Every line by its name; a sum of money in millionths, and `None` if it is not known.
    pub(super) fn lines(&self) -> BTreeMap<&'static str, Option<u64>> {
        let mut lines: BTreeMap<_, _> =
            self.counters.lines().map(|(name, count)| (name, Some(count))).collect();
        lines.insert("unpriced", Some(self.counters.spent().unpriced));
        lines.extend(self.amounts().map(|(_, micros, amount)| (micros, amount.map(|amount| amount.0))));
        lines
    }
}

impl Serialize for Sums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let amounts = self.amounts();
        for (name, count) in self.lines() {
            map.serialize_entry(name, &count)?;
        }
        for (name, _, amount) in amounts {
            map.serialize_entry(name, &amount.map(decimal))?;
        }
        map.end()
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
        let amounts = Self::default().amounts();
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

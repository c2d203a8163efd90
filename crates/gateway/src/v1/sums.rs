//! The lines of the books as they are told: every one by its name, and what follows from them about money. What is counted one
//! day and has no name here cannot be: the names are the tally's own.

use super::moment::decimal;
use crate::money::savings;
use quittance_lifecycle::{Money, Tally};
use quittance_ports::Line;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

const DECIMAL: &str = "^[0-9]+(\\.[0-9]{1,6})?$";

/// Sums of the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) tally: Tally,
    pub(super) saved: Money,
}

impl Sums {
    /// Each line of the books as a sum of its own.
    pub(super) fn of(books: &[(Line, Tally)]) -> impl Iterator<Item = (&Line, Self)> {
        let lines = books.iter().zip(savings(books));
        lines.map(|((line, tally), saved)| (line, Self { tally: *tally, saved }))
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.tally += other.tally;
        self.saved = Money(self.saved.0.saturating_add(other.saved.0));
    }

    fn amounts(&self) -> [(&'static str, Money); 3] {
        [
            ("spent", Money(self.tally.cost_micros)),
            ("saved", self.saved),
            ("wasted_cost", Money(self.tally.wasted_micros)),
        ]
    }
}

impl Serialize for Sums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in self.tally.lines() {
            map.serialize_entry(name, &count)?;
        }
        map.serialize_entry("saved_micros", &self.saved.0)?;
        for (name, amount) in self.amounts() {
            map.serialize_entry(name, &decimal(amount))?;
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
        let amount = || ObjectBuilder::new().schema_type(Type::String).pattern(Some(DECIMAL));
        let mut object = ObjectBuilder::new().description(Some(
            "Every line of the books by its name; money in millionths of the provider's currency, and as decimals.",
        ));
        for name in Tally::NAMES.iter().copied().chain(["saved_micros"]) {
            object = object.property(name, count()).required(name);
        }
        for (name, _) in Self::default().amounts() {
            object = object.property(name, amount()).required(name);
        }
        object.into()
    }
}

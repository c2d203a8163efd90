//! The promises of this crate, each with a test that is named after it.

mod any;
mod cases;
mod damage;
mod flaky;
mod golden;
mod names;
mod roundtrip;
mod spill;
mod spill_faults;

use quittance_lifecycle::{Order, Terms};
use quittance_ports::{Arrival, Card, Sheet};
use std::sync::Arc;

/// Anything that this crate writes.
#[expect(clippy::large_enum_variant, reason = "tests hold few of them")]
#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    Terms(Arc<Terms>),
    Order(Box<Order>),
    Arrival(Arrival),
    Card(Box<Card>),
    Sheet(Box<Sheet>),
}

impl Written {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Terms(terms) => crate::encode_terms(terms),
            Self::Order(order) => crate::encode_order(order),
            Self::Arrival(arrival) => crate::encode_arrival(arrival),
            Self::Card(card) => crate::encode_card(card),
            Self::Sheet(sheet) => crate::encode_sheet(sheet),
        }
    }

    /// Reads another record of the same sort.
    fn decode(&self, bytes: &[u8]) -> Result<Self, crate::RecordError> {
        Ok(match self {
            Self::Terms(_) => Self::Terms(Arc::new(crate::decode_terms(bytes)?)),
            Self::Order(order) => Self::Order(Box::new(crate::decode_order(bytes, order.terms.clone())?)),
            Self::Arrival(_) => Self::Arrival(crate::decode_arrival(bytes)?),
            Self::Card(_) => Self::Card(Box::new(crate::decode_card(bytes)?)),
            Self::Sheet(_) => Self::Sheet(Box::new(crate::decode_sheet(bytes)?)),
        })
    }
}

//! The promises of this crate: one test, named after it, for each.

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
use quittance_ports::{IncomingEvent, NodeStatus, SharedDocument};
use std::sync::Arc;

/// Any record that this crate writes.
#[expect(clippy::large_enum_variant, reason = "tests hold few of them")]
#[derive(Clone, Debug, PartialEq, Eq)]
enum AnyRecord {
    Terms(Arc<Terms>),
    Order(Box<Order>),
    IncomingEvent(IncomingEvent),
    NodeStatus(Box<NodeStatus>),
    SharedDocument(Box<SharedDocument>),
}

impl AnyRecord {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Terms(terms) => crate::encode_terms(terms),
            Self::Order(order) => crate::encode_order(order),
            Self::IncomingEvent(arrival) => crate::encode_incoming(arrival),
            Self::NodeStatus(node_status) => crate::encode_node_status(node_status),
            Self::SharedDocument(document) => crate::encode_document(document),
        }
    }

    /// Reads another record of this type.
    fn decode(&self, bytes: &[u8]) -> Result<Self, crate::RecordError> {
        Ok(match self {
            Self::Terms(_) => Self::Terms(Arc::new(crate::decode_terms(bytes)?)),
            Self::Order(order) => Self::Order(Box::new(crate::decode_order(bytes, order.terms.clone())?)),
            Self::IncomingEvent(_) => Self::IncomingEvent(crate::decode_incoming(bytes)?),
            Self::NodeStatus(_) => Self::NodeStatus(Box::new(crate::decode_node_status(bytes)?)),
            Self::SharedDocument(_) => Self::SharedDocument(Box::new(crate::decode_document(bytes)?)),
        })
    }
}

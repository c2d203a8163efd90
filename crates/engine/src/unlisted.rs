//! Error codes that are in no table. One tenant's unusual orders must not slow down all others. So a code counts as
//! the provider's state only when different orders of different methods get it within a short time.

use quittance_lifecycle::{Key, Order, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The time within which different orders must get the same code.
const WINDOW: Duration = Duration::from_secs(60);
/// How many orders with unlisted codes are remembered.
const MEETINGS_MAX: usize = 64;

struct CodeSighting {
    at: Timestamp,
    key: Key,
    tenant: String,
    kind: String,
    code: String,
}

#[derive(Default)]
pub(crate) struct UnlistedCodes(VecDeque<CodeSighting>);

impl UnlistedCodes {
    /// Notes that an order got this code. Returns whether that says something about the provider. If several tenants
    /// share the provider, orders of two tenants are needed: one tenant can invent as many methods as it likes.
    pub(crate) fn note(&mut self, order: &Order, code: &str, now: Timestamp, is_shared: bool) -> bool {
        let Self(meetings) = self;
        meetings.retain(|meeting| meeting.at <= now && now.since(meeting.at) < WINDOW);
        let (tenant, kind) = (&order.terms.tenant, &order.terms.kind);
        let is_confirmed = meetings.iter().any(|meeting| {
            let is_other = meeting.key != order.key && meeting.kind != *kind;
            meeting.code == code && is_other && !(is_shared && meeting.tenant == *tenant)
        });
        let is_same = |meeting: &CodeSighting| {
            meeting.code == code && meeting.kind == *kind && meeting.tenant == *tenant
        };
        // One entry for each tenant, kind and code, so that one tenant's crowd does not push the others out.
        meetings.retain(|meeting| !is_same(meeting));
        if meetings.len() >= MEETINGS_MAX {
            meetings.pop_front();
        }
        meetings.push_back(CodeSighting {
            at: now,
            key: order.key,
            tenant: tenant.clone(),
            kind: kind.clone(),
            code: code.to_owned(),
        });
        is_confirmed
    }
}

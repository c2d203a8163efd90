//! Decides whether equal placements are one job: by the order, the caller's key and the settings, and else by the
//! kind. It also counts single-use answers that go to a second placement: a site takes such an answer once, so the
//! operator must see which setting causes that.

use super::OrderService;
use crate::log_once::LogOnce;
use crate::tenant::Caller;
use quittance_engine::PlacedOrder;
use quittance_lifecycle::{Draft, Origin, Reuse, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// A decision, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReuseDecision {
    /// The decision; `None` means that the kind decides.
    pub(super) reuse: Option<Reuse>,
    /// The source for the log: the name of a setting, or a field of the request.
    pub(super) by: String,
}

/// The single-use answers that went to several placements at this node.
#[derive(Debug, Default)]
pub(super) struct SharedSingleUse {
    count: AtomicU64,
    logged: LogOnce,
}

impl OrderService {
    pub(super) fn decide_reuse(&self, caller: &Caller, kind: &str, draft: &Draft) -> ReuseDecision {
        let decided = |reuse, by: &str| ReuseDecision { reuse: Some(reuse), by: by.to_owned() };
        if caller.is_fresh_wanted {
            return decided(Reuse::Exclusive, "the end of the caller's key, __nocache");
        }
        if let Some(reuse) = draft.reuse {
            return decided(reuse, "the request's own field `reuse`");
        }
        let page = match draft.params.get("pageurl") {
            Some(Value::Text(page)) => Some(page.as_str()),
            _ => None,
        };
        match self.tenants().reuse(&caller.tenant.settings, kind, page) {
            Some(setting) => decided(setting.reuse, &setting.name),
            None => ReuseDecision { reuse: None, by: "the kind".to_owned() },
        }
    }

    /// Counts a placement that gets a single-use answer of another placement, and logs the first one of each target.
    /// A repeat with an idempotency key is the same job and does not count.
    pub(super) fn note_shared(&self, placed: &PlacedOrder, decision: &ReuseDecision) {
        let Some(order) = &placed.order else { return };
        let terms = &order.terms;
        let is_second = matches!(placed.origin, Origin::Joined | Origin::Cached);
        if !is_second || !terms.single_use || terms.keyed {
            return;
        }
        let SharedSingleUse { count, logged } = &self.inner.shared;
        count.fetch_add(1, Ordering::Relaxed);
        if !logged.is_first(&terms.target.to_string()) {
            return;
        }
        tracing::warn!(
            tenant = terms.tenant,
            kind = terms.kind,
            site = terms.site,
            order = %order.key,
            setting = decision.by,
            "several placements get one single-use answer (origin `{}`), and the site takes it once: {} says `shared`. This \
             is right if they are one job; if they are many, use `exclusive` or idempotency keys (docs/reuse.md)",
            placed.origin.name(),
            decision.by,
        );
    }

    /// How many placements at this node got a single-use answer that another placement got too.
    #[must_use]
    pub fn shared_single_use(&self) -> u64 {
        self.inner.shared.count.load(Ordering::Relaxed)
    }
}

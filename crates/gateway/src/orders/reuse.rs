//! Whether equal placements are one job. This is the one place that looks at what the order, the caller's key and the settings
//! say; where none of them says anything, the kind decides. And the one place that notices when a single-use answer goes to a
//! second placement: a site takes it once, so the operator must be able to see which setting does that.

use super::OrderService;
use crate::once::Once;
use crate::tenant::Caller;
use quittance_engine::PlacedOrder;
use quittance_lifecycle::{Draft, Origin, Reuse, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// What was decided, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReuseDecision {
    /// `None`: the kind decides.
    pub(super) reuse: Option<Reuse>,
    /// For the log: the name of a setting, or a field of the request.
    pub(super) by: String,
}

/// The single-use answers that went to more than one placement at this node.
#[derive(Debug, Default)]
pub(super) struct SharedSingleUse {
    count: AtomicU64,
    logged: Once,
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
        match self.inner.tenants.reuse(&caller.tenant.settings, kind, page) {
            Some(setting) => decided(setting.reuse, &setting.name),
            None => ReuseDecision { reuse: None, by: "the kind".to_owned() },
        }
    }

    /// Counts a placement that is given an answer which the site takes once and another placement is given too, and logs the
    /// first one of each target. A repeat with an idempotency key is the same job, and nothing to notice.
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

    /// How many placements at this node were given a single-use answer that another placement was given, too.
    #[must_use]
    pub fn shared_single_use(&self) -> u64 {
        self.inner.shared.count.load(Ordering::Relaxed)
    }
}

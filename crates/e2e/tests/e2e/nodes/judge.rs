//! The judge of several nodes: what callers got, the provider's ledger, the usage of the store and its dead letters
//! must agree, whatever happened.

use crate::death::paid_once;
use crate::engine::EngineEnd;
use crate::nodes::fleet::NodeFleet;
use crate::nodes::load::{Load, LoadRecord};
use crate::provider::{Sim, SimLedger};
use crate::sandbox::Sandbox;
use crate::usage::usage_equals_ledger;
use crate::wait::until;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct LoadVerdict {
    pub(crate) record: LoadRecord,
    pub(crate) ended: EngineEnd,
    pub(crate) taken: u64,
    pub(crate) bought: u64,
}

impl LoadVerdict {
    /// The result in one line, for a test that is run by hand.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} accepted, {} answered, {} ended otherwise, {} sent away to come again, the slowest call took {:?}; {} captchas, {} paid, {} doubts, {} of them settled, {} possible doubles",
            self.record.accepted.len(),
            self.record.answers.len(),
            self.record.ends.len(),
            self.record.again,
            self.record.slowest,
            self.bought,
            self.taken,
            self.ended.book("in_doubt"),
            self.ended.book("in_doubt_settled"),
            self.ended.book("possible_doubles"),
        )
    }
}

/// Lets the callers finish, waits until no order is open, and judges.
pub(crate) fn judge(load: Load, fleet: &NodeFleet, sim: &Sim) -> LoadVerdict {
    judge_at(&fleet.sandbox(sim), load.finish(), sim)
}

/// Waits until no order in this sandbox's store is open, and judges. The callers have finished.
pub(crate) fn judge_at(sandbox: &Sandbox, record: LoadRecord, sim: &Sim) -> LoadVerdict {
    // One more node, which ends when no order of this store is open any more, and has its usage.
    let ended = sandbox.engine().finish();
    assert_eq!(ended.done()["unreadable_records"], 0);
    let ledger =
        until("the last task's end", || Some(sim.ledger()).filter(|ledger| ledger.total("open") == 0));
    assert!(record.wrong.is_empty(), "no protocol knows this: {:#?}", record.wrong);
    nothing_is_lost(&record, &sandbox.dead_letters(), &ledger);
    paid_once(&ended, &ledger);
    usage_equals_ledger(sandbox, sim);
    let (taken, bought) = (ledger.accepted(), ledger.by_page().len() as u64);
    LoadVerdict { record, ended, taken, bought }
}

/// Checks that every accepted order got the answer that was bought for it, or is a dead letter.
fn nothing_is_lost(record: &LoadRecord, dead: &[Value], ledger: &SimLedger) {
    let sold = ledger.by_page();
    let dead: BTreeSet<&str> = dead.iter().filter_map(|entry| entry["page"].as_str()).collect();
    for (n, id) in &record.accepted {
        let page = record.page_of(*n);
        let tasks = sold.get(page.as_str()).map_or(&[][..], Vec::as_slice);
        match (record.answers.get(n), record.ends.get(n)) {
            (Some(answer), _) => {
                let is_sold = tasks.iter().any(|task| task["answer"] == answer.as_str());
                assert!(is_sold, "{n}: {answer} was never sold for {page}");
            }
            (None, Some(why)) => {
                // The provider is calm here, so there is no other reason but a deadline that an outage has eaten.
                assert!(dead.contains(page.as_str()), "{n}, order {id}, is lost: {why}; dead: {dead:?}");
            }
            (None, None) => panic!("{n}, order {id}, was accepted and got no outcome"),
        }
    }
    let refused: Vec<_> = record.ends.iter().filter(|(n, _)| !record.accepted.contains_key(n)).collect();
    assert!(refused.is_empty(), "refused for good, with nothing wrong about them: {refused:?}");
}

//! The judge of what nodes did together: what callers were told, the provider's ledger, the usage of the store and its
//! dead letters must agree, whatever happened meanwhile.

use crate::death::paid_once;
use crate::engine::Ended;
use crate::nodes::fleet::Fleet;
use crate::nodes::load::{Load, Told};
use crate::provider::{Ledger, Sim};
use crate::room::Room;
use crate::usage::usage_equals_ledger;
use crate::wait::until;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) told: Told,
    pub(crate) ended: Ended,
    pub(crate) taken: u64,
    pub(crate) bought: u64,
}

impl Verdict {
    /// What happened, in one line, for people who run the test by hand.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} accepted, {} answered, {} ended otherwise, {} asked to come again, the slowest call took {:?}; {} captchas, {} paid, {} doubts, {} of them settled, {} possible doubles",
            self.told.accepted.len(),
            self.told.answers.len(),
            self.told.ends.len(),
            self.told.again,
            self.told.slowest,
            self.bought,
            self.taken,
            self.ended.book("doubts"),
            self.ended.book("recovered_from_doubt"),
            self.ended.book("possible_doubles"),
        )
    }
}

/// Lets the callers finish, waits until everything has settled, and judges.
pub(crate) fn judge(load: Load, fleet: &Fleet, sim: &Sim) -> Verdict {
    judge_at(&fleet.room(sim), load.finish(), sim)
}

/// The same, in a room of this store, when the callers have finished.
pub(crate) fn judge_at(room: &Room, told: Told, sim: &Sim) -> Verdict {
    // One more node, which ends when no order of this store is open any more, and has its usage.
    let ended = room.engine().finish();
    assert_eq!(ended.done()["unreadable_records"], 0);
    let ledger =
        until("the last task's end", || Some(sim.ledger()).filter(|ledger| ledger.total("open") == 0));
    assert!(told.wrong.is_empty(), "no protocol knows this: {:#?}", told.wrong);
    nothing_is_lost(&told, &room.dead_letters(), &ledger);
    paid_once(&ended, &ledger);
    usage_equals_ledger(room, sim);
    let (taken, bought) = (ledger.accepted(), ledger.by_page().len() as u64);
    Verdict { told, ended, taken, bought }
}

/// Whatever was accepted has been answered with what was bought for it, or waits for a person.
fn nothing_is_lost(told: &Told, dead: &[Value], ledger: &Ledger) {
    let sold = ledger.by_page();
    let dead: BTreeSet<&str> = dead.iter().filter_map(|letter| letter["page"].as_str()).collect();
    for (n, id) in &told.accepted {
        let page = told.page_of(*n);
        let tasks = sold.get(page.as_str()).map_or(&[][..], Vec::as_slice);
        match (told.answers.get(n), told.ends.get(n)) {
            (Some(answer), _) => {
                let is_sold = tasks.iter().any(|task| task["answer"] == answer.as_str());
                assert!(is_sold, "{n}: nobody sold {answer} for {page}");
            }
            (None, Some(why)) => {
                // The provider is calm here, so there is no other reason but a deadline that an outage has eaten.
                assert!(dead.contains(page.as_str()), "{n}, order {id}, is lost: {why}; dead: {dead:?}");
            }
            (None, None) => panic!("{n}, order {id}, was accepted and told nothing"),
        }
    }
    let refused: Vec<_> = told.ends.iter().filter(|(n, _)| !told.accepted.contains_key(n)).collect();
    assert!(refused.is_empty(), "refused for good, with nothing wrong about them: {refused:?}");
}

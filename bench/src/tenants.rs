//! How much one tenant can slow another: the waits of a quiet tenant alone, and then beside a hostile one. Both are
//! in one run with one node, and with one mock provider that takes ten submits a second.

mod hostile;
mod node;
mod quiet;

use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use hostile::Hostile;
use node::BenchNode;
use quiet::Waits;

const SECTION: &str = "tenants";
/// The most by which a wait of the quiet tenant may grow, as a ratio.
const AIM: f64 = 2.0;

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let node = BenchNode::start(scale);
    let rounds = usize::try_from(scale.of(100, 40)).expect("a small number");
    say("tenants: the quiet tenant alone");
    // The first ones are for the caches and the connections.
    _ = quiet::measure(&node, 5);
    let alone = quiet::measure(&node, rounds);
    say("tenants: the hostile tenant comes");
    let hostile = Hostile::start(&node);
    hostile.wait_until_settled();
    say("tenants: the quiet tenant beside it");
    let before = (node.provider.totals(), hostile.counts());
    let beside = quiet::measure(&node, rounds);
    let after = (node.provider.totals(), hostile.counts());
    let mut rows: Vec<BenchRow> =
        alone.into_iter().zip(beside).flat_map(|(alone, beside)| compare(&alone, &beside)).collect();
    let count = |what: &str, amount: u64| BenchRow::new(SECTION, what, amount as f64, BenchUnit::Count);
    let codes =
        |totals: &quittance_mock_provider::Totals| totals.faults.get("code").copied().unwrap_or_default();
    rows.extend([
        count("hostile: orders placed", after.1.placed),
        count("  webhook deliveries begun that never end, meanwhile", after.1.hung - before.1.hung),
        count("  requests that waited, at the end", after.1.waiting),
        count("  live streams held and not read, at the end", after.1.streams),
        count("  rejected with an unlisted code, meanwhile", codes(&after.0) - codes(&before.0)),
        count("  tasks that the provider took, meanwhile, of both", after.0.accepted - before.0.accepted),
    ]);
    rows
}

fn compare(alone: &Waits, beside: &Waits) -> [BenchRow; 2] {
    let row = |what: String, alone: f64, beside: f64| {
        BenchRow::new(SECTION, what, beside, BenchUnit::Micros).against(alone, "alone").aim(Aim::AtMost(AIM))
    };
    [
        row(format!("{}, median", beside.what), alone.at(50), beside.at(50)),
        row("  p99".to_owned(), alone.at(99), beside.at(99)),
    ]
}

//! The memory of an order in flight, besides its own parameters, and of a caller that waits for one.

use crate::accepts::fraction;
use crate::child::weigh;
use crate::table::{Aim, BenchRow, BenchUnit, thousands};
use crate::{Scale, say};

const SECTION: &str = "memory";
const AIM_BYTES: f64 = 1024.0;

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for store in ["embedded", "memory"] {
        let counts: &[u64] = if scale.is_quick() { &[100_000] } else { &[100_000, 1_000_000] };
        for &orders in counts {
            say(&format!("memory: {orders} orders in flight in the {store} store"));
            let many = thousands(fraction(orders, 1));
            let waiters = if orders == 100_000 { orders } else { 0 };
            let weight = weigh(store, &scale.fresh_dir().path().join("store"), orders, waiters);
            let row = BenchRow::new(
                SECTION,
                format!("{store}, each of {many} in flight"),
                weight.bytes_per_order,
                BenchUnit::Bytes,
            )
            .against(AIM_BYTES, "allowed");
            // The store that is for trials only has no aim.
            rows.push(if store == "embedded" { row.aim(Aim::AtMost(1.0)) } else { row });
            if waiters > 0 {
                let what = format!("{store}, each of {many} who wait");
                rows.push(BenchRow::new(SECTION, what, weight.bytes_per_waiter, BenchUnit::Bytes));
            }
        }
    }
    rows
}

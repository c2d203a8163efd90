//! A million hand-outs on every store: three nodes whose clocks jump and that are restarted, and a crowd of callers.
//! The run panics if an answer is handed out twice, or with less life than was promised. The measured rate is a
//! by-product.

use crate::scene::WORKS;
use crate::stopwatch::now;
use crate::table::{BenchRow, BenchUnit};
use crate::{Scale, say};
use quittance_ports::{MemoryStore, Store};
use quittance_servers::{Postgres, Redis};
use quittance_sim::handouts::{Drill, HandoutReport, drill};
use quittance_store_embedded::EmbeddedStore;
use quittance_store_postgres::{PostgresStore, Settings as PostgresSettings};
use quittance_store_redis::{RedisStore, Settings as RedisSettings};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

const NODES: usize = 3;

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let dir = scale.fresh_dir();
    on_every_store(dir.path(), scale.of(1_000_000, 20_000))
}

fn on_every_store(dir: &Path, handouts: u64) -> Vec<BenchRow> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect(WORKS);
    let redis = Redis::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let postgres = Postgres::start(&[]);
    let memory: Vec<Arc<dyn Store>> = {
        let one = MemoryStore::default();
        (0..NODES).map(|_| Arc::new(one.clone()) as Arc<dyn Store>).collect()
    };
    let mut rows = stage(&runtime, handouts, "memory", memory);
    let embedded: Vec<Arc<dyn Store>> = {
        let one = EmbeddedStore::open(dir).expect(WORKS);
        (0..NODES).map(|_| Arc::new(one.clone()) as Arc<dyn Store>).collect()
    };
    rows.extend(stage(&runtime, handouts, "embedded", embedded));
    let on_redis = runtime.block_on(async {
        let mut all: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..NODES {
            let settings = RedisSettings::parse(&redis.url()).expect(WORKS);
            all.push(Arc::new(RedisStore::open(settings).await.expect(WORKS)));
        }
        all
    });
    rows.extend(stage(&runtime, handouts, "Redis", on_redis));
    let on_postgres = runtime.block_on(async {
        let mut all: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..NODES {
            let settings = PostgresSettings::parse(&postgres.url()).expect(WORKS);
            all.push(Arc::new(PostgresStore::open(settings).await.expect(WORKS)));
        }
        all
    });
    rows.extend(stage(&runtime, handouts, "PostgreSQL", on_postgres));
    rows
}

fn stage(runtime: &Runtime, handouts: u64, name: &'static str, stores: Vec<Arc<dyn Store>>) -> Vec<BenchRow> {
    let plan = Drill { seed: 1, handouts, stocks: 8, crowd: 256 };
    say(&format!("{handouts} hand-outs on {name}"));
    let start = now();
    let mut reply = 0;
    let drilled = runtime.block_on(drill(plan, stores, &mut |done| {
        if done / 100_000 > reply {
            reply = done / 100_000;
            say(&format!("{name}: {done}"));
        }
    }));
    let took = now().duration_since(start).as_secs_f64();
    let HandoutReport { handed_out, found_none, gone, repeats, restarts, jumps, least_left, breaches } =
        drilled.expect(WORKS);
    assert!(breaches.is_empty(), "{name}: {breaches:?}");
    let row = |what: &str, count: u64| {
        BenchRow::new("handouts", format!("{name}: {what}"), count as f64, BenchUnit::Count)
    };
    vec![
        BenchRow::new(
            "handouts",
            format!("{name}: hand-outs a second, all included"),
            handed_out as f64 / took,
            BenchUnit::PerSecond,
        ),
        row("hand-outs, none twice and none stale", handed_out),
        row("least life left at a hand-out, ms", least_left),
        row("found the stock empty", found_none),
        row("hung up in the middle", gone),
        row("repeated at any node, with the same answer", repeats),
        row("restarts", restarts),
        row("jumps of a clock", jumps),
    ]
}

#[cfg(test)]
mod tests {
    use super::on_every_store;

    #[test]
    fn no_answer_is_given_twice_or_stale_by_three_nodes_on_any_store() {
        let dir = tempfile::tempdir().expect("a directory that can be written");
        let rows = on_every_store(dir.path(), 3_000);
        assert_eq!(
            rows.iter().filter(|row| row.what.contains("none twice") && row.measured >= 3_000.0).count(),
            4
        );
    }
}

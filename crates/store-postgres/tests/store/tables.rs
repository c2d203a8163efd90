//! Tests of tables that are partly missing, and of tables whose list of versions is lost.

use super::{commit, create, fresh_schema, is_unavailable, open, run, settings};
use quittance_lifecycle::Counters;
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{MarkRequest, Membership, Store, StoreError, StoreMark, Verdict, Version, Which};
use quittance_servers::shared_postgres;
use quittance_store_postgres::{Migrated, PostgresOpenError, PostgresStore};

/// Ways to lose the list of the schema's versions.
const LOSSES: [&str; 3] = [
    "TRUNCATE {schema}.schema_versions",
    "DROP TABLE {schema}.schema_versions",
    "DELETE FROM {schema}.schema_versions WHERE version > 1",
];

const TABLES: [&str; 9] =
    ["orders", "counters", "nodes", "seal", "filling", "documents", "secrets", "limits", "leases"];

fn sql(statement: &str, schema: &str) -> String {
    shared_postgres().sql(&statement.replace("{schema}", schema))
}

fn known() -> i32 {
    i32::try_from(PostgresStore::migrations().len()).unwrap()
}

fn listed_versions(schema: &str) -> String {
    sql("SELECT count(*) FROM {schema}.schema_versions", schema)
}

async fn look(store: &PostgresStore, known: Option<&StoreMark>) -> Result<StoreMark, StoreError> {
    let known = known.map(|mark| (mark.identity, mark.epoch));
    let drawn = [if known.is_some() { 2 } else { 1 }; 16];
    let request = MarkRequest {
        drawn,
        known,
        secrets: &[[7; 32]],
        drawn_at: Some(START),
        is_at_work: true,
        is_putting_back: false,
    };
    store.mark(request).await
}

/// A working node on a new schema, and its mark of the store.
async fn node(schema: &str) -> (PostgresStore, StoreMark) {
    let store = open(settings(schema)).await;
    let mark = look(&store, None).await.unwrap();
    store.trust(mark.identity, mark.epoch);
    create(&store, &samples::queued("first", START).order).await;
    (store, mark)
}

#[test]
fn a_starting_node_uses_tables_whose_list_of_versions_is_lost_and_writes_it_again() {
    run(async {
        for loss in LOSSES {
            let schema = fresh_schema();
            drop(node(&schema).await);
            sql(loss, &schema);
            let as_it_is = open(settings(&schema).with_migrate(false)).await;
            assert_eq!(as_it_is.list(Which::ALL, None, 10).await.unwrap().len(), 1, "{loss}");
            let migrated = PostgresStore::migrate(&settings(&schema)).await.unwrap();
            assert_eq!(migrated, Migrated { from: known(), to: known(), applied: Vec::new() });
            assert_eq!(listed_versions(&schema), known().to_string(), "{loss}");

            sql(loss, &schema);
            let store = open(settings(&schema)).await;
            assert_eq!(listed_versions(&schema), known().to_string(), "{loss}");
            assert_eq!(store.list(Which::ALL, None, 10).await.unwrap().len(), 1, "{loss}");
        }
    });
}

#[test]
fn a_running_node_writes_a_lost_list_of_versions_again() {
    run(async {
        for loss in LOSSES {
            let schema = fresh_schema();
            let (store, mark) = node(&schema).await;
            sql(loss, &schema);
            let record = look(&store, Some(&mark)).await.unwrap();
            assert_eq!(record.identity, mark.identity, "nothing else is lost");
            assert_eq!(listed_versions(&schema), known().to_string(), "{loss}");
            create(&store, &samples::queued("second", START).order).await;
        }
    });
}

#[test]
fn a_store_whose_tables_were_all_truncated_can_be_opened_again() {
    run(async {
        let schema = fresh_schema();
        let (store, mark) = node(&schema).await;
        let tables = TABLES.map(|table| format!("{schema}.{table}")).join(", ");
        sql(&format!("TRUNCATE {tables}, {{schema}}.schema_versions"), &schema);
        drop(open(settings(&schema).with_migrate(false)).await);
        let record = look(&store, Some(&mark)).await.unwrap();
        assert!(record.identity != mark.identity && !record.recovery.is_zero(), "it has forgotten");
        store.trust(record.identity, record.epoch);
        create(&store, &samples::queued("again", START).order).await;
        assert_eq!(listed_versions(&schema), known().to_string());
        let reopened = open(settings(&schema)).await;
        assert_eq!(reopened.list(Which::ALL, None, 10).await.unwrap().len(), 1);
    });
}

/// An older schema without its list is updated from its real version.
#[test]
fn an_earlier_schema_without_its_list_of_versions_goes_on_from_where_it_is() {
    run(async {
        let schema = fresh_schema();
        drop(node(&schema).await);
        sql("DROP TABLE {schema}.limits, {schema}.leases", &schema);
        sql("DROP FUNCTION {schema}.leased, {schema}.lease", &schema);
        sql("TRUNCATE {schema}.schema_versions", &schema);
        let refused = PostgresStore::open(settings(&schema).with_migrate(false)).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::Older { found: 2, .. }), "{refused}");
        let migrated = PostgresStore::migrate(&settings(&schema)).await.unwrap();
        assert_eq!(migrated, Migrated { from: 2, to: known(), applied: vec!["0003_leases"] });
        assert_eq!(listed_versions(&schema), known().to_string());
    });
}

#[test]
fn tables_that_lack_something_are_not_taken_for_whole_when_their_list_of_versions_is_lost() {
    run(async {
        for (change, words) in [
            ("DROP TABLE {schema}.filling", "table filling"),
            ("DROP FUNCTION {schema}.order_counts", "function order_counts()"),
            ("DROP INDEX {schema}.orders_due", "index orders_due"),
            ("ALTER TABLE {schema}.orders DROP COLUMN once_timer", "column orders.once_timer"),
            ("ALTER TABLE {schema}.orders ALTER awaited TYPE text", "column orders.awaited"),
            ("ALTER TABLE {schema}.orders ADD marvel text", "column orders.marvel"),
        ] {
            let schema = fresh_schema();
            drop(node(&schema).await);
            sql(change, &schema);
            sql("TRUNCATE {schema}.schema_versions", &schema);
            for refused in [
                PostgresStore::open(settings(&schema)).await.unwrap_err(),
                PostgresStore::open(settings(&schema).with_migrate(false)).await.unwrap_err(),
                PostgresStore::migrate(&settings(&schema)).await.unwrap_err(),
            ] {
                assert!(matches!(refused, PostgresOpenError::Incomplete { .. }), "{change}: {refused}");
                assert!(refused.to_string().contains(words), "{change}: {refused}");
            }
            assert_eq!(listed_versions(&schema), "0", "{change}: nothing was written");
        }
    });
}

#[test]
fn a_table_that_is_gone_stops_commits_at_the_next_look_and_is_named() {
    run(async {
        for table in TABLES {
            let schema = fresh_schema();
            let (store, mark) = node(&schema).await;
            sql(&format!("DROP TABLE {{schema}}.{table} CASCADE"), &schema);
            let refused = look(&store, Some(&mark)).await.unwrap_err();
            assert!(super::chain(&refused).contains(table), "{table}: {refused:?}");
            let placed = commit(&store, Version::ABSENT, &samples::queued("next", START).order).await;
            assert!(is_unavailable(&placed), "{table}: {placed:?}");
            let (stock, by) =
                (samples::target("https://example.com/login"), samples::queued("x", START).order.key);
            let taken = store.take(&stock, START, &by, START, &Counters::default()).await;
            assert!(is_unavailable(&taken), "{table}: {taken:?}");
            let listed = store.list(Which::OPEN, None, 1).await;
            assert!(is_unavailable(&listed), "{table}: an idle node must not seem ready: {listed:?}");
            let findings = store.checkup().await.unwrap();
            let is_named = |what: &str| what.contains(table) && what.contains("DROP SCHEMA");
            assert!(
                findings.iter().any(|record| record.verdict == Verdict::Bad && is_named(&record.what)),
                "{table}: {findings:?}"
            );
            let refused = PostgresStore::migrate(&settings(&schema)).await.unwrap_err();
            assert!(matches!(refused, PostgresOpenError::Incomplete { .. }), "{table}: {refused}");
        }
    });
}

#[test]
fn commits_go_on_when_a_person_has_put_the_table_back() {
    run(async {
        let schema = fresh_schema();
        let (store, mark) = node(&schema).await;
        sql("ALTER TABLE {schema}.filling RENAME TO elsewhere", &schema);
        assert!(look(&store, Some(&mark)).await.is_err());
        let order = samples::queued("next", START).order;
        assert!(is_unavailable(&commit(&store, Version::ABSENT, &order).await));
        sql("ALTER TABLE {schema}.elsewhere RENAME TO filling", &schema);
        let record = look(&store, Some(&mark)).await.unwrap();
        assert_eq!(record.identity, mark.identity);
        create(&store, &order).await;
        assert_eq!(store.claim_due(START, after(60), 10).await.unwrap().orders.len(), 2);
    });
}

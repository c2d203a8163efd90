//! Tests of creating the schema, and of unexpected schemas.

use super::{create, fresh_schema, open, settings, settings_at};
use futures_util::future::join_all;
use quittance_lifecycle::{Key, Order};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Store, Version, Which};
use quittance_servers::shared_postgres;
use quittance_store_postgres::{Migrated, PostgresOpenError, PostgresStore, Settings};
use std::sync::Arc;

fn sql(statement: &str) -> String {
    shared_postgres().sql(statement)
}

#[test]
fn of_ten_nodes_that_start_at_once_one_makes_the_schema() {
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..10).map(|_| open(settings(&schema)))).await;
        let taken = sql(&format!("SELECT count(*), max(version) FROM {schema}.schema_versions"));
        assert_eq!(taken, format!("{0}|{0}", PostgresStore::migrations().len()));
        create(&nodes[9], &samples::queued("first", START).order).await;
    });
}

#[test]
fn migrations_can_be_run_by_hand_and_are_then_left_alone() {
    super::run(async {
        let schema = fresh_schema();
        let by_hand = settings(&schema).with_migrate(false);
        let refused = PostgresStore::open(by_hand.clone()).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::Older { found: 0, .. }), "{refused}");
        assert!(refused.to_string().contains("`quittance store migrate`"), "{refused}");

        let steps = PostgresStore::migrations();
        let known = i32::try_from(steps.len()).unwrap();
        let all: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
        let done = PostgresStore::migrate(&by_hand).await.unwrap();
        assert_eq!(done, Migrated { from: 0, to: known, applied: all });
        let again = PostgresStore::migrate(&by_hand).await.unwrap();
        assert_eq!(again, Migrated { from: known, to: known, applied: Vec::new() });
        create(&open(by_hand).await, &samples::queued("first", START).order).await;
    });
}

/// The schema is made by hand, without our program.
#[test]
fn a_schema_that_was_made_with_psql_is_used_as_it_is() {
    super::run(async {
        let schema = fresh_schema();
        sql(&PostgresStore::migration_script(&schema));
        let store = open(settings(&schema).with_migrate(false)).await;
        create(&store, &samples::queued("first", START).order).await;
        let steps = i32::try_from(PostgresStore::migrations().len()).unwrap();
        let again = PostgresStore::migrate(&settings(&schema)).await.unwrap();
        assert_eq!(again, Migrated { from: steps, to: steps, applied: Vec::new() });
    });
}

/// Schema 1 did not store the tenant beside each record.
#[test]
fn the_orders_of_an_earlier_schema_are_in_their_tenants_lists() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let [alices, bobs, rotten] = ["alice", "bob", "alice"].map(|tenant| {
            let order = samples::queued(&format!("order of {tenant}"), START).order;
            samples::of_tenant(&order, tenant)
        });
        let rotten = Arc::new(Order { key: Key([7; 32]), ..(*rotten).clone() });
        for order in [&alices, &bobs, &rotten] {
            create(&store, order).await;
        }
        drop(store);
        sql(&format!("DROP INDEX {schema}.orders_of_tenant"));
        sql(&format!("DROP TABLE {schema}.limits, {schema}.leases"));
        sql(&format!("DROP FUNCTION {schema}.leased, {schema}.lease"));
        sql(&format!("UPDATE {schema}.orders SET tenant = NULL"));
        sql(&format!("UPDATE {schema}.orders SET terms = 'garbage' WHERE key = '\\x{}'", rotten.key));
        sql(&format!("DELETE FROM {schema}.schema_versions WHERE version > 1"));
        let refused = PostgresStore::open(settings(&schema).with_migrate(false)).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::Older { found: 1, .. }), "{refused}");

        let store = open(settings(&schema)).await;
        for order in [&alices, &bobs] {
            let listed = store.list(Which::ALL.of(&order.terms.tenant), None, 10).await.unwrap();
            let keys: Vec<Key> = listed.into_iter().map(|record| record.unwrap().order.key).collect();
            assert_eq!(keys, [order.key]);
        }
        assert_eq!(store.list(Which::ALL, None, 10).await.unwrap().len(), 3);
    });
}

#[test]
fn a_newer_schema_is_used_if_it_says_that_it_can_be_and_else_refused() {
    super::run(async {
        let schema = fresh_schema();
        drop(open(settings(&schema)).await);
        sql(&format!("INSERT INTO {schema}.schema_versions VALUES (999, 'of a later version', 1)"));
        sql(&format!("ALTER TABLE {schema}.orders ADD COLUMN marvel text"));
        let store = open(settings(&schema)).await;
        create(&store, &samples::queued("rolling", START).order).await;
        assert_eq!(PostgresStore::migrate(&settings(&schema)).await.unwrap().applied, Vec::<&str>::new());

        sql(&format!("UPDATE {schema}.schema_versions SET usable_from = 999 WHERE version = 999"));
        for refused in [
            PostgresStore::open(settings(&schema)).await.unwrap_err(),
            PostgresStore::migrate(&settings(&schema)).await.unwrap_err(),
        ] {
            assert!(matches!(refused, PostgresOpenError::Newer { found: 999, .. }), "{refused}");
        }
    });
}

/// Any name of a schema is used as a name, and never runs as SQL.
#[test]
fn a_schema_with_a_strange_name_is_just_a_schema() {
    super::run(async {
        for (name, escaped) in [
            (
                "Ünder \"quotes\"; DROP SCHEMA public; --",
                "%C3%9Cnder%20%22quotes%22%3B%20DROP%20SCHEMA%20public%3B%20--",
            ),
            ("o'clock \\ $1", "o'clock%20%5C%20%241"),
        ] {
            let store = open(settings(escaped)).await;
            let order = samples::solved("odd", START).order;
            let mut watch = store.watch(&order.key).await.unwrap();
            let version = create(&store, &order).await;
            watch.changed().await;
            assert!(store.commit(version, &order, &Default::default(), START).await.is_ok());
            let literal = name.replace('\'', "''");
            assert_eq!(sql(&format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{literal}'")), "1");
            drop(store);
            sql(&format!("DROP SCHEMA \"{}\" CASCADE", name.replace('"', "\"\"")));
        }
        assert_eq!(sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'public'"), "1");
    });
}

#[test]
fn a_user_without_the_right_to_create_a_schema_gets_the_reason_and_can_use_a_prepared_one() {
    super::run(async {
        let schema = fresh_schema();
        sql("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE quittance FROM guest");
        let url = shared_postgres().url().replace("quittance@", "guest@");
        let refused = PostgresStore::open(settings_at(&url, &schema)).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::NotAllowed { .. }), "{refused}");
        assert!(refused.to_string().contains("`quittance store migrate`"), "{refused}");

        PostgresStore::migrate(&settings(&schema)).await.unwrap();
        sql(&format!(
            "GRANT USAGE ON SCHEMA {schema} TO guest; GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO guest;
             GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO guest"
        ));
        let store = open(settings_at(&url, &schema)).await;
        let order = samples::queued("guest", START).order;
        let version = create(&store, &order).await;
        assert!(version > Version::ABSENT);
    });
}

#[test]
fn a_store_that_does_not_open_says_why() {
    super::run(async {
        let port = quittance_servers::free_port();
        let away = format!("postgres://ann:s3cret@127.0.0.1:{port}/orders");
        let refused = PostgresStore::open(Settings::parse(&away).unwrap()).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::Unreachable { .. }), "{refused}");
        assert!(!super::chain(&refused).contains("s3cret"));
        assert!(refused.to_string().contains(&format!("ann@127.0.0.1:{port}/orders")), "{refused}");

        let url = shared_postgres().url();
        let nowhere = format!("{}/nowhere", url.strip_suffix("/quittance").unwrap());
        let refused = PostgresStore::open(Settings::parse(&nowhere).unwrap()).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::NoDatabase { .. }), "{refused}");
        let stranger = url.replace("quittance@", "stranger@");
        let refused = PostgresStore::open(Settings::parse(&stranger).unwrap()).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::Refused { .. }), "{refused}");
        let bad = Settings::parse(&url).unwrap().with_ca(b"no certificate".to_vec());
        let refused = PostgresStore::open(bad).await.unwrap_err();
        assert!(matches!(refused, PostgresOpenError::BadCa { .. }), "{refused}");
    });
}

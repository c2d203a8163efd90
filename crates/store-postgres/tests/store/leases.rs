//! Tests of leases that are special to this store.

use super::{fresh_schema, open, settings};
use quittance_ports::{LeaseOutcome, Leases, Version};
use quittance_servers::shared_postgres;
use std::time::Duration;

const LIFE: Duration = Duration::from_secs(30);

#[test]
fn limits_of_which_nothing_is_leased_any_more_are_removed_with_their_leases() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        for limit in ["first", "second"] {
            let leased = store.lease(limit, Version::ABSENT, 1, 5, LIFE).await.unwrap();
            assert!(matches!(leased, LeaseOutcome::Done(_)));
        }
        let sql = |statement: &str| shared_postgres().sql(&statement.replace("{schema}", &schema));
        sql("UPDATE {schema}.limits SET forget_at = 0 WHERE name = 'first'");
        let leased = store.lease("third", Version::ABSENT, 2, 5, LIFE).await.unwrap();
        assert!(matches!(leased, LeaseOutcome::Done(_)));
        let names = "SELECT string_agg(convert_from(name, 'UTF8'), ',' ORDER BY name) FROM {schema}";
        for table in ["limits", "leases"] {
            assert_eq!(sql(&format!("{names}.{table}")).trim(), "second,third");
        }
        assert_eq!(store.leased("first", 2).await.unwrap().version, Version::ABSENT);
    });
}

//! Tests of `doctor` on a server.

use super::{fresh_schema, open, settings, settings_at};
use quittance_ports::{Finding, Membership, Verdict};
use quittance_servers::Postgres;
use std::time::Duration;

async fn findings(server: &Postgres) -> Vec<Finding> {
    // A server that only reads has its schema already.
    let store = open(settings_at(&server.url(), "checked").with_call_wait(Duration::from_secs(5))).await;
    store.checkup().await.unwrap()
}

fn says(findings: &[Finding], verdict: Verdict, what: &str) -> bool {
    findings.iter().any(|finding| finding.verdict == verdict && finding.what.contains(what))
}

#[test]
fn a_server_that_keeps_every_promise_is_found_good() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let findings = store.checkup().await.unwrap();
        assert!(says(&findings, Verdict::Good, "PostgreSQL 1"), "{findings:?}");
        assert!(says(&findings, Verdict::Good, "synchronous_commit is on"));
        assert!(findings.iter().all(|finding| finding.verdict != Verdict::Bad), "{findings:?}");
    });
}

#[test]
fn each_setting_that_costs_a_promise_is_named_with_what_to_do() {
    super::run(async {
        let bad = [
            "fsync=off",
            "full_page_writes=off",
            "synchronous_commit=off",
            "autovacuum=off",
            "max_connections=12",
        ];
        let server = Postgres::start(&bad);
        let record = findings(&server).await;
        for what in ["set fsync = on", "set full_page_writes = on", "set synchronous_commit = on"] {
            assert!(says(&record, Verdict::Bad, what), "{what}: {record:?}");
        }
        assert!(says(&record, Verdict::Note, "set autovacuum = on"));
        assert!(says(&record, Verdict::Note, "max_connections"), "{record:?}");

        server.sql("ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()");
        super::until("it is read-only", async || server.sql("SHOW default_transaction_read_only") == "on")
            .await;
        assert!(says(&findings(&server).await, Verdict::Bad, "primary"));
    });
}

#[test]
fn standbys_that_are_not_waited_for_are_noted() {
    super::run(async {
        let server = Postgres::start(&["synchronous_commit=local", "synchronous_standby_names=*"]);
        assert!(says(&findings(&server).await, Verdict::Note, "synchronous_commit is local"));
    });
}

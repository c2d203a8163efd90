//! Checks the server's settings for `doctor`: each finding says what is at risk and what to do.

use crate::failure::PostgresError;
use crate::row::column;
use crate::shared::PostgresShared;
use crate::tables::{Tables, tables};
use quittance_ports::{Finding, Verdict};
use std::sync::atomic::Ordering;
use tokio_postgres::Row;

/// The duration from which another session's transaction is reported, in seconds: vacuum cannot remove rows that it
/// can still see.
const LONG_SECONDS: i64 = 600;

/// The query for the facts. Every user sees some of the activity and slots; the server's monitoring roles see all.
const ASK: &str = "
SELECT current_setting('server_version'),
       current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on',
       current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names') <> '',
       current_setting('autovacuum') = 'on',
       current_setting('data_checksums') = 'on',
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
       current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::int8 FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
       (SELECT count(*) FROM pg_replication_slots
        WHERE (xmin IS NOT NULL OR catalog_xmin IS NOT NULL OR NOT active))";

struct ServerFacts {
    version: String,
    syncs: bool,
    writes_full_pages: bool,
    synchronous_commit: String,
    has_standbys: bool,
    vacuums: bool,
    sums_pages: bool,
    is_read_only: bool,
    connections_max: i64,
    connections: i64,
    longest_seconds: i64,
    slots: i64,
}

impl ServerFacts {
    fn read(row: &Row) -> Result<Self, PostgresError> {
        Ok(Self {
            version: column(row, 0)?,
            syncs: column(row, 1)?,
            writes_full_pages: column(row, 2)?,
            synchronous_commit: column(row, 3)?,
            has_standbys: column(row, 4)?,
            vacuums: column(row, 5)?,
            sums_pages: column(row, 6)?,
            is_read_only: column(row, 7)?,
            connections_max: column(row, 8)?,
            connections: column(row, 9)?,
            longest_seconds: column(row, 10)?,
            slots: column(row, 11)?,
        })
    }
}

fn finding(verdict: Verdict, what: impl Into<String>) -> Finding {
    Finding { verdict, what: what.into() }
}

pub(crate) async fn findings(shared: &PostgresShared) -> Result<Vec<Finding>, PostgresError> {
    // What this node itself takes is among what is counted: not some of it, by chance, while it is still connecting.
    for lane in shared.readers.iter().chain(&shared.writers) {
        lane.settle().await;
    }
    let rows = shared.ask(ASK, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| PostgresError::Garbled("it has no row about the server's settings".into()))?;
    let facts = ServerFacts::read(row)?;
    let mut findings = vec![finding(Verdict::Good, format!("PostgreSQL {}", facts.version))];
    findings.extend(whole(shared).await?);
    findings.extend(promises(&facts));
    findings.extend(listening(shared));
    findings.extend(housekeeping(&facts, shared));
    Ok(findings)
}

/// A finding if tables are missing.
async fn whole(shared: &PostgresShared) -> Result<Option<Finding>, PostgresError> {
    Ok(match tables(shared).await? {
        Tables::Whole => None,
        Tables::Gone => Some(finding(Verdict::Bad, PostgresError::Gone.to_string())),
        Tables::Parts(missing) => {
            Some(finding(Verdict::Bad, PostgresError::Incomplete { missing }.to_string()))
        }
        Tables::Unlisted => Some(finding(
            Verdict::Note,
            "the list of the schema's versions (schema_versions) is lost, and the tables are whole: run `quittance store migrate`, \
             which writes it again",
        )),
    })
}

/// Findings about settings that break a promise.
fn promises(facts: &ServerFacts) -> Vec<Finding> {
    use Verdict::{Bad, Good, Note};
    let mut findings = Vec::new();
    if facts.is_read_only {
        let what = "the server can only be read (a standby, or read-only): nothing can be placed, paid or answered; \
                    set store.url to the primary";
        findings.push(finding(Bad, what));
    }
    if !facts.syncs {
        let what = "fsync is off: a crash of the machine can lose or damage any order, also what was paid for; set \
                    fsync = on";
        findings.push(finding(Bad, what));
    }
    if !facts.writes_full_pages {
        let what = "full_page_writes is off: a crash of the machine can leave half-written pages and \
                    unreadable orders; set full_page_writes = on";
        findings.push(finding(Bad, what));
    }
    findings.push(match &*facts.synchronous_commit {
        "off" => finding(
            Bad,
            "synchronous_commit is off: a crash of the server forgets the last moments of what it has acknowledged, and \
             with them intents to pay, so that something may be paid for twice; set synchronous_commit = on",
        ),
        "local" if facts.has_standbys => finding(
            Note,
            "synchronous_commit is local although there are synchronous standbys: when one of them takes over, the last \
             commits may be missing, and something may be paid for twice; set synchronous_commit = on",
        ),
        setting if facts.has_standbys => finding(
            Good,
            format!("synchronous_commit is {setting}, with synchronous standbys: a commit survives the loss of the primary"),
        ),
        setting => finding(
            Good,
            format!(
                "synchronous_commit is {setting}: a commit survives a crash of the server. A standby that takes over \
                 without synchronous_standby_names may lack the last ones"
            ),
        ),
    });
    findings
}

fn listening(shared: &PostgresShared) -> Option<Finding> {
    (!shared.hears.load(Ordering::Relaxed)).then(|| {
        finding(
            Verdict::Note,
            "notices (LISTEN) do not arrive, as through a pooler in transaction mode: a waiting caller learns up to a \
             second late of an answer that another node received; set store.listen_url to the address of the server itself",
        )
    })
}

/// Findings about settings that cause problems later.
fn housekeeping(facts: &ServerFacts, shared: &PostgresShared) -> Vec<Finding> {
    let mut notes = Vec::new();
    if !facts.vacuums {
        notes.push(
            "autovacuum is off: the tables only grow, and everything becomes slower; set autovacuum = on"
                .to_owned(),
        );
    }
    if facts.longest_seconds > LONG_SECONDS {
        notes.push(format!(
            "a transaction has been open for {} s: until it ends, vacuum cannot remove old versions of rows, and the tables \
             grow; look for it in pg_stat_activity",
            facts.longest_seconds
        ));
    }
    if facts.slots > 0 {
        notes.push(format!(
            "{} replication slots are not in use or hold old rows: the log or the tables grow until they move on; look at \
             pg_replication_slots",
            facts.slots
        ));
    }
    let ours = i64::try_from(shared.settings.connections).unwrap_or(i64::MAX).saturating_add(1);
    if facts.connections.saturating_add(ours) > facts.connections_max {
        notes.push(format!(
            "{} of {} connections are taken, and one more node needs {ours}: it would be refused; raise max_connections, \
             lower `connections` in store.url, or put a pooler in front",
            facts.connections, facts.connections_max
        ));
    }
    if !facts.sums_pages {
        notes.push(
            "data_checksums are off: a page that the disk has damaged is noticed late or never; pg_checksums --enable, with \
             the server stopped"
                .to_owned(),
        );
    }
    notes.into_iter().map(|what| finding(Verdict::Note, what)).collect()
}

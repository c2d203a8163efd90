//! Compares what a schema holds with what each migration makes. It recognizes tables whose list of versions is lost,
//! and finds tables that are missing while others exist.

use std::collections::BTreeSet;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// One line for each thing that a migration makes: its number, and the thing as [`LOOK`] names it.
const MADE: &str = include_str!("../migrations/made.txt");

/// The table that lists the migrations that have run.
pub(crate) const VERSIONS: &str = "schema_versions";

/// How many missing things a message names.
const NAMED_MAX: usize = 12;

/// The query for everything in a schema that a migration can make. Invalid indices do not count.
const LOOK: &str = "
WITH here AS (
    SELECT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1
)
SELECT CASE relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || relname FROM here WHERE relkind IN ('r', 'p', 'S')
UNION ALL
SELECT 'column ' || relname || '.' || a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
FROM here JOIN pg_catalog.pg_attribute AS a ON a.attrelid = here.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE relkind IN ('r', 'p')
UNION ALL
SELECT CASE WHEN i.indisunique THEN 'unique index ' ELSE 'index ' END || relname
FROM here JOIN pg_catalog.pg_index AS i ON i.indexrelid = here.oid WHERE i.indisvalid
UNION ALL
SELECT 'function ' || p.proname || '(' || pg_catalog.oidvectortypes(p.proargtypes) || ')'
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = $1";

/// The query for those of the relations `$2` and functions `$3` that are missing in schema `$1`. It is cheap enough
/// to run every second.
pub(crate) const MISSING: &str = "
SELECT w.name FROM unnest($2::text[]) AS w(name)
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relname = w.name AND c.relkind IN ('r', 'p', 'S'))
UNION ALL
SELECT w.name FROM unnest($3::text[]) AS w(name)
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = $1::text AND p.proname = w.name)";

/// The state of a schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SchemaShape {
    Nothing,
    /// Everything up to this migration exists, and nothing of later ones.
    Whole(i32),
    /// Some of our tables exist, but parts are missing, or they have unknown columns.
    Differs(String),
}

fn made() -> impl Iterator<Item = (i32, &'static str)> {
    MADE.lines().filter_map(|line| {
        let (step, what) = line.split_once(' ')?;
        Some((step.parse().ok()?, what))
    })
}

/// The tables and sequences that the store needs, without the list of versions.
pub(crate) fn relations() -> Vec<&'static str> {
    let name = |(_, what): (i32, &'static str)| {
        what.strip_prefix("table ").or_else(|| what.strip_prefix("sequence "))
    };
    made().filter_map(name).collect()
}

/// The functions that the store calls.
pub(crate) fn functions() -> Vec<&'static str> {
    let name = |(_, what): (i32, &'static str)| Some(what.strip_prefix("function ")?.split_once('(')?.0);
    made().filter_map(name).collect()
}

/// Some of the missing things, for a message.
pub(crate) fn name_some(mut missing: Vec<String>) -> String {
    let more = missing.len().saturating_sub(NAMED_MAX);
    missing.truncate(NAMED_MAX);
    let named = missing.join("; ");
    if more == 0 { named } else { format!("{named}; and {more} more") }
}

pub(crate) async fn look(client: &Client, schema: &str) -> Result<SchemaShape, tokio_postgres::Error> {
    let rows = client.query_typed(LOOK, &[(&schema, Type::TEXT)]).await?;
    let existing = rows.iter().map(|row| row.try_get::<_, String>(0)).collect::<Result<BTreeSet<_>, _>>()?;
    Ok(compare(&existing))
}

/// Compares existing things with the migrations. Other tables can share the schema. Unknown columns in our tables
/// come from a later version, or from other tables with the same names.
fn compare(existing: &BTreeSet<String>) -> SchemaShape {
    let Some(last) = made().filter(|(_, what)| existing.contains(*what)).map(|(step, _)| step).max() else {
        return SchemaShape::Nothing;
    };
    let of_last = |(step, what): (i32, &'static str)| (step <= last).then_some(what);
    let expected: BTreeSet<&str> = made().filter_map(of_last).collect();
    let missing = expected.iter().filter(|what| !existing.contains(**what)).map(|what| format!("no {what}"));
    let is_in_ours = |what: &str| {
        let table = what.strip_prefix("column ").and_then(|column| column.split_once('.'));
        table.is_some_and(|(table, _)| expected.contains(format!("table {table}").as_str()))
    };
    let other = existing.iter().filter(|what| is_in_ours(what) && !expected.contains(what.as_str()));
    let differs: Vec<String> = missing.chain(other.map(|what| format!("unexpected {what}"))).collect();
    if differs.is_empty() { SchemaShape::Whole(last) } else { SchemaShape::Differs(name_some(differs)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::known;

    fn standing(up_to: i32) -> BTreeSet<String> {
        made().filter(|(step, _)| *step <= up_to).map(|(_, what)| what.to_owned()).collect()
    }

    #[test]
    fn every_step_makes_something_by_which_it_is_known() {
        assert_eq!(made().count(), MADE.lines().count());
        assert_eq!(compare(&standing(0)), SchemaShape::Nothing);
        for step in 1..=known() {
            assert_eq!(compare(&standing(step)), SchemaShape::Whole(step));
        }
    }

    #[test]
    fn what_others_keep_in_the_schema_is_no_concern_of_ours() {
        let mut existing = standing(known());
        existing
            .extend(["table guests", "column guests.name text", "index orders_by_guest"].map(String::from));
        assert_eq!(compare(&existing), SchemaShape::Whole(known()));
        existing.insert("column orders.marvel text".into());
        assert_eq!(compare(&existing), SchemaShape::Differs("unexpected column orders.marvel text".into()));
    }

    #[test]
    fn a_message_names_some_of_what_is_missing_and_counts_the_rest() {
        let SchemaShape::Differs(named) = compare(&BTreeSet::from(["table orders".to_owned()])) else {
            panic!("most of it is missing")
        };
        assert!(named.starts_with("no column counters.amount") && named.ends_with(" more"), "{named}");
        assert!(named.len() < 1000, "{named}");
    }
}

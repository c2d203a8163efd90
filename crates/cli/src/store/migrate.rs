//! Migrates PostgreSQL's tables by hand, if nodes may not do it.

use crate::exit::{CliError, Exit, OrExit};
use crate::output;
use quittance::PostgresStore;
use quittance_config::StoreConfig;
use serde_json::json;

const HEADING: &str = "\
-- What `quittance store migrate` runs where nothing is yet, for psql -v ON_ERROR_STOP=1. Where some of
-- the steps were taken (schema_versions lists them), begin behind the note of the last of them.
";

/// Migrates the tables, or prints the statements, which needs no server and no password.
pub(super) async fn run(
    typed: &str,
    print: bool,
    as_json: bool,
    named: impl Fn(&str) -> Result<StoreConfig, CliError>,
) -> Result<Exit, CliError> {
    let store = named(typed)?;
    if print {
        let schema = store.schema().or_exit(Exit::Config)?;
        let script = PostgresStore::migration_script(&schema);
        return output::print(&format!("{HEADING}{script}")).map(|()| Exit::Done);
    }
    let settings = store.postgres().or_exit(Exit::Config)?;
    let Some(settings) = settings else {
        let what = format!(
            "{} has no tables to bring up to date: that is for PostgreSQL",
            store.url.scheme().name()
        );
        return Err(CliError::new(Exit::Usage, what));
    };
    let done = PostgresStore::migrate(&settings).await.or_exit(Exit::Store)?;
    let shown = store.url.shown();
    let object = json!({ "store": shown, "from": done.from, "to": done.to, "applied": done.applied });
    output::show(as_json, &object, || {
        if done.applied.is_empty() {
            return format!("{shown} is up to date (version {})\n", done.to);
        }
        let steps: String = done.applied.iter().map(|name| format!("  {name}\n")).collect();
        format!("{shown} went from version {} to {}:\n{steps}", done.from, done.to)
    })
}

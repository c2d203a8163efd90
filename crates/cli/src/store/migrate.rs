//! PostgreSQL's tables: bringing them up to date by hand, for whoever does not let nodes do that.

use crate::config::StoreConfig;
use crate::exit::{Exit, Trouble};
use crate::output;
use quittance::PostgresStore;
use serde_json::json;
use std::fmt::Write;

/// Printing needs no server, and so no password; `named` finds the store otherwise.
pub(super) async fn run(
    typed: &str,
    print: bool,
    as_json: bool,
    named: impl Fn(&str) -> Result<StoreConfig, Trouble>,
) -> Result<Exit, Trouble> {
    if print {
        return output::print(&statements()).map(|()| Exit::Done);
    }
    let store = named(typed)?;
    let settings = store.postgres().map_err(|error| Trouble::of(Exit::Config, &error))?;
    let Some(settings) = settings else {
        let what = format!(
            "{} has no tables to bring up to date: that is for PostgreSQL",
            store.url.scheme().name()
        );
        return Err(Trouble::new(Exit::Usage, what));
    };
    let done = PostgresStore::migrate(&settings).await.map_err(|error| Trouble::of(Exit::Store, &error))?;
    let shown = store.url.shown();
    let text = match as_json {
        true => {
            let object = json!({ "store": shown, "from": done.from, "to": done.to, "applied": done.applied });
            format!("{object}\n")
        }
        false if done.applied.is_empty() => format!("{shown} is up to date (version {})\n", done.to),
        false => {
            let mut text = format!("{shown} went from version {} to {}:\n", done.from, done.to);
            for name in &done.applied {
                _ = writeln!(text, "  {name}");
            }
            text
        }
    };
    output::print(&text).map(|()| Exit::Done)
}

/// To be read, and not to be run as it is: the account of what was done is kept by whoever runs it.
fn statements() -> String {
    let mut text = String::from(
        "-- What `quittance store migrate` runs, in one transaction; it also makes the schema, and notes each step in it.\n\n",
    );
    for (name, sql) in PostgresStore::migrations() {
        _ = writeln!(text, "-- {name}\n{}\n", sql.trim_end());
    }
    text
}

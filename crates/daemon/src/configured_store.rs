//! Opens the configured store. Errors say what to do.

use crate::setup_error::{SetupError, SetupFault};
use quittance::{Opened, SECRET_NAME, SPILL_NAME, StoreOpenError, embedded, postgres};
use quittance_config::{StoreConfig, StoreUrl};
use std::path::{Path, PathBuf};

/// The error of a command that reads a store which does not exist. To open it would create an empty store, and the
/// command would report that all is well.
#[must_use]
pub fn missing(store: &StoreConfig) -> Option<SetupError> {
    let StoreUrl::Embedded(dir) = &store.url else { return None };
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    match dir.join(embedded::DATABASE).try_exists() {
        Ok(true) => return None,
        Ok(false) => {}
        Err(error) => {
            let what = format!(
                "the store in {} cannot be read ({error}): run the command as the user that runs `quittance serve`, or with access \
                 to that folder. Nothing was created.",
                whole.display()
            );
            return Some(SetupError::new(SetupFault::Store, what));
        }
    }
    if let Some(what) = lost(dir, &whole) {
        return Some(SetupError::new(SetupFault::Store, what));
    }
    let what = format!(
        "there is no store in {}: `quittance serve` and `quittance solve` create it. If your store is elsewhere, go to the folder in \
         which `quittance serve` was started, name its configuration with --config, or name the store with --set \
         store.url=embedded:FOLDER. Nothing was created.",
        whole.display()
    );
    Some(SetupError::new(SetupFault::Store, what))
}

/// What to do about a folder whose database is lost; `None` if it is not lost.
fn lost(dir: &Path, whole: &Path) -> Option<String> {
    let (database, rescued) = (embedded::DATABASE, embedded::RESCUED);
    if dir.join(rescued).exists() {
        return Some(format!(
            "{database} was deleted or moved while a node had the store in {} open, and the node saved {rescued} there. Put \
             {database} back if you have it; then start `quittance serve`: without it, it continues with the copy, and lists every open \
             order (`quittance dead list --cause store_forgot`). Nothing was created.",
            whole.display()
        ));
    }
    if !dir.join(embedded::TRAIL).exists() {
        return dir.join(SECRET_NAME).exists().then(|| {
            format!(
                "{database} is gone from the store in {}, where a node has worked. Put {database} back from a backup if you have one: \
                 without it, `quittance serve` knows none of its orders. Nothing was created.",
                whole.display()
            )
        });
    }
    Some(format!(
        "{database} is gone from the store in {}, and orders.trail names its orders. Put {database} back from a backup if you have \
             one; then start `quittance serve`: it lists every order that is missing (`quittance dead list --cause unreadable`) and \
             buys none of them again. Nothing was created.",
        whole.display()
    ))
}

/// Opens a store without a node, unchanged: a missing store is not created, and tables are not created or migrated.
pub async fn open(store: &StoreConfig) -> Result<Opened, SetupError> {
    if let Some(missing) = missing(store) {
        return Err(missing);
    }
    open_to_fill(&store.as_it_is()).await
}

/// Opens a store to which orders are copied. Its tables are created, unless the configuration leaves that to an
/// operator.
pub async fn open_to_fill(store: &StoreConfig) -> Result<Opened, SetupError> {
    let place = store.place().map_err(SetupError::config)?;
    place.open().await.map_err(|error| open_error(&error))
}

/// The error of opening a store. If tables are missing, it names the command that creates them.
#[must_use]
pub fn open_error(error: &StoreOpenError) -> SetupError {
    let StoreOpenError::Postgres(postgres::PostgresOpenError::Older { address, found, known }) = error else {
        return SetupError::store(error);
    };
    let (what, does) = match found {
        0 => (format!("there are no tables of Quittance at {address}"), "makes them"),
        _ => (
            format!("the tables at {address} are of version {found}, and this program needs {known}"),
            "brings them up to date",
        ),
    };
    let what = format!(
        "{what}: `quittance store migrate` {does}, and so does a node that starts, unless `store.migrate` is false"
    );
    SetupError::new(SetupFault::Store, what)
}

/// The spill in this folder, if it contains events.
#[must_use]
pub fn spilled(folder: &Path) -> Option<PathBuf> {
    let spill = folder.join(SPILL_NAME);
    std::fs::metadata(&spill).is_ok_and(|found| found.len() > 0).then_some(spill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_tables_names_the_command_that_makes_them() {
        for (found, words) in [(0, "no tables"), (1, "of version 1, and this program needs 2")] {
            let address = "postgres://h/d?schema=s".into();
            let error = open_error(&postgres::PostgresOpenError::Older { address, found, known: 2 }.into());
            assert_eq!(error.fault, SetupFault::Store);
            for words in [words, "?schema=s", "`quittance store migrate`"] {
                assert!(error.what.contains(words), "{words}: {error}");
            }
        }
    }
}

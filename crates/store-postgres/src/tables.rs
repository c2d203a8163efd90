//! Checks every second whether all tables exist. If all are missing, they are made again. If some are missing,
//! nothing is written. A lost list of versions is restored.

use crate::PostgresStore;
use crate::failure::{PARTS_ADVICE, PostgresError};
use crate::lane::SqlParams;
use crate::row::column;
use crate::schema::known;
use crate::shape;
use crate::shared::PostgresShared;
use std::sync::atomic::Ordering;
use tokio_postgres::types::Type;

/// The result of one look at the catalogue.
pub(crate) enum Tables {
    Whole,
    /// None of the tables exists.
    Gone,
    /// All tables exist except the list of versions, or the list lacks migrations that have run.
    Unlisted,
    /// Some tables are missing, and others are there. Holds the names of the missing ones.
    Parts(String),
}

pub(crate) async fn tables(shared: &PostgresShared) -> Result<Tables, PostgresError> {
    let (mut relations, functions) = (shape::relations(), shape::functions());
    let tables = relations.len();
    relations.push(shape::VERSIONS);
    let params: SqlParams<'_> = &[
        (&shared.settings.schema, Type::TEXT),
        (&relations, Type::TEXT_ARRAY),
        (&functions, Type::TEXT_ARRAY),
    ];
    let rows = shared.ask(shape::MISSING, params).await?;
    let missing = rows.iter().map(|row| column::<String>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let lacks_list = missing.iter().any(|name| name == shape::VERSIONS);
    let gone: Vec<String> = missing.into_iter().filter(|name| name != shape::VERSIONS).collect();
    if lacks_list && gone.iter().filter(|name| relations.contains(&name.as_str())).count() == tables {
        return Ok(Tables::Gone);
    }
    if !gone.is_empty() {
        return Ok(Tables::Parts(shape::name_some(gone)));
    }
    if lacks_list {
        return Ok(Tables::Unlisted);
    }
    let rows = shared.ask(&shared.statements.listed_version, &[]).await?;
    let listed = rows.first().map(|row| column::<i32>(row, 0)).transpose()?;
    Ok(if listed.unwrap_or(0) < known() { Tables::Unlisted } else { Tables::Whole })
}

impl PostgresStore {
    /// Checks the tables. Fails, and stops all writes, while some are missing.
    pub(crate) async fn look_at_tables(&self) -> Result<(), PostgresError> {
        let shared = self.shared();
        let record = tables(shared).await?;
        let missing = match &record {
            Tables::Parts(missing) => Some(missing.clone()),
            Tables::Whole | Tables::Gone | Tables::Unlisted => None,
        };
        let is_news = shared.note_missing(missing);
        match record {
            Tables::Whole => {
                shared.reported_list.store(false, Ordering::Relaxed);
                if is_news {
                    tracing::info!("all tables of Quittance are there again");
                }
                Ok(())
            }
            Tables::Gone => self.make_tables_again().await,
            Tables::Unlisted => {
                self.list_versions_again().await;
                Ok(())
            }
            Tables::Parts(missing) => {
                if is_news {
                    tracing::error!(
                        missing,
                        "some tables of Quittance are gone and others stand: {PARTS_ADVICE}"
                    );
                }
                Err(PostgresError::Incomplete { missing })
            }
        }
    }

    async fn make_tables_again(&self) -> Result<(), PostgresError> {
        let settings = &self.shared().settings;
        let gone = || PostgresError::Gone;
        if !settings.migrate {
            tracing::error!("the tables of Quittance are gone: run `quittance store migrate`");
            return Err(gone());
        }
        match Self::migrate(settings).await {
            Ok(migrated) => {
                if !migrated.applied.is_empty() {
                    tracing::warn!(
                        to = migrated.to,
                        "the tables of Quittance were gone, and were made again: they are empty"
                    );
                }
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "the tables of Quittance are gone and cannot be made again");
                Err(gone())
            }
        }
    }

    /// Restores the list of versions. No promise depends on it, so work continues without it.
    async fn list_versions_again(&self) {
        let shared = self.shared();
        let why = if shared.settings.migrate {
            let Err(error) = Self::migrate(&shared.settings).await else { return };
            error.to_string()
        } else {
            "store.migrate is false".to_owned()
        };
        if !shared.reported_list.swap(true, Ordering::Relaxed) {
            tracing::error!(
                why,
                "the list of the schema's versions (schema_versions) is lost: run `quittance store migrate`, which writes it again"
            );
        }
    }
}

//! Seals a store, and unseals it.

use super::must_exist;
use crate::exit::{CliError, Exit, OrExit};
use crate::output;
use crate::output::harmless;
use quittance::Opened;
use quittance_config::StoreConfig;
use quittance_daemon::configured_store;

pub(super) async fn seal(store: &StoreConfig, note: &str) -> Result<Exit, CliError> {
    must_exist(store)?;
    let opened = configured_store::open(store).await?;
    opened.membership.seal(Some(note)).await.or_exit(Exit::Store)?;
    let shown = store.url.shown();
    output::print(&format!(
        "{shown} is sealed: {}\n`quittance store unseal --yes` removes the seal\n",
        harmless(note)
    ))?;
    Ok(Exit::Done)
}

pub(super) async fn unseal(store: &StoreConfig, yes: bool) -> Result<Exit, CliError> {
    must_exist(store)?;
    let opened = configured_store::open(store).await?;
    let shown = store.url.shown();
    let Some(note) = opened.membership.sealed().await.or_exit(Exit::Store)? else {
        return let_nodes_in(&opened, &shown, yes).await;
    };
    if !yes {
        let what = format!(
            "{shown} was sealed: {note}. If another store has its orders now, they would be paid for twice: `--yes` unseals \
             the store nevertheless"
        );
        return Err(CliError::new(Exit::Bad, what));
    }
    opened.membership.seal(None).await.or_exit(Exit::Store)?;
    output::print(&format!("{shown} is unsealed; the seal was: {}\n", harmless(&note)))?;
    Ok(Exit::Done)
}

/// Removes the mark of a copy that cannot be finished any more. The mark keeps nodes away.
async fn let_nodes_in(opened: &Opened, shown: &str, yes: bool) -> Result<Exit, CliError> {
    let Some(note) = opened.membership.filling().await.or_exit(Exit::Store)? else {
        output::print(&format!("{shown} is open\n"))?;
        return Ok(Exit::Done);
    };
    if !yes {
        let what = format!(
            "{shown} is being filled ({note}), and orders that have not come yet would be paid for again: run the same \
             `quittance store copy` to its end; `--yes` lets nodes in nevertheless"
        );
        return Err(CliError::new(Exit::Bad, what));
    }
    opened.membership.set_filling(None).await.or_exit(Exit::Store)?;
    output::print(&format!("{shown} is open; it was being filled: {}\n", harmless(&note)))?;
    Ok(Exit::Done)
}

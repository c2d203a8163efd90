//! `quittance store`: actions on a whole store: inspect it, seal and unseal it, move its orders to another store, and
//! migrate PostgreSQL's tables. It works on stores and starts no node.

mod copy;
mod migrate;
mod seal;
pub(crate) mod status;

use crate::exit::{CliError, Exit};
use clap::{Args, Subcommand};
use quittance_config::{Config, Credential, FROM_PASSWORD, StoreConfig, StoreUrl, TO_PASSWORD};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance store status                          the configured store
  quittance store copy config redis://db:6379     copy it to Redis
  quittance store copy embedded:./quittance-data \\
      postgres://quittance@db/quittance
  quittance store seal --note 'maintenance until noon'
  quittance store migrate --print | psql -v ON_ERROR_STOP=1 $OWNERS_URL

A store is written as in `store.url`; `config` is the configured store. Never
put a password on the command line, where every user of the machine can read it.
Set QUITTANCE_FROM_PASSWORD for FROM (or the only store of the command), and
QUITTANCE_TO_PASSWORD for TO.

Exit codes:
  0  done
  1  copy: some orders are missing, each is listed. unseal: --yes is missing
  2  the command was not understood
  3  the result could not be written
  4  the configuration is wrong
  5  a store cannot be opened or used";

#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand, Debug)]
enum StoreCommand {
    /// Show the contents, the nodes and the durability settings of a store
    Status {
        /// Store, written as in `store.url`; `config` is the configured one
        #[arg(value_name = "URL", default_value = CONFIGURED)]
        store: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Copy all orders and usage to another store, and seal the old one
    #[command(after_help = copy::AFTER_HELP)]
    Copy {
        /// Store that has the orders
        #[arg(value_name = "FROM")]
        from: String,
        /// Store that gets the orders
        #[arg(value_name = "TO")]
        to: String,
        /// Count what would be copied, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Seal a store: it can be read, but accepts no changes
    ///
    /// Nodes that run on it ask callers to retry later, and keep callbacks of the provider in their spill.
    Seal {
        /// Store, written as in `store.url`; `config` is the configured one
        #[arg(value_name = "URL", default_value = CONFIGURED)]
        store: String,
        /// Reason that users of the store see
        #[arg(long, value_name = "TEXT", default_value = "closed by hand")]
        note: String,
    },
    /// Unseal a store
    Unseal {
        /// Store, written as in `store.url`; `config` is the configured one
        #[arg(value_name = "URL", default_value = CONFIGURED)]
        store: String,
        /// Confirm, even if its orders now run on another store
        #[arg(long)]
        yes: bool,
    },
    /// Migrate PostgreSQL's tables, or print the statements
    ///
    /// A node migrates the tables when it starts, unless `store.migrate` is false. Then a user with the right to change tables runs this first.
    Migrate {
        /// Store, written as in `store.url`; `config` is the configured one
        #[arg(value_name = "URL", default_value = CONFIGURED)]
        store: String,
        /// Print the SQL statements, and run nothing
        #[arg(long)]
        print: bool,
        /// Print one JSON object
        #[arg(long, conflicts_with = "print")]
        json: bool,
    },
}

/// The word for the configured store.
const CONFIGURED: &str = "config";

pub(crate) async fn run(args: StoreArgs, config: &Config) -> Result<Exit, CliError> {
    let one = |typed: &str| named(typed, FROM_PASSWORD, config);
    match args.command {
        StoreCommand::Status { store, json } => status::run(&one(&store)?, config, json).await,
        StoreCommand::Copy { from, to, dry_run, json } => {
            let (from, to) = (one(&from)?, named(&to, TO_PASSWORD, config)?);
            copy::run(&from, &to, dry_run, json).await
        }
        StoreCommand::Seal { store, note } => seal::seal(&one(&store)?, &note).await,
        StoreCommand::Unseal { store, yes } => seal::unseal(&one(&store)?, yes).await,
        StoreCommand::Migrate { store, print, json } => migrate::run(&store, print, json, one).await,
    }
}

/// The store from the command line. Errors do not repeat an address with a user: it may contain a password.
fn named(typed: &str, password: &'static str, config: &Config) -> Result<StoreConfig, CliError> {
    if typed == CONFIGURED {
        return Ok(config.store.clone());
    }
    let usage = |what: String| Err(CliError::new(Exit::Usage, what));
    let Some(url) = StoreUrl::parse(typed) else {
        let shown = if typed.contains('@') {
            "the address"
        } else {
            &format!("`{}`", crate::output::harmless(typed))
        };
        return usage(format!(
            "{shown} is not a store: write `config`, embedded:FOLDER, redis://HOST:PORT or postgres://USER@HOST:PORT/DATABASE, \
             as in `store.url`"
        ));
    };
    if url.has_password() {
        return usage(format!(
            "there is a password in the address, and every user of this machine can read it in the list of processes: leave \
             it out, put it into the environment variable {password}, and replace it, because it has been seen"
        ));
    }
    let is_shared = url.scheme().is_shared();
    let password = Credential::in_variable(password, &config.environment).filter(|_| is_shared);
    match config.store.named(url, password) {
        Err(why) => usage(format!("this address cannot be used: {why}")),
        Ok(store) => store.place().map(|_| store).map_err(|error| CliError::of(Exit::Config, &error)),
    }
}

/// Checks that an embedded store exists. Otherwise an empty one would be created.
pub(crate) fn must_exist(store: &StoreConfig) -> Result<(), CliError> {
    match &store.url {
        StoreUrl::Memory => {
            let what =
                "a store in memory is gone when its process ends: there is nothing to look at from here";
            Err(CliError::new(Exit::Usage, what))
        }
        _ => quittance_daemon::configured_store::missing(store).map_or(Ok(()), |missing| Err(missing.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;

    fn name(typed: &str, settings: &[&str], variables: &[(&str, &str)]) -> Result<StoreConfig, CliError> {
        let mut config = config_with(settings);
        config.environment = variables.iter().copied().collect();
        named(typed, FROM_PASSWORD, &config)
    }

    #[test]
    fn a_store_is_named_by_its_address_or_as_the_configured_one() {
        assert_eq!(name("config", &["store.url=embedded:x"], &[]).unwrap().url.shown(), "embedded:x");
        let redis = name("redis://h", &[], &[(FROM_PASSWORD, "s3cr3t")]).unwrap();
        assert_eq!(redis.password.as_ref().unwrap().get().unwrap().reveal(), "s3cr3t");
        assert!(!format!("{redis:?}").contains("s3cr3t"));
        assert!(name("redis://h", &[], &[]).unwrap().password.is_none());
        assert!(name("embedded:y", &[], &[(FROM_PASSWORD, "s3cr3t")]).unwrap().password.is_none());
    }

    #[test]
    fn a_password_at_the_prompt_is_refused_and_not_repeated() {
        for (typed, word) in [
            ("redis://:s3cr3t@h", FROM_PASSWORD),
            ("postgres://u:s3cr3t@h/db", FROM_PASSWORD),
            ("mysql://u:s3cr3t@h/db", "as in `store.url`"),
            ("postgres://h:s3cr3t/db", "cannot be"),
        ] {
            let error = name(typed, &[], &[]).unwrap_err();
            assert_eq!(error.exit, Exit::Usage, "{typed}");
            assert!(error.what.contains(word) && !error.what.contains("s3cr3t"), "{}", error.what);
        }
    }

    #[test]
    fn a_store_that_is_not_there_is_not_made_to_be_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let typed = format!("embedded:{}", folder.path().join("typo").display());
        let store = name(&typed, &[], &[]).unwrap();
        assert_eq!(must_exist(&store).unwrap_err().exit, Exit::Store);
        assert_eq!(must_exist(&name("memory:", &[], &[]).unwrap()).unwrap_err().exit, Exit::Usage);
    }
}

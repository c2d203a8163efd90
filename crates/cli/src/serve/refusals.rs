//! What `serve` refuses to start with, as far as the configuration tells. `serve` and `config check` ask here, so that they
//! cannot differ: a configuration that is called right is one that starts.

use super::sockets::CannotListen;
use super::{Source, setup, source, wanted};
use crate::exit::{CliError, Exit};
use crate::node;
use quittance::embedded;
use quittance_config::{Config, StoreUrl};
use rustix::fs::{Access, access};
use std::path::Path;

/// Folders of the system in which no file can be kept, not even by root.
const NO_FILES: [&str; 2] = ["/proc", "/sys"];

/// Everything that is wrong, each with what to do; nothing is opened, called or changed. `tls_self_signed` and `has_https`
/// are what the command line adds.
pub(crate) fn refusals(config: &Config, tls_self_signed: Option<&Path>, has_https: bool) -> Vec<CliError> {
    let certificate = match source(tls_self_signed, has_https, config) {
        Ok(Some(Source::Files { cert, key })) => {
            super::load(&cert, &key).map(drop).map_err(|error| CliError::of(Exit::Config, &error))
        }
        Ok(_) => Ok(()),
        Err(trouble) => Err(trouble),
    };
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets).map(drop));
    let admin = config.admin.iter().map(|key| key.digest().map(drop));
    let secret = [config.callback_secret().map(drop), config.alerts.settings().map(drop)];
    let keys = tenants.chain(admin).chain(secret).filter_map(|checked| checked.err());
    let keys = keys.map(|error| CliError::of(Exit::Config, &error));
    let password = config.store.place().map(drop).map_err(|error| CliError::of(Exit::Config, &error));
    let mut found: Vec<CliError> =
        [node::check_provider(config), certificate, password, folder_is_usable(config)]
            .into_iter()
            .filter_map(Result::err)
            .collect();
    found.extend(keys);
    // Whatever else would be refused, in the words in which it would be.
    if found.is_empty() {
        found.extend(setup(config, "check").err());
    }
    let mut told = Vec::new();
    found.retain(|trouble| {
        let is_new = !told.contains(&trouble.what);
        told.push(trouble.what.clone());
        is_new
    });
    found
}

/// Which addresses of the configuration cannot be listened on: each is tried and given up again, as `serve` would try it.
pub(crate) fn unusable_addresses(config: &Config) -> Vec<CannotListen> {
    let has_https = source(None, false, config).is_ok_and(|source| source.is_some());
    wanted(config, None, None, has_https).unusable()
}

/// That this node can keep its files where the configuration says. Nothing is made.
fn folder_is_usable(config: &Config) -> Result<(), CliError> {
    let (folder, setting) = match (&config.store.url, &config.store.home) {
        (StoreUrl::Embedded(folder), _) => (folder, "store.url"),
        (_, Some(home)) => (home, "store.home"),
        (_, None) => return Ok(()),
    };
    let wrong = |why: String| {
        let what = format!("`{setting}` names the folder {}, {why}", folder.display());
        Err(CliError::new(Exit::Store, what))
    };
    if folder.exists() {
        return match cannot_keep_files(folder) {
            Some(why) => wrong(why),
            None => Ok(()),
        };
    }
    let is_there = |above: &&Path| above.as_os_str().is_empty() || above.exists();
    // Only the last folder of an embedded store is made.
    let above = match config.store.url {
        StoreUrl::Embedded(_) => folder.parent().filter(is_there),
        _ => folder.ancestors().skip(1).find(is_there),
    };
    match above {
        None => {
            let parent = folder.parent().unwrap_or(folder).display();
            wrong(format!(
                "and there is no folder {parent} to make it in: make that one (`mkdir -p {parent}`), or name another"
            ))
        }
        Some(above) if above.as_os_str().is_empty() => {
            cannot_keep_files(Path::new(".")).map_or(Ok(()), wrong)
        }
        Some(above) => cannot_keep_files(above).map_or(Ok(()), wrong),
    }
}

/// Why no file can be made in this folder, if none can.
fn cannot_keep_files(folder: &Path) -> Option<String> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Some(format!("and {shown} is a file: name a folder"));
    }
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if let Some(system) = NO_FILES.iter().find(|system| whole.starts_with(system)) {
        return Some(format!(
            "and {system} is the system's own, where nothing can be kept: name another folder"
        ));
    }
    if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        return Some(format!(
            "and this user cannot write in {shown} ({error}): let it, or name another folder"
        ));
    }
    let database = folder.join(embedded::DATABASE);
    let is_shut = database.exists() && access(&database, Access::READ_OK | Access::WRITE_OK).is_err();
    is_shut.then(|| format!("and this user cannot write the file {}: let it", database.display()))
}

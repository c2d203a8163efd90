//! What `serve` refuses to start with, as far as the configuration tells. `serve` and `config check` ask here, so that they
//! cannot differ: a configuration that is called right is one that starts.

use super::{Source, setup, source};
use crate::config::{Config, StoreUrl};
use crate::exit::{Exit, Trouble};
use crate::node;
use std::path::{Path, PathBuf};

/// Everything that is wrong, each with what to do; nothing is opened, called or changed. `tls_self_signed` and `has_https`
/// are what the command line adds.
pub(crate) fn refusals(config: &Config, tls_self_signed: Option<&Path>, has_https: bool) -> Vec<Trouble> {
    let certificate = match source(tls_self_signed, has_https, config) {
        Ok(Some(Source::Files { cert, key })) => {
            super::load(&cert, &key).map(drop).map_err(|error| Trouble::of(Exit::Config, &error))
        }
        Ok(_) => Ok(()),
        Err(trouble) => Err(trouble),
    };
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets).map(drop));
    let admin = config.admin.iter().map(|key| key.digest().map(drop));
    let secret = [config.callback_secret().map(drop), config.alerts.settings().map(drop)];
    let keys = tenants.chain(admin).chain(secret).filter_map(|checked| checked.err());
    let keys = keys.map(|error| Trouble::of(Exit::Config, &error));
    let mut found: Vec<Trouble> = [node::check_provider(config), certificate, parent_is_there(config)]
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

/// Only the last folder of an embedded store is made.
fn parent_is_there(config: &Config) -> Result<(), Trouble> {
    let StoreUrl::Embedded(dir) = &config.store.url else { return Ok(()) };
    let parent: PathBuf = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => return Ok(()),
    };
    if parent.is_dir() {
        return Ok(());
    }
    let what = format!(
        "`store.url` names the folder {}, and there is no folder {} to make it in: make that one (`mkdir -p {}`), or name \
         another",
        dir.display(),
        parent.display(),
        parent.display()
    );
    Err(Trouble::new(Exit::Store, what))
}

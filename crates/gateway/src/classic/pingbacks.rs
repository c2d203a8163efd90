//! The addresses that a caller has registered for pingbacks. Ours need no registration; clients register all the same,
//! and want to see their list.

use super::Code;
use crate::codes;
use quittance_lifecycle::terms::page_host;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many addresses one tenant may register; there are only as many tenants as the operator has named.
const ADDRESSES_MAX: usize = 100;
const ADDRESS_BYTES_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct Pingbacks(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl Pingbacks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, tenant: &str, address: &str) -> Result<(), Code> {
        // A bare host is as good as an address here.
        let is_address = page_host(address).is_ok() || page_host(&format!("http://{address}")).is_ok();
        // The mark divides the list.
        if !is_address || address.len() > ADDRESS_BYTES_MAX || address.contains('|') {
            return Err("ERROR_IP_ADDRES".into());
        }
        let mut all = self.all();
        let known = all.entry(tenant.to_owned()).or_default();
        if known.len() >= ADDRESSES_MAX && !known.contains(address) {
            return Err(codes::BAD_PARAMETERS.into());
        }
        known.insert(address.to_owned());
        Ok(())
    }

    pub(super) fn remove(&self, tenant: &str, address: &str) {
        let mut all = self.all();
        if address == "all" {
            all.remove(tenant);
        } else if let Some(known) = all.get_mut(tenant) {
            known.remove(address);
        }
    }

    pub(super) fn listed(&self, tenant: &str) -> String {
        let all = self.all();
        let known = all.get(tenant).into_iter().flatten();
        known.map(String::as_str).collect::<Vec<_>>().join("|")
    }
}

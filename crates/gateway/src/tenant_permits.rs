//! Permits that tenants share, such as those for waiting requests and live streams. No tenant can take all of them.

use quittance_engine::Shares;
use std::sync::{Arc, Mutex, PoisonError};

/// Permits for tenants. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct TenantPermits {
    shares: Arc<Mutex<Shares>>,
    max: usize,
}

impl TenantPermits {
    pub(crate) fn new(max: usize) -> Self {
        Self { shares: Arc::new(Mutex::new(Shares::new(max))), max }
    }

    pub(crate) fn taken(&self) -> usize {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).taken()
    }

    /// A permit for a tenant, if it may have one more. A tenant that is alone can have all of them.
    pub(crate) fn take(&self, tenant: &str, is_alone: bool) -> Option<TenantPermit> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let may_take = if is_alone { shares.taken() < self.max } else { shares.may_take(tenant) };
        may_take.then(|| {
            shares.take(tenant);
            TenantPermit { shares: Arc::clone(&self.shares), tenant: tenant.to_owned() }
        })
    }
}

/// A permit of one tenant. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct TenantPermit {
    shares: Arc<Mutex<Shares>>,
    tenant: String,
}

impl Drop for TenantPermit {
    fn drop(&mut self) {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).give_back(&self.tenant);
    }
}

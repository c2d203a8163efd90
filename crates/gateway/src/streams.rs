//! Slots for live streams: the tenants share a number of them, and the operator has separate ones.

use crate::Tenant;
use crate::tenant_permits::{TenantPermit, TenantPermits};
use crate::v1::problem::{Code, Refused};
use quittance_http_server::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many live streams tenants may have at once, if there are at least four times as many connections.
const STREAMS_MAX: usize = 1024;
/// How many live streams the operator may have at once.
const OPERATOR_STREAMS_MAX: usize = 64;
/// How often a silent stream sends a comment to keep its connection open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Slots for live streams. Clones share them.
#[derive(Clone, Debug)]
pub struct Streams {
    tenants: TenantPermits,
    operator: TenantPermits,
    has_one_tenant: Arc<AtomicBool>,
}

/// The slot of one stream. It is given back when this is dropped.
#[derive(Debug)]
pub struct StreamPermit {
    _seat: TenantPermit,
}

impl Streams {
    pub(crate) fn new(has_one_tenant: bool, limits: &Limits) -> Self {
        let streams_max = STREAMS_MAX.min(limits.connections_max.div_ceil(4));
        let (tenants, operator) = (TenantPermits::new(streams_max), TenantPermits::new(OPERATOR_STREAMS_MAX));
        Self { tenants, operator, has_one_tenant: Arc::new(AtomicBool::new(has_one_tenant)) }
    }

    /// Sets whether there is at most one tenant, which may then have all slots.
    pub(crate) fn set_one_tenant(&self, has_one_tenant: bool) {
        self.has_one_tenant.store(has_one_tenant, Ordering::Relaxed);
    }

    /// A slot for a stream of this tenant, or (`None`) of the operator.
    pub fn take(&self, tenant: Option<&Tenant>) -> Result<StreamPermit, Refused> {
        let seat = match tenant {
            Some(tenant) => self.tenants.take(tenant.name(), self.has_one_tenant.load(Ordering::Relaxed)),
            None => self.operator.take("", true),
        };
        match seat {
            Some(seat) => Ok(StreamPermit { _seat: seat }),
            None => Err(Code::TooManyStreams.plain().again_in(KEEP_ALIVE)),
        }
    }

    /// How many streams are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.tenants.taken() + self.operator.taken()
    }
}

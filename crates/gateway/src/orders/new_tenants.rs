//! Tenants, keys and limits that change while the gateway works. Each request sees the tenants of one version.

use super::{Inner, OrderService};
use crate::tenant::Tenants;
use quittance_ports::StoreError;
use quittance_webhooks::WebhookSettings;
use std::sync::Arc;

/// New tenants whose open orders are counted, so that their limits hold from the first request on.
#[derive(Debug)]
pub struct CountedTenants(Tenants);

impl OrderService {
    /// Counts the open orders of the tenants that have a limit now and had none. This is the only step of a reload that
    /// needs the store, and it changes nothing for callers.
    pub async fn count_for(&self, tenants: Tenants) -> Result<CountedTenants, StoreError> {
        for name in self.inner.commit_feed.count_also(tenants.limited()) {
            self.count_open_of(&name, usize::MAX).await?;
        }
        Ok(CountedTenants(tenants))
    }

    /// Replaces the tenants, their keys and their limits, and how webhooks are called. A request in progress keeps the
    /// tenant that it began with, and open orders of a removed tenant are carried out to their end.
    pub fn reload(&self, CountedTenants(tenants): CountedTenants, webhooks: WebhookSettings) {
        let Inner { commit_feed, streams, accounts, engine, .. } = &*self.inner;
        self.inner.webhooks.reload(webhooks);
        accounts.follow(engine);
        streams.set_one_tenant(tenants.is_only_one());
        let next = tenants.following(&self.tenants());
        commit_feed.count_only(next.limited());
        self.inner.tenants.store(Arc::new(next));
    }
}

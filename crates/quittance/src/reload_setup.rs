//! Replaces the settings of a running node: providers, tenants, limits, webhooks, pools and alerts. No order is lost,
//! and no request is refused meanwhile.

use crate::builder::{complete, usual_settings};
use crate::node_servers::tenant_rules;
use crate::{GatewaySetup, PoolError, PoolSpec, Quittance};
use quittance_engine::{ReloadError, ReloadedProvider, Settings};
use quittance_gateway::{Tenants, WebhookSettings};
use quittance_ports::{Provider, StoreError};
use std::fmt;
use std::sync::Arc;

/// The settings that a running node gets.
pub struct ReloadSetup {
    /// Changes the defaults, as [`Builder::settings`](crate::Builder::settings) does.
    pub settings: Box<dyn FnOnce(&mut Settings) + Send>,
    /// How the providers are called, in the order of [`Settings::providers`]; `None` keeps the adapter of the provider of
    /// that name.
    pub adapters: Vec<Option<Arc<dyn Provider>>>,
    /// The tenants, the operator's key, and what the operator's API shows. The limits of the server stay as they are.
    pub gateway: GatewaySetup,
    pub webhooks: WebhookSettings,
    /// The pools to set.
    pub pools: Vec<PoolSpec>,
}

impl fmt::Debug for ReloadSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadSetup").field("pools", &self.pools).finish_non_exhaustive()
    }
}

/// Why a running node keeps its settings. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum NotReloaded {
    #[error("the node has no gateway")]
    NoGateway,
    #[error("the open orders of the tenants cannot be counted")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Settings(#[from] ReloadError),
}

impl Quittance {
    /// Replaces the settings, all or none. Returns the pools that could not be set, each with the reason: everything
    /// else holds then.
    pub async fn reload(&self, setup: ReloadSetup) -> Result<Vec<(String, PoolError)>, NotReloaded> {
        let ReloadSetup { settings: change, adapters, gateway, webhooks, pools } = setup;
        let GatewaySetup { tenants, admin, operator, reuse, .. } = gateway;
        let (Some(own), Some(operators)) = (self.gateway(), self.admin()) else {
            return Err(NotReloaded::NoGateway);
        };
        let mut settings = usual_settings(self.number);
        change(&mut settings);
        settings.tenants.extend(tenant_rules(&tenants));
        let present = self.engine.current_settings();
        complete(&mut settings, present.in_hand_max > 0);
        let rules = settings.providers.clone();
        let providers = rules.into_iter().zip(adapters);
        let providers = providers.map(|(rules, adapter)| ReloadedProvider { rules, adapter });
        let tenants = Tenants::new(tenants, admin).with_reuse(reuse);
        let counted = own.orders().count_for(tenants).await?;
        self.engine.reload(settings, providers)?;
        own.orders().reload(counted, webhooks);
        operators.reload(operator).await;
        let mut refused = Vec::new();
        for spec in pools {
            let name = spec.name.clone();
            if let Err(error) = self.set_pool(spec).await {
                refused.push((name, error));
            }
        }
        Ok(refused)
    }
}

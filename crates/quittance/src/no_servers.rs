//! Replaces `node_servers.rs` if the crate is built without the feature `gateway`: no server, no listener and no
//! webhooks.

use crate::StartError;
use crate::builder::SecretSource;
use async_trait::async_trait;
use quittance_engine::{Engine, Settings};
use quittance_lifecycle::{DeliveryOutcome, Order, Webhook};
use quittance_ports::{Clock, Leases, WebhookSender};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::{AbortHandle, JoinHandle};

#[derive(Debug, Default)]
pub(crate) struct ServerSetup;

impl ServerSetup {
    pub(crate) fn without_callbacks(self) -> Self {
        self
    }

    pub(crate) fn uses_secret_of_store(&self) -> bool {
        true
    }

    pub(crate) fn prepare(self, _: &mut Settings, _: SecretSource, _: Arc<dyn Clock>) -> Prepared {
        Prepared { webhooks: Webhooks }
    }

    pub(crate) fn callback_listener(&self) -> Option<CallbackListener> {
        None
    }
}

pub(crate) struct Prepared {
    pub(crate) webhooks: Webhooks,
}

impl Prepared {
    pub(crate) fn mount(self, _: &Arc<Engine>, _: Option<Arc<dyn Leases>>, _: u64) -> Server {
        Server
    }
}

#[derive(Clone)]
pub(crate) struct Server;

impl Server {
    pub(crate) fn keep_counting(&self) -> Option<JoinHandle<()>> {
        None
    }

    pub(crate) async fn give_back_leases(&self) {}

    pub(crate) async fn finish_traces(&self) {}
}

/// A listener for callbacks, which does not exist without a gateway.
pub(crate) enum CallbackListener {}

impl CallbackListener {
    pub(crate) async fn start(self, _: &Arc<Engine>) -> Result<CallbackServer, StartError> {
        match self {}
    }
}

/// A server for callbacks, which does not exist without a gateway. The field is for the code that reads it.
pub(crate) struct CallbackServer {
    pub(crate) listens_on: Option<SocketAddr>,
    never: CallbackListener,
}

impl CallbackServer {
    pub(crate) fn senseless(&self) -> u64 {
        match self.never {}
    }

    pub(crate) fn abort_handle(&self) -> AbortHandle {
        match self.never {}
    }

    pub(crate) async fn close(self) {
        match self.never {}
    }
}

/// A sender that calls no webhook. A node with a gateway placed the order, and that node may make the next try.
#[derive(Clone)]
pub(crate) struct Webhooks;

impl Webhooks {
    pub(crate) fn set_root_secret(&self, _: [u8; 32]) {}
}

#[async_trait]
impl WebhookSender for Webhooks {
    async fn tell(&self, _: &Order, _: &Webhook) -> DeliveryOutcome {
        DeliveryOutcome::NotDelivered {
            why: "this node is built without webhooks (feature `gateway`)".to_owned(),
        }
    }
}

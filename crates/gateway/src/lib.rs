//! What comes in over HTTP: the only crate that listens for callers and providers. Each API translates its protocol into requests of
//! the order service, which decides what a caller may do and see.
#![forbid(unsafe_code)]

mod api;
pub mod callbacks;
mod classic;
mod codes;
mod commit_feed;
mod cursor;
mod escape;
mod gateway;
mod id;
mod id_cache;
mod json;
mod log_once;
mod order_options;
mod orders;
mod quota;
mod route;
mod server;
mod streams;
mod tenant;
mod tenant_permits;
mod tls;
pub mod v1;
mod webhooks;
mod wrong_keys;

pub use api::carry_out;
pub use callbacks::{CALLBACK_PATH, CallbackApi};
pub use codes::{OWN_CODES, OwnCode, own_code};
pub use commit_feed::CommitFeed;
pub use escape::{harmless, plain_json};
pub use gateway::{Gateway, GatewaySettings, Mount, PageHandler};
pub use id::{NotAnId, OrderId};
pub use orders::{Accepted, Declined, NotSeen, OrderRequest, OrderService, OrderView, Reported};
pub use quittance_lifecycle::secrets::harmless_param;
pub use route::PAGE_PATH;
pub use server::{Counts, Limits};
pub use streams::{StreamPermit, Streams};
pub use tenant::{
    Caller, KEY_BYTES, KeyDigest, NotKnown, Rate, ReuseRule, ReuseSetting, Tenant, TenantSettings, Tenants,
};
pub use tls::Tls;
pub use webhooks::{
    Allowed, BadAllowed, BadCallback, WebhookFormat, WebhookSettings, Webhooks, derived_secret,
    secret_for_people,
};

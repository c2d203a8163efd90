//! The HTTP side of Quittance, for callers and providers. Each API translates its protocol into requests to the order
//! service, which decides what a caller may do and see.
#![forbid(unsafe_code)]

mod api;
pub mod callbacks;
mod classic_api;
mod codes;
mod commit_feed;
mod cursor;
mod early_key;
mod escape;
mod gateway;
mod id_cache;
mod json_api;
mod log_once;
mod order_id;
mod order_options;
mod orders;
mod route;
mod streams;
mod tenant;
mod tenant_permits;
pub mod v1;
mod webhook_text;

pub use api::carry_out;
pub use callbacks::{CALLBACK_PATH, CallbackApi};
pub use codes::{OWN_CODES, OwnCode, own_code};
pub use commit_feed::CommitFeed;
pub use escape::{harmless, plain_json};
pub use gateway::{Gateway, GatewaySettings, Mount, PageHandler};
pub use order_id::{NotAnId, OrderId};
pub use orders::{
    Accepted, CountedTenants, Declined, NotSeen, OrderRequest, OrderService, OrderView, Reported,
};
pub use quittance_http_server::{Counts, Limits, Tls};
pub use quittance_lifecycle::secrets::harmless_param;
pub use quittance_webhooks::{
    Allowed, BadAllowed, BadCallback, WebhookFormat, WebhookSettings, Webhooks, derived_secret,
    secret_for_people,
};
pub use route::PAGE_PATH;
pub use streams::{StreamPermit, Streams};
pub use tenant::{
    Caller, KEY_BYTES, KeyDigest, NotKnown, Rate, ReuseRule, ReuseSetting, Tenant, TenantSettings, Tenants,
};
pub use webhook_text::webhook_text;

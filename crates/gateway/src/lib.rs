//! What comes in over HTTP: the only crate that listens for callers and providers. Doors translate a protocol into the
//! words of the desk and back; the desk decides what a caller may do and see.
#![forbid(unsafe_code)]

mod account;
mod api;
pub mod callbacks;
mod classic;
mod codes;
mod cursor;
mod gateway;
mod hub;
mod id;
mod json;
pub mod money;
mod monitor;
mod names;
mod once;
mod order_options;
mod orders;
mod page;
mod paid;
mod plain;
mod quota;
mod seats;
mod server;
mod tenant;
mod tls;
mod traces;
pub mod v1;
mod webhooks;
mod wrong_keys;

pub use callbacks::{CALLBACK_PATH, CallbackApi};
pub use codes::{OWN_CODES, OwnCode, own_code};
pub use gateway::{Gateway, GatewaySettings};
pub use hub::Hub;
pub use id::{NotAnId, OrderId};
pub use monitor::{AlertSettings, Announcement, Monitor, ShownSetting, Webhook};
pub use orders::{Accepted, Declined, NotSeen, OrderRequest, OrderService, OrderView, Reported};
pub use plain::{is_odd, plain_json};
pub use quittance_lifecycle::secrets::harmless_param;
pub use server::{Counts, Limits};
pub use tenant::{
    Caller, KEY_BYTES, KeyDigest, NotKnown, Rate, ReuseRule, ReuseSetting, Tenant, TenantSettings, Tenants,
};
pub use tls::Tls;
pub use traces::{TraceSettings, Traces};
pub use webhooks::{
    Allowed, BadAllowed, BadCallback, WebhookSettings, Webhooks, derived_secret, secret_for_people,
};

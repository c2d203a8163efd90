//! What comes in over HTTP: the only crate that listens for callers and providers. Doors translate a protocol into the
//! words of the desk and back; the desk decides what a caller may do and see.
#![forbid(unsafe_code)]

mod account;
pub mod callbacks;
mod classic;
mod codes;
mod cursor;
mod desk;
mod door;
mod gateway;
mod hub;
mod id;
mod json;
mod lookout;
pub mod money;
mod names;
mod once;
mod order_options;
mod outbound;
mod page;
mod paid;
mod plain;
mod seats;
mod server;
mod tenant;
mod tls;
mod traces;
pub mod v1;
mod wrong_keys;

pub use callbacks::{CALLBACK_PATH, CallbackDoor};
pub use codes::{OWN_CODES, OwnCode, own_code};
pub use desk::{Accepted, Declined, Desk, NotSeen, Reported, Seen, Wish};
pub use gateway::{Gateway, GatewaySettings};
pub use hub::Hub;
pub use id::{NotAnId, OrderId};
pub use lookout::{AlertSettings, Announcement, Lookout, ShownSetting, Webhook};
pub use outbound::{
    Allowed, BadAllowed, BadCallback, Outbound, OutboundSettings, derived_secret, secret_for_people,
};
pub use plain::{is_odd, plain_json};
pub use quittance_lifecycle::secrets::shown_param;
pub use server::{Counts, Limits};
pub use tenant::{
    Caller, KEY_BYTES, KeyDigest, NotKnown, Rate, ReuseRule, ReuseSetting, Tenant, TenantSettings, Tenants,
};
pub use tls::Tls;
pub use traces::{TraceSettings, Traces};

//! Tests of the JSON API over sockets, beside the other APIs, on one connection or many.

mod bad_input;
mod dialects;
mod errors;
mod fixture;
mod paths;
mod scripted;
mod store_errors;
mod tenants;

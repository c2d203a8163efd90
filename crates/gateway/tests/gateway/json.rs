//! The JSON API as clients reach it: over a socket, beside the other APIs, on one connection or many.

mod bad_input;
mod dialects;
mod errors;
mod fixture;
mod paths;
mod scripted;
mod store_errors;
mod tenants;

//! The built binary on what is in a store: orders that are moved, pools, the stock. Stores are folders here, or servers that
//! are not there; real servers, and daemons that share one, are in `crates/e2e`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end where it is")]

mod house;
mod pools;
mod stores;
mod unread;

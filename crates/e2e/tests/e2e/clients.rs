//! The real clients, unmodified from their registries, against the gateway: calm and faults, http and https, pictures
//! and tokens, and a client that is killed and comes back. What a client got is compared with the provider's ledger.
//! `scripts/clients` installs them.

mod again;
mod calm;
mod faults;
mod judge;
mod visit;

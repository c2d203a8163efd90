//! The real clients, unmodified from their registries, against the gateway: calm and trouble, http and https, pictures and
//! tokens, and a client that is killed and comes back. What a client was told is compared with the provider's ledger.
//! `scripts/clients` installs them.

mod again;
mod calm;
mod judge;
mod trouble;
mod visit;

//! Real clients, unmodified from their registries, with the gateway: calm and faults, http and https, images and
//! tokens, and a client that is killed and comes back. What a client got is compared with the provider's ledger.
//! `scripts/clients` installs the clients.

mod again;
mod calm;
mod faults;
mod judge;
mod visit;

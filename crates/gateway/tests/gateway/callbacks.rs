//! The address for callbacks, over real sockets: what a provider, a forger and a broken client can send to it, and what becomes of
//! the order.

mod calls;
mod fixture;

//! The callback door, over real sockets: what a provider, a forger and a broken client can say to it, and what becomes of
//! the order.

mod calls;
mod fixture;

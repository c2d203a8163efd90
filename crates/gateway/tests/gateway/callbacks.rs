//! Tests of the callback API over real sockets: calls of a provider, a forger and a broken client, and their effect
//! on the order.

mod calls;
mod fixture;

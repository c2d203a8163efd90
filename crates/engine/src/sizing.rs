//! How many answers a pool holds. Only this module sizes pools, and it is pure: no clock, no random numbers, no I/O.
//! The node that keeps a pool reports its orders and refill times to a [`Sizer`], and gets a [`Level`] with its
//! reason.

mod erlang;
mod leads;
mod level;
mod regimes;
mod sizer;
#[cfg(test)]
mod tests;

pub use erlang::{PoolForecast, erlang_b, expected};
pub use level::{Level, Why};
pub use sizer::{EXPIRED_MAX, PER_LIFE_MIN, Sizer};

/// How many to buy now: the level less the fresh answers in stock and those on their way.
#[must_use]
pub const fn shortfall(level: u32, fresh: u32, on_their_way: u32) -> u32 {
    level.saturating_sub(fresh).saturating_sub(on_their_way)
}

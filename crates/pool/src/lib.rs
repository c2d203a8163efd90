//! How many answers a pool holds, when, and for how long they are trusted: the only crate that may size a pool.
//!
//! Nothing here reads a clock, rolls dice or does I/O. Whoever keeps a pool tells a [`Sizer`] what was asked for and
//! how long refills took, and is told a [`Level`] and why it is that.
#![forbid(unsafe_code)]

mod erlang;
mod hours;
mod leads;
mod level;
mod regimes;
mod sizer;
mod trust;

pub use erlang::{Expected, erlang_b, expected};
pub use hours::{Hours, HoursError};
pub use level::{Level, Why};
pub use sizer::{EXPIRED_MAX, Goal, LIVES_UNTIL_IDLE, PER_LIFE_MIN, Sizer};
pub use trust::{HEARD_MAX, Heard, Trust};

/// No pool holds more than this, whatever is asked of it.
pub const SIZE_MAX: u32 = 1000;

/// How many to buy now: never more than the level, less what stands there fresh and what is on its way.
#[must_use]
pub const fn shortfall(level: u32, fresh: u32, on_their_way: u32) -> u32 {
    level.saturating_sub(fresh).saturating_sub(on_their_way)
}

#[cfg(test)]
mod tests {
    use super::shortfall;

    #[test]
    fn what_is_on_its_way_is_not_bought_twice() {
        assert_eq!(shortfall(5, 0, 0), 5);
        assert_eq!(shortfall(5, 2, 2), 1);
        assert_eq!(shortfall(5, 2, 3), 0);
        assert_eq!(shortfall(5, 9, 0), 0, "a level that has fallen takes nothing back");
        assert_eq!(shortfall(5, u32::MAX, u32::MAX), 0);
    }
}

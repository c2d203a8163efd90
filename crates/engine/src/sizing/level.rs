//! The level of a pool, and the reason for it in words.

use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// How many answers should be fresh in stock or on their way.
    pub size: u32,
    pub why: Why,
    /// Orders per second.
    pub rate: f64,
    /// How long an answer takes from the decision to buy it to the stock.
    pub lead: Duration,
    /// The share of orders that the stock is expected to serve.
    pub served: f64,
    /// The share of the answers bought for the stock that are expected to expire there.
    pub expired: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    NothingSeenYet,
    /// So few orders come in an answer's usable life that most answers in stock would expire.
    TooLittleDemand {
        per_life: f64,
        usable: Duration,
    },
    /// The smallest size that reaches the goal, with `load` orders in one lead.
    Served {
        permille: u32,
        load: f64,
    },
    /// The goal needs so many answers that too many would expire.
    ExpiresTooSoon {
        asked: u32,
        held: u32,
        expired_if_asked: f64,
    },
    /// The goal needs more answers than any pool may hold.
    TooMuchDemand {
        load: f64,
    },
    Fixed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingSeenYet => f.write_str("no order has come yet, so nothing is held"),
            Self::TooLittleDemand { per_life, usable } => {
                // Rounded down, so that it is fewer in print as well.
                let per_life = (per_life * 10.0).floor() / 10.0;
                let (least, usable) = (super::PER_LIFE_MIN, usable.as_secs());
                write!(
                    f,
                    "{per_life:.1} orders in an answer's usable life of {usable} s: fewer than {least}, so nothing is held"
                )
            }
            Self::Served { permille, load } => {
                let share = Permille(*permille);
                write!(
                    f,
                    "{load:.1} orders come while an answer is on its way: the fewest that serve {share} of orders"
                )
            }
            Self::ExpiresTooSoon { asked, held, expired_if_asked } => {
                let (percent, most) = (expired_if_asked * 100.0, super::EXPIRED_MAX * 100.0);
                write!(
                    f,
                    "the goal asks for {asked}, of which {percent:.0} % would expire: {held} is the most of which no more than about {most:.0} % does"
                )
            }
            Self::TooMuchDemand { load } => {
                let most = quittance_ports::SIZE_MAX;
                write!(
                    f,
                    "{load:.0} orders come while an answer is on its way: more than the {most} that a pool may hold"
                )
            }
            Self::Fixed => f.write_str("the size was set"),
        }
    }
}

/// Thousandths as percent, without a decimal point if the last digit is 0.
struct Permille(u32);

impl fmt::Display for Permille {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{} %", self.0 / 10),
            tenth => write!(f, "{}.{tenth} %", self.0 / 10),
        }
    }
}

//! Usage: how long it is kept, and what an answer costs if the provider does not say.

use super::{count, optional, row};
use crate::setting::Setting;
use crate::value::Shape;
use quittance_engine::Settings;

const DAYS: Shape = Shape::Count { least: 1, most: 3660 };

pub(super) static ROWS: &[Setting] = &[
    row(
        "usage.detail_days",
        DAYS,
        |_| count(Settings::new(0, |_| None).usage_days),
        "days for which the usage names each site; older days keep one row for all sites",
    ),
    row(
        "usage.sum_days",
        DAYS,
        |_| count(Settings::new(0, |_| None).sums_days),
        "days for which usage is kept, including the days in detail",
    ),
    optional(
        "prices.*",
        Shape::Money,
        "price of an answer of this kind, where the provider does not report one: callbacks never do, and some services never do. Overrides the built-in price list of the service",
    ),
];

//! The books: how long they are kept, and what an answer costs where nobody tells.

use super::{count, optional, row};
use crate::config::setting::Setting;
use crate::config::value::Shape;
use quittance_engine::Settings;

const DAYS: Shape = Shape::Count { least: 1, most: 3660 };

pub(super) static ROWS: &[Setting] = &[
    row(
        "books.detail_days",
        DAYS,
        |_| count(Settings::new(0, |_| None).books_days),
        "days for which the books name each site; of older days one line for all sites is left",
    ),
    row(
        "books.sum_days",
        DAYS,
        |_| count(Settings::new(0, |_| None).sums_days),
        "days for which anything of the books is kept, those in detail among them",
    ),
    optional(
        "prices.*",
        Shape::Money,
        "what an answer of this kind costs, where the provider does not say: callbacks never do, and some services never. Overrides the price list that ships for the service",
    ),
];

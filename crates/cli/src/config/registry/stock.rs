//! The stock: pools that keep a target warm, and how long answers live where that is not what their kind says.

use super::{MOMENT, POSITIVE, flag, optional, row};
use crate::config::setting::Setting;
use crate::config::value::{SPAN_MOST, Shape};
use quittance_pool::SIZE_MAX;
use std::time::Duration;

const SIZE: Shape = Shape::Count { least: 1, most: SIZE_MAX as u64 };
const LIFE: Shape = Shape::Span { least: Duration::from_secs(1), most: SPAN_MOST };
const MARGIN: Shape = Shape::Span { least: MOMENT, most: SPAN_MOST };

pub(super) static ROWS: &[Setting] = &[
    optional(
        "pools.*.tenant",
        Shape::Label,
        "whose orders it serves; absent: the only tenant's, or everybody's if there is none",
    ),
    optional(
        "pools.*.kind",
        Shape::Kind,
        "what sort of captcha it keeps; one whose answers can be used once only",
    ),
    optional(
        "pools.*.service_level",
        Shape::Share,
        "the part of orders that the shelf is to serve, such as 0.95; the pool sizes itself. Either this or `size`",
    ),
    optional(
        "pools.*.size",
        SIZE,
        "so many answers, as long as somebody asks. Either this or `service_level`",
    ),
    optional(
        "pools.*.budget_per_hour",
        Shape::Money,
        "the most that it sets out to spend in an hour of the clock, in UTC; absent: no limit of its own",
    ),
    optional(
        "pools.*.hours",
        Shape::Hours,
        "parts of the day, in UTC, in which it is kept filled; absent: always",
    ),
    optional(
        "pools.*.min_life",
        POSITIVE,
        "how much life its answers must have when they are handed out; absent: the kind's margin",
    ),
    row("pools.*.enabled", Shape::Flag, |_| flag(true), "false: it is remembered, and buys nothing"),
    optional(
        "pools.*.params.*",
        Shape::Words,
        "a parameter of what it keeps, as `quittance kinds KIND` names them",
    ),
    optional("lifetimes.*.kind", Shape::Kind, "for this kind; absent: for all that do not live for ever"),
    optional("lifetimes.*.host", Shape::Host, "for pages of this host; absent: for all"),
    optional(
        "lifetimes.*.provider",
        Shape::Label,
        "for answers of this provider: the row holds while that one is asked, and otherwise for nobody; absent: for all",
    ),
    optional("lifetimes.*.life", LIFE, "how long such an answer lives, from when it was solved"),
    optional(
        "lifetimes.*.margin",
        MARGIN,
        "how much life a reused answer (cached, or from the stock) has left when it is handed out",
    ),
];

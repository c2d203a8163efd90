//! The stock: pools that keep a target warm, and how long answers live where that is not what their kind says.

use super::{MOMENT, POSITIVE, flag, optional, row};
use crate::config::setting::Setting;
use crate::config::value::{SPAN_MOST, Shape};
use quittance_ports::SIZE_MAX;
use std::time::Duration;

const SIZE: Shape = Shape::Count { least: 1, most: SIZE_MAX as u64 };
const LIFE: Shape = Shape::Span { least: Duration::from_secs(1), most: SPAN_MOST };
const MARGIN: Shape = Shape::Span { least: MOMENT, most: SPAN_MOST };

pub(super) static ROWS: &[Setting] = &[
    optional(
        "pools.*.tenant",
        Shape::Label,
        "tenant whose orders the pool serves; absent: the only tenant, or all callers if there are no tenants",
    ),
    optional(
        "pools.*.kind",
        Shape::Kind,
        "kind of captcha that the pool keeps; its answers must be single-use",
    ),
    optional(
        "pools.*.service_level",
        Shape::Share,
        "ratio of orders that the stock should serve, such as 0.95; the pool sizes itself. Either this or `size`",
    ),
    optional(
        "pools.*.size",
        SIZE,
        "number of answers to keep, as long as there is demand. Either this or `service_level`",
    ),
    optional(
        "pools.*.budget_per_hour",
        Shape::Money,
        "most that the pool plans to spend per clock hour, in UTC; absent: no limit of its own",
    ),
    optional(
        "pools.*.hours",
        Shape::Hours,
        "times of day, in UTC, during which the pool is filled; absent: always",
    ),
    optional(
        "pools.*.min_life",
        POSITIVE,
        "life that an answer must have left when it is handed out; absent: the kind's margin",
    ),
    row("pools.*.enabled", Shape::Flag, |_| flag(true), "false: the pool is kept but buys nothing"),
    optional(
        "pools.*.params.*",
        Shape::Words,
        "parameter of the orders that the pool places, named as in `quittance kinds KIND`",
    ),
    optional(
        "lifetimes.*.kind",
        Shape::Kind,
        "kind that the rule is for; absent: all kinds whose answers expire",
    ),
    optional("lifetimes.*.host", Shape::Host, "page host that the rule is for; absent: all"),
    optional(
        "lifetimes.*.provider",
        Shape::Label,
        "provider that the rule is for: the rule applies only while that provider is in use; absent: all",
    ),
    optional("lifetimes.*.life", LIFE, "how long such an answer is good after the solve"),
    optional(
        "lifetimes.*.margin",
        MARGIN,
        "life that a reused answer (cached, or from the stock) must have left when it is handed out",
    ),
];

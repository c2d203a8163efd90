//! The query for one page of a list.

use super::problem::Refused;
use axum::extract::rejection::QueryRejection;
use quittance_lifecycle::Key;
use quittance_ports::Which;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const LIMIT_MAX: usize = 200;
const LIMIT: usize = 50;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listed {
    /// Orders that have not ended and are not cancelled.
    #[default]
    Open,
    /// Dead letters.
    Dead,
    All,
}

impl Listed {
    #[must_use]
    pub const fn which(self) -> Which<'static> {
        match self {
            Self::Open => Which::OPEN,
            Self::Dead => Which::DEAD,
            Self::All => Which::ALL,
        }
    }
}

/// The query of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Which orders; default the open ones.
    #[param(inline)]
    pub(super) status: Option<Listed>,
    /// `next` of the page before, of the same list.
    #[param(pattern = "^[0-9a-f]{96}$")]
    pub(super) after: Option<String>,
    /// Most rows in a page; default 50.
    #[param(minimum = 1, maximum = 200)]
    pub(super) limit: Option<usize>,
}

/// The key after which a page begins.
pub fn read_key(field: &str, text: Option<&str>) -> Result<Option<Key>, Refused> {
    let key = text.map(Key::parse).transpose();
    key.map_err(|_| Refused::bad(field, format!("`{field}` is the `next` of the page before.")))
}

/// The number of rows in a page.
pub fn read_limit(limit: Option<usize>) -> Result<usize, Refused> {
    match limit.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Refused::bad("limit", format!("`limit` is a number from 1 to {LIMIT_MAX}."))),
    }
}

/// The problem for a query that cannot be read.
pub fn bad_query(_: QueryRejection) -> Refused {
    Refused::bad("query", "A query parameter is unknown, was sent twice, or has a value that cannot be read.")
}

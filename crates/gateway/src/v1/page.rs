//! Which page of a list is asked for.

use super::Room;
use super::problem::Refused;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use quittance_lifecycle::Key;
use quittance_ports::Which;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const LIMIT_MAX: usize = 200;
const LIMIT: usize = 50;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Listed {
    /// Those that have not come to their end.
    #[default]
    Open,
    /// Those that wait for a person.
    Dead,
    All,
}

/// As it is typed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Which orders; the open ones, if not said.
    #[param(inline)]
    status: Option<Listed>,
    /// The `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
    /// How many at most; 50, if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// The same without a choice of which.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadPageQuery {
    /// The `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
    /// How many at most; 50, if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// What it means.
pub(super) struct Asked {
    pub(super) which: Which,
    pub(super) after: Option<Key>,
    pub(super) limit: usize,
}

/// The same for dead letters.
pub(super) struct AskedDead(pub(super) Asked);

fn asked(which: Which, after: Option<String>, limit: Option<usize>) -> Result<Asked, Refused> {
    let after = after.map(|after| Key::parse(&after)).transpose();
    let after = after.map_err(|_| Refused::bad("after", "`after` is the `next` of the page before."))?;
    match limit.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MAX => Ok(Asked { which, after, limit }),
        _ => Err(Refused::bad("limit", format!("`limit` is a number from 1 to {LIMIT_MAX}."))),
    }
}

fn senseless(_: QueryRejection) -> Refused {
    Refused::bad("query", "Each of the query's parameters is given once at most, and is one that there is.")
}

impl FromRequestParts<Room> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let query = Query::from_request_parts(parts, room).await.map_err(senseless)?;
        let Query(PageQuery { status, after, limit }) = query;
        let which = match status.unwrap_or_default() {
            Listed::Open => Which::Open,
            Listed::Dead => Which::Dead,
            Listed::All => Which::All,
        };
        asked(which, after, limit)
    }
}

impl FromRequestParts<Room> for AskedDead {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let query = Query::from_request_parts(parts, room).await.map_err(senseless)?;
        let Query(DeadPageQuery { after, limit }) = query;
        asked(Which::Dead, after, limit).map(Self)
    }
}

//! The routes of requests. A path is parsed here, once, and every later step gets the value.

use quittance_protocol::Dialect;
use quittance_protocol::json::{Statistic, reply};

/// The path of the page for people.
pub const PAGE_PATH: &str = "/page/";

/// The route of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Classic(ClassicPage),
    Json(JsonMethod),
    /// The last segment of a callback address.
    Callback(String),
    /// The native API. Its own router finds the endpoint, and knows the methods of each.
    V1,
    /// Endpoints of the native API that must work even if many requests are open: health, metrics, `/v1/admin`.
    Operator,
    /// The page for people, or `/`, with the path of a file.
    Page(String),
    Unknown,
}

/// A page of the classic protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassicPage {
    In,
    Res,
    Solve,
    /// How busy the service is.
    Load,
}

/// A method of the JSON protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonMethod {
    Create,
    Result,
    Balance,
    Report {
        is_good: bool,
    },
    /// The body says whether the answer was good.
    Feedback,
    Statistic(Statistic),
    /// The method `test`, which returns the body of the request.
    Test,
    /// An unknown method: written like a method of the protocol (`getAppStats`), or under the prefix of a JSON
    /// service. Its caller reads JSON.
    Other,
}

impl Route {
    /// Parses a path with an optional dialect, as in `/capsolver/createTask`. Clients that join a URL from parts send
    /// an extra slash, or a blank at the end: `//createTask`, `/in.php/` and `/createTask%20` are accepted.
    pub(crate) fn parse(path: &str) -> (Option<Dialect>, Self) {
        let path = without_blanks(path).trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name().eq_ignore_ascii_case(first));
        let path = if dialect.is_some() { rest.trim_start_matches('/') } else { path };
        let route = match (Self::of(path), dialect) {
            // The clients of that service read JSON, except on pages of the classic protocol.
            (Self::Unknown, Some(dialect)) if dialect.json().is_some() && !path.ends_with(".php") => {
                Self::Json(JsonMethod::Other)
            }
            (route, _) => route,
        };
        (dialect, route)
    }

    fn of(path: &str) -> Self {
        match path.strip_suffix('/').filter(|page| page.ends_with(".php")).unwrap_or(path) {
            "in.php" => Self::Classic(ClassicPage::In),
            "res.php" => Self::Classic(ClassicPage::Res),
            "solve.php" => Self::Classic(ClassicPage::Solve),
            "load.php" => Self::Classic(ClassicPage::Load),
            "v1" | "openapi.json" => Self::V1,
            "healthz" | "readyz" | "metrics" => Self::Operator,
            "" | "page" => Self::Page(format!("/{path}")),
            _ => match path.split_once('/') {
                Some(("v1", rest)) if rest.starts_with("admin/") => Self::Operator,
                Some(("v1", _)) => Self::V1,
                Some(("callback", segment)) => Self::Callback(segment.to_owned()),
                Some(("page", _)) => Self::Page(format!("/{path}")),
                _ => JsonMethod::parse(path).map_or(Self::Unknown, Self::Json),
            },
        }
    }

    /// The name of the route for the log: a fixed text, without text of the caller.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Classic(ClassicPage::In) => "in.php",
            Self::Classic(ClassicPage::Res) => "res.php",
            Self::Classic(ClassicPage::Solve) => "solve.php",
            Self::Classic(ClassicPage::Load) => "load.php",
            Self::Json(_) => "json",
            Self::Callback(_) => crate::callbacks::CALLBACK_PATH,
            Self::V1 | Self::Operator => "v1",
            Self::Page(_) => "page",
            Self::Unknown => "nowhere",
        }
    }

    /// Whether the route must work even if many requests of callers are open.
    pub(crate) const fn is_reserved(&self) -> bool {
        matches!(self, Self::Callback(_) | Self::Operator | Self::Page(_))
    }
}

impl JsonMethod {
    fn parse(path: &str) -> Option<Self> {
        match path.strip_suffix('/').unwrap_or(path) {
            "createTask" => Some(Self::Create),
            "getTaskResult" => Some(Self::Result),
            "getBalance" => Some(Self::Balance),
            "feedbackTask" => Some(Self::Feedback),
            "test" => Some(Self::Test),
            name => match (reply::report_named(name), Statistic::named(name)) {
                (Some(is_good), _) => Some(Self::Report { is_good }),
                (None, Some(statistic)) => Some(Self::Statistic(statistic)),
                (None, None) => is_method_name(name).then_some(Self::Other),
            },
        }
    }
}

/// Whether a name is written like a method of the JSON protocol: `getAppStats`.
fn is_method_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.contains(|letter: char| letter.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The path without percent-encoded white space at its end.
fn without_blanks(mut path: &str) -> &str {
    const BLANKS: [&str; 4] = ["%20", "%09", "%0a", "%0d"];
    while let Some((start, end)) = path.len().checked_sub(3).and_then(|at| path.split_at_checked(at))
        && BLANKS.iter().any(|blank| end.eq_ignore_ascii_case(blank))
    {
        path = start;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_one_route() {
        for (path, route) in [
            ("/in.php", Route::Classic(ClassicPage::In)),
            ("//res.php%20%0A", Route::Classic(ClassicPage::Res)),
            ("/createTask/", Route::Json(JsonMethod::Create)),
            ("/reportIncorrect", Route::Json(JsonMethod::Report { is_good: false })),
            ("/getNothing", Route::Json(JsonMethod::Other)),
            ("/callback/a.b/c", Route::Callback("a.b/c".into())),
            ("/v1", Route::V1),
            ("/v1/orders", Route::V1),
            ("/v1/admin/pools", Route::Operator),
            ("/metrics", Route::Operator),
            ("/", Route::Page("/".into())),
            ("/page/app.js", Route::Page("/page/app.js".into())),
            ("/callback", Route::Unknown),
            ("/v2", Route::Unknown),
            ("/é20", Route::Unknown),
        ] {
            assert_eq!(Route::parse(path), (None, route), "{path}");
        }
    }

    #[test]
    fn a_dialect_may_stand_before_a_path() {
        for (path, dialect) in [
            ("/capsolver/createTask", Dialect::CapSolver),
            ("//2Captcha//createTask", Dialect::TwoCaptcha),
            ("/CAPTCHAAI/createTask%09", Dialect::CaptchaAi),
        ] {
            assert_eq!(Route::parse(path), (Some(dialect), Route::Json(JsonMethod::Create)), "{path}");
        }
        assert_eq!(Route::parse("/2captcha/nosuch.php"), (Some(Dialect::TwoCaptcha), Route::Unknown));
        // There is no such method, and its caller reads JSON.
        for (path, dialect) in
            [("/capsolver/nosuch", Dialect::CapSolver), ("/2captcha/v2/x", Dialect::TwoCaptcha)]
        {
            assert_eq!(Route::parse(path), (Some(dialect), Route::Json(JsonMethod::Other)), "{path}");
        }
    }
}

//! Guesses the dialect of a client that names none. A wrong guess costs the client its answer, so the guess uses only
//! what no client of another dialect sends.

use super::body::TaskRequest;
use hyper::HeaderMap;
use hyper::header::USER_AGENT;
use quittance_protocol::Dialect;

/// Spellings of task types that only CapSolver uses.
const CAP_SOLVER_SPELLINGS: [&str; 5] =
    ["ProxyLess", "ReCaptcha", "AntiTurnstile", "VisionEngine", "Classification"];
/// The beginning of a CapSolver key.
const CAP_SOLVER_KEY: &str = "CAP-";
/// The header of CapSolver's own client, whose task types others share.
const CAP_SOLVER_HEADER: &str = "x-capsolver-client-user-agent";

pub(super) fn guess(headers: &HeaderMap, body: &TaskRequest) -> Dialect {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let agent = agent.to_ascii_lowercase();
    let is_spelled = |name: &str| CAP_SOLVER_SPELLINGS.iter().any(|spelling| name.contains(spelling));
    let is_cap_solver = headers.contains_key(CAP_SOLVER_HEADER)
        || agent.contains("capsolver")
        || body.key().is_some_and(|key| key.starts_with(CAP_SOLVER_KEY))
        || body.type_name().is_some_and(is_spelled)
        || body.has_cap_solver_fields()
        || body.task_id_text().is_some_and(is_uuid);
    if is_cap_solver {
        Dialect::CapSolver
    } else if agent.contains("capmonster") {
        Dialect::CapMonster
    } else {
        Dialect::TwoCaptcha
    }
}

fn is_uuid(text: &str) -> bool {
    let is_fit = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let text = text.trim();
    text.len() == 36 && text.bytes().enumerate().all(is_fit)
}

//! Translates the error codes of the classic protocol into the JSON protocol. Each provider has its own names for
//! some codes, and two of the four have meaningful numbers.

use super::MockDialect;

/// The number of a code that is in no list.
const UNLISTED: u32 = 99;

/// Names of one code: classic; then 2captcha, Anti-Captcha, CapMonster, CapSolver.
const NAMES: &[(&str, [&str; 4])] = &[
    ("ERROR_WRONG_USER_KEY", [UNKNOWN_KEY; 4]),
    ("ERROR_WRONG_CAPTCHA_ID", [NO_TASK, NO_TASK, NO_TASK, "ERROR_TASKID_INVALID"]),
    ("ERROR_WRONG_ID_FORMAT", [NO_TASK, NO_TASK, NO_TASK, "ERROR_TASKID_INVALID"]),
    ("ERROR_EMPTY_ACTION", ["ERROR_NO_SUCH_METHOD"; 4]),
    ("ERROR_BAD_PARAMETERS", [BAD, SESSION, BAD, DATA]),
    ("ERROR_PROXY_FORMAT", [BAD, SESSION, BAD, DATA]),
    ("ERROR_PAGEURL", [BAD, SESSION, BAD, DATA]),
    ("ERROR_GOOGLEKEY", [SITEKEY, SITEKEY, BAD, DATA]),
    ("ERROR_WRONG_GOOGLEKEY", [SITEKEY, SITEKEY, BAD, DATA]),
    ("ERROR_UPLOAD", ["ERROR_ZERO_CAPTCHA_FILESIZE", "ERROR_ZERO_CAPTCHA_FILESIZE", BAD, DATA]),
    ("MAX_USER_TURN", [BUSY, BUSY, "ERROR_TOO_MUCH_REQUESTS", "ERROR_RATE_LIMIT"]),
    ("ERROR: 1001", [BLOCKED, BLOCKED, "ERROR_TOO_MUCH_REQUESTS", "ERROR_RATE_LIMIT"]),
    ("ERROR: 1002", [BLOCKED, BLOCKED, "ERROR_TOO_MUCH_REQUESTS", "ERROR_RATE_LIMIT"]),
    ("ERROR: 1003", [BLOCKED, BLOCKED, "ERROR_TOO_MUCH_REQUESTS", "ERROR_RATE_LIMIT"]),
    ("ERROR: 1004", [BLOCKED, BLOCKED, "ERROR_IP_BANNED", "ERROR_IP_BANNED"]),
    ("ERROR: 1005", [BLOCKED, BLOCKED, "ERROR_TOO_MUCH_REQUESTS", "ERROR_RATE_LIMIT"]),
    ("IP_BANNED", [BLOCKED, BLOCKED, "ERROR_IP_BANNED", "ERROR_IP_BANNED"]),
    ("REPORT_NOT_RECORDED", ["ERROR_REPORT_NOT_RECORDED"; 4]),
    ("ERROR_SERVER_ERROR", ["ERROR_SERVER_ERROR", "ERROR_SERVER_ERROR", "ERROR_SERVER_ERROR", SICK]),
    ("ERROR_INTERNAL_SERVER_ERROR", ["ERROR_SERVER_ERROR", "ERROR_SERVER_ERROR", "ERROR_SERVER_ERROR", SICK]),
];

const UNKNOWN_KEY: &str = "ERROR_KEY_DOES_NOT_EXIST";
const NO_TASK: &str = "ERROR_NO_SUCH_CAPCHA_ID";
pub(super) const BAD: &str = "ERROR_BAD_PARAMETERS";
const SESSION: &str = "ERROR_INCORRECT_SESSION_DATA";
const DATA: &str = "ERROR_INVALID_TASK_DATA";
const SITEKEY: &str = "ERROR_RECAPTCHA_INVALID_SITEKEY";
const BUSY: &str = "ERROR_NO_SLOT_AVAILABLE";
const BLOCKED: &str = "ERROR_IP_BLOCKED";
/// CapSolver spells this code with this mistake.
const SICK: &str = "ERROR_SERVICE_UNAVALIABLE";

/// The name that this provider gives to a code. An unknown code stays as it is.
pub(super) fn spelled(dialect: MockDialect, code: &str) -> &str {
    let column = match dialect {
        MockDialect::TwoCaptcha => 0,
        MockDialect::AntiCaptcha => 1,
        MockDialect::CapMonster => 2,
        MockDialect::CapSolver => 3,
    };
    NAMES.iter().find(|(classic, _)| *classic == code).map_or(code, |(_, names)| names[column])
}

/// The `errorId` of a code that [`spelled`] has translated.
pub(super) fn number(dialect: MockDialect, code: &str) -> u32 {
    if matches!(dialect, MockDialect::CapMonster | MockDialect::CapSolver) {
        return 1;
    }
    match code {
        UNKNOWN_KEY => 1,
        BUSY => 2,
        "ERROR_ZERO_CAPTCHA_FILESIZE" => 3,
        "ERROR_TOO_BIG_CAPTCHA_FILESIZE" => 4,
        "ERROR_ZERO_BALANCE" => 10,
        "ERROR_IP_NOT_ALLOWED" => 11,
        "ERROR_CAPTCHA_UNSOLVABLE" => 12,
        "ERROR_BAD_DUPLICATES" => 13,
        "ERROR_NO_SUCH_METHOD" => 14,
        "ERROR_IMAGE_TYPE_NOT_SUPPORTED" => 15,
        NO_TASK => 16,
        BLOCKED => 21,
        "ERROR_TASK_ABSENT" => 22,
        "ERROR_TASK_NOT_SUPPORTED" => 23,
        SESSION => 24,
        SITEKEY => 31,
        "ERROR_TOKEN_EXPIRED" => 34,
        BAD => 110,
        _ => UNLISTED,
    }
}

/// The HTTP status of an error. Only CapSolver sends another than 200.
pub(super) fn status(dialect: MockDialect, code: &str) -> u16 {
    match dialect {
        MockDialect::CapSolver if code == UNKNOWN_KEY => 401,
        MockDialect::CapSolver => 400,
        _ => 200,
    }
}

/// The human-readable description of a code.
pub(super) fn description(code: &str) -> &'static str {
    match code {
        UNKNOWN_KEY => "No account has this key.",
        BUSY => "No worker is free at the moment.",
        "ERROR_ZERO_BALANCE" => "There is no money left in the account.",
        "ERROR_CAPTCHA_UNSOLVABLE" => "No worker could solve it.",
        "ERROR_TASK_ABSENT" => "There is no task in the request.",
        "ERROR_TASK_NOT_SUPPORTED" => "Tasks of this type are not taken.",
        NO_TASK | "ERROR_TASKID_INVALID" => "There is no task with this id, or not any more.",
        BAD | SESSION | DATA | SITEKEY => "A parameter is missing or wrong.",
        _ => "The request cannot be served.",
    }
}

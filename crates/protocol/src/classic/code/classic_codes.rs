//! The table of codes of the classic protocol. One entry is one code at every provider; `at_captcha_ai` holds its
//! other meaning at CaptchaAI, if there is one. Correct a class here, or in the configuration of a running daemon.

use super::CodePlace;
use crate::classic::dialect::ClassicDialect;
use quittance_lifecycle::FaultClass::{self, AccountBlocked, Busy, Caller, NoFunds, NotSold, Unsolvable};
use std::time::Duration;

pub(super) struct CodeEntry {
    pub(super) code: &'static str,
    pub(super) is_prefix: bool,
    pub(super) place: CodePlace,
    pub(super) class: FaultClass,
    pub(super) meaning: &'static str,
    pub(super) advice: &'static str,
    pause_s: u64,
    pub(super) is_block: bool,
    at_captcha_ai: Option<Other>,
}

/// The meaning of a code at CaptchaAI, if it differs.
struct Other {
    class: FaultClass,
    meaning: &'static str,
    advice: &'static str,
    pause_s: u64,
}

impl CodeEntry {
    fn other(&self, dialect: ClassicDialect) -> Option<&Other> {
        self.at_captcha_ai.as_ref().filter(|_| dialect == ClassicDialect::CaptchaAi)
    }

    pub(super) fn class(&self, dialect: ClassicDialect) -> FaultClass {
        self.other(dialect).map_or(self.class, |other| other.class)
    }

    pub(super) fn meaning(&self, dialect: ClassicDialect) -> &'static str {
        self.other(dialect).map_or(self.meaning, |other| other.meaning)
    }

    pub(super) fn advice(&self, dialect: ClassicDialect) -> &'static str {
        self.other(dialect).map_or(self.advice, |other| other.advice)
    }

    pub(super) fn pause(&self, dialect: ClassicDialect) -> Option<Duration> {
        let seconds = self.other(dialect).map_or(self.pause_s, |other| other.pause_s);
        (seconds > 0).then_some(Duration::from_secs(seconds))
    }

    /// Marks a block of the account or of our address: the provider takes no submits and no polls for this time.
    const fn blocked_s(mut self, seconds: u64) -> Self {
        self.pause_s = seconds;
        self.is_block = true;
        self
    }

    const fn pause_s(mut self, seconds: u64) -> Self {
        self.pause_s = seconds;
        self
    }

    const fn prefix(mut self) -> Self {
        self.is_prefix = true;
        self
    }

    const fn at_captcha_ai(mut self, other: Other) -> Self {
        self.at_captcha_ai = Some(other);
        self
    }
}

const fn on(
    place: CodePlace,
    class: FaultClass,
    code: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> CodeEntry {
    CodeEntry {
        code,
        is_prefix: false,
        place,
        class,
        meaning,
        advice,
        pause_s: 0,
        is_block: false,
        at_captcha_ai: None,
    }
}

const fn submit(
    class: FaultClass,
    code: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> CodeEntry {
    on(CodePlace::Submit, class, code, meaning, advice)
}

const fn poll(
    class: FaultClass,
    code: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> CodeEntry {
    on(CodePlace::Poll, class, code, meaning, advice)
}

const fn both(
    class: FaultClass,
    code: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> CodeEntry {
    on(CodePlace::Both, class, code, meaning, advice)
}

/// The entry for a code. An exact entry wins over a prefix.
pub(super) fn find(code: &str) -> Option<&'static CodeEntry> {
    let exact = TABLE.iter().find(|entry| !entry.is_prefix && entry.code == code);
    exact.or_else(|| TABLE.iter().find(|entry| entry.is_prefix && code.starts_with(entry.code)))
}

const NEW_KEY: &str = "check the key in the provider's account page and in the configuration";
const PARAMETERS: &str = "correct the parameters of the order";
const ANOTHER_FILE: &str = "send another file";
const ANOTHER_PROXY: &str = "use another proxy, or try this one in ten minutes";
const NOTHING: &str = "nothing: it is tried again by itself";
const SLOWER: &str = "nothing at first: everything slows down by itself; if it stays, send less at once";

pub(super) const TABLE: &[CodeEntry] = &[
    both(AccountBlocked, "ERROR_WRONG_USER_KEY", "The key does not have the form of a key.", NEW_KEY),
    both(AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST", "There is no account with this key.", NEW_KEY)
        .at_captcha_ai(Other {
            class: AccountBlocked,
            meaning: "There is no account with this key, or it has no plan.",
            advice: "check the key, and that the account has a plan with threads",
            pause_s: 0,
        }),
    both(
        AccountBlocked,
        "ERROR_IP_NOT_ALLOWED",
        "The account takes calls from listed addresses only.",
        "add this machine's address to the list in the account, or empty the list",
    ),
    both(
        NoFunds,
        "ERROR_ZERO_BALANCE",
        "The account has no money.",
        "top the account up, then run `quittance provider resume NAME`",
    )
    .pause_s(60)
    .at_captcha_ai(Other {
        class: Busy,
        meaning: "No thread is free; if none is in use either, the plan has ended.",
        advice: "nothing while threads are in use; else renew the plan, then run `quittance provider resume NAME`",
        // Threads get free at any moment: how fast to try again is decided by the gate.
        pause_s: 0,
    }),
    submit(Busy, "ERROR_NO_SLOT_AVAILABLE", "The provider has no room for the task now.", SLOWER),
    submit(Busy, "MAX_USER_TURN", "Too many submits in too short a time.", SLOWER).pause_s(10),
    both(Busy, "ERROR: 1001", "Blocked for ten minutes: too many submits that found no slot.", SLOWER)
        .blocked_s(600),
    both(
        Busy,
        "ERROR: 1002",
        "Blocked for five minutes: too many submits without money.",
        "top the account up",
    )
    .blocked_s(300),
    both(Busy, "ERROR: 1003", "Blocked for half a minute: more refusals than tasks.", SLOWER).blocked_s(30),
    both(
        Busy,
        "ERROR: 1004",
        "This address is blocked for ten minutes: too many calls with a wrong key.",
        NEW_KEY,
    )
    .blocked_s(600),
    both(
        Busy,
        "ERROR: 1005",
        "Blocked for five minutes: too many polls for the number of tasks.",
        "poll less often: raise poll_interval, or use callbacks",
    )
    .blocked_s(300),
    both(Busy, "ERROR: 10", "Blocked for a while; the number says why.", SLOWER).prefix().blocked_s(300),
    both(Busy, "ERROR_TOO_MUCH_REQUESTS", "Too many calls in too short a time.", SLOWER).blocked_s(10),
    both(
        Busy,
        "IP_BANNED",
        "This address is banned for some minutes: too many calls with a wrong key.",
        NEW_KEY,
    )
    .blocked_s(300),
    // An error of the provider asks for no pause: one failed poll must not stop all submits. The backoff decides.
    both(Busy, "ERROR_SERVER_ERROR", "The provider has an internal error.", NOTHING),
    both(Busy, "ERROR_INTERNAL_SERVER_ERROR", "The provider has an internal error.", NOTHING),
    submit(Caller, "ERROR_PAGEURL", "The page address is missing.", PARAMETERS),
    submit(Caller, "ERROR_GOOGLEKEY", "The site key is missing or malformed.", PARAMETERS),
    submit(Caller, "ERROR_WRONG_GOOGLEKEY", "The site key is missing or malformed.", PARAMETERS),
    submit(
        Caller,
        "ERROR_BAD_TOKEN_OR_PAGEURL",
        "The site key does not belong to the page.",
        "check site key and page address against the page; the captcha may be in a frame of another site",
    ),
    submit(Caller, "ERROR_BAD_PARAMETERS", "A parameter is missing or wrong.", PARAMETERS),
    both(
        NotSold,
        "ERROR_METHOD_CALL",
        "The provider does not offer this method, or no longer.",
        "use a kind that the provider offers, or another provider for it",
    ),
    submit(
        Caller,
        "ERROR_NO_SUCH_METHOD",
        "The provider does not know this method.",
        "use a kind that the provider offers, or another provider for it",
    ),
    submit(NotSold, "ERROR_CAPTCHA_TYPE", "The provider does not know this sort of captcha.", PARAMETERS),
    poll(
        Unsolvable,
        "ERROR_FAILED_LOADING_WIDGET",
        "The captcha could not be loaded.",
        "nothing: it is submitted again by itself, up to its limit",
    ),
    submit(Caller, "ERROR_CAPTCHA_ID", "The captcha's own id is missing or wrong.", PARAMETERS),
    submit(Caller, "ERROR_PROXY_FORMAT", "The proxy is not written as login:password@host:port.", PARAMETERS),
    submit(
        Caller,
        "ERROR_DOMAIN_NOT_ALLOWED",
        "The provider does not solve for this site.",
        "use another provider for this site",
    ),
    submit(Caller, "ERROR_ZERO_CAPTCHA_FILESIZE", "The file is too small to be a picture.", ANOTHER_FILE),
    submit(Caller, "ERROR_TOO_BIG_CAPTCHA_FILESIZE", "The file is too large.", ANOTHER_FILE),
    submit(
        Caller,
        "ERROR_WRONG_FILE_EXTENSION",
        "The file is of a sort that the provider does not take.",
        ANOTHER_FILE,
    ),
    submit(Caller, "ERROR_IMAGE_TYPE_NOT_SUPPORTED", "The picture's format is not known.", ANOTHER_FILE),
    submit(Caller, "ERROR_IMAGE_DIMENSIONS_TOO_LARGE", "The picture is too wide or too high.", ANOTHER_FILE),
    submit(Caller, "ERROR_UPLOAD", "The file could not be read.", ANOTHER_FILE),
    submit(Caller, "ERROR_CAPTCHAIMAGE_BLOCKED", "The picture is known to be unsolvable.", ANOTHER_FILE),
    submit(
        Caller,
        "TOO_MANY_BAD_IMAGES",
        "Too many pictures that could not be solved were sent.",
        "look at what is being sent: it may not be a captcha",
    ),
    both(
        Caller,
        "ERROR_BAD_PROXY",
        "The proxy did not work and is set aside for ten minutes.",
        ANOTHER_PROXY,
    ),
    submit(
        Caller,
        "http://",
        "The address of an article: such pages need a parameter of their own.",
        ARTICLE,
    )
    .prefix(),
    submit(
        Caller,
        "https://",
        "The address of an article: such pages need a parameter of their own.",
        ARTICLE,
    )
    .prefix(),
    poll(
        Unsolvable,
        "ERROR_CAPTCHA_UNSOLVABLE",
        "Several workers tried and none could solve it.",
        "nothing: it is submitted again by itself, up to its limit",
    ),
    poll(
        Unsolvable,
        "ERROR_BAD_DUPLICATES",
        "The workers' answers did not agree.",
        "nothing: it is submitted again by itself, up to its limit",
    ),
    poll(Caller, "ERROR_WRONG_ID_FORMAT", "A task id has digits only, and this one does not.", PARAMETERS),
    poll(
        Caller,
        "ERROR_WRONG_CAPTCHA_ID",
        "There is no task with this id.",
        "check that the key is of the account that the task was submitted with",
    ),
    poll(
        Caller,
        "ERROR_NO_SUCH_CAPCHA_ID",
        "There is no task with this id, or no longer.",
        "ask for tasks sooner: they are forgotten soon after they are solved",
    ),
    poll(
        Caller,
        "ERROR_TOKEN_EXPIRED",
        "The challenge was used before; each is good for one load of the page.",
        "fetch a new challenge from the page for each order",
    ),
    poll(Caller, "ERROR_PROXY_CONNECTION_FAILED", "The provider could not reach the proxy.", ANOTHER_PROXY)
        .at_captcha_ai(Other {
            // Its own client goes on asking for the task after this.
            class: Busy,
            meaning: "The provider could not reach the proxy, and may be trying again.",
            advice: "nothing at first; if it stays, use another proxy",
            pause_s: 0,
        }),
    poll(
        Caller,
        "ERROR_EMPTY_ACTION",
        "The call does not say what it wants.",
        "check that provider.dialect is the dialect of the service; if it is, report this as a bug of ours",
    ),
    poll(
        Caller,
        "ERROR_REPORT_NOT_RECORDED",
        "The report came too late, or there were too many bad ones.",
        NO_REPORT,
    ),
    poll(
        Caller,
        "REPORT_NOT_RECORDED",
        "The report came too late, or there were too many bad ones.",
        NO_REPORT,
    ),
    poll(Caller, "ERROR_DUPLICATE_REPORT", "This answer was reported before.", NO_REPORT),
    poll(
        Caller,
        "ERROR_IP_ADDRES",
        "A callback address was not registered from the machine that it names.",
        "register it from that machine, or in the account page",
    ),
];

const ARTICLE: &str = "read the article at that address; for a page of a search engine, send data-s";
const NO_REPORT: &str = "nothing: report an answer once, within a quarter of an hour";

//! What a code means when this gateway sends it for a reason of its own. Clients know only the codes of their
//! service, so each of our reasons uses one of these. Operators read this list.

/// A code, and why we send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCode {
    pub code: &'static str,
    pub meaning: &'static str,
    pub advice: &'static str,
}

const fn own(code: &'static str, meaning: &'static str, advice: &'static str) -> OwnCode {
    OwnCode { code, meaning, advice }
}

const HOST: &str = "the page's host is not in `targets.allow` or not among the tenant's `hosts`, or the page's address is \
                    missing or wrong";
const HOST_ADVICE: &str = "if you may automate the site, add its host to `targets.allow` (and to the tenant's `hosts`); the \
                           refusal names the host in error_text, in errorDescription and in the log";
const UNKNOWN_ID: &str = "no order of this tenant has this id, or it is no longer kept (`store.keep`)";
const ASK_SAME: &str = "use the id and the key with which the order was placed";
const BUSY: &str = "the store is away or its disk is full, the tenant's `rate` or `open_max` is reached, the node is overloaded, or \
                    the provider had no slot, could not be reached or did not accept the account until the deadline; or the queue to \
                    the provider is longer than the order's timeout; or the order was not sent, because no answer could come before \
                    its deadline";
const BUSY_ADVICE: &str =
    "send the order again; if the error stays, look at the log, `quittance doctor` and the tenant's limits";
const TIMEOUT: &str = "the order's deadline was reached before the answer came (a late answer is kept for the next order), or no answer \
                       could come in time, so none was paid for";
const TIMEOUT_ADVICE: &str = "place the order again, with a longer `deadline_s` if the kind needs more time";
const KEY: &str = "the key is missing, or it is not one of this gateway's tenants'";
const KEY_ADVICE: &str =
    "give the client the tenant's key, not the provider's: `quittance tenant new NAME` makes one";
const WRONG: &str = "a parameter is missing or wrong, the kind is not known or not among the tenant's `kinds`, the order's timeout \
                     is shorter than any solve of its kind, or the idempotency key belongs to another order";
const WRONG_ADVICE: &str = "read the reason in error_text (with json=1), in errorDescription or in the log";
const BODY: &str = "the request cannot be read";
const BODY_ADVICE: &str = "send JSON, a form or multipart, whole and in time";
const REPORT: &str = "there is no answer to report on, or the store is away";

/// The gateway's own codes, sorted by code.
pub const OWN_CODES: &[OwnCode] = &[
    own(
        "CAPCHA_NOT_READY",
        "the order is on its way; also while the store is away or the node is overloaded",
        "ask again in a few seconds",
    ),
    own("ERROR_BAD_PARAMETERS", WRONG, WRONG_ADVICE),
    own("ERROR_BAD_REQUEST", BODY, BODY_ADVICE),
    own(
        "ERROR_CAPTCHA_UNSOLVABLE",
        "the order has no answer: its deadline was reached, it is in doubt whether the provider took it, the provider answered \
         with a code that is in no table, it was cancelled, or its answer went to another caller",
        "read the reason in error_text (with json=1) or errorDescription; `quittance dead list` shows more, and `quittance dead \
         replay` tries again",
    ),
    own("ERROR_DOMAIN_NOT_ALLOWED", HOST, HOST_ADVICE),
    own("ERROR_DUPLICATE_REPORT", "the opposite has been reported before", "report an answer once"),
    own(
        "ERROR_EMPTY_ACTION",
        "res.php has no such action",
        "use get, get2, getbalance, reportgood, reportbad, threadsinfo, add_pingback, get_pingback or del_pingback",
    ),
    own("ERROR_GOOGLEKEY", "the site key is missing", "send `googlekey`"),
    own(
        "ERROR_IMAGE_TYPE_NOT_SUPPORTED",
        "a file of the task is not base64",
        "send the bytes of the file in base64, in one line",
    ),
    own(
        "ERROR_INVALID_TASK_DATA",
        "the page's host is not in the allowed list or its address is wrong; or the idempotency key belongs to an order with \
         other parameters; or a field is wrong. The text beside the code says which",
        "read the text beside the code. For a host: add it to `targets.allow`. For a key: use another key for another job",
    ),
    own(
        "ERROR_IP_ADDRES",
        "the callback address cannot be used: it leads into the operator's network, or is not an address",
        "use an address outside, or list it in `webhooks.allow`",
    ),
    own(
        "ERROR_IP_NOT_ALLOWED",
        "this gateway has no tenants, and the request names another host than localhost or comes from a web page",
        "list the host in `listener.hosts`, or add a tenant and give the client its key",
    ),
    own("ERROR_KEY_DOES_NOT_EXIST", KEY, KEY_ADVICE),
    own("ERROR_MAXIMUM_TIME_EXCEED", TIMEOUT, TIMEOUT_ADVICE),
    own("ERROR_NO_SLOT_AVAILABLE", BUSY, BUSY_ADVICE),
    own("ERROR_NO_SUCH_CAPCHA_ID", UNKNOWN_ID, ASK_SAME),
    own(
        "ERROR_NO_SUCH_METHOD",
        "this API has no such method, or the request was not a POST",
        "see docs/clients.md for what each dialect has",
    ),
    own("ERROR_PAGEURL", HOST, HOST_ADVICE),
    own("ERROR_RECAPTCHA_INVALID_DOMAIN", HOST, HOST_ADVICE),
    own("ERROR_RECAPTCHA_INVALID_SITEKEY", "the site key is missing", "send `websiteKey`"),
    own(
        "ERROR_RECORD_DAMAGED",
        "the record of the order is damaged in the store: whether it was paid for is not known",
        "look at it with `quittance dead list --cause unreadable`, and drop it before it is placed again",
    ),
    own(
        "ERROR_REPORT_NOT_RECORDED",
        REPORT,
        "report an answer that was given, and report it again if the store was away",
    ),
    own("ERROR_SERVICE_UNAVALIABLE", BUSY, BUSY_ADVICE),
    own("ERROR_TASKID_INVALID", UNKNOWN_ID, ASK_SAME),
    own(
        "ERROR_TASK_ABSENT",
        "the request has no task, or it is no object",
        "send `task` as an object with a `type`",
    ),
    own("ERROR_TASK_NOT_SUPPORTED", WRONG, WRONG_ADVICE),
    own("ERROR_TASK_TIMEOUT", TIMEOUT, TIMEOUT_ADVICE),
    own(
        "ERROR_TOKEN_EXPIRED",
        "the answer has expired: the caller came too late for it, or its idempotency key belongs to an older order",
        "ask for answers sooner, and place the order again, under a new idempotency key if it had one",
    ),
    own(
        "ERROR_TOO_BIG_CAPTCHA_FILESIZE",
        "the request is larger than `listener.body_bytes_max`, or the file than its kind allows",
        "send a smaller file, or raise the limit",
    ),
    own("ERROR_UPLOAD", BODY, BODY_ADVICE),
    own("ERROR_WRONG_CAPTCHA_ID", UNKNOWN_ID, ASK_SAME),
    own("ERROR_WRONG_ID_FORMAT", "the id is not a number that this gateway gave out", ASK_SAME),
    own("ERROR_WRONG_USER_KEY", KEY, KEY_ADVICE),
    own(
        "ERROR_ZERO_BALANCE",
        "the account at the provider has no money, and was not topped up before the order's deadline",
        "top the account up, then run `quittance provider resume`: the page has a button, and `POST /v1/admin/resume` does the same",
    ),
    own(
        "ERROR_ZERO_CAPTCHA_FILESIZE",
        "the file is missing or too small to be a picture",
        "send the whole file",
    ),
];

/// Our own meaning of a code, if we ever send it ourselves.
#[must_use]
pub fn own_code(code: &str) -> Option<&'static OwnCode> {
    OWN_CODES.iter().find(|own| own.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_once_and_says_what_to_do() {
        assert!(OWN_CODES.is_sorted_by_key(|own| own.code));
        assert!(OWN_CODES.windows(2).all(|two| two[0].code != two[1].code));
        assert!(OWN_CODES.iter().all(|own| own.meaning.len() > 10 && own.advice.len() > 10));
    }

    /// Every code that a caller can get from us, in any dialect, is in the list.
    #[test]
    fn every_code_that_the_gateway_borrows_is_explained() {
        use quittance_protocol::Dialect;
        let codes = [
            crate::codes::NO_SLOT,
            crate::codes::BAD_PARAMETERS,
            crate::codes::UNSOLVABLE,
            crate::codes::UNKNOWN_ID,
            crate::codes::NO_ID,
            crate::codes::TOO_BIG,
            crate::codes::DOMAIN,
            crate::codes::EXPIRED,
            crate::codes::DAMAGED,
            crate::codes::TIMEOUT,
            "ERROR_ZERO_BALANCE",
            "ERROR_IMAGE_TYPE_NOT_SUPPORTED",
            "ERROR_PAGEURL",
            "ERROR_WRONG_USER_KEY",
            "ERROR_KEY_DOES_NOT_EXIST",
        ];
        for code in codes {
            assert!(own_code(code).is_some(), "{code}");
        }
        // Each dialect has another code for these.
        let translated = [crate::codes::NOT_SENT_IN_TIME, crate::codes::TIMEOUT_TOO_SHORT];
        for code in codes.into_iter().chain(translated) {
            assert!(own_code(crate::codes::in_classic(code)).is_some(), "{code}");
            for dialect in Dialect::ALL {
                let spelled = crate::json_api::spelled(dialect, code);
                assert!(own_code(spelled).is_some(), "{spelled}");
            }
        }
    }
}

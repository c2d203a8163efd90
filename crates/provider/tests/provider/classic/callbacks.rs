//! Tests of pingbacks, in every verb and encoding.

use crate::classic::provider;
use quittance_lifecycle::{CallbackResult, FaultClass, Payload, ProviderAnswer};
use quittance_ports::{Callback, CallbackMessage, Provider};
use quittance_protocol::classic::ClassicDialect;

fn read_callback(query: &str, content_type: Option<&str>, body: &str) -> Option<CallbackMessage> {
    let callback = Callback { query, content_type, body: body.as_bytes() };
    provider(ClassicDialect::CaptchaAi, "http://127.0.0.1:9").read_callback(&callback)
}

fn answered(task: Option<&str>, text: &str) -> Option<CallbackMessage> {
    let delivery = ProviderAnswer { payload: Payload::text(text), took_at_least: None, cost: None };
    Some(CallbackMessage { task: task.map(str::to_owned), word: CallbackResult::Answered(delivery) })
}

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

#[tokio::test]
async fn a_callback_is_understood_by_get_post_and_json() {
    let expected = answered(Some("7"), "to+ken|a b");
    assert_eq!(read_callback("id=7&code=to%2Bken|a+b", None, ""), expected);
    assert_eq!(read_callback("", FORM, "id=7&code=to%2Bken%7Ca%20b"), expected);
    assert_eq!(read_callback("", None, "id=7&code=to%2Bken|a+b"), expected);
    assert_eq!(read_callback("", Some("application/json"), r#"{"id":7,"code":"to+ken|a b"}"#), expected);
    assert_eq!(read_callback("code=token", None, ""), answered(None, "token"));
    assert_eq!(
        read_callback("id=a%20b&code=token", None, ""),
        answered(None, "token"),
        "no task has such a name"
    );
}

#[tokio::test]
async fn a_callback_that_says_nothing_is_nothing() {
    for nonsense in ["", "id=7", "id=7&code=", "id=7&code=CAPCHA_NOT_READY", "code=+", "%%%"] {
        assert_eq!(read_callback(nonsense, None, ""), None, "{nonsense}");
    }
    for nonsense in ["{\"id\":7,", "\u{0}\u{1}", "<html>", "{\"id\":7,\"code\":null}"] {
        assert_eq!(read_callback("", None, nonsense), None, "{nonsense}");
    }
}

#[tokio::test]
async fn an_error_code_in_a_callback_is_never_an_answer() {
    for (code, class) in [
        ("ERROR_CAPTCHA_UNSOLVABLE", FaultClass::Unsolvable),
        ("ERROR_NEVER_SEEN", FaultClass::UnlistedCode),
        ("IP_BANNED", FaultClass::Busy),
    ] {
        let Some(CallbackMessage { task, word: CallbackResult::Faulted(fault) }) =
            read_callback("", FORM, &format!("id=7&code={code}"))
        else {
            panic!("{code} was taken for an answer");
        };
        assert_eq!((task.as_deref(), fault.class, fault.code.as_str()), (Some("7"), class, code));
    }
}

//! Orders of every sort, and faults that a caller must not notice or must learn of.

use crate::fixture::Fixture;
use quittance::{
    ClassicDialect, FunCaptcha, Geetest, HCaptcha, Image, NoAnswer, Order, Origin, PlaceError, RecaptchaV2,
    RecaptchaV3, SolveError, Text, Turnstile,
};
use quittance_mock_provider::{ScriptRule, TaskState};
use serde_json::json;

const PAGE: &str = "https://shop.example.com/login";
const SITE_KEY: &str = "6Le-wvkSAAAAAPBMRTvw0Q4Muexq9bi0DJwx_mJ-";

fn rule(rule: serde_json::Value) -> ScriptRule {
    serde_json::from_value(rule).unwrap()
}

fn gif() -> Vec<u8> {
    let mut gif = b"GIF89a\x40\x00\x20\x00\x80\x00\x00".to_vec();
    gif.resize(400, 7);
    gif
}

#[tokio::test]
async fn every_typed_order_is_taken_and_answered_by_both_dialects() {
    for dialect in [ClassicDialect::CaptchaAi, ClassicDialect::TwoCaptcha] {
        let fixture = Fixture::new(dialect).await;
        let node = fixture.polling().await;
        let mut orders: Vec<Order> = vec![
            Image::new(gif()).numeric("1").into(),
            RecaptchaV2::new(SITE_KEY, PAGE).into(),
            RecaptchaV2::new(SITE_KEY, PAGE).enterprise("1").into(),
            RecaptchaV3::new(SITE_KEY, PAGE).action("login").into(),
            Turnstile::new("0x4AAAAAAADnPIDROrmt1Wwj", PAGE).action("login").into(),
            Geetest::new("81388ea1fc187e0c335c0a8907ff2625", "12ae1159ffdfcbbc306897e8d9bf6d06", PAGE).into(),
        ];
        if dialect == ClassicDialect::TwoCaptcha {
            orders.push(Text::new("If tomorrow is Saturday, what day is today?").into());
            orders.push(HCaptcha::new("10000000-ffff-ffff-ffff-000000000001", PAGE).into());
            orders.push(FunCaptcha::new("69A21A01-CC7B-B9C6-0F9A-E7FA06677FFC", PAGE).into());
        }
        for order in orders {
            let kind = order.kind().to_owned();
            let solved =
                node.solve(order).await.unwrap_or_else(|error| panic!("{dialect:?} {kind}: {error}"));
            let ledger = fixture.ledger();
            let sold = ledger.tasks.last().unwrap().answer.clone().unwrap();
            let sold = if let serde_json::Value::String(text) = sold { text } else { sold.to_string() };
            assert_eq!((solved.text(), solved.origin), (sold.as_str(), Origin::Api), "{dialect:?} {kind}");
        }
        node.stop().await;
    }
}

#[tokio::test]
async fn a_token_is_for_one_job_by_default_and_a_key_says_which() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.polling().await;
    let order = || RecaptchaV2::new(SITE_KEY, PAGE);
    let (first, second) = tokio::join!(node.solve(order()), node.solve(order()));
    assert_ne!(first.unwrap().text(), second.unwrap().text());
    let keyed = |key: &str| node.solve(order().idempotency_key(key));
    let (a, again, b) = tokio::join!(keyed("a"), keyed("a"), keyed("b"));
    let (a, again, b) = (a.unwrap(), again.unwrap(), b.unwrap());
    assert_eq!(a.text(), again.text());
    assert_ne!(a.text(), b.text());
    assert_eq!(fixture.ledger().totals.accepted, 4);
    node.stop().await;
}

#[tokio::test]
async fn shared_orders_that_are_equal_join_and_only_one_is_paid_for() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.polling().await;
    let ask = || node.solve(RecaptchaV2::new(SITE_KEY, PAGE).shared());
    let (first, second, third) = tokio::join!(ask(), ask(), ask());
    let cached = ask().await.unwrap();
    assert_eq!(cached.origin, Origin::Cached);
    for solved in [first, second, third] {
        assert_eq!(solved.unwrap().text(), cached.text());
    }
    assert_eq!(fixture.ledger().totals.accepted, 1);
    node.stop().await;
}

#[tokio::test]
async fn a_reply_that_is_lost_is_settled_by_the_callback_and_paid_once() {
    for dialect in [ClassicDialect::CaptchaAi, ClassicDialect::TwoCaptcha] {
        let fixture = Fixture::new(dialect).await;
        fixture
            .mock
            .script(vec![rule(json!({ "on": "in.php", "nth": 1, "do": { "reply_lost": {} } }))])
            .unwrap();
        let node = fixture.called_back().await;
        let solved = node.solve(Turnstile::new("0x4AAAAAAADnPIDROrmt1Wwj", PAGE)).await.unwrap();
        let ledger = fixture.ledger();
        assert_eq!(ledger.totals.accepted, 1, "{dialect:?}");
        assert_eq!(ledger.tasks[0].answer, Some(json!(solved.text())));
        assert!(!ledger.tasks[0].reply_delivered, "its id was never learned from the reply");
        node.stop().await;
    }
}

#[tokio::test]
async fn a_callback_before_the_reply_is_kept_and_a_lost_one_is_made_up_for() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    fixture.mock
        .script(vec![
            rule(json!({ "on": "pingback", "match": { "pageurl": "https://early.example.com/" }, "do": { "early": {} } })),
            rule(json!({ "on": "pingback", "match": { "pageurl": "https://lost.example.com/" }, "do": { "lost": {} } })),
        ])
        .unwrap();
    let node = fixture.called_back().await;
    for page in ["https://early.example.com/", "https://lost.example.com/"] {
        let solved = node.solve(RecaptchaV2::new(SITE_KEY, page)).await.unwrap();
        assert_eq!(fixture.ledger().tasks.last().unwrap().answer, Some(json!(solved.text())), "{page}");
    }
    assert_eq!(fixture.ledger().totals.accepted, 2);
    node.stop().await;
}

#[tokio::test]
async fn an_error_code_in_a_callback_is_never_an_answer() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let code = json!({ "on": "pingback", "nth": 1, "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } });
    let unsolvable = json!({ "on": "in.php", "nth": 1, "do": { "unsolvable": {} } });
    fixture.mock.script(vec![rule(code), rule(unsolvable)]).unwrap();
    let node = fixture.called_back().await;
    let solved = node.solve(RecaptchaV2::new(SITE_KEY, PAGE)).await.unwrap();
    let ledger = fixture.ledger();
    assert_eq!(ledger.tasks.len(), 2, "an unsolvable task is submitted again");
    assert_eq!(
        (ledger.tasks[0].state, ledger.tasks[1].answer.clone()),
        (TaskState::Failed, Some(json!(solved.text())))
    );
    node.stop().await;
}

#[tokio::test]
async fn what_may_not_be_automated_is_refused_before_anything_is_paid_for() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.builder().allow("*.example.org").start().await.unwrap();
    let refused = node.solve(RecaptchaV2::new(SITE_KEY, "https://elsewhere.invalid/")).await.unwrap_err();
    assert!(matches!(refused, SolveError::Place(PlaceError::NotAllowed(_))), "{refused}");
    assert!(refused.to_string().contains("targets.allow"), "{refused}");
    let unknown = node.solve(Order::of("recaptcha_v9")).await.unwrap_err();
    assert!(unknown.to_string().contains("did you mean `recaptcha_v"), "{unknown}");
    assert_eq!(fixture.ledger().totals.requests.get("in.php"), None);
    node.solve(RecaptchaV2::new(SITE_KEY, "https://a.example.org/")).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_permanent_error_is_returned_with_its_code_and_not_tried_again() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let wrong = json!({ "on": "in.php", "every": 1, "do": { "code": "ERROR_GOOGLEKEY" } });
    fixture.mock.script(vec![rule(wrong)]).unwrap();
    let node = fixture.polling().await;
    let reply = node.solve(RecaptchaV2::new(SITE_KEY, PAGE)).await.unwrap_err();
    assert!(matches!(&reply, SolveError::NoAnswer(NoAnswer::Failed(_))), "{reply}");
    assert!(reply.to_string().contains("ERROR_GOOGLEKEY"), "{reply}");
    assert_eq!(fixture.ledger().totals.requests["in.php"], 1);
    node.stop().await;
}

/// A callback contains only the token, which works only in the browser of the solve.
#[tokio::test]
async fn an_answer_that_is_bound_to_a_browser_comes_with_it_although_there_is_a_callback_address() {
    let fixture = Fixture::new(ClassicDialect::CaptchaAi).await;
    let node = fixture.called_back().await;
    let bound = RecaptchaV2::new(SITE_KEY, PAGE).enterprise("1");
    let solved = node.solve(bound).await.unwrap();
    assert!(
        solved.answer.payload.extras.contains_key("user_agent"),
        "{:?}",
        solved.answer.payload.extras.keys()
    );
    assert!(!fixture.ledger().tasks[0].pingback_wanted);
    node.solve(RecaptchaV2::new(SITE_KEY, PAGE)).await.unwrap();
    assert!(fixture.ledger().tasks[1].pingback_wanted, "an ordinary token is called back");
    node.stop().await;
}

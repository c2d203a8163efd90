//! Tests of what is really sent: which fields, where, and how fast.

use crate::classic::server::{ClassicServer, ok};
use crate::classic::{accepted, provider};
use crate::fixture::{KEY, order, submit_order, token_order};
use quittance_lifecycle::Value;
use quittance_ports::{Provider, Submission};
use quittance_protocol::classic::{ClassicDialect, Part};

#[tokio::test]
async fn an_order_goes_by_body_with_its_callback() {
    let server = ClassicServer::answering(|_| ok(r#"{"status":1,"request":"7"}"#));
    let provider = provider(ClassicDialect::CaptchaAi, &format!("{}/api/", server.url()));
    let (key, terms) = token_order();
    let callback = "https://quittance.example.com/c/1/2?x=y&z";
    let submission =
        Submission { key, attempt: 1, terms: &terms, callback: Some(callback), guard: &|_| Ok(()) };
    assert_eq!(provider.submit(submission).await, accepted("7"));
    let request = &server.received()[0];
    assert_eq!(request.line(), "POST /api/in.php HTTP/1.1");
    let fields: Vec<_> = request.form.0.keys().map(|name| (name.as_str(), request.text(name))).collect();
    assert_eq!(
        fields,
        [
            ("json", "1"),
            ("key", KEY),
            ("method", "turnstile"),
            ("pageurl", "https://example.com/"),
            ("pingback", callback),
            ("sitekey", "s"),
        ]
    );
}

#[tokio::test]
async fn a_picture_goes_as_base64_and_several_as_files() {
    let server = ClassicServer::answering(|_| ok("OK|7"));
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    let bytes: Vec<u8> = (0..=255).collect();
    let picture = order("image", &[("body", Value::Bytes(bytes.clone())), ("numeric", "1".into())]);
    assert_eq!(submit_order(&provider, &picture, None).await, accepted("7"));
    let turned = [
        ("file_1", Value::Bytes(bytes.clone())),
        ("file_2", Value::Bytes(bytes.clone())),
        ("angle", "30".into()),
    ];
    assert_eq!(submit_order(&provider, &order("rotate", &turned), None).await, accepted("7"));
    let request = server.received();
    assert_eq!((request[0].text("method"), request[0].text("numeric")), ("base64", "1"));
    assert!(request[0].text("body").starts_with("AAECAwQFBgcICQ"));
    assert_eq!((request[1].text("method"), request[1].text("key")), ("rotatecaptcha", KEY));
    assert_eq!(request[1].form.0["file_2"], Part::File(bytes));
}

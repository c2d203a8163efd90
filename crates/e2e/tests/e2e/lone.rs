//! One client, alone, while the provider is down. It can only poll, and treats any error as final, so it must get
//! none.

use crate::either::classic;
use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use serde_json::json;

#[test]
fn a_lone_client_waits_out_a_provider_that_cannot_be_reached() {
    let sim = Sim::start();
    let serve = Serve::start(Sandbox::of(&sim));
    let (status, output) =
        call("POST", &format!("{}/mock/outage", sim.url), &json!({ "ms": 4000, "refuse": true }).to_string());
    assert_eq!(status, 200, "{output}");
    // Its pauses are a fraction of what they are in life: it is refused far more often than any limit says.
    let answer =
        classic(&serve.http, "method=turnstile&sitekey=0x4AAAAAAAB&pageurl=https://lone.example.com/");
    let ledger = sim.ledger();
    assert_eq!(ledger.accepted(), 1);
    assert_eq!(ledger.tasks()[0]["answer"], answer);
    serve.end_in_peace();
}

//! Two providers over real HTTP: whatever happens to the first one, its orders are answered by the second, and no
//! order is paid for at both.

use crate::http::call;
use crate::provider::SimServices;
use crate::sandbox::{Sandbox, page};
use crate::serve::Serve;
use crate::wait::until;
use serde_json::{Value, json};

/// How many orders each part of the story places.
const ORDERS: usize = 40;

struct Scene {
    services: SimServices,
    gateway: Serve,
}

impl Scene {
    fn start() -> Self {
        let services = SimServices::start(&["a=2captcha", "b=captchaai"]);
        let sandbox =
            Sandbox::at(services.url("a"), "2captcha").and_provider("second", services.url("b"), "captchaai");
        // The breaker of this sandbox is set for storms of single faults.
        let sandbox = sandbox.set("provider.main.trip_at=3").set("provider.second.trip_at=3");
        Self { gateway: Serve::start(sandbox), services }
    }

    fn place(&self, mark: &str, kind: &str) -> String {
        let key = if kind == "turnstile" { "sitekey" } else { "googlekey" };
        let order = json!({
            "kind": kind,
            "params": { key: format!("6Le-{mark}-0123456789abcdefghijklmnop"), "pageurl": page(mark) },
        });
        let (status, reply) = call("POST", &format!("{}/v1/orders", self.gateway.http), &order.to_string());
        assert!(matches!(status, 200 | 202), "{status}: {reply}");
        let reply: Value = serde_json::from_str(&reply).expect("it speaks JSON");
        reply["id"].as_str().expect("an order has an id").to_owned()
    }

    fn place_all(&self, part: &str, kind: &str) -> Vec<String> {
        (0..ORDERS).map(|n| self.place(&format!("{part}-{n}"), kind)).collect()
    }

    fn expect_answers(&self, ids: &[String]) {
        for id in ids {
            until("an answer", || {
                let (_, reply) = call("GET", &format!("{}/v1/orders/{id}", self.gateway.http), "");
                let reply: Value = serde_json::from_str(&reply).expect("it speaks JSON");
                let status = reply["status"].as_str().expect("an order has a status").to_owned();
                assert!(matches!(status.as_str(), "pending" | "solved"), "{reply}");
                (status == "solved").then_some(())
            });
        }
    }

    /// How many tasks of this part each service took.
    fn taken(&self, part: &str) -> (usize, usize) {
        let count = |name: &str| {
            let ledger = self.services.ledger(name);
            let pages = ledger.by_page();
            let of_part = pages.iter().filter(|(page, _)| page.contains(&format!("//{part}-")));
            of_part.map(|(_, tasks)| tasks.len()).sum()
        };
        (count("a"), count("b"))
    }
}

#[test]
fn what_the_first_provider_cannot_do_the_second_does_and_nothing_is_paid_twice() {
    let scene = Scene::start();
    scene.expect_answers(&scene.place_all("before", "turnstile"));
    assert_eq!(scene.taken("before"), (ORDERS, 0));

    // It rejects one kind, and keeps the others.
    scene.services.change("PATCH", "a", "faults", &json!({ "rejects": ["turnstile"] }));
    scene.expect_answers(&scene.place_all("unsold", "turnstile"));
    scene.expect_answers(&scene.place_all("sold", "recaptcha_v2"));
    assert_eq!((scene.taken("unsold"), scene.taken("sold")), ((0, ORDERS), (ORDERS, 0)));

    // Its key is blocked, and later accepted again.
    scene.services.change("PUT", "a", "account", &json!({ "name": "main", "key_blocked": true }));
    scene.expect_answers(&scene.place_all("blocked", "recaptcha_v2"));
    assert_eq!(scene.taken("blocked"), (0, ORDERS));
    let asked = scene.services.ledger("a").requests("in.php");
    scene.expect_answers(&scene.place_all("paused", "recaptcha_v2"));
    assert_eq!(scene.services.ledger("a").requests("in.php"), asked, "it is not asked again");
    scene.services.change("PUT", "a", "account", &json!({ "name": "main", "key_blocked": false }));
    let (status, reply) = call("POST", &format!("{}/v1/admin/resume", scene.gateway.http), "");
    assert_eq!(status, 200, "{reply}");
    scene.expect_answers(&scene.place_all("resumed", "recaptcha_v2"));
    assert_eq!(scene.taken("resumed"), (ORDERS, 0));

    // It is gone in the middle of its orders, and comes back.
    let first = scene.place_all("first", "recaptcha_v2");
    scene.services.change("POST", "a", "outage", &json!({ "how": "refuse" }));
    let second = scene.place_all("second", "recaptcha_v2");
    scene.expect_answers(&second);
    let (_, of_b) = scene.taken("second");
    assert_eq!(of_b, ORDERS, "each is paid for there, once");
    scene.services.change("POST", "a", "outage", &json!({ "ms": 0 }));
    scene.expect_answers(&first);
    until("the first provider takes orders again", || {
        let mark = format!("back-{}", scene.services.ledger("a").requests("in.php"));
        let order = scene.place(&mark, "recaptcha_v2");
        scene.expect_answers(&[order]);
        (scene.taken("back").0 > 0).then_some(())
    });
    scene.gateway.end_in_peace();
}

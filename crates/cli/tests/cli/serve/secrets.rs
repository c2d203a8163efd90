//! What is never shown: keys, answers, passwords of proxies and callers' addresses, at any log level and in any
//! format.

use crate::serve::house::{House, PROVIDER_KEY, get, run, until};
use rustix::process::Signal;

#[test]
fn no_secret_is_in_the_log_at_any_level() {
    let made: serde_json::Value =
        serde_json::from_str(&run(&["tenant", "new", "team-a", "--json"]).out).unwrap();
    let key = made["key"].as_str().unwrap();
    let hash = format!("tenant.team-a.key_sha256={}", made["key_sha256"].as_str().unwrap());
    let hook = "5ec4e70f".repeat(8);
    for format in ["text", "json"] {
        let house = House::new();
        let args = ["--log-level", "trace", "--log-format", format, "--set", &hash];
        let hooked =
            ["--set", "tenant.team-a.webhook_secret_env=HOOK", "--set", "public_url=http://127.0.0.1:9/base"];
        // The provider cannot call us there, so it is asked for soon.
        let allowed = ["--set", "webhooks.allow=127.0.0.1", "--set", "timing.callback_wait=50ms"];
        let daemon = house.serve_with(&[&args[..], &hooked, &allowed].concat(), &[("HOOK", &hook)]);
        let order = format!(
            "/in.php?key={key}&method=userrecaptcha&googlekey=6Le-site&pageurl=https://example.com/&pingback=http%3A%2F%2F127.0.0.1%3A9%2Fpr1v4te\
             &proxy=user:pr0xypass@192.0.2.9:3128&proxytype=HTTP"
        );
        let taken = get(&daemon.http, &order).body;
        let without = order.replace("&pingback=http%3A%2F%2F127.0.0.1%3A9%2Fpr1v4te", "");
        let id = match taken.strip_prefix("OK|") {
            Some(id) => id.to_owned(),
            None => get(&daemon.http, &without).body.replace("OK|", ""),
        };
        let answer = until("an answer", || {
            let reply = get(&daemon.http, &format!("/res.php?key={key}&action=get&id={id}")).body;
            assert!(reply == "CAPCHA_NOT_READY" || reply.starts_with("OK|"), "{reply} for {taken}");
            reply.strip_prefix("OK|").map(str::to_owned)
        });
        // Guesses are not shown either: they may be a key elsewhere.
        get(&daemon.http, "/res.php?key=9999guess9999guess9999guess99999&action=getbalance");
        let ended = daemon.end(Signal::TERM);
        assert!(
            ended.err.contains("serving") && ended.err.contains("team-a") | ended.err.contains("tenants"),
            "{ended:?}"
        );
        for secret in [key, PROVIDER_KEY, &hook, &answer, "pr0xypass", "pr1v4te", "9999guess", "/callback/"] {
            assert!(!ended.err.contains(secret), "{secret} is in the log: {}", ended.err);
        }
        if format == "json" {
            for line in ended.err.lines() {
                let object: serde_json::Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert!(object["level"].is_string() && object["message"].is_string(), "{line}");
            }
        }
    }
}

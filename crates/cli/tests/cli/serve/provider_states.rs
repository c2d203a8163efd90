//! What `doctor` says about a provider that gets no orders, and what `provider` does beside a daemon whose store is in
//! memory.

use crate::serve::house::{Ended, House, get};
use rustix::process::Signal;
use serde_json::Value;

const MEMORY: &str = "store.url=memory:";

/// The findings of `doctor --json` about providers: the state and the words of each.
fn findings(house: &House) -> Vec<(String, String)> {
    let report: Vec<Value> = serde_json::from_str(&house.run(&["doctor", "--json"]).out).unwrap();
    let about = report.iter().filter(|finding| finding["about"] == "provider");
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    about.map(|finding| (text(finding, "state"), text(finding, "what"))).collect()
}

fn done(ended: &Ended) -> &str {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    &ended.out
}

#[test]
fn the_doctor_says_that_a_provider_gets_no_orders_and_what_to_do() {
    let house = House::new();
    let daemon = house.serve(&[]);
    assert_eq!(findings(&house)[0].0, "good");
    let says = |words: &str| {
        let found = findings(&house);
        let [(state, what)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(state, "note", "{what}");
        for word in ["main answers and accepts the key", words, "`quittance provider resume main`"] {
            assert!(what.contains(word), "`{word}` is not in: {what}");
        }
    };
    done(&house.run(&["provider", "pause", "main"]));
    says("a person has paused it");
    done(&house.run(&["provider", "drain", "main"]));
    says("it is drained (");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    says("it is drained");
    done(&house.run(&["provider", "resume", "main"]));
    assert_eq!(findings(&house)[0].0, "good");
}

#[test]
fn a_provider_is_paused_and_resumed_in_the_daemon_that_has_the_store_in_memory() {
    let house = House::new();
    let daemon = house.serve(&["--set", MEMORY]);
    let listen = format!("listen={}", daemon.http);
    let provider = |args: &[&str]| {
        let args = [&["provider"], args, &["--set", MEMORY, "--set", &listen]].concat();
        house.run(&args)
    };
    let mode = || {
        let list: Value = serde_json::from_str(&get(&daemon.http, "/v1/admin/providers").body).unwrap();
        list["providers"][0]["mode"].as_str().unwrap().to_owned()
    };
    assert!(done(&provider(&["pause", "main"])).starts_with("main is paused"));
    assert_eq!(mode(), "paused");
    assert!(done(&provider(&["list"])).contains("a person has paused it"));
    done(&provider(&["resume"]));
    assert_eq!(mode(), "active");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    // Without the daemon nothing would be changed, so the command does not say that it has changed it.
    let alone = provider(&["pause", "main"]);
    assert_ne!(alone.code, Some(0), "{alone:?}");
    for word in ["in the memory of a daemon", "no daemon answers at http://", "quittance serve"] {
        assert!(alone.err.contains(word), "`{word}` is not in: {}", alone.err);
    }
}

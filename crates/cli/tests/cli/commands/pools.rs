//! Tests of the built binary with pools and the stock: what is set, what is refused and changes nothing, and what is
//! shown. The store here is a folder; daemons that share one are in `crates/e2e`.

use crate::commands::house::{CommandOutput, House};
use quittance::{Order, Quittance};
use serde_json::{Value, json};

impl House {
    fn set(&self, args: &[&str]) -> CommandOutput {
        self.run(&[&["pool", "set", "login"], args].concat())
    }

    fn pools(&self) -> Value {
        self.run(&["pool", "list", "--json"]).exits(0).json()
    }
}

const LOGIN: [&str; 8] = [
    "--kind",
    "turnstile",
    "-p",
    "sitekey=0x4A",
    "-p",
    "pageurl=https://example.com/login",
    "--service-level",
    "0.95",
];

#[test]
fn a_pool_is_set_shown_changed_and_taken_away() {
    let house = House::new();
    assert!(house.run(&["pool", "list"]).exits(5).err.contains("there is no store in"));
    let made = house.set(&[&LOGIN[..], &["--budget-per-hour", "2"]].concat()).exits(0);
    for words in ["new pool login", "95 % of orders", "2 USD an hour", "https://example.com/login"] {
        assert!(made.out.contains(words), "{words}: {}", made.out);
    }
    let before = house.pools();
    let changed = house.set(&["--size", "3", "--hours", "08:00-20:00", "--hours", "22:00-02:00"]).exits(0);
    for words in [
        "changed pool login",
        "a fixed size of 3 (was: 95 % of orders)",
        "08:00-20:00, 22:00-02:00 UTC (was: always)",
    ] {
        assert!(changed.out.contains(words), "{words}: {}", changed.out);
    }
    assert!(!changed.out.contains("budget"), "what was not typed has not changed: {}", changed.out);
    let after = house.pools();
    for same in ["tenant", "kind", "params", "budget_per_hour", "min_life_s", "enabled"] {
        assert_eq!(before[0][same], after[0][same], "{same}");
    }
    assert_eq!((&after[0]["size"], &after[0]["service_level"]), (&json!(3), &Value::Null));
    assert!(house.set(&["--size", "3"]).exits(0).out.contains("unchanged"));
    let off = house.set(&["--off", "--json"]).exits(0).json();
    assert_eq!(
        (&off["created"], &off["changed"]),
        (&json!(false), &json!({ "state": { "is": "off", "was": "on" } }))
    );
    let shown = house.run(&["pool", "show", "login"]).exits(0).out;
    for words in ["login (off)", "250 s after its solve", "no node has handled"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(house.run(&["pool", "remove", "login", "--json"]).exits(0).json()["removed"], true);
    assert_eq!(house.pools(), json!([]));
}

#[test]
fn what_makes_no_sense_is_refused_with_2_and_changes_nothing() {
    let house = House::new();
    house.set(&LOGIN).exits(0);
    let before = house.pools();
    for (args, words) in [
        (&["--kind", "text", "-p", "textcaptcha=x"][..], "text"),
        (&["--kind", "turnstyle"], "turnstyle"),
        (&["-p", "pageurl=https://shop.example.org/"], "targets.allow"),
        (&["-p", "sitekey="], "`sitekey` is missing"),
        (&["--size", "0"], "size"),
        (&["--size", "5", "--service-level", "0.9"], "--service-level"),
        (&["--service-level", "95"], "0.95"),
        (&["--hours", "8-20"], "08:00"),
        (&["--budget-per-hour", "much"], "none"),
        (&["--min-life", "290s"], "life"),
        (&["--on", "--off"], "--off"),
    ] {
        let output = house.set(args).exits(2);
        assert!(output.err.contains(words) && output.out.is_empty(), "{args:?}: {}", output.err);
        assert_eq!(house.pools(), before, "{args:?}");
    }
    let unknown = house.run(&["pool", "set", "log in", "--kind", "turnstile", "--size", "1"]).exits(2);
    assert!(unknown.err.contains("name"), "{}", unknown.err);
    for args in [&["pool", "show", "logn"][..], &["pool", "remove", "logn"]] {
        let output = house.run(args).exits(1);
        assert!(output.err.contains("did you mean `login`?"), "{}", output.err);
    }
    assert_eq!(house.pools(), before);
}

#[test]
fn a_pool_that_the_configuration_describes_is_not_changed_behind_its_back() {
    let house = House::new();
    let file = "[pools.login]\nkind = \"turnstile\"\nsize = 5\nparams = { sitekey = \"0x4A\", pageurl = \"https://example.com/\" }\n";
    std::fs::write(house.path("quittance.toml"), file).unwrap();
    // The pool is right; only a provider is missing.
    let checked = house.run(&["config", "check"]).exits(4);
    assert!(checked.err.contains("there is no provider") && !checked.err.contains("pool"), "{}", checked.err);
    let set = house.set(&LOGIN).exits(0);
    assert!(set.err.contains("resets it when it starts"), "{}", set.err);
    let removed = house.run(&["pool", "remove", "login"]).exits(0);
    assert!(removed.err.contains("sets it again when it starts"), "{}", removed.err);
    std::fs::write(house.path("quittance.toml"), file.replace("turnstile", "image")).unwrap();
    let wrong = house.run(&["config", "check"]).exits(4);
    assert!(wrong.err.contains("quittance.toml:2") && wrong.err.contains("never expire"), "{}", wrong.err);
}

#[test]
fn the_stock_tells_what_was_asked_and_how_the_pools_stand() {
    let house = House::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = house.path("quittance-data");
        let node = Quittance::builder().embedded(dir).open().await.unwrap();
        let order = Order::of("turnstile").with("sitekey", "0x4A").with("pageurl", "https://example.com/");
        node.place(order.exclusive()).await.unwrap();
    });
    drop(runtime);
    house.set(&LOGIN).exits(0);
    let report = house.run(&["stock", "--json"]).exits(0).json();
    let target = &report["rows"][0];
    assert_eq!(
        (&target["site"], &target["asked"], &target["hit_rate"]),
        (&json!("example.com"), &json!(1), &json!(0.0))
    );
    assert_eq!((&target["life_ms"], &target["trust"]), (&json!(300_000), &Value::Null));
    assert_eq!(report["pools"][0]["name"], "login");
    let text = house.run(&["stock"]).exits(0).out;
    for words in ["HIT RATE", "example.com", "300s", "login"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals");
    let long_ago =
        house.run(&["stock", "--from", "1999-01-01", "--to", "1999-12-31", "--json"]).exits(0).json();
    assert_eq!(long_ago["rows"], json!([]));
    house.run(&["stock", "--from", "yesterday"]).exits(2);
    house.run(&["stock", "--from", "2026-02-02", "--to", "2026-02-01"]).exits(2);
}

//! Pools and the stock beside a daemon that uses the store alone: the command asks the daemon, and prints what it
//! prints when the store is free.

use crate::serve::house::{Daemon, Ended, House, PROVIDER_KEY, get, run, until};
use quittance::Quittance;
use rustix::process::Signal;
use serde_json::{Value, json};

const LOGIN: [&str; 9] = [
    "login",
    "--kind",
    "turnstile",
    "-p",
    "sitekey=0x4A",
    "-p",
    "pageurl=https://example.com/login",
    "--service-level",
    "0.95",
];

#[track_caller]
fn exits(ended: Ended, code: i32) -> Ended {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    ended
}

#[track_caller]
fn read(ended: Ended) -> Value {
    let ended = exits(ended, 0);
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn set(args: &[&'static str]) -> Vec<&'static str> {
    [&["pool", "set"], args].concat()
}

/// The keys and types in a value, without its content.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(all) => all.iter().map(shape).collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "truth".into(),
        Value::Null => Value::Null,
    }
}

fn solved(daemon: &Daemon) {
    let order =
        format!("/in.php?key={PROVIDER_KEY}&method=turnstile&sitekey=0x4A&pageurl=https://example.com/login");
    let placed = get(&daemon.http, &order).body;
    let id = placed.strip_prefix("OK|").unwrap_or_else(|| panic!("{placed}"));
    let read = format!("/res.php?key={PROVIDER_KEY}&action=get&id={id}");
    until("it is solved", || get(&daemon.http, &read).body.starts_with("OK|").then_some(()));
}

#[test]
fn a_pool_is_set_shown_changed_and_taken_away_while_a_daemon_has_the_store() {
    let house = House::new();
    let daemon = house.serve(&[]);
    assert!(exits(house.run(&["pool", "list"]), 0).out.contains("no pools"));
    let made = exits(house.run(&set(&[&LOGIN[..], &["--budget-per-hour", "2", "--off"]].concat())), 0);
    for words in ["new pool login", "95 % of orders", "2 USD an hour", "https://example.com/login"] {
        assert!(made.out.contains(words), "{words}: {made:?}");
    }
    let before = read(house.run(&["pool", "list", "--json"]));
    assert_eq!(before[0]["params"], json!({ "sitekey": "0x4A", "pageurl": "https://example.com/login" }));
    let changed = exits(
        house.run(&set(&["login", "--size", "3", "--hours", "08:00-20:00", "--min-life", "1500ms"])),
        0,
    );
    for words in
        ["changed pool login", "a fixed size of 3 (was: 95 % of orders)", "08:00-20:00 UTC (was: always)"]
    {
        assert!(changed.out.contains(words), "{words}: {changed:?}");
    }
    let after = read(house.run(&["pool", "show", "login", "--json"]));
    for same in ["tenant", "kind", "params", "budget_per_hour", "enabled"] {
        assert_eq!(before[0][same], after[same], "{same}");
    }
    assert_eq!((&after["size"], &after["min_life_s"]), (&json!(3), &json!(1.5)));
    assert!(exits(house.run(&set(&["login", "--size", "3"])), 0).out.contains("unchanged"));
    let shown = exits(house.run(&["pool", "show", "login"]), 0).out;
    assert!(shown.contains("login (off)") && shown.contains("a fixed size of 3"), "{shown}");

    for (args, code, words) in [
        (&["pool", "set", "login", "--kind", "turnstyle"][..], 2, "turnstyle"),
        (&["pool", "set", "login", "-p", "pageurl=https://shop.example.org/"], 2, "shop.example.org"),
        (&["pool", "set", "login", "--size", "0"], 2, "size"),
        (&["pool", "set", "log in", "--kind", "turnstile", "--size", "1"], 2, "name"),
        (&["pool", "show", "logn"], 1, "did you mean `login`?"),
        (&["pool", "remove", "logn"], 1, "did you mean `login`?"),
    ] {
        let refused = exits(house.run(args), code);
        assert!(refused.err.contains(words) && refused.out.is_empty(), "{args:?}: {refused:?}");
    }
    // Its level is measured meanwhile, and is no setting.
    let settings = |mut pool: Value| {
        pool["level"] = Value::Null;
        pool
    };
    let now = read(house.run(&["pool", "show", "login", "--json"]));
    assert_eq!(settings(now), settings(after), "nothing has changed");
    assert_eq!(
        read(house.run(&["pool", "remove", "login", "--json"])),
        json!({ "name": "login", "removed": true })
    );
    assert_eq!(read(house.run(&["pool", "list", "--json"])), json!([]));
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
}

#[test]
fn what_is_shown_is_the_same_with_the_daemon_and_without() {
    let house = House::new();
    let pool = [
        "pools.login.kind=turnstile",
        "pools.login.service_level=0.95",
        "pools.login.params.sitekey=0x4A",
        "pools.login.params.pageurl=https://example.com/login",
    ];
    let pool: Vec<&str> = pool.iter().flat_map(|set| ["--set", set]).collect();
    let daemon = house.serve(&pool);
    solved(&daemon);
    let looked = || {
        let listed = read(house.run(&["pool", "list", "--json"]));
        let is_looked_at = listed[0]["level"].is_object();
        is_looked_at.then(|| (listed, read(house.run(&["stock", "--json"]))))
    };
    let (pools, stock) = until("a node has looked at the pool", looked);
    let text = exits(house.run(&["stock"]), 0).out;
    for words in ["HIT RATE", "example.com", "300s", "login"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    let (pools_after, stock_after) =
        (read(house.run(&["pool", "list", "--json"])), read(house.run(&["stock", "--json"])));
    assert_eq!(shape(&pools)[0]["level"], shape(&pools_after)[0]["level"]);
    assert_eq!(pools[0]["name"], "login");
    for same in ["name", "params", "service_level", "hours", "usable_ms", "valid", "price", "enabled"] {
        assert_eq!(pools[0][same], pools_after[0][same], "{same}");
    }
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&pools[0]), names(&pools_after[0]));
    assert_eq!(stock["rows"], stock_after["rows"]);
    assert_eq!((&stock["from"], &stock["to"]), (&stock_after["from"], &stock_after["to"]));
    assert_eq!(stock["rows"][0]["asked"], 1);
    let wrong = house.fails(&[&pool[..], &["--set", "pools.login.kind=image"]].concat());
    assert_eq!(wrong.code, Some(4), "{wrong:?}");
}

#[test]
fn the_operators_key_opens_a_daemon_that_has_one_and_nothing_else_does() {
    let house = House::new();
    let new = |args: &[&str]| read(run(&[&["tenant", "new", "--json"], args].concat()));
    let (admin, tenant) = (new(&["--admin"]), new(&["team-a"]));
    let settings = [
        format!("admin.key_sha256={}", admin["key_sha256"].as_str().unwrap()),
        format!("tenant.team-a.key_sha256={}", tenant["key_sha256"].as_str().unwrap()),
    ];
    let settings: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
    let daemon = house.serve(&settings);
    let ask = |args: &[&str], key: Option<&str>| {
        let variables: Vec<_> = key.map(|key| ("QUITTANCE_ADMIN_KEY", key)).into_iter().collect();
        house.run_with(&[&settings[..], args].concat(), &variables)
    };
    let key = |made: &Value| made["key"].as_str().unwrap().to_owned();
    for args in [&["pool", "list"][..], &["stock"], &set(&LOGIN), &["pool", "remove", "login"]] {
        for typed in [None, Some("not-the-key"), Some(key(&tenant).as_str())] {
            let refused = exits(ask(args, typed), 4);
            assert!(refused.err.contains("QUITTANCE_ADMIN_KEY"), "{refused:?}");
            assert!(typed.is_none_or(|typed| !refused.err.contains(typed)), "{refused:?}");
        }
    }
    let key = key(&admin);
    exits(ask(&set(&LOGIN), Some(&key)), 0);
    let pools = read(ask(&["pool", "list", "--json"], Some(&key)));
    assert_eq!((&pools[0]["name"], &pools[0]["tenant"]), (&json!("login"), &json!("team-a")));
    assert_eq!(read(ask(&["stock", "--json"], Some(&key)))["pools"][0]["name"], "login");
    exits(ask(&["pool", "remove", "login"], Some(&key)), 0);
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));

    let daemon = house.serve(&settings[2..]);
    let refused = exits(house.run(&[&settings[2..], &["pool", "list"]].concat()), 4);
    assert!(refused.err.contains("tenant new --admin"), "{refused:?}");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
}

#[test]
fn a_secret_that_the_daemon_does_not_show_is_kept() {
    let house = House::new();
    let daemon = house.serve(&[]);
    let proxied = ["-p", "proxy=u:s3cr3t@127.0.0.1:3128", "-p", "proxytype=HTTP", "--off"];
    exits(house.run(&set(&[&LOGIN[..], &proxied].concat())), 0);
    let shown = exits(house.run(&["pool", "show", "login"]), 0).out;
    assert!(shown.contains("***@127.0.0.1:3128") && !shown.contains("s3cr3t"), "{shown}");
    let changed = exits(house.run(&set(&["login", "--size", "3"])), 0).out;
    assert!(changed.contains("a fixed size of 3") && !changed.contains("proxy"), "{changed}");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let pools = runtime.block_on(async {
        let node = Quittance::builder().embedded(house.path("quittance-data")).open().await.unwrap();
        node.pools().await.unwrap()
    });
    let spec = &pools[0].document.spec;
    assert_eq!(spec.params["proxy"], quittance::Value::from("u:s3cr3t@127.0.0.1:3128"));
    drop(runtime);
    let other = exits(house.run(&set(&["login", "-p", "proxy=u:other@127.0.0.1:3129"])), 0).out;
    assert!(
        other.contains("***@127.0.0.1:3129 (was: ***@127.0.0.1:3128)") && !other.contains("other"),
        "{other}"
    );
}

#[test]
fn a_process_that_has_the_store_and_is_no_daemon_is_named_and_one_that_is_gone_is_not_asked() {
    let house = House::new();
    let daemon = house.serve(&[]);
    let note = house.path("quittance-data/daemon.at");
    let left = std::fs::read_to_string(&note).unwrap();
    // As another process that was killed would have left it.
    std::fs::write(&note, format!("1{left}")).unwrap();
    for args in [&["pool", "list"][..], &["stock"]] {
        let refused = exits(house.run(args), 5);
        assert!(
            refused.err.contains("in use by process") && refused.err.contains("quittance serve"),
            "{refused:?}"
        );
    }
    let pid = left.split(' ').next().unwrap();
    std::fs::write(&note, format!("{pid} http://127.0.0.1:1\n")).unwrap();
    let silent = exits(house.run(&["pool", "list"]), 5);
    assert!(silent.err.contains("does not answer at http://127.0.0.1:1"), "{silent:?}");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    assert!(!note.exists(), "it is gone with the daemon");
    let daemon = house.serve(&[]);
    assert_eq!(daemon.end(Signal::KILL).code, None);
    assert!(note.exists());
    exits(house.run(&["pool", "list"]), 0);
}

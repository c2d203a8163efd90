//! Tests of the built binary with whole stores: moving orders, sealing and unsealing, and what is never shown. All
//! stores here are folders, or servers that do not exist; real servers are in `crates/e2e`.

use crate::commands::house::House;
use quittance::{Order, Place, Quittance};
use serde_json::{Value, json};

impl House {
    /// A store with this many orders, which no node processes.
    fn stocked(&self, name: &str, orders: usize) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let node = Quittance::builder().embedded(self.path(name)).open().await.unwrap();
            for number in 0..orders {
                let order = Order::of("turnstile").with("sitekey", format!("0x{number}").as_str());
                node.place(order.with("pageurl", "https://example.com/").shared()).await.unwrap();
            }
        });
        // A child of another test that was forked a moment ago holds our files until it is what it is to be.
        let store = format!("embedded:{name}");
        assert!((0..200).any(|_| self.run(&["store", "status", &store]).code != Some(5)), "it is free again");
        store
    }

    /// A store with the secret of another one, so that equal orders have equal keys in both.
    fn stocked_beside(&self, other: &str, name: &str, orders: usize) -> String {
        std::fs::create_dir_all(self.path(name)).unwrap();
        std::fs::copy(self.path(other).join("callback-secret"), self.path(name).join("callback-secret"))
            .unwrap();
        self.stocked(name, orders)
    }
}

/// Regression: a folder that this user cannot look into was called a folder without a store.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_looked_into_is_not_called_a_folder_without_a_store() {
    let house = House::new();
    std::os::unix::fs::symlink("data", house.path("data")).unwrap();
    let store = ["--set", "store.url=embedded:data"];
    for command in [&["dead", "list"][..], &["usage"], &["store", "status"]] {
        let output = house.run(&[command, &store].concat()).exits(5);
        assert!(output.err.contains("cannot be read") && !output.err.contains("no store"), "{}", output.err);
    }
    let output = house.run(&[&["doctor"][..], &store].concat());
    assert!(output.out.contains("BAD") && output.out.contains("cannot be read"), "{}", output.out);
}

#[test]
fn a_store_is_moved_and_closed_and_a_second_run_does_nothing() {
    let house = House::new();
    let from = house.stocked("old", 300);
    let first = house.run(&["store", "copy", &from, "embedded:new", "--json"]).exits(0).json();
    assert_eq!(
        (&first["written"], &first["there"], &first["complete"]),
        (&300.into(), &0.into(), &true.into())
    );
    let again = house.run(&["store", "copy", &from, "embedded:new", "--json"]).exits(0).json();
    assert_eq!((&again["written"], &again["moved_before"]), (&0.into(), &true.into()));

    let old = house.run(&["store", "status", &from, "--json"]).exits(0).json();
    assert!(old["sealed"].as_str().unwrap().contains("embedded:new"), "{old}");
    let new = house.run(&["store", "status", "embedded:new", "--json"]).exits(0).json();
    assert_eq!(
        (&new["sealed"], &new["orders"]["open"], &new["orders"]["all"]),
        (&Value::Null, &300.into(), &300.into())
    );
    assert_eq!(new["filling"], Value::Null, "{new}");
    let output = house.run(&["store", "copy", &from, "embedded:new"]).exits(0);
    assert!(output.out.contains("have moved to embedded:new before"), "{}", output.out);
    let elsewhere = house.run(&["store", "copy", &from, "embedded:third"]).exits(5);
    assert!(elsewhere.err.contains("paid for twice"), "{}", elsewhere.err);
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let house = House::new();
    let from = house.stocked("old", 3);
    let output = house.run(&["store", "copy", "--dry-run", &from, "embedded:new"]).exits(0);
    assert!(output.out.contains("3 orders") && output.out.contains("nothing was changed"), "{}", output.out);
    assert!(!house.path("new").exists(), "the new store is not made");
    assert_eq!(house.run(&["store", "status", &from, "--json"]).json()["sealed"], Value::Null);
}

#[test]
fn an_order_that_stands_in_both_stores_is_named_and_left_alone() {
    let house = House::new();
    let (from, to) = (house.stocked("old", 3), house.stocked_beside("old", "new", 2));
    let copied = house.run(&["store", "copy", &from, &to, "--json"]).exits(1).json();
    assert_eq!((&copied["written"], &copied["complete"]), (&1.into(), &false.into()));
    assert_eq!(copied["differ"].as_array().unwrap().len(), 2, "{copied}");
    let (from, to) = (house.stocked("older", 3), house.stocked_beside("older", "newer", 2));
    let output = house.run(&["store", "copy", &from, &to]).exits(1);
    assert_eq!(output.out.matches("NOT COPIED").count(), 2, "{}", output.out);
}

#[test]
fn a_store_is_closed_by_hand_and_opened_only_by_who_is_sure() {
    let house = House::new();
    let store = house.stocked("old", 1);
    house.run(&["store", "seal", &store, "--note", "until noon"]).exits(0);
    let closed = house.run(&["doctor", "--set", "store.url=embedded:old", "--json"]).exits(1);
    assert!(closed.out.contains("it is sealed") && closed.out.contains("until noon"), "{}", closed.out);
    let refused = house.run(&["store", "unseal", &store]).exits(1);
    assert!(refused.err.contains("until noon") && refused.err.contains("--yes"), "{}", refused.err);
    house.run(&["store", "unseal", &store, "--yes"]).exits(0);
    assert_eq!(house.run(&["store", "status", &store, "--json"]).json()["sealed"], Value::Null);
    assert!(house.run(&["store", "unseal", &store]).exits(0).out.contains("is open"));
}

#[test]
fn a_store_that_is_being_filled_says_so_and_no_node_starts_on_it() {
    let house = House::new();
    let store = house.stocked("new", 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opened = Place::Embedded(house.path("new")).open().await.unwrap();
        opened.membership.set_filling(Some("from the old house")).await.unwrap();
    });
    drop(runtime);
    let status = house.run(&["store", "status", &store]).exits(0);
    assert!(status.out.contains("state    being filled (from the old house)"), "{}", status.out);
    assert_eq!(
        house.run(&["store", "status", &store, "--json"]).json()["filling"],
        Value::from("from the old house")
    );
    let doctor = house.run(&["doctor", "--set", "store.url=embedded:new", "--json"]).exits(1);
    assert!(doctor.out.contains("it is being filled (from the old house)"), "{}", doctor.out);
    let node = [
        "store.url=embedded:new",
        "provider.main.dialect=2captcha",
        "provider.main.url=http://127.0.0.1:1",
        "provider.main.key_env=K",
    ];
    let node: Vec<&str> = node.iter().flat_map(|set| ["--set", set]).collect();
    let serve = [&["serve", "--listen", "127.0.0.1:0"][..], &node[..]].concat();
    let refused = house.run_with(&serve, &[("K", "k")]).exits(5);
    assert!(refused.err.contains("from the old house"), "{}", refused.err);

    let refused = house.run(&["store", "unseal", &store]).exits(1);
    assert!(refused.err.contains("paid for again") && refused.err.contains("--yes"), "{}", refused.err);
    house.run(&["store", "unseal", &store, "--yes"]).exits(0);
    assert_eq!(house.run(&["store", "status", &store, "--json"]).json()["filling"], Value::Null);
}

#[test]
fn what_cannot_be_opened_ends_with_5_and_nothing_is_made() {
    let house = House::new();
    let from = house.stocked("old", 1);
    for args in [
        &["store", "status", "embedded:typo"][..],
        &["store", "copy", "embedded:typo", "embedded:new"],
        &["store", "copy", &from, "redis://127.0.0.1:1"],
        &["store", "copy", "postgres://u@127.0.0.1:1/db", "embedded:new"],
        &["nodes", "--set", "store.url=redis://127.0.0.1:1"],
        &["dead", "list", "--set", "store.url=postgres://u@127.0.0.1:1/db"],
    ] {
        let output = house.run(args).exits(5);
        assert!(output.out.is_empty() && output.err.starts_with("quittance: "), "{args:?}: {}", output.err);
    }
    assert!(!house.path("typo").exists() && !house.path("new").exists());
    assert_eq!(
        house.run(&["store", "status", &from, "--json"]).json()["sealed"],
        Value::Null,
        "not closed for nothing"
    );
    house.run(&["store", "copy", &from, &from]).exits(2);
    house.run(&["store", "copy", &from, "memory:"]).exits(2);
}

#[test]
fn an_embedded_store_has_one_node_and_says_so() {
    let house = House::new();
    house.stocked("quittance-data", 1);
    let output = house.run(&["nodes"]).exits(0);
    assert!(output.out.contains("an embedded store has one node"), "{}", output.out);
    assert_eq!(house.run(&["nodes", "--json"]).exits(0).json()["nodes"], json!([]));
}

#[test]
fn the_steps_of_postgresql_can_be_read_without_a_server() {
    let house = House::new();
    for (typed, schema) in [
        ("config", "\"quittance\""),
        ("postgres://u@127.0.0.1:1/db", "\"quittance\""),
        ("postgres://u@127.0.0.1:1/db?schema=east%20coast", "\"east coast\""),
    ] {
        let output = house.run(&["store", "migrate", "--print", typed]).exits(0);
        for words in ["BEGIN;\n", "COMMIT;\n", &format!("CREATE TABLE {schema}.orders")] {
            assert!(output.out.contains(words), "{words}: {}", output.out);
        }
        let left = output.out.lines().find(|line| line.contains("{schema}") && !line.starts_with("--"));
        assert_eq!(left, None);
    }
}

#[test]
fn the_password_of_a_store_is_in_no_output() {
    let house = House::new();
    let commands = [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["nodes"],
        &["dead", "list"],
        &["store", "status"],
        &["store", "migrate"],
        &["serve", "--log-level", "trace", "--set", "listen=127.0.0.1:0"],
        &["solve", "turnstile", "-p", "sitekey=0x4A", "-p", "pageurl=https://example.com/"],
    ];
    let provider =
        ["provider.main.dialect=2captcha", "provider.main.url=http://127.0.0.1:1", "provider.main.key_env=K"];
    let provider: Vec<&str> = provider.iter().flat_map(|set| ["--set", set]).collect();
    let tell = |args: &[&str], url: &str| {
        let args = [args, &provider[..]].concat();
        let output = house.run_with(&args, &[("QUITTANCE_STORE_URL", url), ("K", "k")]);
        assert!(
            !output.out.contains("s3cr3t") && !output.err.contains("s3cr3t"),
            "{args:?}: {} {}",
            output.out,
            output.err
        );
        assert!(!output.out.is_empty() || !output.err.is_empty(), "{args:?} says nothing at all");
    };
    // None of them is there, and one takes its time to say so.
    std::thread::scope(|scope| {
        for url in [
            "redis://:s3cr3t@127.0.0.1:1",
            "postgres://u:s3cr3t@127.0.0.1:1/db",
            "postgres://u:s3cr3t@127.0.0.1:port/db",
        ] {
            for args in commands {
                let tell = &tell;
                scope.spawn(move || tell(args, url));
            }
        }
    });
}

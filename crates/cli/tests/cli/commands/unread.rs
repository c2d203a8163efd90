//! Tests of the built binary with unreadable records: they are shown as such, and an operator can remove them.

use crate::commands::house::{CommandOutput, House};
use quittance::{Order, Quittance};
use serde_json::{Value, json};
use std::fs;

const RUINED: usize = 3;

fn order(number: usize) -> Order {
    Order::of("turnstile")
        .with("sitekey", format!("0x{number}").as_str())
        .with("pageurl", "https://example.com/")
        .shared()
}

impl House {
    /// Places an order that no node processes. Returns its key.
    fn place(&self, number: usize) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ticket = runtime.block_on(async {
            let node = Quittance::builder().embedded(self.path("store")).open().await.unwrap();
            node.place(order(number)).await.unwrap()
        });
        ticket.order().to_string()
    }

    /// A store with damaged records. Returns their keys, and the key of an intact one.
    fn rotten(&self) -> (Vec<String>, String) {
        let mut keys: Vec<String> = (0..=RUINED).map(|number| self.place(number)).collect();
        let whole = keys.pop().unwrap();
        let path = self.path("store").join("orders.db");
        let mut bytes = fs::read(&path).unwrap();
        for key in &keys {
            let marker = format!("\"key\":\"{key}\"");
            let places: Vec<usize> =
                (0..bytes.len()).filter(|at| bytes[*at..].starts_with(marker.as_bytes())).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|at| bytes[at] ^= 4);
        }
        fs::write(&path, bytes).unwrap();
        (keys, whole)
    }

    fn dead(&self, args: &[&str]) -> CommandOutput {
        let settings = [
            "store.url=embedded:store",
            "provider.main.dialect=2captcha",
            "provider.main.url=http://127.0.0.1:1",
            "provider.main.key_env=K",
        ];
        let settings: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
        self.run_with(&[&["dead"], args, &settings[..]].concat(), &[("K", "s3cret")])
    }
}

#[test]
fn a_record_that_cannot_be_read_is_shown_and_dropped_and_its_order_can_be_placed_again() {
    let house = House::new();
    let (keys, whole) = house.rotten();
    let listed = house.dead(&["list", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), RUINED);

    let key = keys[0].as_str();
    let shown = house.dead(&["show", &key[..12]]).exits(0);
    for words in
        [key, "unreadable", "the checksum of its", "replay     impossible", &format!("dead drop {key}")]
    {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let shown = house.dead(&["show", key, "--json"]).exits(0).json();
    assert_eq!((&shown["key"], &shown["cause"]), (&json!(key), &json!("unreadable")));
    for refused in [&["replay", key][..], &["note", key, "look"]] {
        let output = house.dead(refused).exits(1);
        assert!(output.err.contains("cannot be read") && output.err.contains("dead drop"), "{}", output.err);
    }

    let dropped = house.dead(&["drop", key, "--json"]).exits(0).json();
    assert_eq!(dropped, json!({ "order": key, "dropped": true, "discarded": true }));
    assert!(house.dead(&["drop", key]).exits(1).err.contains("no dead letter"));
    assert_eq!(house.place(0), key, "the key is free");
    let status = house.run(&["store", "status", "embedded:store", "--json"]).exits(0).json();
    assert_eq!((&status["orders"]["open"], &status["orders"]["unreadable"]), (&json!(2), &json!(RUINED - 1)));

    let dry = house.dead(&["drop", "--cause", "unreadable", "--dry-run"]).exits(0);
    assert!(
        dry.out.starts_with("2 dead letters would be dropped") && dry.out.contains("cannot be read"),
        "{}",
        dry.out
    );
    let output = house.dead(&["drop", "--cause", "unreadable", "--yes"]).exits(0);
    assert!(output.out.contains("2 dead letters dropped\n"), "{}", output.out);
    assert_eq!(house.dead(&["list", "--json"]).exits(0).json(), Value::Array(Vec::new()));
    let status = house.run(&["store", "status", "embedded:store", "--json"]).exits(0).json();
    assert_eq!((&status["orders"]["all"], &status["orders"]["unreadable"]), (&json!(2), &json!(0)));
    assert_eq!(house.place(RUINED), whole, "and what can be read was left alone");
}

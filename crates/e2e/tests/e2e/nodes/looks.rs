//! A command that only reads creates nothing in an empty shared store: no identity, no secret and no tables. It
//! reports that there is no store, and what may have happened.

use super::on_both_stores;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use std::fs;

const LOOKS: [&[&str]; 4] = [&["dead", "list"], &["usage"], &["store", "status"], &["doctor"]];

/// The whole content of the store, as text; empty if there is none.
fn content(server: &StoreServer) -> String {
    match server {
        StoreServer::Redis(redis) => redis.command(&["keys", "*"]),
        StoreServer::Postgres(postgres) => postgres.sql(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables \
             WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
        ),
    }
}

fn a_look_at_an_empty_store_makes_nothing_and_says_so(which: ServerKind) {
    let (sim, server) = (Sim::start(), StoreServer::start(which));
    let sandbox = Sandbox::of(&sim).set(&format!("store.url={}", server.url()));
    for look in LOOKS {
        let ran = sandbox.run(look);
        assert_eq!(content(&server).trim(), "", "{look:?}: {ran:?}");
        let output = format!("{}{}", ran.out, ran.err);
        let words =
            if which == ServerKind::Redis { "there is no store of Quittance at" } else { "no tables" };
        assert!(output.contains(words), "{look:?}: {ran:?}");
    }
}

fn doctor_says_that_a_store_is_lost_which_a_node_knows(which: ServerKind) {
    let (sim, server) = (Sim::start(), StoreServer::start(which));
    let sandbox = Sandbox::of(&sim).set(&format!("store.url={}", server.url())).set("store.home=home");
    let home = sandbox.path("home");
    fs::create_dir(&home).expect("a new folder can be written");
    fs::write(home.join("store-identity"), "as a node left it").expect("it can be written");
    fs::write(home.join("store-forgot"), "the store was flushed: look at the list")
        .expect("it can be written");
    let mut sandbox = sandbox;
    sandbox.override_setting("store.home", &home.display().to_string());
    let doctor = sandbox.run(&["doctor"]);
    assert!(
        doctor.out.contains("a node has noticed that the store was flushed: look at the list"),
        "{doctor:?}"
    );
    if which == ServerKind::Redis {
        assert!(
            doctor
                .out
                .contains("A node on this machine has used this store, so the store was flushed or lost."),
            "{doctor:?}"
        );
    }
    assert_eq!(content(&server).trim(), "", "{doctor:?}");
}

on_both_stores!(
    a_look_at_an_empty_store_makes_nothing_and_says_so,
    doctor_says_that_a_store_is_lost_which_a_node_knows,
);

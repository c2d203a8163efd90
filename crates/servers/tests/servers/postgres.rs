//! Tests of PostgreSQL, alone and behind a pooler.

use crate::{SILENCE, now};
use quittance_servers::{Pooler, Postgres, shared_postgres};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;
use std::{ptr, thread};

#[test]
fn a_postgres_that_was_killed_comes_back_with_what_it_held() {
    let mut postgres = Postgres::start(&["max_connections=33"]);
    assert_eq!(postgres.url(), format!("postgres://quittance@127.0.0.1:{}/quittance", postgres.port()));
    assert_eq!(postgres.sql("SHOW max_connections; SHOW fsync"), "33\non");
    postgres.sql("CREATE TABLE orders (state text); INSERT INTO orders VALUES ('paid')");
    let before = postgres.pid();
    postgres.kill();
    assert!(TcpStream::connect(("127.0.0.1", postgres.port())).is_err(), "it is gone");
    postgres.start_again();
    assert_ne!(postgres.pid(), before);
    assert_eq!(postgres.sql("SELECT state FROM orders"), "paid");
}

#[test]
fn a_paused_postgres_is_silent_until_it_is_resumed_also_on_open_connections() {
    let postgres = Postgres::start(&[]);
    // A session that is at work when the pause begins.
    let url = postgres.url();
    let (text, received) = mpsc::channel();
    let session = thread::spawn(move || {
        let sql = "SELECT pg_sleep(0.2)";
        let ran =
            Command::new("psql").args(["-AtXc", "SELECT 1", "-c", sql, "-c", "SELECT 2", &url]).output();
        text.send(ran.unwrap().status.success()).unwrap();
    });
    crate::until("the session works", || {
        let count = postgres.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep%' AND pid <> pg_backend_pid()",
        );
        (count == "1").then_some(())
    });
    postgres.pause();
    let begin = now();
    assert!(received.recv_timeout(SILENCE * 2).is_err(), "it answered after {:?}", begin.elapsed());
    postgres.resume();
    assert!(received.recv().unwrap());
    session.join().unwrap();
    assert_eq!(postgres.sql("SELECT 1"), "1");
}

#[test]
fn a_paused_postgres_can_be_killed_and_dropped() {
    let mut postgres = Postgres::start(&[]);
    postgres.pause();
    postgres.kill();
    postgres.start_again();
    assert_eq!(postgres.sql("SELECT 1"), "1");
    postgres.pause();
    let port = postgres.port();
    drop(postgres);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_postgres_can_be_made_read_only_and_writable_again() {
    let postgres = Postgres::start(&[]);
    let set = |value: &str| {
        postgres.sql(&format!(
            "ALTER SYSTEM SET default_transaction_read_only = {value}; SELECT pg_reload_conf()"
        ));
    };
    let setting = |wanted: &str| {
        crate::until(wanted, || (postgres.sql("SHOW default_transaction_read_only") == wanted).then_some(()));
    };
    set("on");
    setting("on");
    set("off");
    setting("off");
}

#[test]
fn a_shared_postgres_is_one() {
    assert!(ptr::eq(shared_postgres(), shared_postgres()));
    assert_eq!(shared_postgres().sql("SELECT current_user, current_database()"), "quittance|quittance");
}

#[test]
#[should_panic(expected = "no_such_setting")]
fn a_postgres_that_does_not_start_says_why() {
    _ = Postgres::start(&["no_such_setting=1"]);
}

#[test]
fn a_pooler_is_in_front_of_its_postgres_in_transaction_mode() {
    let postgres = Postgres::start(&[]);
    let mut pooler = Pooler::start(&postgres);
    let ask = |pooler: &Pooler, database: &str, sql: &str| {
        let url = pooler.url().replace("/quittance", &format!("/{database}"));
        let ran = Command::new("psql").args(["-AtXc", sql, &url]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(ask(&pooler, "quittance", "SHOW port").trim(), postgres.port().to_string());
    let mode = ask(&pooler, "pgbouncer", "SHOW config");
    assert!(mode.contains("pool_mode|transaction"), "{mode}");
    pooler.kill();
    assert!(TcpStream::connect(("127.0.0.1", pooler.port())).is_err(), "it is gone");
    pooler.start_again();
    assert_eq!(ask(&pooler, "quittance", "SELECT 1").trim(), "1");
    pooler.pause();
    pooler.resume();
    assert_eq!(ask(&pooler, "quittance", "SELECT 2").trim(), "2");
}

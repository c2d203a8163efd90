//! Wrong configurations: each is refused before the store is opened, with the place of the error and what to do.

use crate::binary::{quittance, run};
use crate::http::free_port;
use crate::provider::{KEY, Sim};
use crate::sandbox::{KEY_VARIABLE, Sandbox};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};

#[test]
fn an_unknown_setting_names_the_nearest_right_one_and_its_place() {
    let sim = Sim::start();
    let misspelt = Sandbox::with_config("[timing]\ndedline = \"60s\"\n");
    misspelt.solve("a", &[]).must_fail(4, &["quittance.toml:2", "timing.dedline", "`timing.deadline`"]);
    let sandbox = Sandbox::of(&sim);
    for (setting, words) in [
        ("timing.first_pol=1s", &["timing.first_pol", "`timing.first_poll`"][..]),
        ("timing.deadline=soon", &["timing.deadline", "soon", "duration"]),
        ("retry.limits.account_blocked=3", &["retry.limits.account_blocked", "never"]),
        ("store.url=mongodb://127.0.0.1", &["store.url", "embedded", "redis", "postgres"]),
        ("kinds.recaptcha_v22.life=5s", &["recaptcha_v22"]),
        ("nonsense", &["NAME=VALUE"]),
    ] {
        let mut command = sandbox.command(&["solve", "image", "-p", "body=x"]);
        command.args(["--set", setting]);
        run(command).must_fail(4, words);
    }
    let mut by_variable = sandbox.command(&["doctor"]);
    by_variable.env("QUITTANCE_TIMING_DEDLINE", "5s");
    let warned = run(by_variable).err;
    for words in ["warning", "QUITTANCE_TIMING_DEDLINE", "QUITTANCE_TIMING_DEADLINE"] {
        assert!(warned.contains(words), "{warned}");
    }
    assert!(!sandbox.path("store").exists(), "nothing is made before the configuration is right");
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_file_that_is_not_toml_or_missing_is_reported_with_its_place() {
    Sandbox::with_config("listen = \n").solve("a", &[]).must_fail(4, &["quittance.toml:1", "TOML"]);
    Sandbox::with_config("[[provider]]\nurl = \"http://127.0.0.1:9\"\n")
        .solve("a", &[])
        .must_fail(4, &["name"]);
    run(quittance(["doctor", "--config", "no-such-file.toml"]))
        .must_fail(4, &["no-such-file.toml", "--config"]);
    let empty = Sandbox::with_config("");
    empty.solve("a", &[]).must_fail(4, &["there is no provider", "quittance init", "--mock"]);
    assert!(!empty.path("quittance-data").exists());
}

#[test]
fn a_secret_in_the_file_is_refused_and_not_repeated() {
    let config = format!(
        "[[provider]]\nname = \"main\"\ndialect = \"2captcha\"\nurl = \"http://127.0.0.1:9\"\nkey = \"{KEY}\"\n"
    );
    let ran = Sandbox::with_config(&config).solve("a", &[]);
    ran.must_fail(4, &["key_env", "key_file", "quittance.toml:5"]);
    assert!(!ran.err.contains(KEY), "{ran:?}");
}

#[test]
fn a_password_of_the_store_in_a_flag_is_refused_and_not_repeated() {
    let sim = Sim::start();
    for store in ["redis://:hunter2@127.0.0.1:9", "postgres://user:hunter2@127.0.0.1:9/orders"] {
        let ran = Sandbox::of(&sim).set(&format!("store.url={store}")).solve("a", &[]);
        ran.must_fail(4, &["store.url", "store.password_env", "store.password_file"]);
        assert!(!ran.err.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn a_missing_or_empty_key_says_which_variable_or_file_to_fill() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let mut missing =
        sandbox.command(&["solve", "turnstile", "-p", "sitekey=x", "-p", "pageurl=https://example.com/"]);
    missing.env_remove(KEY_VARIABLE);
    run(missing).must_fail(4, &[KEY_VARIABLE, "not set", "provider.main.key"]);
    let empty = Sandbox::of(&sim).with_key("  ");
    empty.solve("a", &[]).must_fail(4, &[KEY_VARIABLE, "empty"]);
    // A key file works, and one that is not there is named.
    let by_file = |path: &str| {
        let config = format!(
            "[[provider]]\nname = \"main\"\ndialect = \"2captcha\"\nurl = \"{}\"\nkey_file = \"{path}\"\n\
             [timing]\nfirst_poll = \"100ms\"\npoll_interval = \"100ms\"\n\
             [kinds.recaptcha_v2]\np50 = \"100ms\"\np95 = \"200ms\"\np99 = \"300ms\"\n",
            sim.url
        );
        Sandbox::with_config(&config)
    };
    by_file("no-such-key").solve("a", &[]).must_fail(4, &["no-such-key"]);
    assert_eq!(sim.ledger().accepted(), 0);
    let sandbox = by_file("key");
    fs::write(sandbox.path("key"), format!("{KEY}\n")).expect("the sandbox can be written");
    sandbox.solve("a", &[]).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn a_store_that_cannot_be_written_is_reported_and_nothing_is_paid() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    // Below a file no user can make a folder.
    let below_a_file =
        format!("store.url=embedded:{}", sandbox.path("quittance.toml").join("store").display());
    let ran = sandbox.set(&below_a_file).solve("a", &[]);
    ran.must_fail(5, &["quittance.toml", "cannot be written", "another directory"]);
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_second_process_on_the_same_store_fails_with_the_reason_and_the_first_goes_on() {
    let sim = Sim::start();
    let sandbox = Sandbox::polling(&sim);
    let mut engine = sandbox.engine();
    engine.say(&crate::sandbox::line(1, "first"));
    engine.hear("accepted");
    let solve =
        ["solve", "turnstile", "-p", "sitekey=x", "-p", "pageurl=https://example.com/", "--store-wait", "1s"];
    for args in [&["dead", "list"][..], &solve, &["dead", "replay", "--all", "--yes"]] {
        sandbox.run(args).must_fail(5, &["store", "in use by process"]);
    }
    let doctor = sandbox.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("in use by process"), "{doctor:?}");
    engine.hear("answered");
    engine.finish();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn an_address_that_is_in_use_is_reported() {
    let sim = Sim::start();
    let port = free_port();
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
    let address = format!("127.0.0.1:{port}");
    let sandbox = Sandbox::of(&sim).set(&format!("listen={address}"));
    sandbox.solve("a", &[]).must_fail(4, &[&address, "listen"]);
    run(quittance(["mock", "--listen", &address])).must_fail(2, &[&address, "--listen"]);
    assert_eq!(sim.ledger().accepted(), 0);
}

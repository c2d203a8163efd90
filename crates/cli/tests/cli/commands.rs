//! Tests of the built binary with stores: moved orders, pools, the stock. Stores here are folders, or servers that do
//! not exist. Real servers, and daemons that share one, are in `crates/e2e`.

mod budgets;
mod config_check;
mod doctor;
mod house;
mod init;
mod pools;
mod stores;
mod tables;
mod unread;

use house::House;

/// A command in the wrong folder must not report that all is well, and must not create a store.
#[test]
fn a_look_in_a_folder_without_a_store_says_so_and_creates_nothing() {
    let house = House::new();
    for look in [
        &["dead", "list"][..],
        &["usage"],
        &["audit"],
        &["stock"],
        &["pool", "list"],
        &["nodes"],
        &["nodes", "--json"],
        &["top", "--once"],
        &["store", "status"],
    ] {
        let ended = house.run(look).exits(5);
        assert!(
            ended.err.contains("there is no store in") && ended.err.contains("store.url"),
            "{look:?}: {}",
            ended.err
        );
    }
    let doctor = house.run(&["doctor"]);
    assert!(doctor.out.contains("there is no store in"), "{}", doctor.out);
    assert!(!house.path("quittance-data").exists(), "nothing was created");
}

#[test]
fn solve_with_json_has_json_for_every_error() {
    let house = House::new();
    let provider = [
        "--set",
        "provider.main.dialect=2captcha",
        "--set",
        "provider.main.url=http://127.0.0.1:9",
        "--set",
        "provider.main.key_env=K",
    ];
    let tenant = ["--set", "tenant.a.key_env=A"];
    for (args, exit, code) in [
        (&["image", "-f", "body=nofile.png"][..], 2, "bad_request"),
        (&["image", "-p", "body=text"], 2, "bad_request"),
        (&["turnstile", "--tenant", "nosuch"], 2, "bad_request"),
        (&["recaptcha_v22", "-p", "x=y"], 2, "bad_request"),
        (&["turnstile", "--set", "no.such=1"], 4, "config"),
        (&["turnstile", "--set", "store.url=embedded:/dev/null/x"], 5, "store"),
        (&["--mock", "--config", "file.toml"], 2, "bad_request"),
    ] {
        let args: Vec<&str> = [&["solve", "--json"], args, &provider, &tenant].concat();
        let ended = house.run_with(&args, &[("K", "0123456789abcdef0123456789abcdef")]).exits(exit);
        let error = &ended.json()["error"];
        assert_eq!(error["code"], code, "{args:?}");
        let message = error["message"].as_str().unwrap();
        assert!(ended.err.contains(message.lines().next().unwrap()), "{message}: {}", ended.err);
    }
}

#[test]
fn an_import_of_a_file_that_cannot_be_read_creates_no_store() {
    let house = House::new();
    for file in ["missing.jsonl", "."] {
        let ended = house.run(&["dead", "import", file]).exits(2);
        assert!(ended.err.contains(file) && ended.err.contains("cannot be read"), "{}", ended.err);
    }
    assert!(!house.path("quittance-data").exists(), "nothing was created");
}

#[test]
fn config_show_does_not_write_over_the_file_that_it_reads() {
    let house = House::new();
    let file = house.path("quittance.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:1\"\n").unwrap();
    let out = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_quittance"))
        .args(["config", "show"])
        .current_dir(file.parent().unwrap())
        .stdout(out)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the config file itself"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "listen = \"127.0.0.1:1\"\n");
}

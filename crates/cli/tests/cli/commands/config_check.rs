//! `config check` finds what `serve` would refuse, all of it at once, and changes nothing.

use crate::commands::house::{CommandOutput, House};
use serde_json::{Value, json};
use std::path::PathBuf;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const PROVIDER: &str = "[[provider]]\nname = \"m\"\ndialect = \"2captcha\"\nurl = \"https://two.example.com\"\nkey_env = \"K\"\n";
const TENANT: &str = "[[tenant]]\nname = \"t\"\nkey_env = \"T\"\n";
const POOL: &str = "[pools.login]\nkind = \"turnstile\"\nsize = 5\nparams = { sitekey = \"0x4A\", pageurl = \"https://example.com/\" }\n";

/// A folder with a config file, and the variables of the commands in it.
struct Place {
    house: House,
    variables: Vec<(String, String)>,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.house.path(name)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.house.path(".")).unwrap().count()
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let variables: Vec<_> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.house.run_with(args, &variables)
    }
}

fn place_with(file: &str, variables: &[(&str, &str)]) -> Place {
    let house = House::new();
    std::fs::write(house.path("quittance.toml"), file).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Place { house, variables }
}

/// What `config check --json` prints. The exit code must agree with it.
#[track_caller]
fn report(place: &Place) -> Value {
    let output = place.run(&["config", "check", "--json"]);
    let report = output.json();
    assert_eq!(output.code, Some(if report["valid"] == true { 0 } else { 4 }), "{report}");
    report
}

#[track_caller]
fn wrong(place: &Place) -> Vec<String> {
    let wrong = report(place)["errors"].as_array().unwrap().clone();
    wrong.iter().map(|what| what.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn finds(place: &Place, expected: &[&[&str]]) {
    let wrong = wrong(place);
    assert_eq!(wrong.len(), expected.len(), "{wrong:#?}");
    for words in expected {
        assert!(
            wrong.iter().any(|what| words.iter().all(|word| what.contains(word))),
            "{words:?}: {wrong:#?}"
        );
    }
}

fn place(file: &str) -> Place {
    place_with(file, &[("K", KEY), ("T", KEY)])
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let file = format!(
        "listen = \"here\"\npublic_rul = \"http://q.example.org\"\n[timing]\ndeadline = \"soon\"\np95 = \"1s\"\n\
         [targets]\nallow = [\"https://a.example\", \"b.example\", \"c.example:1\"]\n[[tenant]]\nname = \"t\"\n[store]\npassword_env = \"P\"\n\
         [prices]\nimge = 0.1\nimage = \"cheap\"\n{PROVIDER}ca_file = \"gone.pem\"\n"
    );
    finds(
        &place(&file),
        &[
            &["quittance.toml:1: `listen` is \"here\""],
            &["quittance.toml:2: ", "did you mean `public_url`?"],
            &["quittance.toml:4: `timing.deadline`"],
            &["`timing.p95` is \"1s\"", "at least `timing.p50`"],
            &[
                "`targets.allow` is a list with \"https://a.example\" (an address",
                "and \"c.example:1\" (a host with a port",
            ],
            &["`tenant.t` has no `key_env`"],
            &["`store.password_env` is for a store that is shared"],
            &["`prices.imge`", "did you mean `image`?"],
            &["`prices.image`", "an amount"],
            &["`provider.m.ca_file`", "cannot be read"],
        ],
    );
    let other = place(&file).run(&["config", "show"]).exits(4).err;
    assert_eq!(other.lines().count(), 10, "other commands report all of it, too: {other}");
    // A provider whose address is wrong has an address, and is there.
    let typo = PROVIDER.replace("https://two.example.com", "two.example.com");
    finds(&place(&format!("listen = \"127.0.0.1:0\"\n{typo}")), &[&["`provider.m.url`"]]);
}

#[test]
fn what_serve_would_refuse_is_wrong() {
    let top = "listen = \"127.0.0.1:0\"\n";
    let redis = "[store]\nurl = \"redis://127.0.0.1:1\"\n";
    let file_in_the_way = |setting: &str| format!("{top}{PROVIDER}[store]\n{setting}");
    for (file, words) in [
        (format!("{top}{PROVIDER}{redis}password_env = \"P\"\n"), &["store.password", "`P` is not set"][..]),
        (format!("{top}{PROVIDER}{redis}password_file = \"p\"\n"), &["store.password", "cannot be read"]),
        (file_in_the_way("url = \"embedded:file\"\n"), &["`store.url`", "is a file"]),
        (file_in_the_way("url = \"embedded:file/data\"\n"), &["`store.url`", "is a file"]),
        (file_in_the_way("url = \"embedded:/proc/q\"\n"), &["`store.url`", "/proc"]),
        (format!("{top}{PROVIDER}{redis}home = \"file\"\n"), &["`store.home`", "is a file"]),
        (format!("{top}{PROVIDER}{redis}home = \"file/a/b\"\n"), &["`store.home`", "is a file"]),
        (
            format!("{top}{PROVIDER}[store]\nurl = \"rediss://127.0.0.1:1\"\nca_file = \"file\"\n"),
            &["`store.ca_file`", "no certificate in it"],
        ),
        (format!("{top}{PROVIDER}ca_file = \"broken.pem\"\n"), &["`provider.m.ca_file`", "cannot be used"]),
        (
            format!("listen = \"192.0.2.7:8780\"\n{PROVIDER}{TENANT}"),
            &["cannot listen on 192.0.2.7:8780", "does not have that address", "`listen`"],
        ),
        (
            format!("{top}{PROVIDER}{POOL}tenant = \"carla\"\n"),
            &["`pools.login.tenant`", "no tenant `carla`"],
        ),
        (
            format!("{top}{PROVIDER}{TENANT}[admin]\nkey_env = \"T\"\n"),
            &["`tenant.t.key` is the same as `admin.key`"],
        ),
    ] {
        let place = place(&file);
        std::fs::write(place.path("file"), "garbage").unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(place.path("broken.pem"), broken).unwrap();
        finds(&place, &[words]);
        assert_eq!(place.files(), 3, "nothing was made: {file}");
    }
}

#[test]
fn a_pool_that_its_tenant_may_not_order_is_wrong() {
    let start =
        format!("listen = \"127.0.0.1:0\"\n{PROVIDER}[targets]\nallow = [\"*.example.org\"]\n{TENANT}");
    let pool = POOL.replace("https://example.com/", "https://shop.example.org/");
    let v3 = pool
        .replace("turnstile", "recaptcha_v2")
        .replace("sitekey = \"0x4A\"", "googlekey = \"k\", version = \"v3\"");
    for (file, words) in [
        (
            format!("{start}kinds = [\"image\"]\n{pool}"),
            &["the pool `login`", "the kind `turnstile`", "`kinds`"],
        ),
        (
            format!("{start}hosts = [\"b.example.org\"]\n{pool}"),
            &["the pool `login`", "`shop.example.org`", "`hosts`"],
        ),
        (
            format!("{start}kinds = [\"recaptcha_v2\"]\n{v3}"),
            &["the pool `login`", "the kind `recaptcha_v3`", "`kinds`"],
        ),
    ] {
        let place = place(&file);
        finds(&place, &[words]);
        assert_eq!(place.files(), 1, "nothing was made: {file}");
    }
    finds(&place(&format!("{start}kinds = [\"turnstile\"]\nhosts = [\"*.example.org\"]\n{pool}")), &[]);
}

#[test]
fn http_and_https_cannot_share_an_address() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (listen, tls_listen, count) in [
        ("127.0.0.1:18780", "127.0.0.1:18780", 1),
        ("0.0.0.0:18780", "127.0.0.1:18780", 1),
        ("[::]:18780", "0.0.0.0:18780", 1),
        ("127.0.0.1:0", "127.0.0.1:0", 0),
    ] {
        let tls = format!("[tls]\nlisten = \"{tls_listen}\"\ncert_file = \"c.pem\"\nkey_file = \"k.pem\"\n");
        let place = place(&format!("listen = \"{listen}\"\n{PROVIDER}{TENANT}{tls}"));
        std::fs::write(place.path("c.pem"), made.cert.pem()).unwrap();
        std::fs::write(place.path("k.pem"), made.signing_key.serialize_pem()).unwrap();
        let wrong = wrong(&place);
        assert_eq!(wrong.len(), count, "{wrong:?}");
        assert!(
            wrong.iter().all(|what| what.contains("`tls.listen`") && what.contains("another port")),
            "{wrong:?}"
        );
    }
}

#[test]
fn an_address_in_use_is_a_note_because_the_daemon_may_have_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = place(&format!("listen = \"{}\"\n{PROVIDER}", taken.local_addr().unwrap()));
    let found = report(&place);
    assert_eq!(found["valid"], true, "{found}");
    assert!(found["notes"].to_string().contains("another process listens there"), "{found}");
}

#[test]
fn a_configuration_that_is_right_says_so_to_scripts() {
    let key = "0123456789abcdef0123456789abcdef";
    let right = "public_url = \"http://q.example.org\"\n[[provider]]\nname = \"m\"\ndialect = \"2captcha\"\nurl = \"https://two.example.com\"\nkey_env = \"K\"\n";
    let report_of = |file: &str, env: &[(&str, &str)]| -> Value {
        report(&place_with(&format!("listen = \"127.0.0.1:0\"\n{file}"), env))
    };
    let found = report_of(right, &[("K", key)]);
    assert_eq!((&found["valid"], &found["notes"]), (&true.into(), &json!([])), "{found}");
    // All that `serve` would not start with is wrong, and is reported at once.
    let admin = "[admin]\nkey_env = \"A\"\n[[tenant]]\nname = \"t\"\nkey_env = \"T\"\n[tls]\ncert_file = \"c.pem\"\nkey_file = \"k.pem\"\n";
    let script = right.replace("two.example.com", "two.example.com/in.php");
    for (file, env, count, words) in [
        (String::new(), vec![], 1, "there is no provider"),
        (right.to_owned(), vec![], 1, "`K` is not set"),
        (script, vec![("K", key)], 1, "in.php"),
        (format!("{right}{admin}"), vec![("K", key), ("A", "abc"), ("T", "")], 3, "has 3 characters"),
    ] {
        let found = report_of(&file, &env);
        let wrong = found["errors"].as_array().unwrap();
        assert_eq!((&found["valid"], wrong.len()), (&false.into(), count), "{found}");
        assert!(wrong.iter().any(|what| what.as_str().unwrap().contains(words)), "{words}: {found}");
    }
    let wide =
        format!("{right}[targets]\nallow = [\"*\"]\n").replace("public_url = \"http://q.example.org\"\n", "");
    let notes = report_of(&wide, &[("K", key)])["notes"].to_string();
    assert!(notes.contains("`targets.allow` has `*`") && notes.contains("paid twice"), "{notes}");
}

#[test]
fn a_file_of_this_node_that_serve_cannot_open_is_wrong() {
    let redis = "url = \"redis://127.0.0.1:1\"\nhome = \"data\"\n";
    for (store, name) in [
        ("url = \"embedded:data\"\n", "orders.db"),
        ("url = \"embedded:data\"\n", "orders.db-wal"),
        ("url = \"embedded:data\"\n", "orders.lock"),
        ("url = \"embedded:data\"\n", "orders.trail"),
        ("url = \"embedded:data\"\n", "callback-secret"),
        ("url = \"embedded:data\"\n", "spill"),
        (redis, "spill"),
        (redis, "spill.lock"),
    ] {
        let place = place(&format!("listen = \"127.0.0.1:0\"\n{PROVIDER}[store]\n{store}"));
        let path = place.path("data").join(name);
        std::fs::create_dir_all(&path).unwrap();
        finds(&place, &[&[&format!("data/{name} is a folder"), "move it away"]]);
        std::fs::remove_dir(&path).unwrap();
        let valid: &[u8] = if name == "callback-secret" { &[7; 32] } else { &[] };
        std::fs::write(&path, valid).unwrap();
        finds(&place, &[]);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_to_nothing_or_to_itself_is_wrong() {
    for (target, words) in [("not-mounted", "a folder that is not there"), ("data", "cannot be used")] {
        let place = place(&format!("listen = \"127.0.0.1:0\"\n{PROVIDER}[store]\nurl = \"embedded:data\"\n"));
        std::os::unix::fs::symlink(target, place.path("data")).unwrap();
        finds(&place, &[&["`store.url`", words]]);
    }
}

#[test]
fn a_database_of_another_program_and_a_secret_of_the_wrong_length_are_wrong() {
    for (name, content, words) in [
        ("orders.db", &b"these are notes, and no database"[..], "is not a store of Quittance"),
        ("callback-secret", &[7; 64], "must hold exactly 32 bytes"),
    ] {
        let place = place(&format!("listen = \"127.0.0.1:0\"\n{PROVIDER}[store]\nurl = \"embedded:data\"\n"));
        std::fs::create_dir_all(place.path("data")).unwrap();
        std::fs::write(place.path("data").join(name), content).unwrap();
        finds(&place, &[&[name, words]]);
    }
}

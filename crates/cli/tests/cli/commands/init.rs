//! `quittance init` as a shell runs it: `config check` accepts the file that it writes, and it overwrites nothing.

use crate::commands::house::House;

const ALL: [&str; 14] = [
    "init",
    "--provider",
    "capsolver",
    "--url",
    "http://127.0.0.1:9",
    "--key-env",
    "SOLVER_KEY",
    "--allow",
    "shop.example.org",
    "--allow",
    "*.example.net",
    "--reuse",
    "shared",
    "--public-url=https://q.example.org",
];

#[test]
fn config_check_passes_on_what_init_writes() {
    let house = House::new();
    let output = house.run(&ALL).exits(1);
    assert!(output.out.starts_with("wrote quittance.toml\n"), "{}", output.out);
    for step in ["export SOLVER_KEY=", "quittance doctor", "quittance serve"] {
        assert!(output.err.contains(step), "{step}: {}", output.err);
    }
    assert!(!output.err.contains("paid for twice"), "{}", output.err);
    let key = [("SOLVER_KEY", "a-key-of-the-provider")];
    house.run_with(&["config", "check", "--set", "listen=127.0.0.1:0"], &key).exits(0);
    let shown = house.run(&["config", "show"]).exits(0).out;
    for value in [
        "capsolver",
        "http://127.0.0.1:9",
        "shop.example.org",
        "*.example.net",
        "shared",
        "https://q.example.org",
    ] {
        assert!(shown.contains(value), "{value}: {shown}");
    }
}

#[test]
fn without_a_public_url_the_file_and_the_command_say_what_that_costs() {
    let house = House::new();
    let output = house.run(&["init", "--dialect", "captchaai"]).exits(1);
    let file = std::fs::read_to_string(house.path("quittance.toml")).unwrap();
    for text in [&output.err, &file.replace("\n# ", " ")] {
        assert!(text.contains("submitted again by default, and may be paid for twice"), "{text}");
    }
    assert!(file.contains("# public_url = "), "{file}");
    let key = [("CAPTCHAAI_API_KEY", "12345678901234567890123456789012")];
    house.run_with(&["config", "check", "--set", "listen=127.0.0.1:0"], &key).exits(0);
}

#[test]
fn init_overwrites_nothing_and_refuses_what_no_command_could_read() {
    let house = House::new();
    house.run(&ALL).exits(1);
    let before = std::fs::read(house.path("quittance.toml")).unwrap();
    let output = house.run(&ALL).exits(3);
    assert!(output.err.contains("is there already") && output.out.is_empty(), "{}", output.err);
    assert_eq!(std::fs::read(house.path("quittance.toml")).unwrap(), before);
    for (flag, bad, word) in [
        ("--url", "ocr.example.org", "http://"),
        ("--allow", "https://shop.example.org/", "shop.example.org"),
        ("--public-url", "q.example.org", "http://"),
        ("--key-env", "a b", "the name of an environment variable"),
        ("--set", "foo=1", "foo"),
        ("--set", "provider.main.url=x", "provider.main.url"),
    ] {
        let output =
            house.run(&["init", "--config", "new.toml", "--dialect", "2captcha", flag, bad]).exits(2);
        assert!(
            output.err.contains(word)
                && output.err.contains(flag)
                && output.err.contains("nothing was written"),
            "{flag}: {}",
            output.err
        );
        assert!(!house.path("new.toml").exists());
    }
    let left: Vec<_> =
        std::fs::read_dir(house.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["quittance.toml"]);
}

/// Advice to set a variable that is set sends the user the wrong way.
#[test]
fn a_key_that_is_set_is_not_asked_for() {
    let key = [("SOLVER_KEY", "a-key-of-the-provider")];
    let output = House::new().run_with(&ALL, &key).exits(1);
    assert!(output.err.contains("quittance doctor") && !output.err.contains("export"), "{}", output.err);
}

/// A failed check does not undo the file, and each finding says what is left to do.
#[test]
fn init_runs_doctor_and_says_what_is_left_to_do() {
    let house = House::new();
    let output = house.run(&["init", "--dialect", "captchaai", "--allow", "*"]).exits(1);
    assert!(output.out.contains("BAD") && output.out.contains("CAPTCHAAI_API_KEY"), "{}", output.out);
    assert!(output.out.contains("every site may be automated"), "{}", output.out);
    assert!(output.err.contains("Warning: `*` allows every site to be automated"), "{}", output.err);
    assert!(output.err.contains("Fix what is marked BAD above"), "{}", output.err);
    assert!(house.path("quittance.toml").exists());
}

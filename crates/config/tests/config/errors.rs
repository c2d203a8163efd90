//! Every possible mistake and its error, which names the setting and the place, and says what to do.

use super::{Place, SMALL};
use quittance_config::{Config, ConfigErrors};
use rustix::fs::{FileType, Mode};
use std::time::Duration;

/// Checks a file with a mistake, and the words of its error.
#[track_caller]
fn check(file: &str, words: &[&str]) {
    says(&Place::with_file(file), words);
}

#[track_caller]
fn says(place: &Place, words: &[&str]) {
    let complaint = place.complaint();
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}

#[test]
fn an_unknown_key_is_reported_with_its_line_and_the_nearest_right_one() {
    for (file, line, wrong, right) in [
        ("lisen = \"a\"", 1, "lisen", "listen"),
        ("\n\n[timing]\n# why\ncalback_wait = \"1s\"", 5, "timing.calback_wait", "timing.callback_wait"),
        ("[timings]\ncallback_wait = \"1s\"", 2, "timings.callback_wait", "timing.callback_wait"),
        ("callback_wait = \"1s\"", 1, "callback_wait", "timing.callback_wait"),
        ("[retry.limits]\nbussy = 1", 2, "retry.limits.bussy", "retry.limits.busy"),
        ("[kinds.image]\nlive = \"1s\"", 2, "kinds.image.live", "kinds.image.life"),
        ("[[provider]]\nname = \"a\"\nulr = \"x\"", 3, "provider.a.ulr", "provider.a.url"),
        ("[[tenant]]\nname = \"a\"\nkey_fiel = \"x\"", 3, "tenant.a.key_fiel", "tenant.a.key_file"),
        ("[store]\nretention = \"1s\"\n[timng]", 2, "store.retention", "config show"),
        ("[timng]", 1, "timng", "config show"),
    ] {
        check(file, &[&format!("quittance.toml:{line}: "), &format!("there is no setting `{wrong}`"), right]);
    }
}

#[test]
fn an_unknown_flag_or_variable_is_reported_in_its_own_words() {
    says(
        &Place::empty().set(&["timing.dedline=1s"]),
        &["flag --set", "timing.dedline", "`timing.deadline`?"],
    );
    says(&Place::empty().set(&["timing.deadline"]), &["--set timing.deadline", "NAME=VALUE"]);
    says(&Place::empty().set(&["..=s3cr3t"]), &["--set ..=...", "NAME=VALUE"]);
    let place = |name| Place::with_file(SMALL).env(&[(name, "1s")]);
    // A variable that is no setting belongs to another program, or is a mistake: it changes nothing, and a warning names it.
    for (name, words) in [
        ("QUITTANCE_TIMING_DEDLINE", "did you mean `QUITTANCE_TIMING_DEADLINE`?"),
        ("QUITTANCE_TENANT_TEAM_A_KEYENV", "did you mean `QUITTANCE_TENANT_TEAM_A_KEY_ENV`?"),
        ("QUITTANCE_NONSENSE_ALTOGETHER", "config show"),
    ] {
        let warnings = place(name).load().unwrap().warnings;
        assert!(
            warnings.len() == 1 && warnings[0].contains(name) && warnings[0].contains(words),
            "{warnings:?}"
        );
    }
}

#[test]
fn what_kubernetes_puts_there_for_a_service_is_silent() {
    let variables = [
        ("QUITTANCE_REDIS_SERVICE_HOST", "10.0.0.1"),
        ("QUITTANCE_REDIS_SERVICE_PORT", "6379"),
        ("QUITTANCE_REDIS_SERVICE_PORT_CLIENT", "6379"),
        ("QUITTANCE_REDIS_PORT", "tcp://10.0.0.1:6379"),
        ("QUITTANCE_REDIS_PORT_6379_TCP", "tcp://10.0.0.1:6379"),
        ("QUITTANCE_REDIS_PORT_6379_TCP_ADDR", "10.0.0.1"),
        ("QUITTANCE_SERVICE_HOST", "10.0.0.1"),
        ("QUITTANCE_PORT", "tcp://10.0.0.1:8780"),
        // For Services called quittance-prices, quittance-reuse-kinds and so on: they fit tables of ours.
        ("QUITTANCE_PRICES_SERVICE_HOST", "10.0.0.1"),
        ("QUITTANCE_PRICES_SERVICE_PORT", "8780"),
        ("QUITTANCE_PRICES_SERVICE_PORT_HTTP", "8780"),
        ("QUITTANCE_PRICES_PORT", "tcp://10.0.0.1:8780"),
        ("QUITTANCE_PRICES_PORT_8780_TCP", "tcp://10.0.0.1:8780"),
        ("QUITTANCE_PRICES_PORT_8780_TCP_ADDR", "10.0.0.1"),
        ("QUITTANCE_PRICES_PORT_8780_UDP_PORT", "8780"),
        ("QUITTANCE_PRICES_PORT_8780_TCP_PROTO", "tcp"),
        ("QUITTANCE_LIFETIMES_PORT", "udp://10.0.0.1:8780"),
        ("QUITTANCE_REUSE_KINDS_PORT", "tcp://10.0.0.1:8780"),
        ("QUITTANCE_REUSE_KINDS_SERVICE_HOST", "fd00::1"),
    ];
    let config = Place::with_file(SMALL).env(&variables).load().unwrap();
    assert_eq!(config.warnings, [""; 0]);
    // What only ends like theirs is ours.
    let price = Place::with_file(SMALL).env(&[("QUITTANCE_PRICES_PORT", "0.1")]);
    says(&price, &["prices.port"]);
}

#[test]
fn what_is_not_toml_is_reported_with_its_line() {
    check("listen = \"a\"\nx = = 1\n", &["quittance.toml:2: ", "not TOML"]);
    check("listen = 1\nlisten = 2\n", &["quittance.toml:2: ", "not TOML"]);
}

#[test]
fn a_wrong_value_is_reported_with_what_would_be_right() {
    for (file, words) in [
        ("listen = \"localhost\"", &["`listen` is \"localhost\"", "127.0.0.1:8780"][..]),
        ("listen = 8780", &["`listen` is 8780", "a port"]),
        ("public_url = \"ftp://x\"", &["`public_url`", "http:// or https://"]),
        ("public_url = \"https://user:pw@x\"", &["`public_url`", "no user"]),
        ("[timing]\ndeadline = 300", &["quittance.toml:2", "`timing.deadline` is 300", "\"90s\""]),
        ("[timing]\ndeadline = \"5 apples\"", &["`timing.deadline`", "numbers with units", "1m30s"]),
        ("[timing]\ndeadline = \"25h\"", &["`timing.deadline`", "from 1s to 24h"]),
        ("[timing]\npoll_interval = \"0s\"", &["`timing.poll_interval`", "\"auto\", or a duration"]),
        ("[targets]\nimages = \"yes\"", &["`targets.images` is \"yes\"", "true or false"]),
        ("[targets]\nallow = [\"https://a.org\"]", &["`targets.allow`", "*.example.org"]),
        ("[targets]\nallow = \"a.org\"", &["`targets.allow`", "a list"]),
        ("[targets]\nallow = [1]", &["`targets.allow`", "a list of something else"]),
        ("[engine]\npolls_max = 0", &["`engine.polls_max` is 0", "from 1 to"]),
        ("[engine]\npolls_max = -1", &["`engine.polls_max` is -1", "from 1 to"]),
        ("[engine]\npolls_max = 1.5", &["`engine.polls_max` is 1.5", "a whole number"]),
        ("[engine]\npolls_max = 99999999999999999999", &["`engine.polls_max`", "too large"]),
        (
            "[targets.vendors]\namazonwaf = [\"x.example.net\"]",
            &["`amazonwaf`", "did you mean `amazon_waf`?"],
        ),
        ("[retry.limits]\ncaller = 3", &["`retry.limits.caller` is 3", "never retried"]),
        ("[retry]\npreset = \"bold\"", &["`retry.preset` is \"bold\"", "\"conservative\""]),
        ("[retry]\njitter = \"some\"", &["`retry.jitter`", "\"full\", or a duration"]),
        ("[provider_rules]\nretry_share = 20", &["`provider_rules.retry_share` is 20", "from 0 to 1"]),
        ("[provider_rules]\nretry_share = 0.12345", &["retry_share", "three digits"]),
        ("[store]\nurl = \"./data\"", &["`store.url`", "embedded:FOLDER"]),
        ("[store]\nurl = \"mysql://u:s3cr3t@h\"", &["`store.url`", "embedded:FOLDER"]),
        ("[reuse.targets]\n\"https://x\" = \"shared\"", &["reuse.targets", "*.example.org"]),
        (
            "[reuse.targets]\n\"a.org\" = \"shared\"\n\"A.org\" = \"exclusive\"",
            &["`reuse.targets.\"a.org\"` is another spelling of `reuse.targets.\"A.org\"`", "take one"],
        ),
        ("[keys]\nwindow = 1979-05-27", &["`keys.window` is a date", "a duration"]),
    ] {
        check(file, words);
        assert!(!Place::with_file(file).complaint().contains("s3cr3t"), "{file}");
    }
    says(
        &Place::empty().env(&[("QUITTANCE_TARGETS_IMAGES", "yes")]),
        &["environment QUITTANCE_TARGETS_IMAGES", "true or false"],
    );
    says(&Place::empty().set(&["engine.polls_max=many"]), &["flag --set", "`engine.polls_max` is \"many\""]);
}

#[test]
fn tables_and_values_are_not_confused() {
    check("timing = \"1s\"", &["quittance.toml:1", "`timing` is a table", "[timing]"]);
    check("[listen]\nport = 1", &["`listen` takes a value", "listen = ..."]);
    check("[provider]\nname = \"main\"", &["`provider` is a list of tables", "[[provider]]"]);
    check("provider = [\"main\"]", &["`provider` is a list of tables", "[[provider]]"]);
    check("[[provider]]\nurl = \"x\"", &["quittance.toml:1", "[[provider]]", "name = "]);
    check("[[tenant]]\nname = \"a b\"", &["quittance.toml:2", "is \"a b\"", "letters, digits"]);
    check(
        "[[tenant]]\nname = \"a\"\nkey_env = \"K\"\n[[tenant]]\nname = \"a\"",
        &["quittance.toml:5", "a second `[[tenant]]` called `a`", "quittance.toml:2", "a name of its own"],
    );
    says(&Place::with_file(SMALL).set(&["tenant.team-a.name=b"]), &["tenant.team-a.name", "would rename"]);
    says(&Place::empty().set(&["provider.\"a b\".url=http://x"]), &["provider.\"a b\"", "letters, digits"]);
}

#[test]
fn a_secret_in_the_configuration_is_refused_and_not_repeated() {
    for (file, name) in [
        ("[[provider]]\nname = \"main\"\nkey = \"s3cr3t\"", "provider.main.key"),
        ("[[tenant]]\nname = \"a\"\nkey = \"s3cr3t\"", "tenant.a.key"),
        ("callback_secret = \"s3cr3t\"", "callback_secret"),
    ] {
        check(file, &[name, &format!("{name}_env"), &format!("{name}_file"), "quittance.toml:"]);
        assert!(!Place::with_file(file).complaint().contains("s3cr3t"));
    }
    says(&Place::empty().set(&["provider.main.key=s3cr3t"]), &["provider.main.key", "flag --set", "_env"]);
    let key = "0123456789abcdef0123456789abcdef";
    for value in [key, "abcdef0123456789abcdef0123456789", "not a name"] {
        let file = format!("[[tenant]]\nname = \"a\"\nkey_env = \"{value}\"");
        check(&file, &["tenant.a.key_env", "never the secret itself"]);
        assert!(!Place::with_file(&file).complaint().contains(value));
    }
}

#[test]
fn what_a_provider_or_a_tenant_must_have_is_asked_for() {
    let provider = "[[provider]]\nname = \"main\"\n";
    check(provider, &["`provider.main` has no `dialect`", "captchaai"]);
    check(&format!("{provider}dialect = \"captchaai\""), &["`provider.main` has no `url`", "https://"]);
    let with_url = format!("{provider}dialect = \"captchaai\"\nurl = \"https://a.example\"\n");
    check(&with_url, &["`provider.main` has no `key_env`", "key_file"]);
    check(
        &format!("{with_url}key_env = \"K\"\nkey_file = \"k\""),
        &["provider.main.key_file", "keep one of the two"],
    );
    check(&format!("{provider}dialect = \"3captcha\""), &["provider.main.dialect", "\"2captcha\""]);
    check(
        &format!("{provider}[provider.faults]\nERROR_X = \"bussy\""),
        &["provider.main.faults.ERROR_X", "\"busy\""],
    );
    check(&format!("{provider}dialect = \"capsolver\""), &["quittance.toml:3", "`protocol = \"json\"`"]);
    let by_json = format!("{provider}protocol = \"json\"\n");
    check(&format!("{by_json}dialect = \"captchaai\""), &["provider.main.dialect", "classic protocol only"]);
    let batched = format!("{by_json}dialect = \"capmonster\"\npoll_batch_max = 5");
    check(&batched, &["quittance.toml:5", "provider.main.poll_batch_max", "leave it out"]);
    check("[[tenant]]\nname = \"a\"", &["`tenant.a` has no `key_env`", "key_file"]);
    let with_key = format!("{with_url}key_env = \"K\"\n");
    check(
        &format!("{with_key}ca_file = \"gone\""),
        &["quittance.toml:6", "provider.main.ca_file", "cannot be read"],
    );
    let half = format!("{with_key}poll_quota_slack = 5");
    check(&half, &["`provider.main` has no `poll_quota_per_task`", "set both, or neither"]);
    let slow = format!("{with_url}key_env = \"K\"\nreply_wait = \"40s\"");
    check(&slow, &["quittance.toml:6", "provider.main.reply_wait", "40s", "`timing.submit_wait` = 30s"]);
}

#[test]
fn settings_that_contradict_each_other_are_reported_both() {
    for (file, words) in [
        (
            "[engine]\nclaim_duration = \"6s\"",
            &["`engine.claim_duration` is \"6s\"", "longer than `engine.poll_wait` = \"6s\" (default)"][..],
        ),
        (
            "[engine]\npoll_wait = \"20s\"",
            &["`engine.poll_wait` is \"20s\"", "shorter than `engine.claim_duration`"],
        ),
        ("[engine]\nsweep_pause = \"5s\"", &["engine.sweep_pause", "engine.sweep_interval"]),
        (
            "[retry]\nbase = \"90s\"",
            &["quittance.toml:2", "`retry.base` is \"90s\"", "at most `retry.cap` = \"60s\""],
        ),
        ("[retry]\ncap = \"500ms\"", &["`retry.cap` is \"500ms\"", "at least `retry.base`"]),
        ("[timing]\nin_doubt_wait = \"5s\"", &["timing.in_doubt_wait", "timing.in_doubt_min"]),
        ("[timing]\ntask_life = \"100s\"", &["timing.task_life", "timing.callback_wait", "given up before"]),
        ("[timing]\nfirst_poll = \"1h\"", &["timing.first_poll", "timing.task_life"]),
        ("[timing]\np95 = \"10s\"", &["timing.p95", "timing.p50"]),
        ("[timing]\np95 = \"200s\"", &["timing.p95", "timing.p99"]),
        (
            "[kinds.turnstile]\nmargin = \"250s\"",
            &["kinds.turnstile.margin", "250s in a life of 300s", "three quarters"],
        ),
        ("[kinds.turnstile]\nlife = \"60s\"", &["kinds.turnstile.life", "50s in a life of 60s"]),
        ("[kinds.turnstile]\np50 = \"60s\"", &["kinds.turnstile.p50", "p95 = 45s"]),
        ("[kinds.turnstile]\np99 = \"20s\"", &["kinds.turnstile.p99", "p95 = 45s longer than p99 = 20s"]),
        (
            "[kinds.recaptcha_v22]\nlife = \"1m\"",
            &["recaptcha_v22", "did you mean `recaptcha_v2`?", "new = true"],
        ),
        (
            "[reuse.kinds]\nmoon_phase = \"shared\"",
            &["reuse.kinds.moon_phase", "quittance kinds", "kinds.moon_phase.new"],
        ),
    ] {
        check(file, words);
    }
}

#[test]
fn secrets_that_cannot_work_are_reported_without_being_shown() {
    let tenants = "[[tenant]]\nname = \"a\"\nkey_env = \"A\"\n[[tenant]]\nname = \"b\"\nkey_env = \"B\"";
    let place = Place::with_file(tenants).env(&[("A", "s3cr3t"), ("B", "s3cr3t")]);
    says(&place, &["tenant.b.key", "the same as `tenant.a.key`", "a key of its own"]);
    assert!(!place.complaint().contains("s3cr3t"));
    let place = Place::with_file("callback_secret_env = \"S\"").env(&[("S", "s3cr3t")]);
    says(&place, &["callback_secret", "64 hexadecimal digits", "openssl"]);
    assert!(!place.complaint().contains("s3cr3t"));

    let wanted = |place: &Place| place.load().unwrap().callback_secret().unwrap_err().to_string();
    let missing = wanted(&Place::with_file("callback_secret_env = \"S\""));
    assert!(missing.contains("`S` is not set"), "a missing secret is not silently another: {missing}");
    let empty = Place::with_file("callback_secret_file = \"s\"");
    assert!(wanted(&empty).contains("cannot be read"));
    std::fs::write(empty.path("s"), "\n").unwrap();
    assert!(wanted(&empty).contains("is empty"));
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let place = Place::empty().env(&[("QUITTANCE_CONFIG", "folder")]);
    std::fs::create_dir(place.path("folder")).unwrap();
    says(&place, &["folder cannot be read"]);
}

#[test]
fn prices_and_usage_that_make_no_sense_are_reported() {
    check("[prices]\nimge = 0.1", &["quittance.toml:2", "prices.imge", "did you mean `image`?"]);
    check("[prices]\nimage = \"cheap\"", &["quittance.toml:2", "prices.image", "an amount"]);
    check("prices = 1", &["quittance.toml:1", "prices"]);
    check(
        "[[provider]]\nname = \"main\"\n[provider.prices]\nimge = 1",
        &["quittance.toml:4", "provider.main.prices.imge", "`image`"],
    );
    check("[usage]\ndetail_days = 401", &["usage.detail_days", "is 401", "`usage.sum_days`"]);
    check("[usage]\nsum_days = 3", &["quittance.toml:2", "usage.sum_days", "is 3"]);
    check("[usage]\ndetail_days = 0", &["usage.detail_days", "from 1 to 3660"]);
}

/// Loads a configuration in another thread, because this once waited for ever.
fn load_soon(place: Place) -> Result<Config, ConfigErrors> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || _ = send.send(place.load()));
    receive.recv_timeout(Duration::from_secs(20)).expect("it must not wait for a pipe or a device")
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once() {
    let provider = "[[provider]]\nname = \"main\"\ndialect = \"2captcha\"\nurl = \"https://a.example\"\n";
    let with_pipe = |file: &str| {
        let place = Place::with_file(file);
        let path = place.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        place
    };
    let tenant = |path: &str| format!("[[tenant]]\nname = \"a\"\nkey_file = \"{path}\"\n");
    for path in ["pipe", "/dev/zero", "/dev/tty"] {
        let config = load_soon(with_pipe(&tenant(path))).unwrap();
        let error = config.tenants[0].key.digest().unwrap_err().to_string();
        for word in ["tenant.a.key", path, "a pipe, a socket or a device", "name a regular file"] {
            assert!(error.contains(word), "`{word}` is not in: {error}");
        }
    }
    let ca_file = format!("{provider}key_env = \"K\"\nca_file = \"pipe\"\n");
    let error = load_soon(with_pipe(&ca_file)).unwrap_err().to_string();
    assert!(error.contains("provider.main.ca_file") && error.contains("a pipe"), "{error}");
    let error = load_soon(with_pipe("").env(&[("QUITTANCE_CONFIG", "pipe")])).unwrap_err().to_string();
    assert!(error.contains("pipe cannot be read") && error.contains("not a file"), "{error}");
}

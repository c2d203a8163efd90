//! Tests of the provider with a clock that the test controls.

use super::*;
use crate::settings::{BanLimits, DEMO_KEY, MillisRange};
use std::net::Ipv4Addr;

const TURNSTILE: &str = "method=turnstile&sitekey=0x4AAA&pageurl=https://a.test/";

fn world(settings: Settings) -> MockWorld {
    MockWorld::new(Arc::new(settings), ServicePlace::default(), 0).expect("no script")
}

fn timed(ms: u64) -> Settings {
    Settings {
        solve_ms: MillisRange { from: ms, to: ms + 1 },
        ..Settings::quick(MockClassicDialect::TwoCaptcha)
    }
}

fn arrival(endpoint: Endpoint, params: &str) -> ReadRequest {
    let form = Form::read(&format!("key={DEMO_KEY}&{params}"), None, b"").expect("a good form");
    ReadRequest { endpoint, is_get: true, peer: Ipv4Addr::LOCALHOST.into(), form, ask: None }
}

fn submit(world: &mut MockWorld, now: u64) -> String {
    world.take(now, &arrival(Endpoint::In, TURNSTILE)).reply.body
}

fn poll(world: &mut MockWorld, now: u64, params: &str) -> String {
    world.take(now, &arrival(Endpoint::Res, params)).reply.body
}

#[test]
fn a_task_is_solved_at_its_moment_and_not_before() {
    let mut world = world(Settings { result_lifetime_ms: 500, speed: 2.0, ..timed(10_000) });
    let id = submit(&mut world, 100).strip_prefix("OK|").expect("it is taken").to_owned();
    let get = format!("action=get&id={id}");
    assert_eq!(poll(&mut world, 5_099, &get), "CAPCHA_NOT_READY");
    assert!(poll(&mut world, 5_100, &get).starts_with("OK|"));
    assert!(poll(&mut world, 5_599, &get).starts_with("OK|"));
    assert_eq!(poll(&mut world, 5_600, &get), "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(world.ledger(5_600, &LedgerQuery::default()).tasks[0].solved_at_ms, Some(5_100));
}

#[test]
fn sixty_submits_in_three_seconds_are_allowed_however_the_window_slides() {
    let mut world = world(Settings { pace: BanLimits::default(), ..timed(1) });
    for now in (0..60_000).step_by(50) {
        assert!(submit(&mut world, now).starts_with("OK|"), "at {now}");
    }
    assert!(submit(&mut world, 59_951).starts_with("MAX_USER_TURN"));
    assert_eq!(submit(&mut world, 69_950), "MAX_USER_TURN", "a ban is not prolonged, and not cut");
    assert!(submit(&mut world, 69_951).starts_with("OK|"));
}

#[test]
fn the_poll_quota_grows_with_the_tasks_and_restarts_after_a_ban() {
    let mut world = world(Settings { pace: BanLimits::default(), ..timed(1) });
    submit(&mut world, 0);
    for _ in 0..1_220 {
        assert_ne!(poll(&mut world, 10, "action=getbalance"), "ERROR: 1005");
    }
    assert_eq!(poll(&mut world, 10, "action=getbalance"), "ERROR: 1005");
    assert_eq!(poll(&mut world, 300_009, "action=getbalance"), "ERROR: 1005");
    assert_eq!(poll(&mut world, 300_010, "action=getbalance"), "9.99701");
}

#[test]
fn a_hundred_and_twenty_refusals_in_a_minute_are_enough_and_spread_out_they_are_not() {
    let busy = || Settings { pace: BanLimits::default(), queue_max: 0, ..timed(1) };
    let mut hasty = world(busy());
    for now in (0..60_000).step_by(500) {
        assert_eq!(submit(&mut hasty, now), "ERROR_NO_SLOT_AVAILABLE");
    }
    assert_eq!(submit(&mut hasty, 60_000), "ERROR: 1001");
    let mut patient = world(busy());
    for now in (0..600_000).step_by(510) {
        assert_eq!(submit(&mut patient, now), "ERROR_NO_SLOT_AVAILABLE");
    }
}

#[test]
fn the_numbered_bans_are_not_captchaais() {
    let mut settings =
        Settings { pace: BanLimits::default(), dialect: MockClassicDialect::CaptchaAi, ..timed(1_000_000) };
    settings.accounts[0].threads = 1;
    let mut world = world(settings);
    assert!(submit(&mut world, 0).starts_with("OK|"));
    for now in (100..60_000).step_by(100) {
        assert_eq!(submit(&mut world, now), "ERROR_ZERO_BALANCE");
    }
}

#[test]
fn an_answer_counts_when_it_is_written_and_not_when_it_is_made() {
    let mut world = world(timed(1));
    let id = submit(&mut world, 0).strip_prefix("OK|").expect("it is taken").to_owned();
    let step = world.take(5, &arrival(Endpoint::Res, &format!("action=get&id={id}")));
    assert_eq!(world.ledger(5, &LedgerQuery::default()).totals.delivered, 0);
    world.written(6, &step.mark);
    world.written(7, &step.mark);
    let ledger = world.ledger(7, &LedgerQuery::default());
    assert_eq!((ledger.totals.delivered, ledger.tasks[0].reads), (1, 2));
    assert_eq!(ledger.tasks[0].first_read_at_ms, Some(6));
}

#[test]
fn no_number_in_the_settings_makes_it_panic() {
    for speed in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        let extreme = Settings {
            speed,
            solve_ms: MillisRange { from: u64::MAX, to: 0 },
            result_lifetime_ms: u64::MAX,
            report_window_ms: u64::MAX,
            ..Settings::quick(MockClassicDialect::TwoCaptcha)
        };
        let mut world = world(extreme);
        let id = submit(&mut world, 0).strip_prefix("OK|").expect("it is taken").to_owned();
        poll(&mut world, u64::MAX / 2, &format!("action=reportgood&id={id}"));
        world.ledger(u64::MAX, &LedgerQuery::default());
    }
}

#[test]
fn a_pingback_of_before_a_reset_finds_nothing() {
    let mut world = world(timed(1));
    let request = format!("{TURNSTILE}&pingback=http://127.0.0.1:1/");
    let calls = world.take(0, &arrival(Endpoint::In, &request)).calls.expect("a pingback is wanted");
    assert!(world.pingback(5, calls.generation, calls.id, None).is_some());
    world.reset(6);
    assert!(world.pingback(7, calls.generation, calls.id, None).is_none());
}

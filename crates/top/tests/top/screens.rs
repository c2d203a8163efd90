//! The screen of a fixed snapshot, wide, narrow and tiny, with hostile names.

use quittance_top::{KeyAction, Missing, SnapshotSource, TakenSnapshot, View, attend, page};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use std::time::Duration;

fn document() -> Value {
    let node = |name: &str, is_here: bool| {
        json!({ "name": name, "is_here": is_here, "is_alive": is_here, "in_hand": 7, "submitted": 0, "answered": 9,
            "is_paused": false, "store_was_away": false, "has_spilled": false, "skew_ms": null })
    };
    let alert = |rule: &str, words: &str, cleared_at: Option<&str>| {
        json!({ "rule": rule, "subject": "main", "is_grave": true, "words": words, "raised_at": "", "raised_ms": 0,
            "cleared_at": cleared_at, "seen_at": null })
    };
    json!({
        "at_ms": 1_794_800_000_000_u64,
        "node": { "name": "host:8780", "version": "0.1.0", "started_ms": 0, "uptime_s": 7300 },
        "orders": { "open": 1234, "dead": 3, "is_sampled": true,
            "phases": { "queued": 10, "held": 2, "submitting": 4, "solving": 1200, "in_doubt": 18 } },
        "rates": { "asked": 120.5, "joined": 80.0, "cached": 10.0, "from_stock": 5.0, "paid": 25.5, "solved": 24.0 },
        "latency_ms": { "p50": 12_300, "p95": 31_000, "p99": null, "count": 77 },
        "today": { "asked": 123_456, "solved": 120_000, "failed": 123_457, "cost_micros": 2_990_000, "saved_micros": 1_500_000 },
        "currency": "USD",
        "providers": [{ "name": "ma\u{1b}[31min", "mode": "active", "state": "paused", "currency": "USD", "balance_micros": 12_500_000, "fault": { "class": "no_funds", "code": "ERROR\u{7}" } }],
        "pools": [{ "name": "warm", "tenant": "default", "kind": "turnstile", "enabled": true,
            "level": { "at": "", "size": 4, "why": "", "fresh": 0, "on_their_way": 2, "rate_per_s": 0.1, "lead_ms": 1 },
            "demand": { "served": 1, "missed": 1, "hit_rate": 0.5 } }],
        "nodes": [node("host:8780", true), node("ev\u{202e}il\n", false)],
        "alerts": [alert("provider_paused", "fix\u{1b}]0;x\u{7} it", None),
            alert("node_silent", "it is over", Some("2026-11-16T00:00:00.000Z"))],
        "bulks": [],
        "store": { "is_up": true, "kind": "embedded" },
        "surprise": [1, 2, 3],
    })
}

fn read(document: Value) -> TakenSnapshot {
    TakenSnapshot::new(serde_json::from_value(document).unwrap(), SnapshotSource::Node)
}

fn taken() -> TakenSnapshot {
    read(document())
}

fn view() -> View {
    let mut view = View { has_colours: true, ..View::default() };
    view.show(taken());
    view
}

fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y) + "\n").collect()
}

#[test]
fn a_wide_screen_shows_everything_beside_each_other() {
    let shown = screen(&view(), 140, 40);
    for words in [
        "open 1234, dead 3, alerts 1",
        "solving    about 1200",
        "in_doubt   about 18",
        "asked 120.5/s",
        "took p50 12.3 s  p95 31.0 s  p99 -",
        "asked 123456  solved 120000",
        "failed 123457",
        "spent 2.99",
        "saved 1.5",
        "balance 12.5",
        "warm 0 of 4, 2 coming, served 50 %",
        "* host:8780 in hand 7, answered 9",
        "SILENT",
        "provider_paused main:",
        "q leave",
    ] {
        assert!(shown.contains(words), "{words} is not on\n{shown}");
    }
    assert!(!shown.contains("it is over"), "a cleared alert is not shown");
}

/// Checks that the most important parts fit into this many columns and rows.
fn essentials(width: u16, height: u16, words: &[&str]) -> String {
    let mut document = document();
    document["alerts"][0]["words"] = json!(
        "nothing is submitted to it any more since 02:00, and 1234 orders wait: look at the account, fix it, and say so \
         with `quittance dead replay`"
    );
    let mut view = View::default();
    view.show(read(document));
    let shown = screen(&view, width, height);
    for words in words {
        assert!(shown.contains(words), "{words} is not on\n{shown}");
    }
    assert!(!shown.contains('┌'), "frames need space\n{shown}");
    shown
}

#[test]
fn the_usual_terminal_shows_all_that_matters_also_while_an_alert_stands() {
    let shown = essentials(
        80,
        24,
        &[
            "provider_paused main: nothing is submitted",
            "`quittance dead replay`",
            "queued ~10",
            "held ~2",
            "submitting ~4",
            "solving ~1200",
            "in_doubt ~18",
            "dead 3",
            "asked 120.5",
            "joined 80.0",
            "paid 25.5",
            "solved 24.0",
            "p50 12.3 s",
            "p95 31.0 s",
            "spent 2.99",
            "saved 1.5",
            "balance 12.5",
            "paused: ERROR",
            "* host:8780 in hand 7, answered 9",
            "SILENT",
            "warm 0 of 4",
        ],
    );
    let at = |words: &str| shown.find(words).unwrap();
    assert!(at("provider_paused") < at("queued"), "what matters most comes first\n{shown}");
    assert!(at("SILENT") < at("* host"), "what is wrong comes first\n{shown}");
}

#[test]
fn a_tiny_screen_shows_the_beginning_of_each_part() {
    let words = [
        "open 1234, dead 3",
        "provider_paused",
        "queued ~10",
        "asked 120.5",
        "p50 12.3 s",
        "spent 2.99",
        "paused",
    ];
    essentials(40, 12, &words);
}

#[test]
fn no_size_is_too_small_to_be_drawn_on() {
    let mut view = view();
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 10), (99, 3), (100, 3), (300, 100)] {
        view.has_help = !view.has_help;
        screen(&view, width, height);
    }
    screen(&View::default(), 80, 24);
    view.miss(Missing::NoDaemon);
    for (width, height) in [(1, 1), (3, 2), (10, 5), (300, 100)] {
        screen(&view, width, height);
    }
}

#[test]
fn without_a_daemon_top_says_what_to_do() {
    let mut view = View::default();
    view.miss(Missing::NoDaemon);
    let shown = screen(&view, 80, 24);
    assert!(shown.lines().next().unwrap().contains("NO DAEMON RUNS on this store"), "{shown}");
    assert!(shown.contains("start `quittance serve`") && shown.contains("as it is there"), "{shown}");
    view.show(taken());
    assert!(!screen(&view, 80, 24).contains("NO DAEMON"));
}

#[test]
fn a_daemon_that_has_gone_is_reported_first() {
    for (width, height) in [(40, 12), (80, 24), (140, 40)] {
        let mut view = view();
        view.miss(Missing::NoDaemon);
        view.wait(Duration::from_secs(12));
        let shown = screen(&view, width, height);
        assert!(shown.starts_with("THE DAEMON DOES NOT ANSWER since 12 s"), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("as soon as it is there"), "the explanation is whole\n{shown}");
        assert!(words.contains("asked -"), "what was so a second is no longer\n{shown}");
        view.show(taken());
        assert!(!screen(&view, width, height).contains("DOES NOT ANSWER"));
    }
}

#[test]
fn a_rate_that_is_not_known_is_no_zero() {
    let mut document = document();
    document["rates"]["asked"] = Value::Null;
    document["providers"][0]["balance_micros"] = Value::Null;
    document["store"] = json!({ "is_up": false, "kind": "redis" });
    let taken = read(document);
    let text = page(&taken);
    assert!(
        text.starts_with("redis AWAY, figures are old") && text.contains("asked -  joined 80.0/s"),
        "{text}"
    );
    assert!(text.contains("balance not known"), "{text}");
    let mut view = view();
    view.show(taken);
    assert!(screen(&view, 80, 24).contains("asked -"));
}

#[test]
fn without_a_node_there_is_no_age_and_no_latency() {
    let mut redis = TakenSnapshot { source: SnapshotSource::SharedStore, ..taken() };
    redis.snapshot.store.kind = Some("redis".into());
    let text = page(&redis);
    assert!(text.starts_with("quittance 0.1.0, redis up, open 1234"), "{text}");
    assert!(text.contains("took p50 -  p95 -  p99 -") && text.contains("not known here"), "{text}");
    let text = page(&TakenSnapshot { source: SnapshotSource::EmbeddedStore, ..taken() });
    assert!(
        text.starts_with("quittance 0.1.0, NO DAEMON RUNS on this store (embedded), open 1234"),
        "{text}"
    );
}

#[test]
fn nothing_from_outside_moves_the_cursor() {
    for shown in [screen(&view(), 140, 40), page(&taken())] {
        let odd = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(odd, None, "{shown}");
        assert!(shown.contains("\\u{1b}"), "it stands there as text: {shown}");
    }
    assert_eq!(page(&taken()).matches("ev\\u{202e}il\\u{a}").count(), 1);
}

#[test]
fn without_a_screen_all_of_it_is_printed_in_lines() {
    let text = page(&taken());
    for words in
        ["quittance 0.1.0 host:8780 up 2 h, embedded up", "\norders\n", "\nalerts\n  provider_paused"]
    {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let mut without = document();
    without["pools"] = json!([]);
    assert!(!page(&read(without)).contains("\npools\n"), "what there is none of is left out");
}

#[test]
fn a_provider_that_is_well_is_ok() {
    let mut well = taken();
    well.snapshot.providers[0].state = Some("ok".into());
    well.snapshot.providers[0].fault = None;
    assert!(page(&well).contains("min ok\n"), "{}", page(&well));
}

#[test]
fn keys_pause_the_display_and_help_and_leave() {
    let mut view = view();
    let press = |view: &mut View, code| attend(view, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    assert_eq!(press(&mut view, KeyCode::Char('p')), Some(KeyAction::Draw));
    let other = || {
        let mut other = taken();
        other.snapshot.orders.open = 77;
        other
    };
    view.show(other());
    assert!(screen(&view, 140, 40).contains("open 1234") && screen(&view, 140, 40).contains("PAUSED"));
    press(&mut view, KeyCode::Char('p'));
    view.show(other());
    assert!(screen(&view, 140, 40).contains("open 77"));
    press(&mut view, KeyCode::Char('?'));
    assert!(screen(&view, 140, 40).contains("placements whose answer was there"));
    assert_eq!(press(&mut view, KeyCode::Esc), Some(KeyAction::Draw), "the help goes first");
    assert_eq!(press(&mut view, KeyCode::Esc), Some(KeyAction::Leave));
    assert_eq!(press(&mut view, KeyCode::Char('q')), Some(KeyAction::Leave));
    assert_eq!(press(&mut view, KeyCode::Char('x')), None);
    let interrupt = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(attend(&mut view, &interrupt), Some(KeyAction::Interrupt));
    assert_eq!(attend(&mut view, &Event::Resize(10, 10)), Some(KeyAction::Draw));
}

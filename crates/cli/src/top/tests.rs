//! The screen from a fixed picture, wide, narrow and tiny, with names that are not meant well.

use super::draw::{CURVE_MAX, View};
use super::picture::Picture;
use super::terminal::{Wish, attend};
use super::words;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

fn picture() -> Picture {
    let told = json!({
        "at_ms": 1_794_800_000_000_u64,
        "node": { "name": "host:8780", "version": "0.1.0", "started_ms": 0, "uptime_s": 7300 },
        "orders": { "open": 1234, "dead": 3, "is_sampled": true,
            "phases": { "queued": 10, "held": 2, "submitting": 4, "solving": 1200, "unsure": 18 } },
        "rates": { "asked": 120.5, "joined": 80.0, "cached": 10.0, "from_stock": 5.0, "paid": 25.5, "solved": 24.0 },
        "latency_ms": { "p50": 12_300, "p95": 31_000, "p99": null, "count": 77 },
        "today": { "asked": 123_456, "solved": 120_000, "failed": 123_457, "cost_micros": 2_990_000, "saved_micros": 1_500_000 },
        "balance": { "balance_micros": 12_500_000, "threads": null },
        "providers": [{ "name": "ma\u{1b}[31min", "state": "paused", "fault": { "class": "broke", "code": "ERROR\u{7}" } }],
        "pools": [{ "name": "warm", "enabled": true, "level": { "size": 4, "fresh": 0, "on_their_way": 2 }, "demand": { "hit_rate": 0.5 } }],
        "nodes": [{ "name": "host:8780", "is_here": true, "is_alive": true, "in_hand": 7, "answered": 9 },
            { "name": "ev\u{202e}il\n", "is_alive": false }],
        "alerts": [{ "rule": "provider_paused", "subject": "main", "is_grave": true, "words": "mend\u{1b}]0;x\u{7} it", "cleared_at": null },
            { "rule": "node_silent", "subject": "b", "words": "it is over", "cleared_at": "2026-11-16T00:00:00.000Z" }],
        "store": { "is_up": true, "kind": "embedded" },
        "surprise": [1, 2, 3],
    });
    serde_json::from_value(told).unwrap()
}

fn view() -> View {
    let mut view = View { has_colours: true, ..View::default() };
    view.show(picture());
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
        "unsure     about 18",
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
    assert!(!shown.contains("it is over"), "what was cleared is nobody's worry");
}

#[test]
fn a_narrow_screen_shows_what_matters_most_first() {
    let shown = screen(&view(), 60, 50);
    for words in ["provider_paused main", "solving    about 1200", "spent 2.99", "warm 0 of 4"] {
        assert!(shown.contains(words), "{words} is not on\n{shown}");
    }
    let at = |words: &str| shown.find(words).unwrap();
    assert!(at("provider_paused") < at("solving"));
}

#[test]
fn no_size_is_too_small_to_be_drawn_on() {
    let mut view = view();
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 10), (99, 3), (100, 3), (300, 100)] {
        view.has_help = !view.has_help;
        screen(&view, width, height);
    }
    screen(&View::default(), 80, 24);
}

#[test]
fn nothing_from_outside_moves_the_cursor() {
    for shown in [screen(&view(), 140, 40), words::page(&picture())] {
        let odd = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(odd, None, "{shown}");
        assert!(shown.contains("\\u{1b}"), "it stands there as text: {shown}");
    }
    assert_eq!(words::page(&picture()).matches("ev\\u{202e}il\\u{a}").count(), 1);
}

#[test]
fn where_there_is_no_screen_all_of_it_is_told_in_lines() {
    let page = words::page(&picture());
    for words in
        ["quittance 0.1.0 host:8780 up 2 h, embedded up", "\norders\n", "\nalerts\n  provider_paused"]
    {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
    assert!(!words::page(&Picture::default()).contains("\npools\n"), "what there is none of is left out");
}

#[test]
fn a_provider_that_is_well_is_ok_and_one_that_nobody_here_asks_is_not_judged() {
    let mut well = picture();
    well.providers[0].state = "open".into();
    well.providers[0].fault = None;
    assert!(words::page(&well).contains("min ok\n"), "{}", words::page(&well));
    let unknown = words::page(&picture().without_provider_states());
    assert!(unknown.contains("min not known here: a daemon knows\n"), "{unknown}");
}

#[test]
fn keys_hold_the_picture_and_help_and_leave() {
    let mut view = view();
    let press = |view: &mut View, code| attend(view, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    assert_eq!(press(&mut view, KeyCode::Char('p')), Some(Wish::Draw));
    let mut other = picture();
    other.orders.open = 77;
    view.show(other.clone());
    assert!(screen(&view, 140, 40).contains("open 1234") && screen(&view, 140, 40).contains("HELD"));
    press(&mut view, KeyCode::Char('p'));
    view.show(other);
    assert!(screen(&view, 140, 40).contains("open 77"));
    press(&mut view, KeyCode::Char('?'));
    assert!(screen(&view, 140, 40).contains("had its answer already"));
    assert_eq!(press(&mut view, KeyCode::Esc), Some(Wish::Draw), "the help goes first");
    assert_eq!(press(&mut view, KeyCode::Esc), Some(Wish::Leave));
    assert_eq!(press(&mut view, KeyCode::Char('q')), Some(Wish::Leave));
    assert_eq!(press(&mut view, KeyCode::Char('x')), None);
    let interrupt = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(attend(&mut view, &interrupt), Some(Wish::Interrupt));
    assert_eq!(attend(&mut view, &Event::Resize(10, 10)), Some(Wish::Draw));
    for _ in 0..2 * CURVE_MAX {
        view.show(picture());
    }
    assert_eq!(view.curve.len(), CURVE_MAX);
}

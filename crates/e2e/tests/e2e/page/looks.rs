//! The look and use of the page: both themes, a phone, the keyboard alone, an accessibility check, and hostile text
//! that stays text.

use super::play::Play;
use super::{daemon, graveyard, place};
use crate::provider::Sim;
use serde_json::json;

#[test]
fn every_view_fits_wide_and_narrow_in_both_themes_without_serious_flaws() {
    let sim = Sim::start();
    let serve = graveyard(&sim, 3);
    Play::run("looks", &serve);
    serve.end_in_peace();
}

#[test]
fn a_theme_that_was_chosen_is_remembered() {
    let sim = Sim::start();
    let serve = daemon(&sim, &[]);
    Play::run("themes", &serve);
    serve.end_in_peace();
}

#[test]
fn the_page_is_used_with_keys_alone() {
    let sim = Sim::start();
    let serve = graveyard(&sim, 3);
    Play::run("keys", &serve);
    serve.end_in_peace();
}

#[test]
fn hostile_text_shows_as_text_and_nothing_of_it_runs() {
    let sim = Sim::start();
    let code = "ERROR_<img src=x onerror=window.ran=1><b>\u{1b}[31m\u{202e}";
    sim.script(&json!([{ "on": "in.php", "do": { "code": code } }]));
    // The hostile text reads as a host, and what names a host that is not listed is refused.
    let serve = daemon(&sim, &["targets.allow=window.ran"]);
    let page =
        "https://hostile.example.com/<img/src=x/onerror=window.ran=1>?\"'><script>window.ran=1</script>";
    place(
        &serve,
        &json!({
            "googlekey": "6Le-<script>window.ran=1</script>-0123456789abcdefghij",
            "pageurl": page,
            "data-s": "=cmd()\u{1b}]0;title\u{7}<script>window.ran=1</script>\u{202e}",
        }),
    );
    Play::run("hostile", &serve);
    serve.end_in_peace();
}

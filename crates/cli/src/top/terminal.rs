//! The terminal: taken over while `top` runs, and restored at the end, also after an error.

use super::draw::View;
use super::feed::{AGAIN, Feed, Missing};
use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long the reader of keys waits before it checks whether it should end.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// Pictures come each second, or each third while the store does not answer: a daemon that shows none for longer hangs.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// Keys that are not handled yet.
const KEYS_MAX: usize = 64;

/// The terminal is given back when it is dropped, and also on a panic: the hook that `ratatui` sets sees to that first.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Self, CliError> {
        let taken = ratatui::try_init();
        taken
            .map(Self)
            .map_err(|error| CliError::new(Exit::NotWritten, format!("the terminal cannot be used: {error}")))
    }

    fn draw(&mut self, view: &View) -> Result<(), CliError> {
        let drawn = self.0.draw(|frame| view.draw(frame));
        drawn
            .map(drop)
            .map_err(|error| CliError::new(Exit::NotWritten, format!("the terminal is gone: {error}")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads keys on its own thread, until the receiver is dropped.
struct Keys {
    events: mpsc::Receiver<Event>,
    is_over: Arc<AtomicBool>,
}

impl Keys {
    fn listen() -> Self {
        let (sender, events) = mpsc::channel(KEYS_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let read = event::poll(KEY_WAIT).and_then(|is_there| is_there.then(event::read).transpose());
                // The terminal is gone, or the receiver is.
                let Ok(read) = read else { return };
                if read.is_some_and(|event| sender.blocking_send(event).is_err()) {
                    return;
                }
            }
        });
        Self { events, is_over }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Leave,
    Interrupt,
    Draw,
}

pub(super) fn attend(view: &mut View, event: &Event) -> Option<KeyAction> {
    let Event::Key(key) = event else {
        return matches!(event, Event::Resize(..)).then_some(KeyAction::Draw);
    };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        // In this mode the terminal makes no signal of it.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(KeyAction::Interrupt),
        KeyCode::Esc if view.has_help => {
            view.has_help = false;
            Some(KeyAction::Draw)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(KeyAction::Leave),
        KeyCode::Char('p') => {
            view.is_held = !view.is_held;
            Some(KeyAction::Draw)
        }
        KeyCode::Char('?') => {
            view.has_help = !view.has_help;
            Some(KeyAction::Draw)
        }
        _ => None,
    }
}

pub(super) async fn watch(mut feed: Feed) -> Result<Exit, CliError> {
    let mut interrupted = std::pin::pin!(Interruption::listen()?.came());
    let has_colours = std::env::var_os("NO_COLOR").is_none();
    let mut view = View { has_colours, ..View::default() };
    match feed.open().await {
        Ok(()) => {}
        // Waiting does not help: a person must fix it.
        Err(Missing::CliError(error)) if error.exit != Exit::Store => return Err(error),
        Err(missing) => view.miss(missing),
    }
    let mut screen = Screen::take()?;
    let mut keys = Keys::listen();
    let (sender, mut seen) = mpsc::channel(1);
    let mut telling = std::pin::pin!(feed.tell(sender));
    let (mut ticks, mut heard) = (tokio::time::interval(AGAIN), Instant::now());
    screen.draw(&view)?;
    loop {
        let action = tokio::select! {
            exit = &mut interrupted => return Ok(exit),
            key = keys.events.recv() => match key {
                Some(event) => attend(&mut view, &event),
                None => return Ok(Exit::Done),
            },
            () = &mut telling => return Ok(Exit::Done),
            Some(picture) = seen.recv() => {
                match picture {
                    Ok(picture) => {
                        heard = Instant::now();
                        view.show(picture);
                    }
                    Err(missing) => view.miss(missing),
                }
                Some(KeyAction::Draw)
            }
            _ = ticks.tick() => {
                let silent = heard.elapsed();
                if view.missing.is_none() && silent >= SILENT_AFTER {
                    view.miss(CliError::new(Exit::Store, "the daemon has the store and sends nothing: look at its log").into());
                }
                view.missing.is_some().then(|| {
                    view.wait(silent);
                    KeyAction::Draw
                })
            }
        };
        match action {
            Some(KeyAction::Leave) => return Ok(Exit::Done),
            Some(KeyAction::Interrupt) => return Ok(Exit::Interrupted),
            Some(KeyAction::Draw) => screen.draw(&view)?,
            None => {}
        }
    }
}

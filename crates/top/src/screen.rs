//! The terminal: taken over while `top` runs, and restored at the end, even after an error.

use crate::{Missing, TakenSnapshot, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long the reader of keys waits before it checks whether it should end.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// How long a daemon may send no snapshot before it counts as hanging. Snapshots come each second, or every three
/// seconds while the store does not answer.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// How often the age on the screen is updated while no snapshot comes.
const TICK: Duration = Duration::from_secs(1);
/// How many keys may wait to be handled.
const KEYS_MAX: usize = 64;

/// The terminal, which is restored when this is dropped. On a panic, the hook of `ratatui` restores it first.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    fn draw(&mut self, view: &View) -> io::Result<()> {
        self.0.draw(|frame| view.draw(frame)).map(drop)
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

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    Leave,
    Interrupt,
    Draw,
}

/// Handles a key, or another event of the terminal.
pub fn attend(view: &mut View, event: &Event) -> Option<KeyAction> {
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
            view.is_paused = !view.is_paused;
            Some(KeyAction::Draw)
        }
        KeyCode::Char('?') => {
            view.has_help = !view.has_help;
            Some(KeyAction::Draw)
        }
        _ => None,
    }
}

/// Shows the snapshots until the user leaves or no more come. Returns whether the user pressed Ctrl-C. The terminal
/// is restored when this future is dropped.
pub async fn watch(
    missing: Option<Missing>,
    mut snapshots: mpsc::Receiver<Result<TakenSnapshot, Missing>>,
) -> io::Result<bool> {
    let mut view = View { has_colours: std::env::var_os("NO_COLOR").is_none(), ..View::default() };
    if let Some(missing) = missing {
        view.miss(missing);
    }
    let mut screen = Screen::take()?;
    let mut keys = Keys::listen();
    let (mut ticks, mut received) = (tokio::time::interval(TICK), Instant::now());
    screen.draw(&view)?;
    loop {
        let action = tokio::select! {
            key = keys.events.recv() => match key {
                Some(event) => attend(&mut view, &event),
                None => return Ok(false),
            },
            snapshot = snapshots.recv() => {
                match snapshot {
                    Some(Ok(taken)) => {
                        received = Instant::now();
                        view.show(taken);
                    }
                    Some(Err(missing)) => view.miss(missing),
                    None => return Ok(false),
                }
                Some(KeyAction::Draw)
            }
            _ = ticks.tick() => {
                let silent = received.elapsed();
                if view.missing.is_none() && silent >= SILENT_AFTER {
                    let what = "the daemon has the store and sends nothing: look at its log";
                    view.miss(Missing::Error(what.into()));
                }
                view.missing.is_some().then(|| {
                    view.wait(silent);
                    KeyAction::Draw
                })
            }
        };
        match action {
            Some(KeyAction::Leave) => return Ok(false),
            Some(KeyAction::Interrupt) => return Ok(true),
            Some(KeyAction::Draw) => screen.draw(&view)?,
            None => {}
        }
    }
}

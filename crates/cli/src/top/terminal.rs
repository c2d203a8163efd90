//! The terminal: taken over for as long as somebody watches, and given back as it was, however that ends.

use super::Pictures;
use super::draw::View;
use crate::exit::{Exit, Trouble};
use crate::interruption::Interruption;
use crate::office::Office;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long whoever reads keys waits before he looks whether anybody still wants them.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// How long is waited before a daemon that has gone is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Keys that nobody has attended to yet.
const KEYS_MAX: usize = 64;

/// The terminal is given back when it is dropped, and also on a panic: the hook that `ratatui` sets sees to that first.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Self, Trouble> {
        let taken = ratatui::try_init();
        taken
            .map(Self)
            .map_err(|error| Trouble::new(Exit::NotWritten, format!("the terminal cannot be used: {error}")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads keys on a thread of its own, until nobody wants them.
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
                // The terminal is gone, or nobody wants it any more.
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
pub(super) enum Wish {
    Leave,
    Interrupt,
    Draw,
}

pub(super) fn attend(view: &mut View, event: &Event) -> Option<Wish> {
    let Event::Key(key) = event else {
        return matches!(event, Event::Resize(..)).then_some(Wish::Draw);
    };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        // There is nobody else to turn it into a signal.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Interrupt),
        KeyCode::Esc if view.has_help => {
            view.has_help = false;
            Some(Wish::Draw)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Leave),
        KeyCode::Char('p') => {
            view.is_held = !view.is_held;
            Some(Wish::Draw)
        }
        KeyCode::Char('?') => {
            view.has_help = !view.has_help;
            Some(Wish::Draw)
        }
        _ => None,
    }
}

pub(super) async fn watch(office: &Office, pictures: Pictures) -> Result<Exit, Trouble> {
    let interruption = Interruption::listen()
        .map_err(|error| Trouble::new(Exit::Bad, format!("signals cannot be heard: {error}")))?;
    let mut interrupted = std::pin::pin!(interruption.came());
    let mut screen = Screen::take()?;
    let mut keys = Keys::listen();
    let has_colours = std::env::var_os("NO_COLOR").is_none();
    let mut view = View { has_colours, ..View::default() };
    let mut pictures = Some(pictures);
    loop {
        let wish = tokio::select! {
            () = &mut interrupted => return Ok(Exit::Terminated),
            key = keys.events.recv() => match key {
                Some(event) => attend(&mut view, &event),
                None => return Ok(Exit::Done),
            },
            picture = next(office, &mut pictures) => {
                match picture {
                    Ok(picture) => view.show(picture),
                    Err(trouble) => view.trouble = Some(crate::output::harmless(&trouble.what)),
                }
                Some(Wish::Draw)
            }
        };
        match wish {
            Some(Wish::Leave) => return Ok(Exit::Done),
            Some(Wish::Interrupt) => return Ok(Exit::Interrupted),
            Some(Wish::Draw) => {
                let drawn = screen.0.draw(|frame| view.draw(frame));
                drawn.map_err(|error| {
                    Trouble::new(Exit::NotWritten, format!("the terminal is gone: {error}"))
                })?;
            }
            None => {}
        }
    }
}

/// The next picture. A daemon that is started anew is found again.
async fn next(office: &Office, pictures: &mut Option<Pictures>) -> Result<super::Picture, Trouble> {
    if let Some(watched) = pictures {
        if let Some(picture) = watched.next().await {
            return Ok(super::seen_from(office, picture));
        }
        *pictures = None;
        return Err(Trouble::new(Exit::Store, "the daemon has hung up; it is asked again"));
    }
    tokio::time::sleep(AGAIN).await;
    *pictures = Some(Pictures::of(office).await?);
    Err(Trouble::new(Exit::Store, "asking again"))
}

//! What is known of the terminal that the output goes to: how wide it is.

use std::io::{self, IsTerminal};

/// What is assumed of a terminal that does not say.
const WIDTH: usize = 80;
/// Less than this cannot be laid out at all.
const WIDTH_MIN: usize = 40;

/// How wide what is printed may be; no limit, if it goes to a program.
pub(crate) fn width() -> Option<usize> {
    io::stdout().is_terminal().then(|| own_width().unwrap_or(WIDTH).max(WIDTH_MIN))
}

#[cfg(unix)]
fn own_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

#[cfg(not(unix))]
fn own_width() -> Option<usize> {
    None
}

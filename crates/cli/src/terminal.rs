//! The width of the terminal that gets the output.

use std::io::{self, IsTerminal};

/// The width of a terminal that does not report it.
const WIDTH: usize = 80;
/// The smallest width with a layout.
const WIDTH_MIN: usize = 40;

/// How wide the output may be; `None` if it goes to a program.
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

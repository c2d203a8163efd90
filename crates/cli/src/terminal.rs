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

/// A text whose long lines are broken at blanks, for a terminal of this width; unchanged without one. Lines after the
/// first begin at the column `indent`. Indented lines stay as they are.
pub(crate) fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let gap = format!("\n{:indent$}", "");
    let lines = text.split('\n').map(|line| match line.starts_with(' ') {
        true => line.to_owned(),
        false => quittance_demo::wrapped(line, width.saturating_sub(indent)).join(&gap),
    });
    lines.collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_at_blanks_and_only_on_a_terminal() {
        let text = "one two three\n  an indented line stays\nfour: ";
        assert_eq!(wrapped(text, 2, Some(9)), "one two\n  three\n  an indented line stays\nfour: ");
        assert_eq!(wrapped(text, 2, None), text);
    }
}

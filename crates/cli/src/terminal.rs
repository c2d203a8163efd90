//! What is known of the terminal that somebody looks at: how wide it is, and which letters it shows.

use crate::config::Environment;
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

/// Whether more than ASCII may be drawn, as the locale says.
pub(crate) fn speaks_utf8(environment: &Environment) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| environment.get(name));
    let locale = named.into_iter().find(|locale| !locale.is_empty()).unwrap_or_default().to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_that_counts_says_which_letters_there_are() {
        let speaks = |variables: &[(&str, &str)]| speaks_utf8(&variables.iter().copied().collect());
        assert!(speaks(&[("LANG", "en_GB.UTF-8")]));
        assert!(speaks(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!speaks(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(!speaks(&[]));
    }
}

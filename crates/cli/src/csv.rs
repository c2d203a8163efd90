//! Comma-separated values that are safe: a value from outside cannot break a line, move a cursor, or be a formula in
//! a spreadsheet.

use crate::output::harmless;

pub(crate) fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| value(cell.as_ref())).collect();
    format!("{}\n", cells.join(","))
}

fn value(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = format!("{}{}", if is_formula { "'" } else { "" }, harmless(text));
    if text.contains([',', '"', ';']) || text.starts_with(' ') || text.ends_with(' ') {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// The values of one line; `None` if a quote is not closed.
pub(crate) fn read(line: &str) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells.push(cell);
    (!is_quoted).then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_a_formula_or_another_line() {
        for (text, safe) in [
            ("shop.example.com", "shop.example.com"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("\t=1", "'\\u{9}=1"),
            ("\r=1", "'\\u{d}=1"),
            ("a\nb", "a\\u{a}b"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("=a,b", "\"'=a,b\""),
        ] {
            assert_eq!(row([text]), format!("{safe}\n"), "{text:?}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let cells = ["a", "b,c", "say \"x\"", "", " d"];
        assert_eq!(read(&row(cells)).unwrap(), cells);
        assert_eq!(read("1,\"two\"\r\n").unwrap(), ["1", "two"]);
        assert_eq!(read("\"open"), None);
    }
}

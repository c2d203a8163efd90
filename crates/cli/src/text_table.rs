//! Text tables: columns as wide as needed, and colours that do not count as width.

use anstyle::Style;
use std::fmt::Write;

pub(crate) type Cell = (Style, String);

pub(crate) const PLAIN: Style = Style::new();

pub(crate) fn render<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [Cell; COLUMNS]>,
) -> String {
    let heading = headings.map(|word| (Style::new().bold(), word.to_owned()));
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].1.chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        for (at, (style, words)) in row.iter().enumerate() {
            let is_last = at + 1 == COLUMNS;
            let blank = if is_last { 0 } else { widths[at] - words.chars().count() + 2 };
            _ = write!(text, "{style}{words}{style:#}{:blank$}", "");
        }
        text.push('\n');
    }
    text
}

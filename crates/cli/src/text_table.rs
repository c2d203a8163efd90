//! Text tables: columns as wide as needed, and colours that do not count as width.

use anstyle::Style;
use std::fmt::Write;

pub(crate) const PLAIN: Style = Style::new();

/// A cell, and the heading of its column.
pub(crate) struct Cell {
    heading: &'static str,
    style: Style,
    pub(crate) text: String,
}

pub(crate) fn cell(heading: &'static str, text: impl Into<String>) -> Cell {
    styled(heading, PLAIN, text)
}

pub(crate) fn count(heading: &'static str, count: u64) -> Cell {
    cell(heading, count.to_string())
}

pub(crate) fn styled(heading: &'static str, style: Style, text: impl Into<String>) -> Cell {
    Cell { heading, style, text: text.into() }
}

/// The table of these rows; empty without a row.
pub(crate) fn render<const COLUMNS: usize>(rows: impl IntoIterator<Item = [Cell; COLUMNS]>) -> String {
    let mut rows: Vec<[Cell; COLUMNS]> = rows.into_iter().collect();
    let Some(first) = rows.first() else { return String::new() };
    let heading = first.each_ref().map(|cell| styled(cell.heading, Style::new().bold(), cell.heading));
    rows.insert(0, heading);
    let width =
        |column: usize| rows.iter().map(|row| row[column].text.chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut table = String::new();
    for row in &rows {
        for (at, Cell { style, text, .. }) in row.iter().enumerate() {
            let is_last = at + 1 == COLUMNS;
            let blank = if is_last { 0 } else { widths[at] - text.chars().count() + 2 };
            _ = write!(table, "{style}{text}{style:#}{:blank$}", "");
        }
        table.push('\n');
    }
    table
}

/// A table without colours: the first `names` columns are names, and stand to the left; the others are numbers, and
/// stand to the right.
pub(crate) fn plain_table(grid: &[Vec<String>], names: usize) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or_default();
    let width = |at: usize| {
        grid.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in grid {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            _ = match at < names {
                true => write!(line, "{gap}{cell:<width$}"),
                false => write!(line, "{gap}{cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

//! Parses Markdown for the rules: prose and fenced blocks, text in backticks, links, and table cells.

use crate::source::numbered;

/// The lines of prose, and those inside fences, each with its number.
pub(crate) struct MarkdownDocument<'a> {
    pub(crate) prose: Vec<(usize, &'a str)>,
    pub(crate) fenced: Vec<(usize, &'a str)>,
}

impl<'a> MarkdownDocument<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        let mut document = Self { prose: Vec::new(), fenced: Vec::new() };
        let mut fence: Option<&str> = None;
        for (number, line) in numbered(text) {
            let start = line.trim_start();
            match fence {
                Some(open) if start.starts_with(open) => fence = None,
                Some(_) => document.fenced.push((number, line)),
                None => match ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark)) {
                    Some(mark) => fence = Some(mark),
                    None => document.prose.push((number, line)),
                },
            }
        }
        document
    }
}

/// The texts in backticks on this line.
pub(crate) fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    let mut parts: Vec<&str> = line.split('`').collect();
    // The part after the last mark is not closed.
    parts.pop();
    parts.into_iter().skip(1).step_by(2).filter(|span| !span.is_empty())
}

/// The line without its texts in backticks. A backtick that is not closed does not count.
pub(crate) fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let last = parts.len() - 1;
    let is_prose = |(at, part): (usize, &&str)| (at % 2 == 0 || at == last).then(|| (*part).to_owned());
    parts.iter().enumerate().filter_map(is_prose).collect::<Vec<_>>().join(" ")
}

pub(crate) fn is_table_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// The targets of the links on this line, also of links defined as `[name]: target`.
pub(crate) fn links(line: &str) -> Vec<&str> {
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let inline = line.split("](").skip(1);
    inline.chain(definition.map(|(_, rest)| rest)).map(first_word).filter(|link| !link.is_empty()).collect()
}

fn first_word(rest: &str) -> &str {
    let rest = rest.trim_start_matches('<');
    &rest[..rest.find([')', '>', ' ']).unwrap_or(rest.len())]
}

/// The last cell of a table row; `None` for other lines. An escaped bar does not divide cells.
pub(crate) fn last_cell(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix('|')?;
    let row = row.strip_suffix('|').unwrap_or(row);
    let from = row.match_indices('|').rfind(|(at, _)| !row[..*at].ends_with('\\'));
    Some(from.map_or(row, |(at, _)| &row[at + 1..]).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_kept_apart() {
        let document = MarkdownDocument::read("a\n```text\nb\n~~~\n```\nc\n~~~\nd\n");
        assert_eq!(document.prose, [(1, "a"), (6, "c")]);
        assert_eq!(document.fenced, [(3, "b"), (4, "~~~"), (8, "d")]);
    }

    #[test]
    fn code_is_cut_out_of_a_line() {
        assert_eq!(without_code("a `b` c `d e`, `open"), "a   c  ,  open");
        assert_eq!(without_code("no code"), "no code");
        assert!(is_table_row("  | a |") && !is_table_row("a | b"));
    }

    #[test]
    fn spans_links_and_cells_are_found() {
        assert_eq!(in_backticks("a `b` c `d e` `open").collect::<Vec<_>>(), ["b", "d e"]);
        assert_eq!(links("see [a](b.md#c), [d](<e.md>) and [f](g \"h\")"), ["b.md#c", "e.md", "g"]);
        assert_eq!(links("[name]: ../a.md"), ["../a.md"]);
        assert!(links("a [b] (c)").is_empty());
        assert_eq!(last_cell("| a | b \\| c |"), Some("b \\| c"));
        assert_eq!(last_cell("a | b"), None);
    }
}

//! A small screen: lines without frames, the most important first, so that everything important fits on 80 by 24. If
//! even that is too much, the longest part is shortened.

use crate::TakenSnapshot;
use crate::part_text::{self as text, Tone, TonedLine};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::cmp::Reverse;

/// The column in which the text of a part begins.
const INDENT: usize = 10;
/// The mark of a part that was shortened.
const MORE: &str = " …";

/// The text of one part: rows of pieces that stay together.
struct Part {
    label: &'static str,
    rows: Vec<Vec<TonedLine>>,
}

/// A part that holds sentences. They may be wrapped between any two words, and warnings come first.
fn sentences(label: &'static str, mut lines: Vec<TonedLine>) -> Part {
    lines.sort_by_key(|(tone, _)| Reverse(*tone == Tone::Bad));
    let words = |(tone, text): TonedLine| {
        text.split_whitespace().map(|word| (tone, word.to_owned())).collect::<Vec<_>>()
    };
    Part { label, rows: lines.into_iter().map(words).collect() }
}

/// A part that holds figures. A line is never wrapped inside a figure.
fn figures(label: &'static str, lines: Vec<TonedLine>) -> Part {
    let apart = |(tone, text)| (tone, format!("{text} "));
    Part { label, rows: vec![lines.into_iter().map(apart).collect()] }
}

fn parts(taken: &TakenSnapshot) -> Vec<Part> {
    vec![
        sentences("ALERT", text::alerts(taken)),
        figures("orders", text::orders_short(taken)),
        figures("a second", text::rates_short(taken)),
        figures("took", text::took(taken)),
        figures("today", text::today_short(taken)),
        sentences("provider", text::providers(taken)),
        sentences("nodes", text::nodes(taken)),
        sentences("pools", text::pools(taken)),
    ]
}

/// Arranges pieces on lines of at most this width, each with one indent.
fn fold(
    pieces: &[TonedLine],
    indent: usize,
    width: usize,
    style: &impl Fn(Tone) -> Style,
) -> Vec<Line<'static>> {
    let fresh = || Line::from(" ".repeat(indent));
    let (mut lines, mut line) = (Vec::new(), fresh());
    for (tone, piece) in pieces {
        let span = Span::styled(piece.clone(), style(*tone));
        // What stands apart may lose the blank at the end.
        let needed = Span::raw(piece.trim_end()).width();
        if line.width() > indent && line.width() + 1 + needed > width {
            lines.push(std::mem::replace(&mut line, fresh()));
        }
        if line.width() > indent {
            line.push_span(" ");
        }
        line.push_span(span);
    }
    lines.push(line);
    lines
}

/// A sentence on as many lines as it needs.
pub(super) fn wrapped(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let words: Vec<_> = text.split_whitespace().map(|word| (Tone::Plain, word.to_owned())).collect();
    fold(&words, 0, width.into(), &|_| style)
}

/// The whole snapshot, or as much as fits.
pub(super) fn of(
    taken: &TakenSnapshot,
    width: u16,
    height: u16,
    style: impl Fn(Tone) -> Style,
) -> Vec<Line<'static>> {
    let width = usize::from(width).saturating_sub(MORE.chars().count());
    let mut parts: Vec<Vec<Line<'static>>> = parts(taken)
        .into_iter()
        .map(|Part { label, rows }| {
            let mut lines: Vec<_> = rows.iter().flat_map(|row| fold(row, INDENT, width, &style)).collect();
            if let Some(first) = lines.first_mut() {
                let bold = Style::new().add_modifier(Modifier::BOLD);
                first.spans[0] = Span::styled(format!("{label:<INDENT$}"), bold);
            }
            lines
        })
        .collect();
    let height = usize::from(height);
    while parts.iter().map(Vec::len).sum::<usize>() > height {
        let Some(longest) = parts.iter_mut().max_by_key(|lines| lines.len()).filter(|lines| lines.len() > 1)
        else {
            break;
        };
        longest.pop();
        let last = longest.last_mut().expect("one is left");
        if last.spans.last().is_some_and(|span| span.content != MORE) {
            last.push_span(MORE);
        }
    }
    parts.into_iter().flatten().take(height).collect()
}

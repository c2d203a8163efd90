//! The screen: windows beside each other on a large terminal, else [small_screen].

use crate::part_text::{self as text, Tone, TonedLine};
use crate::{Missing, TakenSnapshot, small_screen};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use std::time::Duration;

/// The least number of columns and rows for windows.
const WIDE: (u16, u16) = (100, 22);

const HELP: &str = "\
q, Esc  leave
p       pause the display, or resume it
?       this help

asked   all placements
joined  placements of an order in flight
cached  placements whose answer was there
stock   placements served from the stock
saved   what joined and cached would have cost
-       not known
~       about: the first thousand were counted

Dead letters: quittance dead list";

/// The content of the screen.
#[derive(Debug, Default)]
pub struct View {
    /// The last snapshot.
    pub taken: Option<TakenSnapshot>,
    pub is_paused: bool,
    pub has_help: bool,
    pub has_colours: bool,
    /// Why there is no new snapshot; `None` if there is one.
    pub missing: Option<Missing>,
    /// How long no new snapshot has come.
    pub silent: Duration,
}

impl View {
    pub fn show(&mut self, taken: TakenSnapshot) {
        self.missing = None;
        if self.is_paused {
            return;
        }
        self.taken = Some(taken);
    }

    pub fn miss(&mut self, missing: Missing) {
        self.missing = Some(missing);
        // What was so a second is no longer.
        self.taken.iter_mut().for_each(|taken| taken.has_rates = false);
    }

    /// Updates the screen while time passes without a snapshot.
    pub fn wait(&mut self, silent: Duration) {
        self.silent = silent;
    }

    fn style(&self, tone: Tone) -> Style {
        let colour = match tone {
            Tone::Plain => return Style::new(),
            Tone::Good => Color::Green,
            Tone::Uneasy => Color::Yellow,
            Tone::Bad => Color::Red,
        };
        // Without colours, what is bad must still stand out.
        match (self.has_colours, tone) {
            (true, _) => Style::new().fg(colour),
            (false, Tone::Bad) => Style::new().add_modifier(Modifier::BOLD),
            (false, _) => Style::new(),
        }
    }

    fn text(&self, lines: Vec<TonedLine>) -> Text<'static> {
        lines.into_iter().map(|(tone, line)| Line::styled(line, self.style(tone))).collect::<Vec<_>>().into()
    }

    fn window(&self, frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<TonedLine>) {
        let hidden = lines.len().saturating_sub(usize::from(area.height.saturating_sub(2)));
        let title = if hidden > 0 { format!(" {title}, {hidden} more ") } else { format!(" {title} ") };
        frame.render_widget(Paragraph::new(self.text(lines)).block(Block::bordered().title(title)), area);
    }

    pub fn draw(&self, frame: &mut Frame<'_>) {
        let whole = frame.area();
        let why = self
            .missing
            .as_ref()
            .map(|missing| small_screen::wrapped(&missing.words(), whole.width, self.style(Tone::Bad)));
        let why = why.unwrap_or_default();
        let why_rows = u16::try_from(why.len()).unwrap_or(u16::MAX).min(whole.height / 2);
        let rows =
            [Constraint::Length(1), Constraint::Min(0), Constraint::Length(why_rows), Constraint::Length(1)];
        let [top, middle, below, bottom] = Layout::vertical(rows).areas(whole);
        let width = usize::from(top.width);
        let (tone, heading) = match (&self.missing, &self.taken) {
            (Some(missing), taken) => text::heading_without(missing, self.silent, taken.is_some()),
            (None, Some(taken)) => text::heading(taken, width),
            (None, None) => (Tone::Plain, "quittance".into()),
        };
        let style = self.style(tone).add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(format!("{heading:<width$}")).style(style), top);
        if let Some(taken) = &self.taken {
            if whole.width >= WIDE.0 && whole.height >= WIDE.1 {
                self.wide(frame, middle, taken);
            } else {
                self.small(frame, middle, taken);
            }
        }
        // Where there is nothing else to see it is not sought at the foot.
        let below = if self.taken.is_some() { below } else { Rect { y: middle.y, ..below } };
        frame.render_widget(Paragraph::new(why), below);
        let paused = if self.is_paused { "  PAUSED" } else { "" };
        frame.render_widget(Paragraph::new(format!("q leave  p pause  ? help{paused}")), bottom);
        if self.has_help {
            self.help(frame, middle);
        }
    }

    fn wide(&self, frame: &mut Frame<'_>, area: Rect, taken: &TakenSnapshot) {
        let rows = Layout::vertical([Constraint::Length(9), Constraint::Min(4), Constraint::Min(4)]);
        let [first, second, third] = rows.areas(area);
        let columns = [Constraint::Length(24), Constraint::Min(40), Constraint::Length(34)];
        let [orders, throughput, today] = Layout::horizontal(columns).areas(first);
        self.window(frame, orders, "orders", text::orders(taken));
        self.window(frame, throughput, "placements", text::throughput(taken));
        self.window(frame, today, "today", text::today(taken));
        let halves = || Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]);
        let [providers, pools] = halves().areas(second);
        self.window(frame, providers, "providers", text::providers(taken));
        self.window(frame, pools, "pools", text::pools(taken));
        let [nodes, alerts] = halves().areas(third);
        self.window(frame, nodes, "nodes", text::nodes(taken));
        self.alerts(frame, alerts, taken);
    }

    fn small(&self, frame: &mut Frame<'_>, area: Rect, taken: &TakenSnapshot) {
        let shown = small_screen::of(taken, area.width, area.height, |tone| self.style(tone));
        frame.render_widget(Paragraph::new(shown), area);
    }

    fn alerts(&self, frame: &mut Frame<'_>, area: Rect, taken: &TakenSnapshot) {
        let lines = self.text(text::alerts(taken));
        let block = Block::bordered().title(" alerts ");
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), area);
    }

    fn help(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines = u16::try_from(HELP.lines().count()).unwrap_or(u16::MAX);
        let (width, height) = (54.min(area.width), (lines + 2).min(area.height));
        let at = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        frame.render_widget(Clear, at);
        frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" help ")), at);
    }
}

//! The screen: everything beside each other where there is room, and below each other where there is not.

use super::picture::Picture;
use super::words::{self, Tone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline, Wrap};
use std::collections::VecDeque;

/// From how many columns on there is room for two.
const WIDE: u16 = 100;
/// How many seconds the curve goes back.
pub(super) const CURVE_MAX: usize = 300;

const HELP: &str = "\
q, Esc  leave
p       hold the picture, and let it go on
?       this help

asked   placements, whatever became of them
joined  had the same order in flight already
cached  had its answer already
stock   were served from the shelf
saved   what joined and cached would have cost

Dead letters: quittance dead list";

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) picture: Picture,
    /// How much was asked a second, the newest last.
    pub(super) curve: VecDeque<u64>,
    pub(super) is_held: bool,
    pub(super) has_help: bool,
    pub(super) has_colours: bool,
    /// Why there is nothing new, if there is not.
    pub(super) trouble: Option<String>,
}

impl View {
    pub(super) fn show(&mut self, picture: Picture) {
        self.trouble = None;
        if self.is_held {
            return;
        }
        if self.curve.len() >= CURVE_MAX {
            self.curve.pop_front();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a curve needs no fractions"
        )]
        self.curve.push_back(picture.rate("asked").max(0.0).round() as u64);
        self.picture = picture;
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

    fn text(&self, lines: Vec<words::Line>) -> Text<'static> {
        lines.into_iter().map(|(tone, line)| Line::styled(line, self.style(tone))).collect::<Vec<_>>().into()
    }

    fn window(&self, frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<words::Line>) {
        let hidden = lines.len().saturating_sub(usize::from(area.height.saturating_sub(2)));
        let title = if hidden > 0 { format!(" {title}, {hidden} more ") } else { format!(" {title} ") };
        frame.render_widget(Paragraph::new(self.text(lines)).block(Block::bordered().title(title)), area);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]);
        let [top, middle, bottom] = areas.areas(frame.area());
        let (tone, heading) = words::heading(&self.picture);
        let width = usize::from(top.width);
        let style = self.style(tone).add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(format!("{heading:<width$}")).style(style), top);
        if middle.width >= WIDE {
            self.wide(frame, middle);
        } else {
            self.narrow(frame, middle);
        }
        let state = match (&self.trouble, self.is_held) {
            (Some(why), _) => format!("  {why}"),
            (None, true) => "  HELD".into(),
            (None, false) => String::new(),
        };
        frame.render_widget(Paragraph::new(format!("q leave  p hold  ? help{state}")), bottom);
        if self.has_help {
            self.help(frame, middle);
        }
    }

    fn wide(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = Layout::vertical([Constraint::Length(9), Constraint::Min(4), Constraint::Min(4)]);
        let [first, second, third] = rows.areas(area);
        let columns = [Constraint::Length(24), Constraint::Min(40), Constraint::Length(34)];
        let [orders, throughput, today] = Layout::horizontal(columns).areas(first);
        let picture = &self.picture;
        self.window(frame, orders, "orders", words::orders(picture));
        self.throughput(frame, throughput);
        self.window(frame, today, "today", words::today(picture));
        let halves = || Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]);
        let [providers, pools] = halves().areas(second);
        self.window(frame, providers, "providers", words::providers(picture));
        self.window(frame, pools, "pools", words::pools(picture));
        let [nodes, alerts] = halves().areas(third);
        self.window(frame, nodes, "nodes", words::nodes(picture));
        self.alerts(frame, alerts);
    }

    /// What matters most comes first: there may be no room for the rest.
    fn narrow(&self, frame: &mut Frame<'_>, area: Rect) {
        let picture = &self.picture;
        let alerts =
            if picture.standing().next().is_some() { Constraint::Min(4) } else { Constraint::Length(0) };
        let rows = [
            alerts,
            Constraint::Length(8),
            Constraint::Length(7),
            Constraint::Length(9),
            Constraint::Min(3),
            Constraint::Min(3),
            Constraint::Min(3),
        ];
        let [alerts, orders, throughput, today, providers, pools, nodes] = Layout::vertical(rows).areas(area);
        if alerts.height > 0 {
            self.alerts(frame, alerts);
        }
        self.window(frame, orders, "orders", words::orders(picture));
        self.throughput(frame, throughput);
        self.window(frame, today, "today", words::today(picture));
        self.window(frame, providers, "providers", words::providers(picture));
        self.window(frame, pools, "pools", words::pools(picture));
        self.window(frame, nodes, "nodes", words::nodes(picture));
    }

    fn throughput(&self, frame: &mut Frame<'_>, area: Rect) {
        let block = Block::bordered().title(" asked a second ");
        let inside = block.inner(area);
        frame.render_widget(block, area);
        let [curve, lines] = Layout::vertical([Constraint::Min(1), Constraint::Length(3)]).areas(inside);
        let from = self.curve.len().saturating_sub(usize::from(curve.width));
        let shown: Vec<u64> = self.curve.iter().skip(from).copied().collect();
        frame.render_widget(Sparkline::default().data(&shown).style(self.style(Tone::Good)), curve);
        frame.render_widget(Paragraph::new(self.text(words::throughput(&self.picture))), lines);
    }

    fn alerts(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines = self.text(words::alerts(&self.picture));
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

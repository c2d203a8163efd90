//! The printed table. Every line has a measurement, its comparison in that run, and their ratio. A goal is always
//! about the ratio, so that a slow machine can reach it, too.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchUnit {
    PerSecond,
    Nanos,
    Micros,
    Seconds,
    Bytes,
    /// A plain number, such as fsyncs for each order.
    Count,
}

impl BenchUnit {
    const fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Nanos => "ns",
            Self::Micros => "us",
            Self::Seconds => "s",
            Self::Bytes => "B",
            Self::Count => "",
        }
    }

    fn write(self, amount: f64) -> String {
        let unit = self.name();
        match self {
            Self::PerSecond | Self::Nanos | Self::Bytes => format!("{} {unit}", thousands(amount)),
            Self::Micros => format!("{amount:.1} {unit}"),
            Self::Seconds => format!("{amount:.2} {unit}"),
            Self::Count => format!("{amount:.4}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

impl Aim {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(bound) => ratio >= bound,
            Self::AtMost(bound) => ratio <= bound,
        }
    }

    fn write(self) -> String {
        match self {
            Self::AtLeast(bound) => format!(">= {bound:.2}"),
            Self::AtMost(bound) => format!("<= {bound:.2}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BenchRow {
    pub(crate) section: &'static str,
    pub(crate) what: String,
    pub(crate) measured: f64,
    pub(crate) unit: BenchUnit,
    /// The comparison, in the unit of the measurement.
    pub(crate) against: Option<(f64, &'static str)>,
    pub(crate) aim: Option<Aim>,
}

impl BenchRow {
    pub(crate) fn new(
        section: &'static str,
        what: impl Into<String>,
        measured: f64,
        unit: BenchUnit,
    ) -> Self {
        Self { section, what: what.into(), measured, unit, against: None, aim: None }
    }

    pub(crate) const fn against(mut self, amount: f64, what: &'static str) -> Self {
        self.against = Some((amount, what));
        self
    }

    pub(crate) const fn aim(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.against.map(|(against, _)| self.measured / against)
    }

    /// Whether the goal was reached; `None` if there is none.
    fn verdict(&self) -> Option<&'static str> {
        let is_met = self.aim?.is_met(self.ratio()?);
        Some(if is_met { "PASS" } else { "miss" })
    }

    fn cells(&self) -> [String; 6] {
        let against = |(amount, what)| format!("{} {what}", self.unit.write(amount));
        [
            self.what.clone(),
            self.unit.write(self.measured),
            self.against.map(against).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            self.aim.map(Aim::write).unwrap_or_default(),
            self.verdict().unwrap_or_default().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "section": self.section,
            "what": self.what,
            "measured": self.measured,
            "unit": self.unit.name(),
            "against": self.against.map(|(amount, what)| json!({"amount": amount, "what": what})),
            "ratio": self.ratio(),
            "aim": self.aim.map(Aim::write),
            "verdict": self.verdict(),
        })
    }
}

pub(crate) fn thousands(amount: f64) -> String {
    let digits = format!("{amount:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

const HEADINGS: [&str; 6] = ["what", "measured", "against", "ratio", "aim", ""];

/// The table as text: one block for each section, with equal columns in all blocks.
pub(crate) fn text(rows: &[BenchRow]) -> String {
    let cells: Vec<[String; 6]> = rows.iter().map(BenchRow::cells).collect();
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let widest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        widest.max(HEADINGS[column].len())
    });
    let line = |row: &[String; 6]| {
        let [what, measured, against, ratio, aim, verdict] = row;
        let [w0, w1, w2, w3, w4, _] = widths;
        let line =
            format!("  {what:w0$}  {measured:>w1$}  {against:>w2$}  {ratio:>w3$}  {aim:w4$}  {verdict}");
        format!("{}\n", line.trim_end())
    };
    let mut output = line(&HEADINGS.map(str::to_owned));
    let mut section = "";
    for (row, cells) in rows.iter().zip(&cells) {
        if row.section != section {
            section = row.section;
            output.push_str(&format!("\n{section}\n"));
        }
        output.push_str(&line(cells));
    }
    output
}

/// The table as one JSON array.
pub(crate) fn json(rows: &[BenchRow]) -> String {
    let rows: Vec<Value> = rows.iter().map(BenchRow::json).collect();
    format!("{:#}\n", Value::Array(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<BenchRow> {
        vec![
            BenchRow::new("accepts", "64 callers", 31_000.4, BenchUnit::PerSecond)
                .against(62_000.0, "bare")
                .aim(Aim::AtLeast(0.5)),
            BenchRow::new("reopen", "1,000,000 orders", 6.0, BenchUnit::Seconds)
                .against(5.0, "allowed")
                .aim(Aim::AtMost(1.0)),
            BenchRow::new("reopen", "fsyncs", 0.25, BenchUnit::Count),
        ]
    }

    #[test]
    fn a_table_shows_ratio_aim_and_verdict_in_columns() {
        let output = text(&rows());
        let expected = "  \
  what               measured         against  ratio  aim

accepts
  64 callers        31,000 /s  62,000 /s bare   0.50  >= 0.50  PASS

reopen
  1,000,000 orders     6.00 s  5.00 s allowed   1.20  <= 1.00  miss
  fsyncs               0.2500
";
        assert_eq!(output, expected);
    }

    #[test]
    fn json_says_the_same() {
        let output: Value = serde_json::from_str(&json(&rows())).unwrap();
        assert_eq!(output[0]["verdict"], "PASS");
        assert_eq!(output[1]["ratio"], 1.2);
        assert_eq!(output[1]["against"]["what"], "allowed");
        assert!(output[2]["verdict"].is_null() && output[2]["ratio"].is_null());
    }
}

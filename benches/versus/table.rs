//! The table: one row per measure, one column per contestant, how many times better we are, and the goal.

use std::fmt::Write as _;

/// One measure of one contestant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub typical: f64,
    /// The worst sample, where that says something.
    pub worst: Option<f64>,
}

/// What is to be reached, in the unit of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    AtMost(f64),
    /// The same for the worst sample.
    WorstAtMost(f64),
    /// So many times better than redis-sentinel.
    TimesBetter(f64),
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Smaller,
    Larger,
    /// They are not held against each other.
    Neither,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub what: String,
    pub better: Better,
    /// One per contestant, watchfire first; None: not measured.
    pub cells: Vec<Option<Cell>>,
    pub goals: Vec<Goal>,
}

impl Row {
    /// A cost or a time: smaller is better. The unit belongs into `what`.
    #[must_use]
    pub fn cost(what: impl Into<String>, cells: Vec<Option<Cell>>) -> Row {
        Row { what: what.into(), better: Better::Smaller, cells, goals: Vec::new() }
    }

    #[must_use]
    pub fn rate(what: impl Into<String>, cells: Vec<Option<Cell>>) -> Row {
        Row { better: Better::Larger, ..Row::cost(what, cells) }
    }

    /// A count or a ratio that says something about one contestant, and nothing about two.
    #[must_use]
    pub fn shape(what: impl Into<String>, cells: Vec<Option<Cell>>) -> Row {
        Row { better: Better::Neither, ..Row::cost(what, cells) }
    }

    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Row {
        self.goals.push(goal);
        self
    }

    /// How many times better the first contestant is than the one at `reference`.
    #[must_use]
    pub fn times_better(&self, reference: Option<usize>) -> Option<f64> {
        let ours = self.cells.first().copied().flatten()?.typical;
        let theirs = self.cells.get(reference?).copied().flatten()?.typical;
        let (better, worse) = match self.better {
            Better::Smaller => (ours, theirs),
            Better::Larger => (theirs, ours),
            Better::Neither => return None,
        };
        // A time below the resolution of the measure is no reason for a ratio without bounds.
        (worse > 0.0).then(|| worse / better.max(0.1))
    }

    /// None: there is no goal, or nothing to hold it against.
    #[must_use]
    pub fn is_met(&self, reference: Option<usize>) -> Option<bool> {
        let ours = self.cells.first().copied().flatten()?;
        let mut verdict = None;
        for goal in &self.goals {
            let met = match goal {
                Goal::AtMost(most) => Some(ours.typical <= *most),
                Goal::WorstAtMost(most) => ours.worst.map(|worst| worst <= *most),
                Goal::TimesBetter(least) => self.times_better(reference).map(|times| times >= *least),
            };
            verdict = match (verdict, met) {
                (verdict, None) => verdict,
                (verdict, Some(met)) => Some(verdict.unwrap_or(true) && met),
            };
        }
        verdict
    }

    fn goal_text(&self) -> String {
        let texts: Vec<String> = self
            .goals
            .iter()
            .map(|goal| match goal {
                Goal::AtMost(most) => format!("≤ {}", number(*most)),
                Goal::WorstAtMost(most) => format!("(≤ {})", number(*most)),
                Goal::TimesBetter(least) => format!("≥ {}×", number(*least)),
            })
            .collect();
        texts.join(" ")
    }
}

/// As many digits as mean something, thousands apart.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    let digits = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), String::new()), |(whole, rest)| {
        let rest = rest.trim_end_matches('0');
        (whole, if rest.is_empty() { String::new() } else { format!(".{rest}") })
    });
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + &rest
}

/// A Markdown table whose columns stand below each other as plain text as well; with the goals or without.
#[must_use]
pub fn render(contestants: &[String], reference: Option<usize>, rows: &[Row], goals: bool) -> String {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut head = vec!["median (worst)".to_string()];
    head.extend(contestants.iter().cloned());
    head.extend(["better".to_string(), "goal".to_string(), "met".to_string()]);
    lines.push(head);
    for row in rows {
        let mut line = vec![row.what.clone()];
        for cell in &row.cells {
            line.push(match cell {
                None => "–".to_string(),
                Some(Cell { typical, worst: None }) => number(*typical),
                Some(Cell { typical, worst: Some(worst) }) => format!("{} ({})", number(*typical), number(*worst)),
            });
        }
        line.push(row.times_better(reference).map(|times| format!("{}×", number(times))).unwrap_or_default());
        line.push(row.goal_text());
        line.push(match row.is_met(reference) {
            None => String::new(),
            Some(true) => "yes".to_string(),
            Some(false) => "no".to_string(),
        });
        lines.push(line);
    }
    let columns = lines[0].len() - if goals { 0 } else { 2 };
    // Figures to the right, words to the left.
    let figures = 1..contestants.len() + 2;
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, (text, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - text.chars().count());
            let _ =
                if figures.contains(&column) { write!(out, "| {pad}{text} ") } else { write!(out, "| {text}{pad} ") };
        }
        out.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if figures.contains(&column) { ":" } else { "-" };
                let _ = write!(out, "|{}{end}", "-".repeat(width + 1));
            }
            out.push_str("|\n");
        }
    }
    out
}

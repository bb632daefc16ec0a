//! The rows as CSV and as Markdown.

use std::fmt::Write as _;

use crate::lab::compare::Row;
use crate::lab::measure::Estimate;

/// One line per row, every figure with the ends of its interval.
pub fn csv(rows: &[Row]) -> String {
    let mut text = "family,skill,policy,tasks,infeasible".to_owned();
    for measure in MEASURES {
        let _ = write!(text, ",{0},{0}_low,{0}_high", measure.0);
    }
    text.push('\n');
    for row in rows {
        let m = &row.measures;
        let policy = row.policy.replace('"', "\"\"");
        let _ = write!(
            text,
            "{},{},\"{policy}\",{},{}",
            row.family, row.skill, m.tasks, m.infeasible
        );
        for (_, read) in MEASURES {
            let Estimate { value, low, high } = read(row);
            let _ = write!(text, ",{value:.6},{low:.6},{high:.6}");
        }
        text.push('\n');
    }
    text
}

type Read = fn(&Row) -> Estimate;

/// Every measure by its name.
pub const MEASURES: [(&str, Read); 8] = [
    ("solved", |row| row.measures.solved),
    ("partial", |row| row.measures.partial),
    ("false", |row| row.measures.falsely),
    ("rounds", |row| row.measures.rounds),
    ("sequential_calls", |row| row.measures.sequential),
    ("calls", |row| row.measures.calls),
    ("calls_on_infeasible", |row| row.measures.wasted),
    ("regret", |row| row.measures.regret),
];

/// A table per family: a line per policy, all skills beside one another.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = String::new();
    for family in distinct(rows.iter().map(|row| row.family)) {
        let here: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
        let skills = distinct(here.iter().map(|row| row.skill.to_string()));
        for skill in skills {
            let _ = writeln!(
                text,
                "### {family}, skill {skill}\n\n| policy | solved | in part | false | rounds | calls in sequence | all calls | regret |\n|---|---|---|---|---|---|---|---|"
            );
            for row in here.iter().filter(|row| row.skill.to_string() == skill) {
                let m = &row.measures;
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} | {} | {} |",
                    row.policy,
                    percent(m.solved),
                    percent(m.partial),
                    percent(m.falsely),
                    number(m.rounds, 2),
                    number(m.sequential, 1),
                    number(m.calls, 1),
                    number(m.regret, 3),
                );
            }
            text.push('\n');
        }
    }
    text
}

/// In percent with half the width of the interval.
pub fn percent(estimate: Estimate) -> String {
    format!(
        "{:.1} ± {:.1} %",
        100.0 * estimate.value,
        50.0 * (estimate.high - estimate.low)
    )
}

fn number(estimate: Estimate, digits: usize) -> String {
    format!(
        "{:.digits$} ± {:.digits$}",
        estimate.value,
        0.5 * (estimate.high - estimate.low)
    )
}

/// Each once, in order.
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

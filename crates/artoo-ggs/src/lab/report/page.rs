//! One page that holds everything: no script, nothing fetched from elsewhere.

use std::fmt::Write as _;

use super::plots;
use super::text::{MEASURES, distinct, percent};
use crate::lab::compare::Row;

const STYLE: &str = "body{font:15px/1.45 sans-serif;margin:2em auto;max-width:1280px;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:2px 8px;text-align:right}\
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}";

/// The page; `how` says by which command the rows were made.
pub fn page(rows: &[Row], how: &str) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>The controller's laboratory</title>\n<style>{STYLE}</style>\n\
         <h1>The controller's laboratory</h1>\n<p>Made by <code>{}</code>. Intervals are of 95 %. What the families and policies are is \
         written in docs/controller-lab.md.</p>\n",
        escaped(how)
    );
    let families = distinct(rows.iter().map(|row| row.family));
    let skills = distinct(rows.iter().map(|row| row.skill.to_string()));
    for skill in skills.iter().filter_map(|skill| skill.parse::<f64>().ok()) {
        let _ = write!(html, "<h2>Skill {skill}</h2>\n{}\n", plots::regrets(rows, skill));
        if let Some(family) = families.last() {
            let _ = writeln!(html, "{}", plots::trade(rows, family, skill));
        }
    }
    for family in families {
        let _ = write!(
            html,
            "<h2>{}</h2>\n{}\n",
            escaped(family),
            plots::outcomes(rows, family)
        );
        table(&mut html, rows, family);
    }
    html.push_str("</html>\n");
    html
}

fn table(html: &mut String, rows: &[Row], family: &str) {
    html.push_str("<table><tr><th>policy<th>skill");
    for (name, _) in MEASURES {
        let _ = write!(html, "<th>{}", name.replace('_', " "));
    }
    for row in rows.iter().filter(|row| row.family == family) {
        let _ = write!(html, "<tr><td>{}<td>{}", escaped(&row.policy), row.skill);
        for (name, read) in MEASURES {
            let estimate = read(row);
            let _ = match name {
                "solved" | "partial" | "false" => write!(html, "<td>{}", percent(estimate)),
                _ => write!(
                    html,
                    "<td>{:.2} ± {:.2}",
                    estimate.value,
                    0.5 * (estimate.high - estimate.low)
                ),
            };
        }
    }
    html.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

//! `docs/controller.md` and `docs/loss-curve.svg`: what is generated in them is up to date.
//!
//! `UPDATE_DOCS=1 cargo test -p artoo-ggs --test ggs doc` writes both.

use std::fmt::Write as _;

use artoo_ggs::explain::{Decided, Measured};
use artoo_ggs::{explain, table};

use crate::explain::journal;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");

/// Compares a file with what it should be, or writes it.
fn hold(name: &str, wanted: &str) {
    let path = format!("{DOCS}{name}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == wanted,
        "docs/{name} is stale: run UPDATE_DOCS=1 cargo test -p artoo-ggs --test ggs doc"
    );
}

/// The page with the text between two markers replaced.
fn between(page: &str, name: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- {name}: generated -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = page.split_once(&begin).expect("the marker is there");
    let (_, after) = rest.split_once(&end).expect("its end is there");
    format!("{before}{begin}{text}{end}{after}")
}

#[test]
fn the_page_of_the_controller_is_up_to_date() {
    let mut rows = String::from("| cell | ∇L | D | P | Ω | macro-state | urgency |\n|---|---|---|---|---|---|---|\n");
    for row in table() {
        let urgency = serde_json::to_value(row.urgency).unwrap();
        writeln!(
            rows,
            "| {} | {} | {} | {} | {} | `{}` | {} |",
            row.cell,
            row.grad_l.replace('|', "\\|"),
            row.d,
            row.p,
            row.omega,
            row.macro_state,
            urgency.as_str().unwrap()
        )
        .unwrap();
    }
    let (params, envelopes) = journal();
    let words: Vec<_> = explain(&params, &envelopes)
        .iter()
        .map(|one| one.in_words(&params))
        .collect();
    let words = format!("```text\n{}\n```\n", words.join("\n\n"));
    let page = std::fs::read_to_string(format!("{DOCS}controller.md")).unwrap();
    hold(
        "controller.md",
        &between(&between(&page, "table", &rows), "decisions", &words),
    );
}

/// What a line of the picture shows.
type Value = fn(&Measured) -> f64;

/// Where a value of the loss lies in the picture: 0 at the bottom, 1 at the top.
fn y(value: f64) -> f64 {
    220.0 - 180.0 * value
}

#[test]
fn the_picture_of_the_loss_is_up_to_date() {
    let (params, envelopes) = journal();
    let points: Vec<_> = explain(&params, &envelopes)
        .into_iter()
        .filter_map(|one| Some((one.measured?, one.decision?)))
        .collect();
    assert!(points.len() > 1, "a curve needs two points");
    let x = |n: usize| 120.0 + 320.0 * n as f64 / (points.len() - 1) as f64;
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 270\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>The loss of a real task, decision by decision</title>\n\
         <rect width=\"600\" height=\"270\" fill=\"white\"/>\n",
    );
    for tenths in [0, 2, 4, 6, 8, 10] {
        let value = f64::from(tenths) / 10.0;
        writeln!(
            svg,
            "<line x1=\"60\" x2=\"540\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#ddd\"/><text x=\"52\" y=\"{1:.1}\" text-anchor=\"end\">{value:.1}</text>",
            y(value),
            y(value) + 4.0
        )
        .unwrap();
    }
    let lines: [(&str, &str, Value); 4] = [
        ("L", "#c0392b", |m| m.loss.l.get()),
        ("D", "#2471a3", |m| m.loss.d.get()),
        ("P", "#7d3c98", |m| m.loss.p.get()),
        ("Ω", "#888888", |m| m.loss.omega.get()),
    ];
    for (row, (name, colour, value)) in lines.into_iter().enumerate() {
        let path: Vec<_> = points
            .iter()
            .enumerate()
            .map(|(n, (measured, _))| format!("{:.1},{:.1}", x(n), y(value(measured))))
            .collect();
        let width = if row == 0 { 3 } else { 1 };
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\
             <text x=\"{}\" y=\"20\" fill=\"{colour}\">{name}</text>",
            path.join(" "),
            500 + 25 * row
        )
        .unwrap();
    }
    for (n, (measured, decision)) in points.iter().enumerate() {
        let name = match decision {
            Decided::Direct(directive) => directive.name().to_owned(),
            Decided::End(ending, _) => serde_json::to_value(ending).unwrap().as_str().unwrap().to_owned(),
        };
        writeln!(
            svg,
            "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"4\" fill=\"#c0392b\"/>\
             <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">L = {3:.3}</text>\
             <text x=\"{0:.1}\" y=\"242\" text-anchor=\"middle\">{4}. {name}</text>",
            x(n),
            y(measured.loss.l.get()),
            y(measured.loss.l.get()) - 10.0,
            measured.loss.l.get(),
            n + 1
        )
        .unwrap();
    }
    svg.push_str(
        "<text x=\"300\" y=\"262\" text-anchor=\"middle\">decisions of the controller, in order</text>\n</svg>\n",
    );
    hold("loss-curve.svg", &svg);
}

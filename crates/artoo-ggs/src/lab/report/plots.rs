//! Pictures as SVG without scripts.
//!
//! Owns what is drawn. Text stands in the fonts of whoever looks; sizes are in pixels.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::text::distinct;
use crate::lab::compare::Row;
use crate::lab::tune::sensitivity::Sweep;

const SOLVED: RGBColor = RGBColor(46, 125, 50);
const PARTIAL: RGBColor = RGBColor(144, 202, 249);
const FALSE: RGBColor = RGBColor(198, 40, 40);
const INK: RGBColor = RGBColor(40, 40, 40);
const PALE: RGBColor = RGBColor(225, 225, 225);
const LINE_HEIGHT: i32 = 24;
const LABEL: i32 = 210;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A picture; a drawing into memory does not fail, and where it did, the picture says so.
fn drawn(width: u32, height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let failed = {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        area.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&area))
            .and_then(|()| area.present().map_err(Into::into))
    };
    match failed {
        Ok(()) => svg,
        Err(error) => format!("<p>no picture: {error}</p>"),
    }
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), height: i32, anchor: HPos) -> Drawn {
    let style = TextStyle::from(("sans-serif", height))
        .color(&INK)
        .pos(Pos::new(anchor, VPos::Center));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

fn bar(area: &Area<'_>, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Drawn {
    Ok(area.draw(&Rectangle::new([from, to], color.filled()))?)
}

/// What became of the tasks of one family, a bar per policy and skill: solved, in part, false; whiskers are the interval of solved.
pub fn outcomes(rows: &[Row], family: &str) -> String {
    let here: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
    let skills = distinct(here.iter().map(|row| row.skill.to_string()));
    let policies = distinct(here.iter().map(|row| row.policy.as_str()));
    let width = 300_i32;
    let full = LABEL + (width + 30) * as_i32(skills.len());
    let height = 70 + LINE_HEIGHT * as_i32(policies.len());
    drawn(full.unsigned_abs(), height.unsigned_abs(), |area| {
        for (skill, column) in skills.iter().zip(0_i32..) {
            let left = LABEL + column * (width + 30);
            write(area, &format!("{family}, skill {skill}"), (left, 14), 14, HPos::Left)?;
            for (policy, line) in policies.iter().zip(0_i32..) {
                let top = 32 + line * LINE_HEIGHT;
                if column == 0 {
                    write(area, policy, (LABEL - 8, top + 9), 13, HPos::Right)?;
                }
                let found = here
                    .iter()
                    .find(|row| row.policy == *policy && row.skill.to_string() == *skill);
                let Some(row) = found else { continue };
                let m = &row.measures;
                bar(area, (left, top), (left + width, top + 18), PALE)?;
                let mut x = left;
                for (share, color) in [
                    (m.solved.value, SOLVED),
                    (m.partial.value, PARTIAL),
                    (m.falsely.value, FALSE),
                ] {
                    let end = x + pixels(share, width);
                    bar(area, (x, top), (end, top + 18), color)?;
                    x = end;
                }
                let (low, high) = (left + pixels(m.solved.low, width), left + pixels(m.solved.high, width));
                area.draw(&PathElement::new([(low, top + 9), (high, top + 9)], INK))?;
                write(
                    area,
                    &format!("{:.0} %", 100.0 * m.solved.value),
                    (left + width + 2, top + 9),
                    11,
                    HPos::Left,
                )?;
            }
        }
        let legend = 32 + LINE_HEIGHT * as_i32(policies.len()) + 14;
        for (text, color, column) in [
            ("solved", SOLVED, 0),
            ("in part, what is missing is named", PARTIAL, 1),
            ("false", FALSE, 2),
        ] {
            let x = LABEL + column * 240 - i32::from(column == 1) * 140 - i32::from(column == 2) * 120;
            bar(area, (x, legend - 6), (x + 12, legend + 6), color)?;
            write(area, text, (x + 18, legend), 12, HPos::Left)?;
        }
        Ok(())
    })
}

/// Solved against calls in sequence, a point per policy; one skill.
pub fn trade(rows: &[Row], family: &str, skill: f64) -> String {
    let here: Vec<&Row> = rows
        .iter()
        .filter(|row| row.family == family && (row.skill - skill).abs() < 1e-9)
        .collect();
    let most = here
        .iter()
        .map(|row| row.measures.sequential.value)
        .fold(10.0, f64::max)
        * 1.25;
    drawn(760, 420, |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(
                format!("{family}, skill {skill}: what it costs and what it brings"),
                ("sans-serif", 15),
            )
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..most, 0.0..1.0)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("model calls one after the other")
            .y_desc("share solved")
            .draw()?;
        for row in &here {
            let at = (row.measures.sequential.value, row.measures.solved.value);
            chart.draw_series([Circle::new(at, 4, SOLVED.filled())])?;
            let style = TextStyle::from(("sans-serif", 11)).color(&INK);
            chart.draw_series([Text::new(
                row.policy.clone(),
                (at.0 + most * 0.008, at.1 + 0.012),
                style,
            )])?;
        }
        Ok(())
    })
}

/// Regret to the oracle by family and policy, as a map; one skill. Pale is good.
pub fn regrets(rows: &[Row], skill: f64) -> String {
    let here: Vec<&Row> = rows.iter().filter(|row| (row.skill - skill).abs() < 1e-9).collect();
    let families = distinct(here.iter().map(|row| row.family));
    let policies = distinct(here.iter().map(|row| row.policy.as_str()));
    let cell = 74_i32;
    let width = LABEL + cell * as_i32(families.len()) + 20;
    let height = 130 + LINE_HEIGHT * as_i32(policies.len());
    drawn(width.unsigned_abs(), height.unsigned_abs(), |area| {
        write(
            area,
            &format!("regret to the oracle, skill {skill}"),
            (LABEL, 14),
            15,
            HPos::Left,
        )?;
        for (family, column) in families.iter().zip(0_i32..) {
            // Long names stand on two lines.
            for (part, line) in family.split('-').zip(0_i32..) {
                write(
                    area,
                    part,
                    (LABEL + column * cell + cell / 2, 40 + 14 * line),
                    11,
                    HPos::Center,
                )?;
            }
            for (policy, line) in policies.iter().zip(0_i32..) {
                let top = 76 + line * LINE_HEIGHT;
                if column == 0 {
                    write(area, policy, (LABEL - 8, top + 11), 13, HPos::Right)?;
                }
                if let Some(row) = here.iter().find(|row| row.family == *family && row.policy == *policy) {
                    let regret = row.measures.regret.value;
                    let fade = (1.0 - regret.clamp(0.0, 1.2) / 1.2) * 205.0;
                    let color = RGBColor(250, 50 + fade as u8, 45 + fade as u8);
                    let left = LABEL + column * cell;
                    bar(area, (left, top), (left + cell - 2, top + LINE_HEIGHT - 2), color)?;
                    write(
                        area,
                        &format!("{regret:.2}"),
                        (left + cell / 2, top + 11),
                        11,
                        HPos::Center,
                    )?;
                }
            }
        }
        Ok(())
    })
}

/// The worth along each parameter, nine small pictures; the line marks where the parameter stands.
pub fn sensitivities(sweeps: &[Sweep], title: &str) -> String {
    let all = || sweeps.iter().flat_map(|sweep| &sweep.points).map(|point| point.1);
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    let margin = ((high - low) * 0.05).max(0.01);
    drawn(960, 720, |area| {
        let area = area.titled(title, ("sans-serif", 16))?;
        for (sweep, area) in sweeps.iter().zip(area.split_evenly((3, 3))) {
            let mut chart = ChartBuilder::on(&area)
                .caption(format!("{} = {}", sweep.parameter, sweep.at), ("sans-serif", 14))
                .margin(8)
                .x_label_area_size(22)
                .y_label_area_size(42)
                .build_cartesian_2d(0.0..1.0, low - margin..high + margin)?;
            chart
                .configure_mesh()
                .light_line_style(WHITE)
                .x_labels(6)
                .y_labels(5)
                .draw()?;
            chart.draw_series(LineSeries::new(sweep.points.iter().copied(), SOLVED.stroke_width(2)))?;
            chart.draw_series(LineSeries::new([(sweep.at, low), (sweep.at, high)], FALSE))?;
        }
        Ok(())
    })
}

fn pixels(share: f64, width: i32) -> i32 {
    (share * f64::from(width)).round() as i32
}

fn as_i32(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX / 100)
}

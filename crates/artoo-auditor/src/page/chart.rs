//! Drawings of numbers in a row, as SVG (design §16).
//!
//! Owns scales and shapes. Colours are classes, so that the page decides.

use std::fmt::Write as _;

use super::sheet::escaped;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 26.0;

/// One quantity.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is.
    pub name: &'static str,
    /// Its colour: `a` to `e`.
    pub class: &'static str,
    /// From left to right; `None` where there is nothing to measure.
    pub values: Vec<Option<f64>>,
}

/// How it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bars upon each other.
    Stacked,
    /// A line for each.
    Curves,
    /// A line of what has come together so far for each.
    Sums,
}

/// One drawing.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How.
    pub shape: Shape,
    /// Of equal length.
    pub series: Vec<Series>,
    /// Words at both ends of the horizontal axis.
    pub ends: (String, String),
}

impl Chart {
    /// The drawing with its title and its key, in a frame.
    pub fn card(&self) -> String {
        let title = escaped(&self.title);
        format!(
            "<section class=\"card\"><h2>{title}</h2>{}{}</section>",
            self.key(),
            self.draw()
        )
    }

    /// Which colour is what.
    fn key(&self) -> String {
        let names = self
            .series
            .iter()
            .map(|s| format!("<span><i class=\"{}\"></i>{}</span>", s.class, s.name));
        format!("<div class=\"key\">{}</div>", names.collect::<String>())
    }

    fn draw(&self) -> String {
        let values: Vec<Vec<Option<f64>>> = self.series.iter().map(|s| self.values(s)).collect();
        let count = values.first().map_or(0, Vec::len);
        if count == 0 {
            return "<p>Nothing was seen yet.</p>".to_owned();
        }
        let top = ceiling(self.highest(&values));
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.title)
        );
        self.scale(&mut svg, top);
        match self.shape {
            Shape::Stacked => self.bars(&mut svg, &values, top, count),
            Shape::Curves | Shape::Sums => {
                for (series, values) in self.series.iter().zip(&values) {
                    curve(&mut svg, series.class, values, top, count);
                }
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn values(&self, series: &Series) -> Vec<Option<f64>> {
        let mut sum = 0.0;
        let value = |value: &Option<f64>| {
            if self.shape == Shape::Sums {
                sum += value.unwrap_or(0.0);
                return Some(sum);
            }
            *value
        };
        series.values.iter().map(value).collect()
    }

    fn highest(&self, values: &[Vec<Option<f64>>]) -> f64 {
        let at = |i: usize| values.iter().map(move |v| v.get(i).copied().flatten().unwrap_or(0.0));
        let count = values.first().map_or(0, Vec::len);
        let highest = |i| {
            if self.shape == Shape::Stacked {
                at(i).sum::<f64>()
            } else {
                at(i).fold(0.0, f64::max)
            }
        };
        (0..count).map(highest).fold(0.0, f64::max)
    }

    /// Lines and words of the axes.
    fn scale(&self, svg: &mut String, top: f64) {
        for part in [0.0, 0.5, 1.0] {
            let at = y(top * part, top);
            let _ = write!(
                svg,
                "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                number(top * part)
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{LEFT}\" y=\"{0}\">{1}</text><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3}</text>",
            HEIGHT - 6.0,
            escaped(&self.ends.0),
            WIDTH - RIGHT,
            escaped(&self.ends.1)
        );
    }

    fn bars(&self, svg: &mut String, values: &[Vec<Option<f64>>], top: f64, count: usize) {
        // Few bars are not made as wide as the page.
        let step = (WIDTH - LEFT - RIGHT) / count as f64;
        let width = (step * 0.86).min(36.0);
        for i in 0..count {
            let mut base = 0.0;
            for (series, values) in self.series.iter().zip(values) {
                let value = values.get(i).copied().flatten().unwrap_or(0.0);
                if value <= 0.0 {
                    continue;
                }
                let (x, y) = (LEFT + step * i as f64 + (step - width) / 2.0, y(base + value, top));
                let height = (self::y(base, top) - y).max(0.6);
                let (class, name, shown) = (series.class, series.name, number(value));
                let _ = write!(
                    svg,
                    "<rect class=\"bar {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{shown} {name}</title></rect>"
                );
                base += value;
            }
        }
    }
}

fn y(value: f64, top: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value / top).clamp(0.0, 1.0))
}

fn curve(svg: &mut String, class: &str, values: &[Option<f64>], top: f64, count: usize) {
    let step = (WIDTH - LEFT - RIGHT) / count as f64;
    let points: Vec<(f64, f64, f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(i, value)| value.map(|v| (LEFT + step * (i as f64 + 0.5), y(v, top), v)))
        .collect();
    let line: Vec<String> = points.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        svg,
        "<polyline class=\"curve {class}\" style=\"fill:none\" points=\"{}\"/>",
        line.join(" ")
    );
    for (x, y, value) in points {
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\"><title>{}</title></circle>",
            number(value)
        );
    }
}

/// The next round number.
fn ceiling(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 10.0]
        .map(|factor| factor * unit)
        .into_iter()
        .find(|round| *round >= value * (1.0 - 1e-9))
        .unwrap_or(value)
}

fn number(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.1}M", value / 1e6)
    } else if value >= 1e4 {
        format!("{:.0}k", value / 1e3)
    } else if value >= 10.0 || (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

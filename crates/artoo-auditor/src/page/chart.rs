//! Drawings of counts over time, as SVG (design §16).
//!
//! Owns scales and shapes. Colours are classes, so that the page decides.

use std::fmt::Write as _;

use artoo_protocol::{Millis, Timestamp};

use crate::history::{Bucket, History};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

/// One quantity.
pub struct Series {
    pub name: &'static str,
    pub class: &'static str,
    /// `None` where there is nothing to measure.
    pub of: fn(&Bucket) -> Option<f64>,
}

/// How it is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Bars upon each other.
    Stacked,
    /// A line for each.
    Curves,
    /// A line of what has come together so far for each.
    Sums,
}

/// One drawing.
pub struct Chart {
    pub title: &'static str,
    pub shape: Shape,
    pub series: Vec<Series>,
}

impl Chart {
    /// Which colour is what.
    pub fn key(&self) -> String {
        let names = self
            .series
            .iter()
            .map(|s| format!("<span><i class=\"{}\"></i>{}</span>", s.class, s.name));
        format!("<div class=\"key\">{}</div>", names.collect::<String>())
    }

    /// The drawing.
    pub fn draw(&self, history: &History) -> String {
        let Some(start) = history.start.filter(|_| !history.buckets.is_empty()) else {
            return "<p>Nothing was seen yet.</p>".to_owned();
        };
        let values: Vec<Vec<Option<f64>>> = self.series.iter().map(|s| self.values(s, &history.buckets)).collect();
        let top = ceiling(self.highest(&values));
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            self.title
        );
        scale(&mut svg, top, start, history);
        let count = history.buckets.len();
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

    fn values(&self, series: &Series, buckets: &[Bucket]) -> Vec<Option<f64>> {
        let mut sum = 0.0;
        let value = |bucket: &Bucket| {
            let value = (series.of)(bucket);
            if self.shape == Shape::Sums {
                sum += value.unwrap_or(0.0);
                return Some(sum);
            }
            value
        };
        buckets.iter().map(value).collect()
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

/// Lines and words of the axes.
fn scale(svg: &mut String, top: f64, start: Timestamp, history: &History) {
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
    let count = i64::try_from(history.buckets.len()).unwrap_or(0);
    let span = Millis(u64::try_from(history.width_ms.saturating_mul(count)).unwrap_or(0));
    let end = start.plus(span);
    let day = span.0 > 86_400_000;
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{0}\">{1}</text><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3}</text>",
        HEIGHT - 6.0,
        words(start, day),
        WIDTH - RIGHT,
        words(end, day)
    );
}

/// The day, or the minute where all is of about one day.
fn words(at: Timestamp, day: bool) -> String {
    let text = at.to_string();
    let shown = if day { text.get(..10) } else { text.get(..16) };
    shown.unwrap_or(&text).replace('T', " ")
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

//! A picture of one group: attention and decision over time, and what happened, as SVG (design §15).
//!
//! Owns: the picture, drawn from records alone. Must not know: the store, files.

use crate::potentials::{ATTENTION_THRESHOLD, DECISION_THRESHOLD, Later, living, potentials};
use artoo_protocol::message::{Level, Megram};
use artoo_protocol::{Millis, Timestamp};
use std::fmt::Write as _;

/// Points of a curve.
const SAMPLES: u64 = 320;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 744.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 300.0;
/// Most events that are drawn.
const EVENTS_MAX: usize = 400;

/// The potentials of a group between two moments. `megrams` are all its records, also those that no longer count; what came after
/// a moment is not known at it.
pub fn svg(title: &str, megrams: &[Megram], from: Timestamp, to: Timestamp) -> String {
    let span = to.since(from).0.max(1);
    let moments: Vec<Timestamp> = (0..=SAMPLES).map(|i| from.plus(Millis(span / SAMPLES * i))).collect();
    let curve: Vec<(f64, f64)> = moments.iter().map(|at| at_moment(megrams, *at)).collect();
    let (low, high) = curve
        .iter()
        .fold((-1.0_f64, 1.0_f64), |(low, high), (attention, decision)| {
            (low.min(*decision), high.max(*attention).max(*decision))
        });
    let frame = Frame { low, high, from, span };
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    frame.levels(&mut page);
    frame.curve(
        &mut page,
        "#1f6feb",
        &moments,
        curve.iter().map(|(attention, _)| *attention),
    );
    frame.curve(
        &mut page,
        "#b35900",
        &moments,
        curve.iter().map(|(_, decision)| *decision),
    );
    frame.events(&mut page, megrams, to);
    let _ = writeln!(
        page,
        "<text x=\"{LEFT}\" y=\"324\">{}</text><text x=\"{RIGHT}\" y=\"324\" text-anchor=\"end\">{}</text>\n\
         <text x=\"300\" y=\"324\" fill=\"#1f6feb\">attention</text><text x=\"372\" y=\"324\" fill=\"#b35900\">decision</text>\n\
         <text x=\"440\" y=\"324\" fill=\"#555\">dots: events, squares: rules</text>\n</svg>",
        day(from),
        day(to)
    );
    page
}

/// Attention and decision as they were.
fn at_moment(megrams: &[Megram], at: Timestamp) -> (f64, f64) {
    let known: Vec<Megram> = megrams
        .iter()
        .filter(|megram| megram.created_at <= at)
        .cloned()
        .collect();
    let sums = potentials(&living(known), at, Later::LeftOut);
    (sums.attention.get(), sums.decision.get())
}

struct Frame {
    low: f64,
    high: f64,
    from: Timestamp,
    span: u64,
}

impl Frame {
    fn x(&self, at: Timestamp) -> f64 {
        LEFT + (RIGHT - LEFT) * at.since(self.from).0 as f64 / self.span as f64
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low)
    }

    /// The thresholds that lie within the picture, each with its value.
    fn levels(&self, page: &mut String) {
        for level in [
            0.0,
            ATTENTION_THRESHOLD,
            DECISION_THRESHOLD,
            -DECISION_THRESHOLD,
            3.0,
            -3.0,
            5.0,
        ] {
            if level < self.low || level > self.high {
                continue;
            }
            let (y, dash) = (self.y(level), if level == 0.0 { "none" } else { "3 4" });
            let _ = writeln!(
                page,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#bbb\" stroke-dasharray=\"{dash}\"/>\
                 <text x=\"46\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"9\" fill=\"#777\">{level}</text>",
                y + 3.0
            );
        }
    }

    fn curve(&self, page: &mut String, colour: &str, moments: &[Timestamp], values: impl Iterator<Item = f64>) {
        let points: Vec<String> = moments
            .iter()
            .zip(values)
            .map(|(at, value)| format!("{:.1},{:.1}", self.x(*at), self.y(value)))
            .collect();
        let _ = writeln!(
            page,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" points=\"{}\"/>",
            points.join(" ")
        );
    }

    fn events(&self, page: &mut String, megrams: &[Megram], to: Timestamp) {
        let shown = megrams
            .iter()
            .filter(|megram| megram.created_at >= self.from && megram.created_at <= to);
        for megram in shown.take(EVENTS_MAX) {
            let (x, y) = (self.x(megram.created_at), self.y(0.0));
            let colour = if megram.sigma.get() < 0.0 { "#c62828" } else { "#2e7d32" };
            let _ = match megram.level {
                Level::M | Level::T => {
                    writeln!(page, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")
                }
                // Knowledge keeps the clock of its event: it would lie under the event's own dot.
                Level::K => Ok(()),
                Level::C => writeln!(
                    page,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" fill=\"{colour}\"/>",
                    x - 4.5,
                    y - 4.5
                ),
            };
        }
    }
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn escaped(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            other => other.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dreamer::{Action, carry};
    use crate::dreamer::{Group, Params, View, choose};
    use crate::entry::Entry;
    use crate::testing::{at, megram};
    use crate::view::GroupKey;
    use artoo_protocol::MegramId;
    use artoo_protocol::message::MacroState;
    use std::collections::BTreeSet;

    fn day_of(days: u64) -> Timestamp {
        at().plus(Millis(days * 86_400_000))
    }

    fn event(number: usize, day: u64, state: MacroState, f: f64, sigma: f64) -> Megram {
        let mut event = megram(&format!("{number:02}"), "intent:count_the_files", "env:local", f, sigma);
        (event.state, event.created_at) = (state, day_of(day));
        event.content = format!("lesson {number}");
        event
    }

    /// What the Dreamer makes of a group on a day, rules worded at once.
    fn dreamt(all: &mut Vec<Megram>, now: Timestamp) -> Vec<Action> {
        let group = Group {
            key: GroupKey::new("intent:count_the_files", "env:local"),
            entries: living(all.clone()).iter().map(Entry::of).collect(),
            known: BTreeSet::new(),
        };
        let actions = choose(&View { groups: vec![group] }, now, &Params::default());
        let find = |all: &[Megram], id: &MegramId| all.iter().find(|megram| megram.id == *id).cloned().unwrap();
        for action in &actions {
            match action {
                Action::Demote { id, .. } => all.push(carry::demoted(&find(all, id), now)),
                Action::Consolidate(consolidation) => all.push(carry::rule(consolidation, &[], "the rule", now)),
                Action::Forget { .. } | Action::Promote { .. } | Action::Fold { .. } => {}
            }
        }
        actions
    }

    /// The story of docs/memory.md: six good endings in ten days earn a rule, months pass, three failures take it away.
    fn story() -> Vec<Megram> {
        let mut all = Vec::new();
        for (number, day) in [0, 1, 2, 3, 4, 4].into_iter().enumerate() {
            all.push(event(number, day, MacroState::Accept, 0.9, 1.0));
        }
        assert!(
            (at_moment(&all, day_of(4)).0 - 4.982).abs() < 0.001,
            "a little too little"
        );
        all.push(event(6, 5, MacroState::Accept, 0.9, 1.0));
        assert!(
            (at_moment(&all, day_of(5)).0 - 5.639).abs() < 0.001,
            "{:?}",
            at_moment(&all, day_of(5))
        );
        let made = dreamt(&mut all, day_of(5).plus(Millis(12 * 3_600_000)));
        assert!(matches!(made.last(), Some(Action::Consolidate(_))), "{made:?}");
        assert_eq!(at_moment(&all, day_of(60)), (1.0, 1.0), "a rule does not fade");
        all.push(event(7, 60, MacroState::Abandon, 0.95, -1.0));
        assert!(
            dreamt(&mut all, day_of(60)).is_empty(),
            "one failure does not suffice: 1 − 0.95 = 0.05"
        );
        all.push(event(8, 61, MacroState::Abandon, 0.95, -1.0));
        let broke = dreamt(&mut all, day_of(61));
        assert!(matches!(broke.as_slice(), [Action::Demote { .. }, ..]), "{broke:?}");
        let (attention, decision) = at_moment(&all, day_of(61));
        assert!(
            (attention - 2.854).abs() < 0.001 && (decision + 0.854).abs() < 0.001,
            "{attention} {decision}"
        );
        let (attention, decision) = at_moment(&all, day_of(96));
        assert!(
            (attention - 0.496).abs() < 0.001 && (decision + 0.148).abs() < 0.001,
            "{attention} {decision}"
        );
        all
    }

    #[test]
    fn the_picture_in_the_documentation_is_up_to_date() {
        let drawn = svg("intent:count_the_files · env:local", &story(), at(), day_of(120));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/potentials.svg");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &drawn).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == drawn,
            "docs/potentials.svg is stale: run UPDATE_DOCS=1 cargo test -p artoo-memory --lib"
        );
    }

    #[test]
    fn an_empty_group_and_a_hostile_name_make_a_sound_picture() {
        let drawn = svg("<script>&\u{7}\"", &[], at(), at());
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"), "{drawn}");
        assert!(
            !drawn.contains("<script>") && !drawn.contains('\u{7}') && !drawn.contains("NaN"),
            "{drawn}"
        );
    }
}

//! The display's form: a tree of the plan, a line for the round, a line for the whole (design §21).
//!
//! Owns layout only. Pure: a state, a size and a time give lines, none of them wider or more than the size allows.

use artoo_protocol::message::{Directive, PlanDirective, Verdict};
use artoo_protocol::{Millis, Role, Timestamp};

use super::line::{Line, Tone};
use super::view::{State, Step, View};

/// Rows of the tree that stays when a round is over; a plan has fewer, unless somebody raised the limit.
const SETTLED_ROWS: usize = 400;
/// What turns while something runs.
const TURNING: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Where it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters of a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// What changes from picture to picture although nothing has happened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// Hard limit of the running time.
    pub budget: Millis,
    /// Counts pictures.
    pub turn: usize,
}

/// The picture while a task runs; it fills at most all rows but one.
pub fn running(view: &View, size: Size, moment: Moment) -> Vec<Line> {
    // The last column stays free: some terminals break the line behind it.
    let columns = size.columns.saturating_sub(1);
    let rows = size.rows.saturating_sub(2);
    let turning = TURNING.get(moment.turn % TURNING.len()).copied().unwrap_or_default();
    let mut lines = tree(view, turning, rows);
    lines.truncate(rows);
    lines.push(status(view, turning, moment, columns));
    lines.into_iter().map(|line| line.cut(columns)).collect()
}

/// The picture of a round that is over.
pub fn over(view: &View, size: Size) -> Vec<Line> {
    let mut lines = tree(view, "·", SETTLED_ROWS);
    lines.extend(view.directive.as_ref().map(|directive| judged(view.round, directive)));
    let columns = size.columns.saturating_sub(1);
    lines.into_iter().map(|line| line.cut(columns)).collect()
}

fn tree(view: &View, turning: &str, rows: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(
        view.intent
            .as_ref()
            .map(|intent| Line::default().with(Tone::Strong, intent)),
    );
    let shown = chosen(&view.steps, rows.saturating_sub(lines.len()));
    let mut left = rows.saturating_sub(lines.len() + shown.len());
    let hidden = view.steps.len() - shown.len();
    left = left.saturating_sub(usize::from(hidden > 0));
    for step in shown {
        lines.push(headline(step, turning));
        let details = details(step);
        // All of a step or nothing: half of its criteria would look like all of them.
        if details.len() <= left {
            left -= details.len();
            lines.extend(details);
        }
    }
    if hidden > 0 {
        lines.push(Line::default().with(
            Tone::Faint,
            &format!("  … {hidden} more; of all: {}", counts(&view.steps)),
        ));
    }
    lines
}

/// The steps that fit, in the order of the plan; what failed and what runs goes before what waits and what is done.
fn chosen(steps: &[Step], rows: usize) -> Vec<&Step> {
    if steps.len() <= rows {
        return steps.iter().collect();
    }
    let mut order: Vec<(State, usize)> = steps.iter().enumerate().map(|(n, step)| (step.state, n)).collect();
    order.sort_unstable();
    order.truncate(rows.saturating_sub(1));
    let mut places: Vec<usize> = order.into_iter().map(|(_, n)| n).collect();
    places.sort_unstable();
    places.into_iter().filter_map(|n| steps.get(n)).collect()
}

fn counts(steps: &[Step]) -> String {
    let names = [
        (State::Matched, "matched"),
        (State::Carried, "carried over"),
        (State::Running, "running"),
        (State::Waiting, "waiting"),
        (State::Failed, "failed"),
        (State::NotRun, "not run"),
    ];
    let counted = names.iter().filter_map(|(state, name)| {
        let count = steps.iter().filter(|step| step.state == *state).count();
        (count > 0).then(|| format!("{count} {name}"))
    });
    counted.collect::<Vec<_>>().join(", ")
}

fn headline(step: &Step, turning: &str) -> Line {
    let (mark, tone) = match step.state {
        State::Failed => ("✗", Tone::Bad),
        State::Running => (turning, Tone::Busy),
        State::Waiting => ("·", Tone::Faint),
        State::NotRun => ("-", Tone::Faint),
        State::Matched | State::Carried => ("✓", Tone::Good),
    };
    let line = Line::default().with(
        Tone::Faint,
        &match step.sequence {
            0 => "  ".to_owned(),
            n => format!("{n:<2}"),
        },
    );
    let line = line.with(tone, &format!("{mark} ")).with(Tone::Plain, &step.intent);
    let met = step
        .criteria
        .iter()
        .filter(|(_, verdict)| *verdict == Some(Verdict::Pass))
        .count();
    let all = step.criteria.len();
    match step.state {
        State::Carried => line.with(Tone::Faint, "  stands from an earlier round"),
        State::NotRun => line.with(Tone::Faint, "  not run"),
        State::Matched | State::Failed => line.with(Tone::Faint, &format!("  {met} of {all} criteria{}", tries(step))),
        State::Running => line.with(Tone::Faint, &tries(step)),
        State::Waiting => line,
    }
}

fn tries(step: &Step) -> String {
    if step.attempt > 1 {
        format!("  attempt {}", step.attempt)
    } else {
        String::new()
    }
}

/// The criteria of what runs or failed, with what is wrong.
fn details(step: &Step) -> Vec<Line> {
    if !matches!(step.state, State::Running | State::Failed) {
        return Vec::new();
    }
    let criteria = step.criteria.iter().map(|(criterion, verdict)| {
        let (mark, tone) = match verdict {
            Some(Verdict::Pass) => ("✓", Tone::Good),
            Some(Verdict::Fail) => ("✗", Tone::Bad),
            None => ("·", Tone::Faint),
        };
        Line::default()
            .with(tone, &format!("     {mark} "))
            .with(Tone::Faint, criterion)
    });
    let trouble = step.trouble.iter();
    let trouble = trouble.map(|why| Line::default().with(Tone::Bad, "     → ").with(Tone::Plain, why));
    criteria.chain(trouble).collect()
}

fn judged(round: u32, directive: &PlanDirective) -> Line {
    let signals = format!(
        "round {round}: D {:.2} P {:.2} Ω {:.2} ∇L {:+.2}  ",
        directive.loss.d.get(),
        directive.loss.p.get(),
        directive.loss.omega.get(),
        directive.grad_l.get()
    );
    Line::default()
        .with(Tone::Faint, &signals)
        .with(
            Tone::Strong,
            &arrow(directive.prev_directive.name(), directive.directive),
        )
        .with(Tone::Faint, &format!("  {}", directive.rationale))
}

fn arrow(from: &str, to: Directive) -> String {
    format!("{from}→{}", to.name())
}

/// Who does what, time, calls, tokens and money; what does not fit is left out from the end.
fn status(view: &View, turning: &str, moment: Moment, columns: usize) -> Line {
    let mut parts = vec![format!("{turning} {}", activity(view))];
    parts.push(format!("{} of {}", span(view.elapsed(moment.now)), span(moment.budget)));
    if view.round > 1 {
        parts.push(format!("round {}", view.round));
    }
    if view.calls > 0 {
        parts.push(format!("{} calls", view.calls));
    }
    if view.tokens > 0 {
        parts.push(format!("{} tokens", thousands(view.tokens)));
    }
    if view.cost > 0.0 {
        parts.push(format!("{:.4}", view.cost));
    }
    while parts.len() > 1 && Line::default().with(Tone::Busy, &parts.join(" · ")).width() > columns {
        parts.pop();
    }
    Line::default().with(Tone::Busy, &parts.join(" · "))
}

/// What the roles wait for a model to do, else what the plan's state says.
fn activity(view: &View) -> String {
    let words = [
        (Role::R1, "understanding"),
        (Role::R2, "planning"),
        (Role::R3, "working"),
        (Role::R4a, "checking"),
        (Role::R4b, "judging the whole"),
    ];
    let busy = words.iter().filter_map(|(role, word)| {
        let calls = view.asking.iter().filter(|(asking, _)| asking == role).count();
        match calls {
            0 => None,
            1 => Some((*word).to_owned()),
            n => Some(format!("{word} ×{n}")),
        }
    });
    let busy: Vec<String> = busy.collect();
    let running = view.steps.iter().filter(|step| step.state == State::Running).count();
    match (busy.is_empty(), running) {
        (false, _) => busy.join(", "),
        (true, 0) => "thinking".to_owned(),
        (true, 1) => "working".to_owned(),
        (true, n) => format!("working ×{n}"),
    }
}

fn span(span: Millis) -> String {
    let seconds = span.0 / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// `4.1 k`, `1.2 M`.
#[expect(clippy::cast_precision_loss, reason = "for the eye")]
fn thousands(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{:.1} k", count as f64 / 1e3),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}

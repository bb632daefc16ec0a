//! The medium loop's sensor for one task: collect → checks → model → one decision a round (design §11).
//!
//! Owns the states of a round and what each needs to go on. A round is decided once.

use artoo_protocol::message::{
    Check, DispatchManifest, FailureClass, Mode, OutcomeSummary, ReplanRequest, SubTaskOutcome, VerdictSource,
};
use artoo_protocol::overdue::PlanClock;
use artoo_protocol::stopwatch::Stopwatch;
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Answer, CallId, Millis, Timestamp};
use serde_json::Value;

use super::merge::{is_blank, merged};
use super::prompt::{self, Prompts};
use super::round::{Gate, Round, corrections, failed, gap_words, recommendation};
use super::{Config, Effect};
use crate::decided::{Decided, Pending};
use crate::evidence::{class_of, environment_failed};
use crate::panel::Panel;
use crate::verdicts;

/// At most so many paths that a task made are remembered.
const MADE_MAX: usize = 2_000;

/// What R4b keeps of a task.
#[derive(Debug)]
pub(super) struct TaskState {
    next_call: CallId,
    watch: Stopwatch,
    replans_sent: u32,
    made: Vec<String>,
    round: Round,
    stage: Stage,
}

/// Where the present round stands.
#[derive(Debug)]
enum Stage {
    /// Outcomes are awaited.
    Collecting,
    /// Machine checks on task criteria are running.
    Checking(Gate, Decided, Pending),
    /// The model is merging, and judging what is left, a second one perhaps beside it.
    Judging(Decided, Panel),
    /// The decision is out.
    Done,
}

/// What a step may use.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) prompts: &'a Prompts,
    pub(super) now: Timestamp,
}

impl TaskState {
    pub(super) fn new(manifest: DispatchManifest, config: &Config) -> Self {
        Self {
            next_call: CallId(1),
            watch: Stopwatch::start(manifest.started_at),
            replans_sent: 0,
            made: Vec::new(),
            round: Round::new(manifest, config.judging_time),
            stage: Stage::Collecting,
        }
    }

    /// A plan was dispatched: it replaces the present round, unless it is that round's own or an older one.
    pub(super) fn dispatched(&mut self, manifest: DispatchManifest, context: &Context<'_>) -> Vec<Effect> {
        if !self.round.is_of(&manifest) && manifest.round >= self.round.manifest.round {
            self.round = self.round.followed_by(manifest, context.config.judging_time);
            self.stage = Stage::Collecting;
        }
        self.look(context)
    }

    /// A person was asked, or has answered; waiting is not the task's time.
    pub(super) fn waiting(&mut self, request: &str, waits: bool, stamp: Timestamp) {
        if waits {
            self.watch.pause(request, stamp);
        } else {
            self.watch.resume(request, stamp);
        }
        self.round.clock.waiting(request, waits, stamp);
    }

    /// Another process has taken the task up.
    pub(super) fn away(&mut self, away: Millis) {
        self.watch.away(away);
        self.round.clock.away(away);
    }

    /// When an outcome that is still missing counts as failed; `None` where none is awaited or none has a deadline.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Collecting => self.round.deadline(),
            Stage::Checking(..) | Stage::Judging(..) | Stage::Done => None,
        }
    }

    /// Time has passed: what is overdue counts as failed and is not waited for any longer.
    pub(super) fn woken(&mut self, context: &Context<'_>) -> Vec<Effect> {
        if matches!(self.stage, Stage::Collecting) {
            self.round.give_up_overdue(PlanClock::heard_until(context.now));
        }
        self.look(context)
    }

    /// A subtask's outcome, said at this moment. One that comes too late finds its subtask given up: R2, which heard it too,
    /// goes by the same rule.
    pub(super) fn concluded(
        &mut self,
        outcome: SubTaskOutcome,
        stamp: Timestamp,
        context: &Context<'_>,
    ) -> Vec<Effect> {
        let touched = outcome.tool_calls.iter().flat_map(|call| &call.touched);
        for path in touched.chain(&outcome.made) {
            if self.made.len() < MADE_MAX && !self.made.contains(path) {
                self.made.push(path.clone());
            }
        }
        if matches!(self.stage, Stage::Collecting) {
            self.round.give_up_overdue(stamp);
            self.round.note(outcome, stamp);
        }
        self.look(context)
    }

    pub(super) fn answered(&mut self, call: CallId, answer: Answer, context: &Context<'_>) -> Vec<Effect> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Checking(gate, mut decided, mut pending) => {
                if let Some(at) = pending.take(call) {
                    self.note_check(&mut decided, at, answer);
                }
                if pending.is_empty() {
                    self.checked(gate, decided, context)
                } else {
                    self.stage = Stage::Checking(gate, decided, pending);
                    Vec::new()
                }
            }
            Stage::Judging(decided, mut panel) => {
                panel.note(call, answer);
                if panel.is_complete() {
                    self.judged(decided, panel, context)
                } else {
                    self.stage = Stage::Judging(decided, panel);
                    Vec::new()
                }
            }
            unchanged @ (Stage::Collecting | Stage::Done) => {
                self.stage = unchanged;
                Vec::new()
            }
        }
    }

    /// Goes on when the gate has opened: rules and machine checks on the task criteria first.
    fn look(&mut self, context: &Context<'_>) -> Vec<Effect> {
        if !matches!(self.stage, Stage::Collecting) {
            return Vec::new();
        }
        let Some(gate) = self.round.gate() else {
            return Vec::new();
        };
        let calls = self.round.matched_calls();
        let criteria = &self.round.manifest.task_criteria;
        let mut decided = Decided::default();
        for (at, criterion) in criteria.iter().enumerate() {
            let judged = criterion.check.is_none() && gate == Gate::AllMatched;
            if judged && criterion.mode == Mode::Verifiable && calls.is_empty() {
                let evidence = "no tool ran in the whole task, so nothing but words says that it holds";
                let verdict = verdicts::fail(criterion, FailureClass::Logical, VerdictSource::Rule, evidence);
                decided.insert(at, verdict);
            }
        }
        let about = |check: &Check| CheckRequest {
            check: check.clone(),
            tool_calls: calls.clone(),
            made: self.made.clone(),
            given: self.round.manifest.intent.clone(),
            written: Vec::new(),
        };
        let (pending, requests) = Pending::start(criteria, &decided, &mut self.next_call, about);
        if pending.is_empty() {
            return self.checked(gate, decided, context);
        }
        self.stage = Stage::Checking(gate, decided, pending);
        let task_id = &self.round.manifest.task_id;
        let check = |(call, request)| Effect::Check {
            task_id: task_id.clone(),
            call,
            request,
        };
        requests.into_iter().map(check).collect()
    }

    fn note_check(&self, decided: &mut Decided, at: usize, answer: Answer) {
        let class = class_of(&self.round.matched_calls());
        // Whatever the check reported is in its verdict, which goes to the controller and with it to the planner.
        let _ = decided.note_check(&self.round.manifest.task_criteria, at, answer, class);
    }

    /// Code has said what it can: a gap goes out at once, and only a task without one is shown to a model.
    fn checked(&mut self, gate: Gate, decided: Decided, context: &Context<'_>) -> Vec<Effect> {
        if gate == Gate::SomeFailed || decided.any_fail() {
            return self.replan(decided, context);
        }
        let manifest = &self.round.manifest;
        let open = decided.open(&manifest.task_criteria);
        let outcomes = self.round.outcomes();
        if open.is_empty() {
            let output = merged(&outcomes);
            return self.accept(decided, None, output, context);
        }
        let judges = (context.config.judges, context.config.judge);
        let (panel, requests) = Panel::seat(
            judges,
            &manifest.task_criteria,
            open,
            &mut self.next_call,
            |tier, asked| prompt::request(tier, context.prompts, &manifest.intent, &outcomes, asked),
        );
        let merge = |(call, request)| Effect::Merge {
            task_id: manifest.task_id.clone(),
            call,
            request,
        };
        let effects = requests.into_iter().map(merge).collect();
        self.stage = Stage::Judging(decided, panel);
        effects
    }

    /// The judges have answered: every verdict a pass, or a rejection.
    fn judged(&mut self, mut decided: Decided, panel: Panel, context: &Context<'_>) -> Vec<Effect> {
        let own = environment_failed(&self.round.matched_calls()).then_some(FailureClass::Environmental);
        let value = panel
            .decide(&self.round.manifest.task_criteria, own, &mut decided)
            .value;
        if decided.any_fail() {
            return self.replan(decided, context);
        }
        let by_model = value.get("merged_output").cloned().unwrap_or_default();
        let output = if is_blank(&by_model) {
            merged(&self.round.outcomes())
        } else {
            by_model
        };
        let summary = value.get("summary").and_then(Value::as_str).map(|s| one_line(s, 1_000));
        self.accept(decided, summary, output, context)
    }

    fn accept(
        &mut self,
        decided: Decided,
        summary: Option<String>,
        merged_output: Value,
        context: &Context<'_>,
    ) -> Vec<Effect> {
        self.stage = Stage::Done;
        let manifest = &self.round.manifest;
        let outcomes = self.round.outcomes();
        let plain = || {
            let criteria: usize = outcomes.iter().map(|o| o.criteria_verdicts.len()).sum::<usize>() + decided.len();
            format!(
                "Done: {} Criteria shown to hold: {criteria}.",
                sentence(&manifest.intent)
            )
        };
        vec![Effect::Accept(Box::new(OutcomeSummary {
            task_id: manifest.task_id.clone(),
            slug: manifest.slug.clone(),
            intent: manifest.intent.clone(),
            summary: summary.filter(|s| !s.is_empty()).unwrap_or_else(plain),
            merged_output,
            elapsed_ms: self.watch.elapsed(context.now),
            task_verdicts: decided.into_verdicts(),
            outcomes,
        }))]
    }

    fn replan(&mut self, decided: Decided, context: &Context<'_>) -> Vec<Effect> {
        self.stage = Stage::Done;
        let manifest = &self.round.manifest;
        let outcomes = self.round.outcomes();
        let replans_used_up = self.replans_sent >= context.config.max_replans;
        self.replans_sent = self.replans_sent.saturating_add(1);
        let mut request = ReplanRequest {
            task_id: manifest.task_id.clone(),
            slug: manifest.slug.clone(),
            intent: manifest.intent.clone(),
            gap_summary: String::new(),
            failed_subtasks: failed(&outcomes).map(|o| o.subtask_id.clone()).collect(),
            correction_count: corrections(&outcomes),
            elapsed_ms: self.watch.elapsed(context.now),
            task_verdicts: decided.into_verdicts(),
            merged_output: merged(&outcomes),
            recommendation: recommendation(&outcomes, replans_used_up),
            outcomes,
        };
        request.gap_summary = gap_words(&request);
        vec![Effect::Replan(Box::new(request))]
    }
}

/// The intent as a sentence of its own.
fn sentence(intent: &str) -> String {
    let line = one_line(&head_tail(intent, 300), 320);
    if line.ends_with(['.', '!', '?', '。', '！', '？']) {
        line
    } else {
        format!("{line}.")
    }
}

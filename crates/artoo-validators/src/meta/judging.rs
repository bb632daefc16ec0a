//! The medium loop's sensor for one task: collect → checks → model → one decision a round (design §11).
//!
//! Owns the states of a round and what each needs to go on. A round is decided once.

use std::collections::BTreeMap;

use artoo_protocol::message::{
    Criterion, CriterionVerdict, DispatchManifest, FailureClass, Mode, OutcomeSummary, ReplanRequest, SubTaskOutcome,
    Verdict, VerdictSource,
};
use artoo_protocol::stopwatch::Stopwatch;
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Answer, CallId, Timestamp};
use serde_json::Value;

use super::merge::{is_blank, merged};
use super::prompt::{self, Prompts};
use super::round::{Gate, Round, corrections, failed, gap_words, recommendation};
use super::{Config, Effect};
use crate::agent::{judgement_of, report_of};
use crate::evidence::{class_of, environment_failed};
use crate::verdicts::{self, failing};

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
    /// Machine checks on task criteria are running; the value is the criterion's number.
    Checking(Gate, Decided, BTreeMap<CallId, usize>),
    /// The model is merging, and judging the criteria with these numbers.
    Judging(Decided, CallId, Vec<usize>),
    /// The decision is out.
    Done,
}

/// Verdicts that are there already, by the number of the criterion.
type Decided = BTreeMap<usize, CriterionVerdict>;

/// What a step may use.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) prompts: &'a Prompts,
    pub(super) now: Timestamp,
}

impl TaskState {
    pub(super) fn new(manifest: DispatchManifest) -> Self {
        Self {
            next_call: CallId(1),
            watch: Stopwatch::start(manifest.started_at),
            replans_sent: 0,
            made: Vec::new(),
            round: Round::new(manifest),
            stage: Stage::Collecting,
        }
    }

    /// A plan was dispatched: it replaces the present round, unless it is that round's own or an older one.
    pub(super) fn dispatched(&mut self, manifest: DispatchManifest, context: &Context<'_>) -> Vec<Effect> {
        if !self.round.is_of(&manifest) && manifest.round >= self.round.manifest.round {
            self.round = self.round.followed_by(manifest);
            self.stage = Stage::Collecting;
        }
        self.look(context)
    }

    /// A person was asked, or has answered; waiting is not the task's time.
    pub(super) fn waiting(&mut self, request: &str, waits: bool, now: Timestamp) {
        if waits {
            self.watch.pause(request, now);
        } else {
            self.watch.resume(request, now);
        }
    }

    /// Another process has taken the task up.
    pub(super) fn away(&mut self, away: artoo_protocol::Millis) {
        self.watch.away(away);
    }

    pub(super) fn concluded(&mut self, outcome: SubTaskOutcome, context: &Context<'_>) -> Vec<Effect> {
        let touched = outcome.tool_calls.iter().flat_map(|call| &call.touched);
        for path in touched.chain(&outcome.made) {
            if self.made.len() < MADE_MAX && !self.made.contains(path) {
                self.made.push(path.clone());
            }
        }
        if matches!(self.stage, Stage::Collecting) {
            self.round.note(outcome);
        }
        self.look(context)
    }

    pub(super) fn answered(&mut self, call: CallId, answer: Answer, context: &Context<'_>) -> Vec<Effect> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Checking(gate, mut decided, mut pending) => {
                if let Some(at) = pending.remove(&call) {
                    self.note_check(&mut decided, at, answer);
                }
                if pending.is_empty() {
                    self.checked(gate, decided, context)
                } else {
                    self.stage = Stage::Checking(gate, decided, pending);
                    Vec::new()
                }
            }
            Stage::Judging(decided, asked_as, asked) if asked_as == call => {
                self.judged(decided, &asked, answer, context)
            }
            unchanged @ (Stage::Collecting | Stage::Judging(..) | Stage::Done) => {
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
        let (mut decided, mut pending, mut effects) = (Decided::new(), BTreeMap::new(), Vec::new());
        for (at, criterion) in self.round.manifest.task_criteria.iter().enumerate() {
            if let Some(check) = &criterion.check {
                let call = self.next_call.take();
                pending.insert(call, at);
                effects.push(Effect::Check {
                    task_id: self.round.manifest.task_id.clone(),
                    call,
                    request: CheckRequest {
                        check: check.clone(),
                        tool_calls: calls.clone(),
                        made: self.made.clone(),
                        given: self.round.manifest.intent.clone(),
                        written: Vec::new(),
                    },
                });
            } else if gate == Gate::AllMatched && criterion.mode == Mode::Verifiable && calls.is_empty() {
                let evidence = "no tool ran in the whole task, so nothing but words says that it holds";
                let verdict = verdicts::fail(criterion, FailureClass::Logical, VerdictSource::Rule, evidence);
                decided.insert(at, verdict);
            }
        }
        if pending.is_empty() {
            return self.checked(gate, decided, context);
        }
        self.stage = Stage::Checking(gate, decided, pending);
        effects
    }

    fn note_check(&self, decided: &mut Decided, at: usize, answer: Answer) {
        if let Some(criterion) = self.round.manifest.task_criteria.get(at) {
            let class = class_of(&self.round.matched_calls());
            decided.insert(at, verdicts::from_check(criterion, &report_of(answer), class));
        }
    }

    /// Code has said what it can: a gap goes out at once, and only a task without one is shown to a model.
    fn checked(&mut self, gate: Gate, decided: Decided, context: &Context<'_>) -> Vec<Effect> {
        let gap = gate == Gate::SomeFailed || decided.values().any(|v| v.verdict == Verdict::Fail);
        let criteria = &self.round.manifest.task_criteria;
        let asked: Vec<usize> = (0..criteria.len()).filter(|at| !decided.contains_key(at)).collect();
        if gap {
            return self.replan(decided, context);
        }
        let outcomes = self.round.outcomes();
        if asked.is_empty() {
            let output = merged(&outcomes);
            return self.accept(decided, None, output, context);
        }
        let call = self.next_call.take();
        let request = prompt::request(
            context.prompts,
            &self.round.manifest.intent,
            &outcomes,
            &pick(criteria, &asked),
        );
        let task_id = self.round.manifest.task_id.clone();
        self.stage = Stage::Judging(decided, call, asked);
        vec![Effect::Merge { task_id, call, request }]
    }

    /// The model has answered: every verdict a pass, or a rejection.
    fn judged(&mut self, mut decided: Decided, asked: &[usize], answer: Answer, context: &Context<'_>) -> Vec<Effect> {
        let criteria = pick(&self.round.manifest.task_criteria, asked);
        let calls = self.round.matched_calls();
        let value = match judgement_of(answer) {
            Ok(value) => {
                let own = environment_failed(&calls).then_some(FailureClass::Environmental);
                let read = verdicts::read(&value, &criteria, own);
                decided.extend(asked.iter().copied().zip(read));
                value
            }
            Err((why, _)) => {
                let failed = criteria
                    .iter()
                    .map(|c| verdicts::fail(c, FailureClass::Environmental, VerdictSource::Rule, &why));
                decided.extend(asked.iter().copied().zip(failed));
                Value::Null
            }
        };
        let verdicts: Vec<_> = decided.values().cloned().collect();
        if failing(&verdicts).next().is_some() {
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
            task_verdicts: decided.into_values().collect(),
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
            task_verdicts: decided.into_values().collect(),
            merged_output: merged(&outcomes),
            recommendation: recommendation(&outcomes, replans_used_up),
            outcomes,
        };
        request.gap_summary = gap_words(&request);
        vec![Effect::Replan(Box::new(request))]
    }
}

fn pick<'a>(criteria: &'a [Criterion], at: &[usize]) -> Vec<&'a Criterion> {
    at.iter().filter_map(|at| criteria.get(*at)).collect()
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

//! The auditor as a pure observer: what it is shown, what it counts, what it wants done (design §16).
//!
//! Owns the order of things; what a number means is in `counts`, what is suspicious in `detect`. It has no clock and no
//! file, and no effect by which it could reach a role.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use artoo_protocol::message::{Message, Trend};
use artoo_protocol::{Deed, Envelope, Millis, Role, SubTaskId, TaskId, Timestamp};

use crate::counts::Ledger;
use crate::detect::{self, Baseline, Finding, List, Seen};
use crate::tuning::TuningRow;
use crate::vocabulary::{Effect, Entry, Gap, Observed, Past};
use crate::watched::{Watched, key};

/// Time between periodic reports.
pub const REPORT_PERIOD: Millis = Millis::from_seconds(300);
/// Version of what the numbers of a [`Past`] mean.
pub(crate) const PAST_FORMAT: u32 = 2;
/// Most tasks that are watched at once; of more, one that began earlier is forgotten.
const TASKS_MAX: usize = 4_000;
/// How many ended tasks are remembered, for a second ending.
const ENDED_MAX: usize = 20_000;

/// The pure part of R6.
#[derive(Clone, Debug)]
pub struct Auditor {
    period: Millis,
    /// When the window began.
    window_start: Timestamp,
    window: Ledger,
    whole: Past,
    last_seq: Option<u64>,
    gaps: u64,
    tasks: BTreeMap<String, Watched>,
    subtasks: BTreeSet<SubTaskId>,
    ended: BTreeSet<String>,
    ended_order: VecDeque<String>,
}

impl Auditor {
    /// Begins a window at `now`; `past` is what earlier processes counted.
    pub fn new(now: Timestamp, period: Millis, mut past: Past) -> Self {
        past.ledger.start.get_or_insert(now);
        past.format = PAST_FORMAT;
        Self {
            period,
            window_start: now,
            window: Ledger::from(now),
            whole: past,
            last_seq: None,
            gaps: 0,
            tasks: BTreeMap::new(),
            subtasks: BTreeSet::new(),
            ended: BTreeSet::new(),
            ended_order: VecDeque::new(),
        }
    }

    /// Takes what the tap shows.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Vec<Effect> {
        let mut found = Vec::new();
        let mut row = None;
        let mut asked = false;
        let entry = match observed {
            Observed::Envelope(envelope) => {
                (asked, row) = self.look(now, &envelope, &mut found);
                Entry::Envelope(envelope)
            }
            Observed::Deed(deed) => {
                self.look_at_deed(now, &deed, &mut found);
                Entry::Deed(deed)
            }
            Observed::Gap(gap) => {
                self.missed(now, gap);
                Entry::Gap(gap)
            }
        };
        let mut effects = Vec::with_capacity(1 + found.len());
        effects.push(Effect::Append { at: now, entry });
        effects.extend(found.into_iter().map(|finding| Effect::Append {
            at: now,
            entry: Entry::Finding(finding),
        }));
        effects.extend(row.map(Effect::Row));
        if asked {
            effects.push(self.on_demand(now));
        }
        effects
    }

    /// Messages that never reached the log, for whatever reason.
    pub fn missed(&mut self, now: Timestamp, gap: Gap) {
        self.gaps += u64::from(gap.hides());
        self.count_finding(now, &Finding::new("gap", None, gap.to_seq, gap.to_string()));
        if gap.unknown {
            self.last_seq = None;
        } else if gap.count > 0 {
            self.last_seq = self.last_seq.max(Some(gap.to_seq));
        }
    }

    /// Counts a message; says whether it is the operator asking for a report, and the row of a task that has ended.
    pub fn look(
        &mut self,
        now: Timestamp,
        envelope: &Envelope,
        found: &mut Vec<Finding>,
    ) -> (bool, Option<Box<TuningRow>>) {
        let seq = envelope.seq;
        let task_id = envelope.task_id.as_ref();
        // Every process counts from 1, or goes on where the runtime takes a task up again.
        let resumed = envelope.from == Role::Runtime && matches!(envelope.payload, Message::TaskResumed(_));
        let begins = seq == 1 || resumed;
        if let Some(task_id) = task_id.filter(|_| resumed) {
            self.forget(&key(task_id));
        }
        if let Some(last) = self.last_seq.filter(|last| !begins && seq != last + 1) {
            let detail = format!("message {seq} came after {last}");
            found.push(Finding::new("order", None, seq, detail));
        }
        self.last_seq = Some(seq);
        let violation = detect::boundary(envelope);
        let asked = violation.is_none() && matches!(envelope.payload, Message::AuditQuery(_));
        found.extend(violation.map(|(name, detail)| Finding::new(name, task_id, seq, detail)));
        let seen = Seen::Envelope(envelope);
        self.count(now, &seen, found);
        // What the operator asks belongs to no task.
        let row = match (task_id, &envelope.payload) {
            (None, _) | (_, Message::AuditQuery(_) | Message::AuditReport(_)) => None,
            (Some(task_id), _) => self.watch(task_id, &seen, seq, found),
        };
        for finding in found.iter() {
            self.count_finding(now, finding);
        }
        (asked, row)
    }

    /// Counts a deed.
    pub fn look_at_deed(&mut self, now: Timestamp, deed: &Deed, found: &mut Vec<Finding>) {
        let task_id = deed.task_id.as_ref();
        let forbidden = detect::forbidden(deed);
        found.extend(forbidden.map(|detail| Finding::new("forbidden_effect", task_id, 0, detail)));
        let seen = Seen::Deed(deed);
        self.count(now, &seen, found);
        if let Some(task_id) = task_id {
            if self.ended.contains(&key(task_id)) {
                let late = detect::act_after_the_end(deed);
                found.extend(late.map(|(name, detail)| Finding::new(name, Some(task_id), 0, detail)));
            } else {
                self.watch(task_id, &seen, 0, found);
            }
        }
        for finding in found.iter() {
            self.count_finding(now, finding);
        }
    }

    /// When the next periodic report is due.
    pub fn deadline(&self) -> Timestamp {
        self.window_start.plus(self.period)
    }

    /// Reports if the time has come.
    pub fn wake(&mut self, now: Timestamp) -> Option<Effect> {
        (now >= self.deadline()).then(|| self.report(now, "periodic"))
    }

    /// The last report of a process.
    pub fn exit(&mut self, now: Timestamp) -> Effect {
        self.report(now, "exit")
    }

    /// The operator asks, in this process and not over the bus.
    pub fn on_demand(&mut self, now: Timestamp) -> Effect {
        self.report(now, "on-demand")
    }

    /// Everything counted since the beginning.
    pub const fn whole(&self) -> &Past {
        &self.whole
    }

    /// The same, when nothing more is to be seen.
    pub fn into_past(self) -> Past {
        self.whole
    }

    /// Tasks that have begun and not ended.
    pub fn open_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn report(&mut self, now: Timestamp, trigger: &str) -> Effect {
        let report = self.window.report(trigger, now, &self.whole.ledger.totals);
        self.window = Ledger::from(now);
        self.window_start = now;
        Effect::Report(Box::new(report))
    }

    fn count(&mut self, now: Timestamp, seen: &Seen<'_>, found: &mut Vec<Finding>) {
        self.window.count(seen);
        self.whole.ledger.count(seen);
        self.whole.history.count(now, seen);
        let drifts = self.whole.drift.see(seen, &self.whole.ledger.totals);
        let seq = match seen {
            Seen::Envelope(envelope) => envelope.seq,
            Seen::Deed(_) => 0,
        };
        found.extend(drifts.map(|detail| Finding::new("drift", None, seq, detail)));
    }

    fn count_finding(&mut self, now: Timestamp, finding: &Finding) {
        self.window.add(finding);
        self.whole.ledger.add(finding);
        let list = detect::row(&finding.detector).map_or(List::Anomaly, |row| row.list);
        self.whole.history.count_finding(now, list);
    }

    fn watch(
        &mut self,
        task_id: &TaskId,
        seen: &Seen<'_>,
        seq: u64,
        found: &mut Vec<Finding>,
    ) -> Option<Box<TuningRow>> {
        let key = key(task_id);
        let message = match seen {
            Seen::Envelope(envelope) => Some(&envelope.payload),
            Seen::Deed(_) => None,
        };
        let ends = matches!(message, Some(Message::FinalResult(_)));
        if self.ended.contains(&key) {
            if ends {
                let detail = "the task has ended twice";
                found.push(Finding::new("second_final_result", Some(task_id), seq, detail));
            }
            return None;
        }
        self.make_room(&key);
        let gaps = self.gaps;
        let watched = self
            .tasks
            .entry(key.clone())
            .or_insert_with(|| Watched::new(task_id, gaps));
        if watched.task_id.is_provisional() {
            watched.task_id = task_id.clone();
        }
        watched.detectors.see(seen, |name, detail| {
            found.push(Finding::new(name, Some(task_id), seq, detail));
        });
        let row = watched.row.see(seen, gaps == watched.gaps);
        if let Seen::Deed(deed) = seen {
            let past = Baseline {
                ended: self.whole.ledger.totals.ended_with_tokens,
                tokens: self.whole.ledger.totals.tokens_of_ended,
            };
            found.extend(watched.spend(deed, past));
        }
        match message {
            Some(Message::PlanDirective(directive)) => {
                let trend = watched.trend(directive.loss.d, directive.grad_l);
                self.trend(&key, trend);
            }
            Some(Message::FinalResult(result)) => {
                let trend = watched.trend(result.loss.d, result.grad_l);
                self.trend(&key, trend);
            }
            Some(Message::SubTask(subtask)) => {
                let id = subtask.subtask_id.clone();
                if self.subtasks.insert(id.clone()) {
                    watched.subtasks.push(id);
                } else {
                    let detail = format!("subtask {id} was dispatched twice");
                    found.push(Finding::new("duplicate_subtask", Some(task_id), seq, detail));
                }
            }
            _ => {}
        }
        if ends {
            self.end(key);
        }
        row.map(Box::new)
    }

    fn trend(&mut self, key: &str, trend: Trend) {
        if let Some(watched) = self.tasks.get(key) {
            self.window.trend(key, &watched.task_id, trend);
            self.whole.ledger.trend(key, &watched.task_id, trend);
        }
    }

    fn end(&mut self, key: String) {
        if let Some(watched) = self.tasks.remove(&key) {
            let effort = watched.row.effort();
            let tokens = effort.input_tokens + effort.output_tokens;
            let totals = &mut self.whole.ledger.totals;
            totals.tokens_of_ended += tokens;
            totals.ended_with_tokens += u64::from(tokens > 0);
            self.forget_subtasks(&watched);
        }
        self.ended.insert(key.clone());
        self.ended_order.push_back(key);
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    fn make_room(&mut self, for_key: &str) {
        if self.tasks.len() >= TASKS_MAX
            && !self.tasks.contains_key(for_key)
            && let Some((_, forgotten)) = self.tasks.pop_first()
        {
            self.forget_subtasks(&forgotten);
        }
    }

    /// What an earlier process saw of a task is not what this one saw: whoever counts a log of both finds what each of them found.
    fn forget(&mut self, key: &str) {
        if let Some(before) = self.tasks.remove(key) {
            self.forget_subtasks(&before);
        }
    }

    fn forget_subtasks(&mut self, of: &Watched) {
        for id in &of.subtasks {
            self.subtasks.remove(id);
        }
    }
}

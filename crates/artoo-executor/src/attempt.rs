//! One attempt at one subtask: what was asked for and how far each call has come (design §8).
//!
//! Owns the data of an attempt and the order of its calls. Must not decide on permission nor talk to the bus.

use artoo_protocol::CallId;
use artoo_protocol::message::{SubTask, ToolCall};
use artoo_protocol::model::{ChatMessage, ModelToolCall};
use artoo_protocol::stopwatch::Stopwatch;
use artoo_protocol::tool::{Assessment, EffectClass};
use artoo_protocol::units::Timestamp;

use crate::conversation::REPORT;

/// A subtask and its present attempt.
#[derive(Clone, Debug)]
pub struct Work {
    /// What is to be done.
    pub subtask: SubTask,
    /// When the first attempt began.
    pub begun: Timestamp,
    /// Its own time, without waiting for a person.
    pub watch: Stopwatch,
    /// From 1.
    pub attempt: u32,
    /// How far it has come.
    pub phase: Phase,
    /// What the model was told and said.
    pub conversation: Vec<ChatMessage>,
    /// What really happened in this attempt; the calls of one answer in the model's order, however they ended.
    pub calls: Vec<ToolCall>,
    /// Places in the present answer of the last records of `calls`.
    pub recorded: Vec<usize>,
    /// Tool calls of this attempt so far.
    pub steps: u32,
    /// The last call in its normal form, and how often it came in a row.
    pub last: Option<(String, u32)>,
    /// Whether the person refused something in this attempt.
    pub refused: bool,
    /// Why the attempt fails as soon as the calls under way are done.
    pub doomed: Option<String>,
}

/// Where an attempt stands.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The model was asked.
    Asking {
        /// Its correlation id.
        call: CallId,
    },
    /// The calls of the model's last answer are being made.
    Acting {
        /// Text beside them.
        text: Option<String>,
        /// In the model's order.
        calls: Vec<Pending>,
    },
    /// The attempt has ended; a correction may start the next one.
    Ended,
}

/// One call of the model's answer.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The call, with an id of our own.
    pub asked: ModelToolCall,
    /// How far it has come.
    pub stage: Stage,
    /// Whether the model is told that it repeats itself.
    pub warned: bool,
    /// How often it turned out, when it was about to run, to be no longer what was allowed.
    pub stale: u32,
}

/// How far a call has come.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Not looked at yet.
    New,
    /// Its effect is being found out.
    Assessing {
        /// Correlation.
        call: CallId,
    },
    /// Waits until the calls before it are done.
    Assessed {
        /// What it would do.
        assessment: Assessment,
    },
    /// The person was asked.
    Confirming {
        /// The question's id.
        request_id: String,
        /// What it would do.
        assessment: Assessment,
    },
    /// It runs.
    Running {
        /// Correlation.
        call: CallId,
        /// What it may do.
        assessment: Assessment,
        /// Since when.
        started_at: Timestamp,
    },
    /// It is done, refused or invalid; the text goes to the model.
    Settled {
        /// The result.
        result: String,
    },
}

/// Which call is to be moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The call at this position may be looked at.
    Assess(usize),
    /// The call at this position has been assessed and everything it must wait for is done.
    Gate(usize),
    /// Something has to come back first.
    Wait,
    /// Every call is settled.
    Done,
}

/// What comes next among the calls of one answer.
///
/// Calls are looked at in order. Reads run side by side; anything that changes the world waits for all calls before it,
/// and the calls behind it wait for it, because what they would do may depend on it.
pub fn next_turn(calls: &[Pending]) -> Turn {
    let mut waiting = false;
    for (at, pending) in calls.iter().enumerate() {
        match &pending.stage {
            Stage::Settled { .. } => {}
            Stage::Running { assessment, .. } if is_reading(assessment) => waiting = true,
            // A report speaks of all calls before it.
            Stage::New if waiting && pending.asked.name == REPORT => return Turn::Wait,
            Stage::New => return Turn::Assess(at),
            Stage::Assessed { assessment } if !waiting || is_reading(assessment) => return Turn::Gate(at),
            Stage::Running { .. } | Stage::Assessing { .. } | Stage::Confirming { .. } | Stage::Assessed { .. } => {
                return Turn::Wait;
            }
        }
    }
    if waiting { Turn::Wait } else { Turn::Done }
}

fn is_reading(assessment: &Assessment) -> bool {
    assessment.effect <= EffectClass::Fetch
}

impl Work {
    /// The first attempt, which begins now.
    pub fn new(subtask: SubTask, now: Timestamp) -> Self {
        Self {
            begun: now,
            watch: Stopwatch::start(now),
            subtask,
            attempt: 1,
            phase: Phase::Ended,
            conversation: Vec::new(),
            calls: Vec::new(),
            recorded: Vec::new(),
            steps: 0,
            last: None,
            refused: false,
            doomed: None,
        }
    }

    /// Forgets the attempt before and begins the next one.
    pub fn restart(&mut self, attempt: u32) {
        *self = Self {
            attempt,
            watch: self.watch.clone(),
            ..Self::new(self.subtask.clone(), self.begun)
        };
    }

    /// When its time is up: the time for which a person was waited for is given back, and none passes while one is.
    pub fn deadline(&self) -> Option<Timestamp> {
        let deadline = self.subtask.deadline?;
        self.watch.reaches(deadline.since(self.begun))
    }

    /// What the shell still works on.
    pub fn outstanding(&self) -> Vec<CallId> {
        match &self.phase {
            Phase::Asking { call } => vec![*call],
            Phase::Acting { calls, .. } => calls
                .iter()
                .filter_map(|pending| match &pending.stage {
                    Stage::Assessing { call } | Stage::Running { call, .. } => Some(*call),
                    Stage::New | Stage::Assessed { .. } | Stage::Confirming { .. } | Stage::Settled { .. } => None,
                })
                .collect(),
            Phase::Ended => Vec::new(),
        }
    }

    /// Notes a call and says how often it came in a row, this time included.
    pub fn repeated(&mut self, normalised: String) -> u32 {
        let times = match &self.last {
            Some((last, times)) if *last == normalised => times.saturating_add(1),
            _ => 1,
        };
        self.last = Some((normalised, times));
        times
    }

    /// Records the call at this place of the present answer. Calls of one answer may end in any order; evidence that came in
    /// another order from run to run could not be replayed.
    pub fn record(&mut self, at: usize, call: ToolCall) {
        let before = self.recorded.partition_point(|&place| place < at);
        let begun = self.calls.len().saturating_sub(self.recorded.len());
        self.recorded.insert(before, at);
        self.calls.insert(begun + before, call);
    }

    /// The call at a position of the present answer.
    pub fn pending(&mut self, at: usize) -> Option<&mut Pending> {
        match &mut self.phase {
            Phase::Acting { calls, .. } => calls.get_mut(at),
            Phase::Asking { .. } | Phase::Ended => None,
        }
    }

    /// The position of the first call that fits.
    pub fn position(&self, fits: impl Fn(&Pending) -> bool) -> Option<usize> {
        match &self.phase {
            Phase::Acting { calls, .. } => calls.iter().position(fits),
            Phase::Asking { .. } | Phase::Ended => None,
        }
    }

    /// The first call whose stage fits.
    pub fn find(&mut self, fits: impl Fn(&Stage) -> bool) -> Option<&mut Pending> {
        let at = self.position(|pending| fits(&pending.stage))?;
        self.pending(at)
    }

    /// Settles a call with a text for the model.
    pub fn settle(&mut self, at: usize, result: String) {
        if let Some(pending) = self.pending(at) {
            pending.stage = Stage::Settled { result };
        }
    }
}

impl Pending {
    /// Whether the person was asked for this call under this id.
    pub fn asks(&self, request: &str) -> bool {
        matches!(&self.stage, Stage::Confirming { request_id, .. } if request_id == request)
    }
}

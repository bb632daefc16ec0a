//! What runs and what ran, as the page is told it: two documents that get a new number when they change (design §17, §21).
//!
//! Owns when the journals are looked at, and which task may be ended from here and how.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use artoo_bus::{Price, SystemClock};
use artoo_protocol::ports::Clock as _;
use artoo_protocol::{TaskId, Timestamp};
use serde_json::{Value, json};

use super::journals::{Journals, Tail};
use super::watch::{Standing, shown};
use crate::data_folder::{Holder, noted};
use crate::serve::desk::{Desk, Question, QuestionKind};

/// Time between two looks at the journals, in milliseconds, however many pages are open.
const LOOK_EVERY: u64 = 400;

/// Everything that is known of the tasks of a data folder.
pub struct Board {
    /// Locked for as long as a look takes.
    known: Mutex<Known>,
    /// How often something was done, so that whoever does it need not wait for a look to end.
    done: AtomicU64,
}

struct Known {
    journals: Journals,
    around: Around,
    /// When the last look began, and what had been done by then.
    looked: Option<(Timestamp, u64)>,
    trouble: Option<String>,
    live: Document,
    past: Document,
}

/// A text and the number of its last change.
#[derive(Default)]
struct Document {
    number: u64,
    text: String,
}

impl Document {
    fn set(&mut self, value: &Value) {
        let text = value.to_string();
        if text != self.text {
            self.number += 1;
            self.text = text;
        }
    }

    /// The whole, unless that is what the reader has already.
    fn for_reader_of(&self, seen: u64) -> String {
        if seen == self.number {
            format!("{{\"number\":{seen}}}")
        } else {
            format!("{{\"number\":{},\"value\":{}}}", self.number, self.text)
        }
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What runs, and what it waits for.
    Live,
    /// What ran.
    Past,
}

/// How a task can be ended from the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// It runs in this process.
    Here,
    /// As by Ctrl+C on the terminal of that process.
    Signal(Holder),
    /// Only there.
    Terminal,
}

impl Board {
    /// Nothing read yet.
    pub fn new(data: &Path, price: Price) -> Self {
        Self {
            known: Mutex::new(Known {
                journals: Journals::new(data.join("tasks"), price),
                around: Around::default(),
                looked: None,
                trouble: None,
                live: Document::default(),
                past: Document::default(),
            }),
            done: AtomicU64::new(0),
        }
    }

    /// What is known after a look, unless the last one was just before.
    fn seen(&self, data: &Path, desk: Option<&Desk>) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.look(data, desk, self.done.load(Ordering::Acquire));
        known
    }

    /// One part as it is now, for a reader who has the one with this number.
    pub fn part(&self, data: &Path, desk: Option<&Desk>, part: Part, seen: u64) -> String {
        let known = self.seen(data, desk);
        match part {
            Part::Live => known.live.for_reader_of(seen),
            Part::Past => known.past.for_reader_of(seen),
        }
    }

    /// Something was done: what was seen before is old. Waits for nothing.
    pub fn is_old(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
    }

    /// How this task can be ended now; `None` when it does not run.
    pub fn abort(&self, data: &Path, desk: Option<&Desk>, task: &TaskId) -> Option<Abort> {
        self.is_old();
        let known = self.seen(data, desk);
        let around = &known.around;
        let tails = known.journals.newest_first();
        let running = || tails.iter().filter(|tail| around.standing(tail) == Standing::Running);
        let is_running = running().any(|tail| tail.watch.id().suffix() == task.suffix());
        // One that has just begun may have no journal yet.
        (is_running || around.is_here(task)).then(|| around.abort(task, running().count()))
    }
}

/// Who else is there.
#[derive(Default)]
struct Around {
    holder: Option<Holder>,
    here: Vec<TaskId>,
    questions: Vec<Question>,
}

impl Around {
    fn of(holder: Option<Holder>, desk: Option<&Desk>) -> Self {
        Self {
            holder,
            here: desk.map(Desk::running).unwrap_or_default(),
            questions: desk.map(Desk::questions).unwrap_or_default(),
        }
    }

    /// What was there before or after this was done: what begins or ends meanwhile is not taken for interrupted.
    fn during(data: &Path, desk: Option<&Desk>, act: impl FnOnce()) -> Self {
        let note = noted(data);
        let before = Self::of(note.filter(|noted| noted.holds(data)), desk);
        act();
        // Who has begun to hold the folder has written a note. The same note is not tried again: that may touch the lock.
        let begun = || noted(data).filter(|noted| Some(*noted) != note && noted.holds(data));
        let after = Self::of(before.holder.or_else(begun), desk);
        Self {
            holder: after.holder,
            here: before.here.into_iter().chain(after.here).collect(),
            questions: after.questions,
        }
    }

    /// The provisional and the final name of a run end in the same digits.
    fn is_here(&self, task: &TaskId) -> bool {
        self.here.iter().any(|here| here.suffix() == task.suffix())
    }

    fn is_own(&self) -> bool {
        self.holder
            .is_some_and(|holder| holder.pid == rustix::process::getpid())
    }

    fn standing(&self, tail: &Tail) -> Standing {
        match tail.standing(self.holder.map(|holder| holder.since)) {
            // What this process holds and no longer runs is not running.
            Standing::Running if self.is_own() && !self.is_here(tail.watch.id()) => Standing::Interrupted,
            standing @ (Standing::Running
            | Standing::Finished
            | Standing::Interrupted
            | Standing::Damaged
            | Standing::Reading) => standing,
        }
    }

    fn abort(&self, task: &TaskId, running: usize) -> Abort {
        match self.holder {
            _ if self.is_here(task) => Abort::Here,
            // Ctrl+C ends whatever the process does.
            Some(holder) if !self.is_own() && running == 1 && cfg!(target_os = "linux") => Abort::Signal(holder),
            Some(_) | None => Abort::Terminal,
        }
    }
}

impl Known {
    fn look(&mut self, data: &Path, desk: Option<&Desk>, done: u64) {
        let now = SystemClock.now();
        let is_fresh = |(at, by): (Timestamp, u64)| by == done && at <= now && now.since(at).0 < LOOK_EVERY;
        if self.looked.is_some_and(is_fresh) {
            return;
        }
        self.around = Around::during(data, desk, || {
            self.trouble = self.journals.look().err().map(|error| shown(&error.to_string()));
        });
        self.looked = Some((now, done));
        let around = &self.around;
        let tails: Vec<(Standing, &Tail)> = self
            .journals
            .newest_first()
            .into_iter()
            .map(|tail| (around.standing(tail), tail))
            .collect();
        let running: Vec<&Tail> = tails
            .iter()
            .filter(|(standing, _)| *standing == Standing::Running)
            .map(|(_, tail)| *tail)
            .collect();
        let past: Vec<Value> = tails
            .iter()
            .filter(|(standing, _)| *standing != Standing::Running)
            .map(|(standing, tail)| tail.watch.row(*standing, tail.damage.as_deref()))
            .collect();
        self.past
            .set(&json!({"tasks": past, "behind": self.journals.behind(), "left_out": self.journals.left_out}));
        let tasks: Vec<Value> = running.iter().map(|tail| live(tail, around, running.len())).collect();
        let questions: Vec<Value> = around.questions.iter().map(question).collect();
        let holder = around.holder.map(|holder| {
            json!({"pid": holder.pid.as_raw_nonzero().get(), "since": holder.since, "is_this": around.is_own()})
        });
        self.live.set(&json!({
            "data": data.display().to_string(), "holder": holder, "runs_tasks": desk.is_some(), "trouble": self.trouble,
            "tasks": tasks, "questions": questions, "past": self.past.number,
        }));
    }
}

fn live(tail: &Tail, around: &Around, running: usize) -> Value {
    let watch = &tail.watch;
    let mut value = watch.row(Standing::Running, None);
    let here = around.is_here(watch.id());
    let abort = match around.abort(watch.id(), running) {
        Abort::Here => json!({"how": "here"}),
        Abort::Signal(holder) => json!({"how": "signal", "pid": holder.pid.as_raw_nonzero().get()}),
        Abort::Terminal => {
            json!({"how": "terminal", "pid": around.holder.map(|holder| holder.pid.as_raw_nonzero().get())})
        }
    };
    // Those of this process can be answered, and are told once.
    let elsewhere: Vec<&str> = if here { Vec::new() } else { watch.questions().collect() };
    if let (Some(object), Value::Object(more)) = (value.as_object_mut(), watch.live()) {
        object.extend(more);
        object.insert("abort".to_owned(), abort);
        object.insert("asked_elsewhere".to_owned(), json!(elsewhere));
    }
    value
}

fn question(question: &Question) -> Value {
    let kind = match question.kind {
        QuestionKind::Confirmation => "confirmation",
        QuestionKind::Clarification => "clarification",
    };
    // What a person consents to is shown whole.
    json!({"id": question.id, "task": question.task_id, "text": artoo_protocol::text::printable(&question.text), "kind": kind})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const REPLANNED: &str = include_str!("../../../../../fixtures/journals/replanned.jsonl");
    const NAME: &str = "collect_email_addresses_074f2fe9";

    fn board() -> (tempfile::TempDir, Board) {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("tasks")).unwrap();
        let board = Board::new(data.path(), Arc::new(|_, _| 0.0));
        (data, board)
    }

    fn read(board: &Board, data: &Path, part: Part, seen: u64) -> Value {
        serde_json::from_str(&board.part(data, None, part, seen)).unwrap()
    }

    #[test]
    fn a_reader_who_has_it_already_is_told_so() {
        let (data, board) = board();
        std::fs::write(data.path().join(format!("tasks/{NAME}.jsonl")), REPLANNED).unwrap();
        let first = read(&board, data.path(), Part::Past, 0);
        assert_eq!(first["value"]["tasks"][0]["task"], NAME);
        assert_eq!(first["value"]["tasks"][0]["state"], "finished");
        let number = first["number"].as_u64().unwrap();
        let again = read(&board, data.path(), Part::Past, number);
        assert_eq!(again, json!({"number": number}));
        let live = read(&board, data.path(), Part::Live, 0);
        assert_eq!(
            (&live["value"]["tasks"], &live["value"]["past"]),
            (&json!([]), &json!(number))
        );
    }

    #[test]
    fn what_was_done_makes_old_what_was_seen_and_waits_for_no_look() {
        let (data, board) = board();
        assert_eq!(read(&board, data.path(), Part::Past, 0)["value"]["tasks"], json!([]));
        std::fs::write(data.path().join(format!("tasks/{NAME}.jsonl")), REPLANNED).unwrap();
        let looking = board.known.lock().unwrap();
        board.is_old();
        drop(looking);
        let past = read(&board, data.path(), Part::Past, 0);
        assert_eq!(past["value"]["tasks"][0]["task"], NAME);
    }

    #[test]
    fn who_begins_or_ends_during_a_look_is_there() {
        let data = tempfile::tempdir().unwrap();
        let open = || crate::data_folder::DataFolder::open(data.path(), Timestamp::from_millis(0)).unwrap();
        let mut held = None;
        assert!(Around::during(data.path(), None, || held = Some(open())).is_own());
        assert!(Around::during(data.path(), None, || held = None).is_own());
        assert!(
            !Around::during(data.path(), None, || ()).is_own(),
            "the note is still there"
        );
    }

    #[test]
    fn what_nobody_runs_cannot_be_ended() {
        let (data, board) = board();
        std::fs::write(data.path().join(format!("tasks/{NAME}.jsonl")), REPLANNED).unwrap();
        let task = TaskId::new(NAME);
        assert_eq!(board.abort(data.path(), None, &task), None, "it has ended");
        // This process holds the folder, and runs nothing.
        let begun: String = REPLANNED.split_inclusive('\n').take(20).collect();
        std::fs::write(data.path().join(format!("tasks/{NAME}.jsonl")), begun).unwrap();
        let _held = crate::data_folder::DataFolder::open(data.path(), Timestamp::from_millis(0)).unwrap();
        assert_eq!(board.abort(data.path(), None, &task), None);
        let past = read(&board, data.path(), Part::Past, 0);
        assert_eq!(past["value"]["tasks"][0]["state"], "interrupted");
    }

    #[test]
    fn a_task_of_another_process_is_ended_there() {
        let since = Timestamp::from_millis(0);
        let pid = rustix::process::getppid().unwrap();
        let around = |here: &[&str]| Around {
            holder: Some(Holder { pid, since }),
            here: here.iter().map(|id| TaskId::new(*id)).collect(),
            questions: Vec::new(),
        };
        let task = TaskId::new(NAME);
        let signal = if cfg!(target_os = "linux") {
            Abort::Signal(Holder { pid, since })
        } else {
            Abort::Terminal
        };
        assert_eq!(around(&[]).abort(&task, 1), signal);
        assert_eq!(
            around(&[]).abort(&task, 2),
            Abort::Terminal,
            "it would end the other one as well"
        );
        assert_eq!(
            around(&["input_074f2fe9"]).abort(&task, 2),
            Abort::Here,
            "under either name"
        );
    }
}

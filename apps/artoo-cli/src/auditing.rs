//! The auditor's place in this process: a tap feeds it, its reports go to the person (design §16).
//!
//! Owns the way from the tap to the recorder and back, and the thread on which the auditor runs: whatever it does, slowly or
//! wrongly, takes no time from a task. The auditor is fed; it has no handle on the bus.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use artoo_auditor::{Gap, Observed, Options, Recorder, Redact};
use artoo_bus::journal::Redactor;
use artoo_bus::{Hub, SystemClock, Tap, TapItem};
use artoo_memory::dreamer::Call;
use artoo_protocol::message::AuditReport;
use artoo_protocol::ports::{Bus, Clock};
use artoo_protocol::{CallId, Deed, Millis, Role};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::settings::Settings;
use crate::spending::price;
use crate::{dreaming, output};

/// Messages that the auditor may lag behind before it misses some, which it then records.
const TAP: usize = 8_192;

/// Messages that are taken from the tap in one go.
const AT_ONCE: usize = 256;

/// The running auditor.
pub struct Auditing {
    finish: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Auditing {
    /// Continues the log of the data folder; `period` is the time between periodic reports.
    ///
    /// # Errors
    /// [`Failure`] when the log cannot be opened: artoo does not work unobserved.
    pub fn start(data: &Path, hub: &Hub, redactor: Redactor, period: Millis) -> Result<Self, Failure> {
        let options = Options {
            period,
            tell: Arc::new(|words| output::note(&format!("artoo: {words}"))),
            ..Options::new(masking(redactor))
        };
        Self::with(data, hub, options)
    }

    fn with(data: &Path, hub: &Hub, options: Options) -> Result<Self, Failure> {
        let recorder = Recorder::start(data, hub.now(), options).map_err(|e| cannot(&e))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| cannot(&e))?;
        // What is addressed to the auditor comes through the tap as well.
        drop(hub.inbox(Role::R6));
        let tap = hub.tap_with_deeds("auditor", TAP);
        let (finish, finished) = oneshot::channel();
        let seat = Seat {
            recorder,
            tap,
            taken: VecDeque::new(),
            hub: hub.clone(),
            finished,
            over: false,
        };
        let thread = std::thread::Builder::new()
            .name("auditor".to_owned())
            .spawn(move || seat.hold(&runtime))
            .map_err(|e| cannot(&e))?;
        Ok(Self { finish, thread })
    }

    /// Writes down what is left and ends.
    pub async fn finish(self) {
        // The receiver only goes away with its thread.
        let _ = self.finish.send(());
        let thread = self.thread;
        let ended = tokio::task::spawn_blocking(move || thread.join().is_ok()).await;
        if !matches!(ended, Ok(true)) {
            output::note("artoo: the auditor broke at the end; what it wrote until then is whole");
        }
    }
}

fn cannot(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("the audit log cannot be written: {error}"))
        .hint("artoo audit verify says more; or use another --data-dir")
}

fn masking(redactor: Redactor) -> Redact {
    // Everything that is written is JSON; what is not would rather be left out than be written unmasked.
    Arc::new(move |text| redactor.json(text).unwrap_or_else(|_| "null".to_owned()))
}

/// Writes down a question that the Dreamer put outside a session; the caller holds the data folder.
///
/// # Errors
/// [`Failure`] when the log cannot be written.
pub fn record_dream(settings: &Settings, redactor: Redactor, asked: &Call) -> Result<(), Failure> {
    let now = SystemClock.now();
    let cost = price(settings)(&asked.model, &asked.usage);
    let mut recorder =
        Recorder::start(&settings.data_dir, now, Options::new(masking(redactor))).map_err(|e| cannot(&e))?;
    for act in dreaming::acts(asked, CallId(1), cost) {
        let (role, task_id, at) = (Role::R5, None, now);
        let _ = recorder.observe(now, Observed::Deed(Arc::new(Deed { role, task_id, at, act })));
    }
    recorder.finish(now).map_err(|e| cannot(&e))?;
    Ok(())
}

/// What the auditor's thread has before it.
struct Seat {
    recorder: Recorder,
    tap: Tap,
    /// What was taken from it and not looked at yet.
    taken: VecDeque<TapItem>,
    hub: Hub,
    finished: oneshot::Receiver<()>,
    /// Whether nothing more is to come than what waits in the tap.
    over: bool,
}

impl Seat {
    /// Watches until the end. Should looking break, the rest is recorded all the same.
    fn hold(mut self, runtime: &tokio::runtime::Runtime) {
        let watched = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.watch())));
        if watched.is_err() {
            self.recorder.go_blind(self.hub.now());
            runtime.block_on(self.watch());
        }
        // Waits for the disk.
        if let Err(error) = self.recorder.finish(self.hub.now()) {
            output::note(&format!("artoo: the audit log is not complete: {error}"));
        }
    }

    async fn watch(&mut self) {
        loop {
            while let Some(item) = self.taken.pop_front() {
                self.see(item);
            }
            // Also where the tap never runs empty.
            let report = self.recorder.wake(self.hub.now());
            publish(&self.hub, report);
            if self.over {
                break;
            }
            let wait = self.recorder.deadline().since(self.hub.now());
            let reports = !self.recorder.is_blind();
            tokio::select! {
                biased;
                item = self.tap.recv() => match item {
                    Some(item) => {
                        self.taken.push_back(item);
                        // In a storm of messages they are taken by the hundred.
                        self.taken.extend(self.tap.try_recv_many(AT_ONCE));
                    }
                    None => self.over = true,
                },
                _ = &mut self.finished => self.over = true,
                () = tokio::time::sleep(wait.to_duration()), if reports => {}
            }
        }
        while let Some(item) = self.tap.try_recv() {
            let _ = self.recorder.observe(self.hub.now(), observed(item));
        }
    }

    fn see(&mut self, item: TapItem) {
        let report = self.recorder.observe(self.hub.now(), observed(item));
        publish(&self.hub, report);
    }
}

fn publish(hub: &Hub, report: Option<AuditReport>) {
    if let Some(report) = report {
        // The route exists; a refusal would be noticed by the boundary check itself.
        let _ = hub.publish(Role::R6, None, report.into());
    }
}

fn observed(item: TapItem) -> Observed {
    match item {
        TapItem::Envelope(envelope) => Observed::Envelope(envelope),
        TapItem::Deed(deed) => Observed::Deed(deed),
        TapItem::Gap(gap) => Observed::Gap(Gap {
            from_seq: gap.from_seq,
            to_seq: gap.to_seq,
            count: gap.count,
            deeds: gap.deeds,
            ..Gap::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_auditor::{Verified, verify};
    use artoo_bus::{HubOptions, Inbox};
    use artoo_protocol::message::{AuditQuery, ExecutionResult, ExecutionStatus, Message};
    use artoo_protocol::{SubTaskId, TaskId, Timestamp};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use tempfile::TempDir;

    /// The thread that writes.
    const WRITER: &str = "artoo-audit";

    fn on_writer() -> bool {
        std::thread::current().name() == Some(WRITER)
    }

    /// A disk that stands still until what is held is dropped.
    fn stuck() -> (Sender<()>, Redact) {
        let (held, gate) = channel();
        let gate = Mutex::new(gate);
        let redact = move |text| {
            if on_writer() {
                let _ = gate.lock().unwrap().recv();
            }
            text
        };
        (held, Arc::new(redact))
    }

    /// A bus whose messages go to R4a, who reads them all.
    struct Bus1 {
        hub: Hub,
        inbox: Inbox,
        read: u64,
    }

    impl Bus1 {
        fn new() -> Self {
            Self::on(Arc::new(SystemClock))
        }

        fn on(clock: Arc<dyn Clock>) -> Self {
            let hub = Hub::new(clock, HubOptions::default());
            let inbox = hub.inbox(Role::R4a).unwrap();
            Self { hub, inbox, read: 0 }
        }

        /// Says so many messages, and reads each as the role that it is for: none is missing, none out of order.
        async fn says(&mut self, count: u64) {
            let task = TaskId::new("count_00000001");
            let attempt = ExecutionResult {
                subtask_id: SubTaskId::new("a"),
                parent_task_id: task.clone(),
                attempt: 1,
                status: ExecutionStatus::Completed,
                output: String::new(),
                reason: None,
                infrastructure: false,
                infeasible: false,
                refused: false,
                tool_calls: vec![],
            };
            for _ in 0..count {
                self.hub.publish(Role::R3, Some(&task), attempt.clone().into()).unwrap();
                let heard = self.inbox.recv().await.unwrap();
                self.read += 1;
                assert_eq!(heard.seq, self.read);
            }
        }
    }

    /// Messages that the log holds, and those that it says are missing.
    fn told(folder: &Path) -> (Verified, u64) {
        let fine = verify(folder, &[]).unwrap();
        let mut missed = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                for line in std::fs::read_to_string(path).unwrap().lines() {
                    let record: serde_json::Value = serde_json::from_str(line).unwrap();
                    missed += record
                        .pointer("/gap/count")
                        .and_then(serde_json::Value::as_u64)
                        .unwrap_or(0);
                }
            }
        }
        (fine, missed)
    }

    #[tokio::test]
    async fn a_million_messages_while_the_disk_stands_still_all_arrive_and_what_was_missed_is_a_gap() {
        const MESSAGES: u64 = 1_000_000;
        let folder = TempDir::new().unwrap();
        let (held, redact) = stuck();
        let mut bus = Bus1::new();
        let auditing = Auditing::with(folder.path(), &bus.hub, Options::new(redact)).unwrap();
        // If anything here waited for the disk, it would wait for ever.
        bus.says(MESSAGES).await;
        drop(held);
        auditing.finish().await;
        let (fine, missed) = told(folder.path());
        assert_eq!(
            fine.envelopes + missed,
            MESSAGES,
            "everything is there or counted as missing"
        );
        assert!(missed > 0 && fine.gaps > 0 && fine.envelopes > 0, "{fine:?}");
    }

    #[tokio::test]
    async fn a_report_on_demand_does_not_wait_for_the_disk() {
        let folder = TempDir::new().unwrap();
        let (held, redact) = stuck();
        let mut bus = Bus1::new();
        let mut person = bus.hub.inbox(Role::User).unwrap();
        let auditing = Auditing::with(folder.path(), &bus.hub, Options::new(redact)).unwrap();
        bus.says(100).await;
        bus.hub.publish(Role::User, None, AuditQuery {}.into()).unwrap();
        let answer = tokio::time::timeout(crate::session::AUDIT_WAIT, person.recv()).await;
        let answer = answer.expect("an answer within three seconds").unwrap();
        let Message::AuditReport(report) = &answer.payload else {
            panic!("{answer:?}")
        };
        assert_eq!(report.trigger, "on-demand");
        drop(held);
        auditing.finish().await;
    }

    /// The time between two reports is the one that was set, and each begins a new window.
    #[tokio::test]
    async fn reports_come_by_themselves_in_the_period_that_was_set() {
        let folder = TempDir::new().unwrap();
        let mut bus = Bus1::new();
        let mut person = bus.hub.inbox(Role::User).unwrap();
        let redactor = Redactor::new(Vec::new());
        let auditing = Auditing::start(folder.path(), &bus.hub, redactor, Millis(50)).unwrap();
        bus.says(3).await;
        let mut end = None;
        for _ in 0..2 {
            let answer = person.recv().await.unwrap();
            let Message::AuditReport(report) = &answer.payload else {
                panic!("{answer:?}")
            };
            assert_eq!(report.trigger, "periodic");
            assert!(report.window_end.since(report.window_start) >= Millis(50), "{report:?}");
            assert!(end.is_none_or(|end| end == report.window_start), "{report:?}");
            end = Some(report.window_end);
        }
        auditing.finish().await;
    }

    /// Options of an auditor that breaks where this says so, and where one hears of it.
    fn breaking(breaks: impl Fn() -> bool + Send + Sync + 'static) -> (Options, Receiver<String>) {
        let (said, heard) = channel();
        let redact: Redact = Arc::new(move |text| if breaks() { panic!("killed by the test") } else { text });
        let options = Options {
            tell: Arc::new(move |words| said.send(words.to_owned()).unwrap()),
            ..Options::new(redact)
        };
        (options, heard)
    }

    /// Waits until the person is told, with nothing more to be seen and long before the end.
    async fn hear(heard: &Receiver<String>) -> String {
        loop {
            match heard.try_recv() {
                Ok(words) => return words,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn an_auditor_that_dies_takes_nothing_along() {
        let folder = TempDir::new().unwrap();
        // Whoever makes a report breaks: that is the auditor's own thread.
        let (options, heard) = breaking(|| !on_writer());
        let mut bus = Bus1::new();
        let auditing = Auditing::with(folder.path(), &bus.hub, options).unwrap();
        bus.says(10).await;
        bus.hub.publish(Role::User, None, AuditQuery {}.into()).unwrap();
        assert!(hear(&heard).await.contains("the auditor broke"));
        bus.read += 1;
        bus.says(50_000).await;
        auditing.finish().await;
        let (fine, missed) = told(folder.path());
        assert_eq!(fine.envelopes + missed, 50_011, "{fine:?}");
        assert!(fine.envelopes > 11, "it goes on recording: {fine:?}");
        assert_eq!(fine.notes, 1, "and says from where on nobody looks");
        assert!(heard.try_recv().is_err(), "told once");
        // Nothing was kept of what it had counted: all is counted from the log.
        let counted = artoo_auditor::overview(folder.path(), SystemClock.now()).unwrap();
        assert_eq!(counted.totals.messages, fine.envelopes);
    }

    #[tokio::test]
    async fn a_writer_that_dies_takes_nothing_along() {
        let folder = TempDir::new().unwrap();
        let (options, heard) = breaking(on_writer);
        let mut bus = Bus1::new();
        let auditing = Auditing::with(folder.path(), &bus.hub, options).unwrap();
        bus.says(1).await;
        assert!(hear(&heard).await.contains("could not be masked"));
        bus.says(50_000).await;
        auditing.finish().await;
        let (fine, missed) = told(folder.path());
        assert_eq!((fine.envelopes, missed), (0, 50_001), "{fine:?}");
        assert!(heard.try_recv().is_err(), "told once");
    }

    /// What cannot be masked is lost, and nothing else.
    #[tokio::test]
    async fn one_record_that_cannot_be_masked_is_one_gap() {
        let folder = TempDir::new().unwrap();
        let once = AtomicBool::new(true);
        let (options, heard) = breaking(move || on_writer() && once.swap(false, Ordering::Relaxed));
        let mut bus = Bus1::new();
        let auditing = Auditing::with(folder.path(), &bus.hub, options).unwrap();
        bus.says(1).await;
        hear(&heard).await;
        bus.says(10).await;
        auditing.finish().await;
        let (fine, missed) = told(folder.path());
        assert_eq!((fine.envelopes, fine.gaps, missed), (10, 1, 1), "{fine:?}");
    }

    /// A millisecond passes whenever somebody looks.
    #[derive(Default)]
    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// Where messages come without end, the report comes in its time all the same.
    #[tokio::test]
    async fn a_storm_does_not_hold_the_report_up() {
        let folder = TempDir::new().unwrap();
        let mut bus = Bus1::on(Arc::new(Ticking::default()));
        let mut person = bus.hub.inbox(Role::User).unwrap();
        let (finish, finished) = oneshot::channel();
        let options = Options {
            period: Millis(500),
            ..Options::new(Arc::new(|text| text))
        };
        let mut seat = Seat {
            recorder: Recorder::start(folder.path(), bus.hub.now(), options).unwrap(),
            tap: bus.hub.tap_with_deeds("auditor", TAP),
            taken: VecDeque::new(),
            hub: bus.hub.clone(),
            finished,
            over: false,
        };
        // The tap always holds something, and then the end is there.
        bus.says(1_000).await;
        finish.send(()).unwrap();
        seat.watch().await;
        let report = person.try_recv().unwrap();
        assert_eq!(report.payload.kind().name(), "AuditReport");
        seat.recorder.finish(bus.hub.now()).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_delays_nobody() {
        let folder = TempDir::new().unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("audit.jsonl")).unwrap();
        let mut bus = Bus1::new();
        let auditing = Auditing::with(folder.path(), &bus.hub, Options::new(Arc::new(|text| text))).unwrap();
        bus.says(50_000).await;
        auditing.finish().await;
        let kept = artoo_auditor::read_stats(folder.path()).past.ledger.totals;
        assert!(kept.messages > 0, "the counts are kept all the same");
    }
}

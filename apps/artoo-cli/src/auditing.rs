//! The auditor's place in this process: a tap feeds it, its reports go to the person (design §16).
//!
//! Owns the way from the tap to the recorder and back, and the thread on which the auditor runs: whatever it does, slowly or
//! wrongly, takes no time from a task. The auditor is fed; it has no handle on the bus.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use artoo_auditor::{Gap, Observed, Options, Recorder, Redact};
use artoo_bus::journal::Redactor;
use artoo_bus::{Hub, Tap, TapItem};
use artoo_protocol::message::AuditReport;
use artoo_protocol::ports::Bus;
use artoo_protocol::{Millis, Role};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::output;

/// Messages that the auditor may lag behind before it misses some, which it then records.
const TAP: usize = 8_192;

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
        let cannot = |e: &dyn std::fmt::Display| {
            Failure::usage(format!("the audit log cannot be written: {e}"))
                .hint("artoo audit verify says more; or use another --data-dir")
        };
        // Everything that is written is JSON; what is not would rather be left out than be written unmasked.
        let redact: Redact = Arc::new(move |text| redactor.json(text).unwrap_or_else(|_| "null".to_owned()));
        let options = Options {
            period,
            ..Options::new(redact)
        };
        let recorder = Recorder::start(data, hub.now(), options).map_err(|e| cannot(&e))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| cannot(&e))?;
        // What is addressed to the auditor comes through the tap as well.
        drop(hub.inbox(Role::R6));
        let tap = hub.tap_with_deeds("auditor", TAP);
        let (finish, finished) = oneshot::channel();
        let hub = hub.clone();
        let thread = std::thread::Builder::new()
            .name("auditor".to_owned())
            .spawn(move || runtime.block_on(watch(recorder, tap, hub, finished)))
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
            output::note("artoo: the auditor broke; what it wrote until then is whole");
        }
    }
}

async fn watch(mut recorder: Recorder, mut tap: Tap, hub: Hub, mut finished: oneshot::Receiver<()>) {
    loop {
        let wait = recorder.deadline().since(hub.now());
        let report = tokio::select! {
            biased;
            item = tap.recv() => match item {
                Some(item) => recorder.observe(hub.now(), observed(item)),
                None => break,
            },
            _ = &mut finished => break,
            () = tokio::time::sleep(wait.to_duration()) => recorder.wake(hub.now()),
        };
        publish(&hub, report);
    }
    while let Some(item) = tap.try_recv() {
        let _ = recorder.observe(hub.now(), observed(item));
    }
    // Waits for the disk.
    if let Err(error) = recorder.finish(hub.now()) {
        output::note(&format!("artoo: the audit log is not complete: {error}"));
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
        }),
    }
}

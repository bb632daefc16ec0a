//! The auditor's place in this process: a tap feeds it, its reports go to the person (design §16).
//!
//! Owns the way from the tap to the recorder and back. The auditor is fed; it has no handle on the bus.

use std::path::Path;
use std::sync::Arc;

use artoo_auditor::{Gap, Observed, REPORT_PERIOD, Recorder, Redact};
use artoo_bus::journal::Redactor;
use artoo_bus::{Hub, Tap, TapItem};
use artoo_protocol::Role;
use artoo_protocol::message::AuditReport;
use artoo_protocol::ports::Bus;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::output;

/// Messages that the auditor may lag behind before it misses some, which it then records.
const TAP: usize = 65_536;

/// The running auditor.
pub struct Auditing {
    finish: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Auditing {
    /// Continues the log of the data folder.
    ///
    /// # Errors
    /// [`Failure`] when the log cannot be opened: artoo does not work unobserved.
    pub fn start(data: &Path, hub: &Hub, redactor: Redactor) -> Result<Self, Failure> {
        let redact: Redact = Arc::new(move |value| redactor.value(value));
        let recorder = Recorder::start(data, hub.now(), REPORT_PERIOD, redact).map_err(|e| {
            Failure::usage(format!("the audit log cannot be written: {e}"))
                .hint("artoo audit verify says more; or use another --data-dir")
        })?;
        // What is addressed to the auditor comes through the tap as well.
        drop(hub.inbox(Role::R6));
        let tap = hub.tap("auditor", TAP);
        let (finish, finished) = oneshot::channel();
        let task = tokio::spawn(watch(recorder, tap, hub.clone(), finished));
        Ok(Self { finish, task })
    }

    /// Writes down what is left and ends.
    pub async fn finish(self) {
        // The receiver only goes away with its task.
        let _ = self.finish.send(());
        let _ = self.task.await;
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
    let now = hub.now();
    // Waits for the disk.
    match tokio::task::spawn_blocking(move || recorder.finish(now)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => output::note(&format!("artoo: the audit log is not complete: {error}")),
        Err(error) => output::note(&format!("artoo: the auditor broke: {error}")),
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
        TapItem::Gap(gap) => Observed::Gap(Gap {
            from_seq: gap.from_seq,
            to_seq: gap.to_seq,
            count: gap.count,
        }),
    }
}

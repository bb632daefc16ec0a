//! The Dreamer's place in this process: what it hears, what it may spend, and where it is accounted (design §15, §19).
//!
//! Owns the way from bus and memory to the Dreamer, its account `dreams.jsonl`, and the bound on the time that it may take at the
//! end. Decides nothing about memories.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use artoo_bus::journal::Redactor;
use artoo_bus::{Hub, Price, SystemClock, TapItem};
use artoo_memory::dreamer::{Around, Call, Dreamer, MaySpend, Outcome, Params, Told};
use artoo_memory::view::GroupKey;
use artoo_protocol::model::Usage;
use artoo_protocol::ports::{Clock, LanguageModel, MemoryService};
use artoo_protocol::text::one_line;
use artoo_protocol::{Act, CallId, Finite, Message, Millis};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::late_memory::LateMemory;
use crate::output;

/// What the Dreamer did and what it cost, a line each, in the data folder.
pub const ACCOUNT: &str = "dreams.jsonl";
/// How long the end of the process may wait for dreams: a question to a model that is under way, at most.
pub const LAST_DREAM: Millis = Millis::from_seconds(10);
/// Messages that the Dreamer may lag behind. It only misses when to begin.
const TAP: usize = 4_096;
/// When the account is begun anew; the one before is kept beside it.
const ACCOUNT_MAX: u64 = 4 << 20;

/// What a dreaming process is put together from.
pub struct Wiring {
    /// The bus, for when tasks end.
    pub hub: Hub,
    /// The store.
    pub memory: Arc<LateMemory>,
    /// What was written to memory.
    pub written: UnboundedReceiver<GroupKey>,
    /// Words rules; `None` where there is no model that can.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// The hard limits of a task bind the dreams of a process too.
    pub max_tokens: Option<u64>,
    /// In the currency of the price table.
    pub max_cost: Option<f64>,
    /// What models cost.
    pub price: Price,
    /// The data folder.
    pub data: PathBuf,
    /// Masks secrets in the account.
    pub redactor: Redactor,
    /// Whether the person wants to hear of it.
    pub quiet: bool,
}

/// The running Dreamer.
pub struct Dreaming {
    finish: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Dreaming {
    /// Begins when the store is open; never, when it cannot be opened.
    pub fn start(wiring: Wiring) -> Self {
        let (finish, finished) = oneshot::channel();
        Self {
            finish,
            task: tokio::spawn(dream(wiring, finished)),
        }
    }

    /// Ends without looking at what is left.
    pub fn give_up(self) {
        drop(Stopping(self.task));
    }

    /// Looks at what is left, for at most [`LAST_DREAM`], and ends. Dropping this future ends it at once.
    pub async fn finish(self) {
        let _ = self.finish.send(());
        let mut task = Stopping(self.task);
        let _ = (&mut task.0).await;
    }
}

/// Stops the task when nobody waits for it any more.
struct Stopping(JoinHandle<()>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn dream(wiring: Wiring, mut finished: oneshot::Receiver<()>) {
    let mut tap = wiring.hub.tap("dreamer", TAP);
    // Whoever ends the process meanwhile waits for the store as well.
    let Ok(memory) = wiring.memory.opened().await else {
        return;
    };
    let around = around(&wiring);
    let mut written = wiring.written;
    let dreamer = Dreamer::start(memory.records(), Params::default(), around);
    loop {
        tokio::select! {
            biased;
            _ = &mut finished => break,
            Some(group) = written.recv() => dreamer.wrote(group),
            item = tap.recv() => match item {
                Some(TapItem::Envelope(envelope)) if matches!(envelope.payload, Message::FinalResult(_)) => dreamer.ended(),
                // A gap may hide an ending; to dream once too often costs nothing.
                Some(TapItem::Gap(_)) => dreamer.ended(),
                Some(TapItem::Envelope(_) | TapItem::Deed(_)) => {}
                None => break,
            },
        }
    }
    while let Ok(group) = written.try_recv() {
        dreamer.wrote(group);
    }
    // What the task has just taught is in the store before it is looked at.
    if memory.flush().await.is_ok() {
        dreamer.finish(LAST_DREAM).await;
    }
}

fn around(wiring: &Wiring) -> Around {
    let (hub, quiet) = (wiring.hub.clone(), wiring.quiet);
    let account = Account::new(&wiring.data, wiring.redactor.clone());
    let (bus, paid, asked) = (hub.clone(), Arc::clone(&wiring.price), AtomicU32::new(1));
    Around {
        clock: Arc::new(SystemClock),
        model: wiring.model.clone(),
        is_busy: Arc::new(move || !hub.open_tasks().is_empty()),
        may_spend: may_spend(wiring.max_tokens, wiring.max_cost, Arc::clone(&wiring.price)),
        tell: Arc::new(move |told: &Told| {
            if let Told::Asked(call) = told {
                let cost = paid(&call.model, &call.usage);
                for act in acts(call, CallId(asked.fetch_add(1, Ordering::Relaxed)), cost) {
                    bus.dreamt(act);
                }
            }
            account.told(told, quiet);
        }),
    }
}

/// Whether a model may be asked once more, after so much: within the limits of tokens and money.
pub fn may_spend(max_tokens: Option<u64>, max_cost: Option<f64>, price: Price) -> MaySpend {
    Arc::new(move |model: &str, spent: &Usage| {
        let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
        max_tokens.is_none_or(|limit| tokens < limit) && max_cost.is_none_or(|limit| price(model, spent) < limit)
    })
}

/// A question of the Dreamer as the auditor hears of it.
pub fn acts(asked: &Call, call: CallId, cost: f64) -> Vec<Act> {
    let answered = || Act::ModelAnswered {
        call,
        model: asked.model.clone(),
        usage: asked.usage,
        elapsed_ms: asked.elapsed,
        cost: Finite::new(cost).unwrap_or_default(),
    };
    let form = "sop".to_owned();
    let mut acts = vec![Act::ModelAsked { call, form }];
    match &asked.outcome {
        Outcome::Rule { id, .. } => acts.extend([answered(), Act::Stored { megram: id.clone() }]),
        Outcome::NoRule(_) => acts.push(answered()),
        Outcome::Failed(why) => acts.push(Act::ModelFailed {
            call,
            error: one_line(why, 300),
            usage: asked.usage,
            cost: Finite::new(cost).unwrap_or_default(),
        }),
    }
    acts
}

/// Where dreams are written down.
#[derive(Clone)]
pub struct Account {
    path: PathBuf,
    redactor: Redactor,
}

impl Account {
    /// Of a data folder; secrets are masked.
    pub fn new(data: &Path, redactor: Redactor) -> Self {
        Self {
            path: data.join(ACCOUNT),
            redactor,
        }
    }

    /// One question to a model.
    pub fn call(&self, call: &Call) {
        self.write(call.to_json());
    }

    fn told(&self, told: &Told, quiet: bool) {
        match told {
            Told::Passed(tidied) => {
                self.write(json!({"kind": "pass", "at": SystemClock.now(), "groups": tidied.groups,
                "entries": tidied.entries, "forgotten": tidied.forgotten, "promoted": tidied.promoted,
                "demoted": tidied.demoted, "folded": tidied.folded, "unfinished": tidied.unfinished}));
            }
            Told::Asked(call) => {
                if let (Outcome::Rule { words, .. }, false) = (&call.outcome, quiet) {
                    let words = self.redactor.text(words);
                    output::note(&format!("memory    learned a rule: {}", one_line(&words, 160)));
                }
                self.call(call);
            }
            Told::Trouble(error) => output::note(&format!("artoo: memory could not be put in order: {error}")),
        }
    }

    fn write(&self, mut line: Value) {
        self.redactor.value(&mut line);
        if let Err(error) = append(&self.path, &line) {
            output::note(&format!("artoo: {} cannot be written: {error}", self.path.display()));
        }
    }
}

fn append(path: &Path, line: &Value) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() >= ACCOUNT_MAX) {
        std::fs::rename(path, path.with_extension("jsonl.before"))?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// What dreams cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls of a model.
    pub calls: u64,
    /// Rules that came of them.
    pub rules: u64,
    /// Tokens in and out.
    pub tokens: u64,
}

/// Sums the account of a data folder; nothing where there is none.
pub fn spent(data: &Path) -> Spent {
    let mut spent = Spent::default();
    for name in [ACCOUNT.to_owned(), format!("{ACCOUNT}.before")] {
        let text = std::fs::read_to_string(data.join(name)).unwrap_or_default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line.get("kind").and_then(Value::as_str) != Some("call") {
                continue;
            }
            let tokens = |name: &str| {
                line.pointer(&format!("/usage/{name}"))
                    .and_then(Value::as_u64)
                    .unwrap_or(0)
            };
            spent.calls += 1;
            spent.rules += u64::from(line.get("outcome").and_then(Value::as_str) == Some("rule"));
            spent.tokens += tokens("input_tokens") + tokens("output_tokens");
        }
    }
    spent
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_memory::dreamer::{Consolidation, Sign};
    use artoo_protocol::{MegramId, Timestamp};

    #[test]
    fn every_question_of_the_dreamer_is_accounted_without_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ACCOUNT);
        let call = Call {
            at: Timestamp::default(),
            about: Consolidation {
                key: GroupKey::new("intent:count_the_files", "env:local"),
                sign: Sign::Practice,
                attention: 5.4,
                decision: 5.4,
                sources: vec![MegramId::new("1")],
                supersedes: None,
            },
            model: "m".to_owned(),
            usage: Usage {
                input_tokens: 70,
                output_tokens: 7,
                cached_tokens: 0,
                requests: 1,
                estimated: false,
            },
            elapsed: Millis(900),
            outcome: Outcome::Rule {
                id: MegramId::new("2"),
                words: "Log in with hunter2-hunter2.".to_owned(),
            },
        };
        let redactor = Redactor::new(["hunter2-hunter2".to_owned()]);
        Account::new(folder.path(), redactor).told(&Told::Asked(Box::new(call)), true);
        let expect = Spent {
            calls: 1,
            rules: 1,
            tokens: 77,
        };
        assert_eq!(spent(folder.path()), expect);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

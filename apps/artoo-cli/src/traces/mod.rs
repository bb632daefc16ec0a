//! Traces of tasks for a collector of the person's own, off unless one is configured (docs/traces.md, design §16).
//!
//! Owns the way from the end of a task to the collector: a thread that hears of it through a tap, reads the task's journal and sends
//! what [`spans`] makes of it. Whatever the collector does, it takes no time from a task, changes none, and holds the end of the
//! program for no longer than [`LAST`].

mod otlp;
mod spans;
mod told;
mod weaver;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use artoo_bus::journal::read;
use artoo_bus::{Hub, Tap, TapItem};
use artoo_llm::provider::Wire;
use artoo_protocol::model::Tier;
use artoo_protocol::{Message, TaskId};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::sync::{mpsc, oneshot};

use self::spans::{About, Called, trace};
use crate::output;
use crate::settings::{self, ModelChoice, Settings};

/// How long the end of the program waits for a collector.
pub const LAST: Duration = Duration::from_millis(500);
/// Messages that the tap may lag behind.
const TAP: usize = 8_192;
/// Tasks whose traces may wait; one more is not sent, and that is told.
const QUEUE: usize = 16;
/// How long a collector may take to be reached, and to take one request.
const CONNECT: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(10);

/// The running exporter.
pub struct Traces {
    finish: oneshot::Sender<()>,
    done: oneshot::Receiver<()>,
    told: Arc<Once>,
}

impl Traces {
    /// Listens for the ends of tasks; `None` where no collector is configured. What it needs is made on its own thread, for certificates
    /// take their time to be read; where that fails it is told, and no task is the worse for it.
    pub fn start(settings: &Settings, hub: &Hub) -> Option<Self> {
        let to = settings.traces.clone()?;
        let told = Arc::new(Once::default());
        let tap = hub.tap("traces", TAP);
        let (finish, finished) = oneshot::channel();
        let (over, done) = oneshot::channel();
        let (settings, mouth) = (settings.clone(), Arc::clone(&told));
        let begun = std::thread::Builder::new().name("traces".to_owned()).spawn(move || {
            if let Err(why) = export(&settings, &to, tap, finished, &mouth) {
                mouth.tell(&format!("none are sent: {why}"));
            }
            // Nobody may wait any more.
            let _ = over.send(());
        });
        if let Err(why) = begun {
            told.tell(&format!("none are sent: {why}"));
            return None;
        }
        Some(Self { finish, done, told })
    }

    /// Sends what is left, within [`LAST`].
    pub async fn finish(self) {
        let _ = self.finish.send(());
        if tokio::time::timeout(LAST, self.done).await.is_err() {
            self.told
                .tell("the collector is too slow, so the last trace may be missing there");
        }
    }
}

/// What goes wrong is told once in the life of the program: it concerns the collector and no task.
#[derive(Default)]
struct Once(AtomicBool);

impl Once {
    fn tell(&self, why: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            output::note(&format!("artoo: traces: {why}"));
        }
    }
}

/// All that the thread does.
fn export(
    settings: &Settings,
    to: &settings::Traces,
    tap: Tap,
    finished: oneshot::Receiver<()>,
    told: &Arc<Once>,
) -> Result<(), String> {
    let exporter = Exporter::new(settings, to, Arc::clone(told))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(watch(tap, exporter, finished));
    Ok(())
}

/// Hears of ends and sends traces at the same time, so that a slow collector does not make the tap overflow.
async fn watch(mut tap: Tap, exporter: Exporter, mut finished: oneshot::Receiver<()>) {
    let (queue, mut waiting) = mpsc::channel::<TaskId>(QUEUE);
    let told = Arc::clone(&exporter.told);
    let hear = |item: &TapItem| match item {
        TapItem::Envelope(envelope) => {
            if let Message::FinalResult(result) = &envelope.payload
                && queue.try_send(result.task_id.clone()).is_err()
            {
                told.tell("the collector is too slow, so some traces are missing there");
            }
        }
        TapItem::Gap(_) => told.tell("so much happened at once that some traces may be missing"),
        TapItem::Deed(_) => {}
    };
    let hearing = async {
        loop {
            tokio::select! {
                item = tap.recv() => match item {
                    Some(item) => hear(&item),
                    None => break,
                },
                _ = &mut finished => break,
            }
        }
        while let Some(item) = tap.try_recv() {
            hear(&item);
        }
    };
    let sending = async {
        while let Some(task) = waiting.recv().await {
            if let Err(why) = exporter.send(&task).await {
                exporter.told.tell(&why);
            }
        }
    };
    tokio::pin!(sending);
    tokio::select! {
        () = hearing => {}
        () = &mut sending => {}
    }
    drop(queue);
    sending.await;
}

struct Exporter {
    client: Client,
    endpoint: Url,
    service: String,
    conversation: Option<String>,
    models: Vec<(Tier, Called)>,
    journals: PathBuf,
    told: Arc<Once>,
}

impl Exporter {
    fn new(settings: &Settings, to: &settings::Traces, told: Arc<Once>) -> Result<Self, String> {
        let endpoint = Url::parse(&to.endpoint).map_err(|e| e.to_string())?;
        Ok(Self {
            client: client(&endpoint, &to.headers).map_err(|e| why(e.as_ref()))?,
            endpoint,
            service: to.service.clone(),
            conversation: settings.session.clone(),
            models: models(settings),
            journals: settings.data_dir.join("tasks"),
            told,
        })
    }

    /// Sends the trace of a task that has ended.
    async fn send(&self, task: &TaskId) -> Result<(), String> {
        for request in self.requests(task)? {
            let sent = self
                .client
                .post(self.endpoint.clone())
                .body(request.encode_to_vec())
                .send();
            let answer = sent.await.map_err(|error| self.unsent(&causes(&error)))?;
            // What else it says is not read: a collector that takes a part only knows why, and nothing here would change.
            if !answer.status().is_success() {
                return Err(self.unsent(&format!("it answers with status {}", answer.status().as_u16())));
            }
        }
        Ok(())
    }

    fn unsent(&self, why: &str) -> String {
        let shown = artoo_llm::provider::shown(self.endpoint.as_str());
        format!("the collector at {shown} did not take the trace: {why}")
    }

    fn requests(
        &self,
        task: &TaskId,
    ) -> Result<Vec<opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest>, String> {
        let records = journal(&self.journals, task)?;
        let about = About {
            conversation: self.conversation.as_deref(),
            models: &|tier| self.called(tier),
        };
        let trace = trace(&records, &about).ok_or_else(|| format!("the journal of {task} is empty"))?;
        Ok(otlp::requests(&trace, &self.service))
    }

    fn called(&self, tier: Tier) -> Called {
        let known = self.models.iter().find(|(of, _)| *of == tier);
        known.map(|(_, called)| called.clone()).unwrap_or_default()
    }
}

fn journal(folder: &Path, task: &TaskId) -> Result<Vec<artoo_protocol::journal::Record>, String> {
    let found = read::find(folder, task).map_err(|e| e.to_string())?;
    let found = found.ok_or_else(|| format!("the journal of {task} is gone"))?;
    read::read_file(&found.path)
        .map(|contents| contents.records)
        .map_err(|e| format!("{}: {e}", found.path.display()))
}

fn client(endpoint: &Url, headers: &[(String, String)]) -> Result<Client, Box<dyn std::error::Error>> {
    // An error means that a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)?;
        value.set_sensitive(true);
        all.insert(HeaderName::from_bytes(name.as_bytes())?, value);
    }
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    let mut builder = Client::builder()
        .default_headers(all)
        .connect_timeout(CONNECT)
        .timeout(REQUEST)
        .user_agent(concat!("artoo/", env!("CARGO_PKG_VERSION")))
        // The headers may hold a key, which goes nowhere but where the person said.
        .redirect(redirect::Policy::none());
    if endpoint.scheme() != "https" {
        // Loading the root certificates costs tens of milliseconds.
        builder = builder.tls_certs_only([]);
    }
    if is_this_machine(endpoint) {
        builder = builder.no_proxy();
    }
    Ok(builder.build()?)
}

/// No proxy knows the way to it.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// An error with what caused it; the address is named by the caller, and what may be secret in it is not.
fn causes(error: &reqwest::Error) -> String {
    let mut words = causes_below(error);
    if error.is_timeout() {
        words.insert(0, "it does not answer in time".to_owned());
    }
    words.dedup();
    words.join(": ")
}

/// An error that names no address, with what caused it.
fn why(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = vec![error.to_string()];
    words.extend(causes_below(error));
    words.dedup();
    words.join(": ")
}

fn causes_below(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let mut words = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push(inner.to_string());
        cause = inner.source();
    }
    words
}

/// Who answers on which tier. On a replay that is a recording, whatever is configured.
fn models(settings: &Settings) -> Vec<(Tier, Called)> {
    let judges = &settings.judges;
    let tiers = [
        (Tier::Brain, Some(&settings.brain)),
        (Tier::Tool, Some(&settings.tool)),
        (Tier::Judge, judges.own.as_ref()),
        (Tier::SecondJudge, judges.second.as_ref()),
    ];
    let named = tiers.into_iter().filter_map(|(tier, choice)| Some((tier, choice?)));
    named
        .map(|(tier, choice)| {
            let called = match settings.replay {
                Some(_) => Called {
                    provider: "recording",
                    ..Called::default()
                },
                None => called(choice),
            };
            (tier, called)
        })
        .collect()
}

fn called(choice: &ModelChoice) -> Called {
    match choice {
        ModelChoice::Offline => Called {
            provider: "artoo",
            model: Some(choice.name().to_owned()),
            server: None,
        },
        ModelChoice::Endpoint {
            wire, base_url, model, ..
        } => Called {
            provider: match wire {
                Wire::OpenAi => "openai",
                Wire::Anthropic => "anthropic",
                Wire::Gemini => "gcp.gemini",
            },
            model: Some(model.clone()),
            server: Url::parse(base_url)
                .ok()
                .and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?))),
        },
    }
}

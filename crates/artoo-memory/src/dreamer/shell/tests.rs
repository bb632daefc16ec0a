//! The loop on virtual time, with a model that is a script.

use super::*;
use crate::kv::InMemoryKv;
use crate::records::Edit;
use crate::testing::{at, megram};
use artoo_protocol::message::{Level, MacroState};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply, ModelRequest};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

const SPACE: &str = "intent:count_the_files";

/// The virtual time of the runtime.
struct Virtual(tokio::time::Instant);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        let passed = tokio::time::Instant::now().duration_since(self.0);
        at().plus(Millis(u64::try_from(passed.as_millis()).unwrap()))
    }
}

/// Answers every question in the same way, after a while.
struct Model {
    answer: Result<Value, ModelError>,
    takes: Millis,
    asked: AtomicUsize,
}

#[async_trait]
impl LanguageModel for Model {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        sleep(self.takes.to_duration()).await;
        self.answer.clone().map(|value| ModelReply {
            content: ModelContent::Structured { value },
            model: "scripted".to_owned(),
            usage: Usage {
                input_tokens: 70,
                output_tokens: 7,
                cached_tokens: 0,
                requests: 1,
                estimated: false,
            },
            elapsed_ms: self.takes,
        })
    }
}

fn answering(answer: Result<Value, ModelError>, takes: Millis) -> Arc<Model> {
    Arc::new(Model {
        answer,
        takes,
        asked: AtomicUsize::new(0),
    })
}

fn store() -> Arc<Records> {
    let records = Records::open(Arc::new(InMemoryKv::new())).unwrap();
    let edits: Vec<Edit> = (0..6)
        .map(|i| {
            let mut event = megram(&i.to_string(), SPACE, "env:local", 0.9, 1.0);
            event.state = MacroState::Accept;
            Edit::Store(event)
        })
        .collect();
    records.commit(&edits, at()).unwrap();
    Arc::new(records)
}

fn rules(records: &Records) -> Vec<String> {
    let rules = records.level(Level::C).unwrap();
    rules.into_iter().map(|rule| rule.content).collect()
}

struct Bed {
    records: Arc<Records>,
    dreamer: Dreamer,
    told: Arc<Mutex<Vec<Told>>>,
    busy: Arc<AtomicBool>,
}

fn bed(model: Option<Arc<Model>>) -> Bed {
    bed_on(store(), model, Arc::new(|_, _| true))
}

fn bed_on(records: Arc<Records>, model: Option<Arc<Model>>, may_spend: MaySpend) -> Bed {
    let told = Arc::new(Mutex::new(Vec::new()));
    let busy = Arc::new(AtomicBool::new(false));
    let (hears, is_busy) = (Arc::clone(&told), Arc::clone(&busy));
    let around = Around {
        clock: Arc::new(Virtual(tokio::time::Instant::now())),
        model: model.map(|model| model as Arc<dyn LanguageModel>),
        is_busy: Arc::new(move || is_busy.load(Ordering::Relaxed)),
        may_spend,
        tell: Arc::new(move |what| hears.lock().unwrap().push(what.clone())),
    };
    // The store was gone over just now.
    let mut batch = Batch::new();
    batch.put(keys::DREAMT, at().to_string());
    records.kv().apply(batch).unwrap();
    Bed {
        dreamer: Dreamer::start(Arc::clone(&records), Params::default(), around),
        records,
        told,
        busy,
    }
}

impl Bed {
    fn touched(&self) {
        self.dreamer.wrote(GroupKey::new(SPACE, "env:local"));
        self.dreamer.ended();
    }

    fn calls(&self) -> Vec<Outcome> {
        let told = self.told.lock().unwrap();
        told.iter()
            .filter_map(|what| match what {
                Told::Asked(call) => Some(call.outcome.clone()),
                Told::Passed(_) | Told::Trouble(_) => None,
            })
            .collect()
    }
}

/// Work on the blocking pool takes real time while virtual time stands still or runs ahead; so wait for what is to come.
async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_so() {
            return;
        }
        sleep(Millis(5).to_duration()).await;
    }
    panic!("it did not come");
}

fn practice() -> Value {
    json!({"rule": "Count with find."})
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_distilled_shortly_after_a_task_and_accounted() {
    let bed = bed(Some(answering(Ok(practice()), Millis(900))));
    bed.touched();
    until(|| !bed.calls().is_empty()).await;
    assert_eq!(rules(&bed.records), ["Count with find."]);
    let told = bed.told.lock().unwrap().clone();
    let [Told::Passed(tidied), Told::Asked(call)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(tidied.promoted, 6);
    assert_eq!(
        (call.usage.input_tokens, call.model.as_str(), call.elapsed),
        (70, "scripted", Millis(900))
    );
    let account = call.to_json();
    assert_eq!(
        (&account["role"], &account["critical_path"]),
        (&json!("dreamer"), &json!(false))
    );
    assert_eq!(
        account["sources"].as_array().unwrap().len(),
        6,
        "a rule has its evidence"
    );
}

#[tokio::test(start_paused = true)]
async fn no_model_is_asked_while_a_task_runs() {
    let model = answering(Ok(practice()), Millis(0));
    let bed = bed(Some(Arc::clone(&model)));
    bed.busy.store(true, Ordering::Relaxed);
    bed.touched();
    until(|| !bed.told.lock().unwrap().is_empty()).await;
    sleep(Millis::from_seconds(60).to_duration()).await;
    assert_eq!(model.asked.load(Ordering::Relaxed), 0);
    bed.busy.store(false, Ordering::Relaxed);
    until(|| !bed.calls().is_empty()).await;
    assert_eq!(rules(&bed.records).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_only_the_way_up_to_rules_is_left_out() {
    let bed = bed(None);
    bed.touched();
    until(|| !bed.told.lock().unwrap().is_empty()).await;
    bed.dreamer.finish(Millis::from_seconds(5)).await;
    assert_eq!(bed.records.level(Level::K).unwrap().len(), 6);
    assert_eq!(bed.records.level(Level::C).unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_answer_or_finds_nothing_is_not_asked_again_at_once() {
    let unreachable = ModelError::Unreachable {
        message: "down".to_owned(),
    };
    for answer in [Ok(json!({"rule": ""})), Err(unreachable)] {
        let model = answering(answer, Millis(0));
        let bed = bed(Some(Arc::clone(&model)));
        bed.touched();
        until(|| !bed.calls().is_empty()).await;
        assert!(matches!(
            bed.calls().as_slice(),
            [Outcome::NoRule(_) | Outcome::Failed(_)]
        ));
        bed.touched();
        sleep(Millis::from_seconds(700).to_duration()).await;
        bed.dreamer.finish(Millis::from_seconds(5)).await;
        assert_eq!(model.asked.load(Ordering::Relaxed), 1);
        assert_eq!(rules(&bed.records).len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn no_model_is_asked_any_more_once_nothing_may_be_spent() {
    let records = store();
    let other: Vec<Edit> = (10..16)
        .map(|i| {
            let mut event = megram(&i.to_string(), "intent:count_the_lines", "env:local", 0.9, 1.0);
            event.state = MacroState::Accept;
            Edit::Store(event)
        })
        .collect();
    records.commit(&other, at()).unwrap();
    let model = answering(Ok(practice()), Millis(0));
    let bed = bed_on(
        records,
        Some(Arc::clone(&model)),
        Arc::new(|_, spent| spent.requests < 1),
    );
    let both = |dreamer: &Dreamer| {
        dreamer.wrote(GroupKey::new("intent:count_the_lines", "env:local"));
        dreamer.wrote(GroupKey::new(SPACE, "env:local"));
        dreamer.ended();
    };
    both(&bed.dreamer);
    until(|| !bed.calls().is_empty()).await;
    both(&bed.dreamer);
    sleep(Millis::from_seconds(700).to_duration()).await;
    both(&bed.dreamer);
    bed.dreamer.finish(Millis::from_seconds(5)).await;
    assert_eq!(
        model.asked.load(Ordering::Relaxed),
        1,
        "the other group waits for another day"
    );
    assert_eq!(rules(&bed.records).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_does_what_was_touched_and_waits_no_longer_than_it_may() {
    let bed = bed(Some(answering(Ok(practice()), Millis(1_000))));
    bed.touched();
    bed.dreamer.finish(Millis::from_seconds(5)).await;
    assert_eq!(rules(&bed.records), ["Count with find."], "no settling at the end");

    let slow = answering(Ok(practice()), Millis::from_seconds(3_600));
    let bed = self::bed(Some(Arc::clone(&slow)));
    bed.touched();
    let begun = tokio::time::Instant::now();
    bed.dreamer.finish(Millis::from_seconds(5)).await;
    assert!(begun.elapsed() <= Millis(5_500).to_duration(), "{:?}", begun.elapsed());
    assert_eq!(rules(&bed.records).len(), 0);
    assert_eq!(
        bed.records.level(Level::K).unwrap().len(),
        6,
        "what needs no model is done"
    );
    assert!(bed.records.verify().unwrap().is_sound());
}

#[tokio::test(start_paused = true)]
async fn everything_is_gone_over_every_five_minutes() {
    let bed = bed(Some(answering(Ok(practice()), Millis(0))));
    sleep(Millis::from_seconds(290).to_duration()).await;
    assert_eq!(bed.calls(), [], "nothing was touched");
    until(|| !bed.calls().is_empty()).await;
    assert_eq!(rules(&bed.records).len(), 1);
}

/// A store too large for one end is gone over in parts: each process goes on where the one before was stopped.
#[test]
fn an_unfinished_pass_says_where_the_next_one_goes_on() {
    let records = store();
    let group = GroupKey::new(SPACE, "env:local");
    let mut tidied = Tidied {
        unfinished: true,
        reached: Some(group.clone()),
        ..Tidied::default()
    };
    note_progress(&records, &Scope::Everything, &tidied, at()).unwrap();
    let reached = records.kv().get(keys::DREAMT_TO.as_bytes()).unwrap().unwrap();
    let [space, entity] = <[String; 2]>::try_from(keys::parts(&reached).unwrap()).unwrap();
    assert_eq!(GroupKey { space, entity }, group);
    assert_eq!(records.kv().get(keys::DREAMT.as_bytes()).unwrap(), None);
    tidied.unfinished = false;
    note_progress(&records, &Scope::After(group), &tidied, at()).unwrap();
    assert_eq!(records.kv().get(keys::DREAMT_TO.as_bytes()).unwrap(), None);
    assert!(records.kv().get(keys::DREAMT.as_bytes()).unwrap().is_some());
}

/// A clock that is a year ahead makes everything old; so nothing is forgotten until it has gone on like that for a day.
#[tokio::test(start_paused = true)]
async fn what_looks_old_is_not_forgotten_before_the_clock_is_trusted() {
    let records = store();
    let mut old = megram("old", SPACE, "env:local", 0.5, 1.0);
    old.created_at = Timestamp::from_millis(at().as_millis() - 400 * 86_400_000);
    records.store(&old).unwrap();
    let bed = bed_on(records, None, Arc::new(|_, _| true));
    bed.touched();
    let promoted = || !bed.records.level(Level::K).unwrap().is_empty();
    until(promoted).await;
    assert!(
        bed.records.get(&old.id).unwrap().is_some(),
        "the first pass forgets nothing"
    );
    sleep(Millis(23 * 3_600_000).to_duration()).await;
    assert!(bed.records.get(&old.id).unwrap().is_some());
    sleep(Millis(2 * 3_600_000).to_duration()).await;
    until(|| bed.records.get(&old.id).unwrap().is_none()).await;
}

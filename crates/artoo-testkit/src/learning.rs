//! Does memory change the next plan for the better? Families of tasks whose first plan fails, played with and without memory.
//!
//! The model here knows nothing that its prompt does not say: it has a fixed order of ways from the seed and takes the first one
//! that no line of the prompt speaks against, or one that a line speaks for. What works is known to the machine alone.
//!
//! Owns the families, the model and the count of rounds. Must not know how memory works.

use artoo_memory::Records;
use artoo_memory::dreamer::establish::establish;
use artoo_memory::dreamer::{Mode, Params, Pass, Scope};
use artoo_memory::junk::{Junk, measure};
use artoo_protocol::message::Ending;
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::prompt::{PromptError, read_section};
use artoo_protocol::{Message, Millis, Role, TaskId, Timestamp};
use serde_json::{Value, json};

use crate::journal::Journals;
use crate::random::Random;
use crate::scene::Scene;
use crate::scripted::{form_name, structured, text_reply, tool_reply, tool_results, user_text};
use crate::surroundings::Reply;
use crate::whole::{self, Settings};

const THINGS: [&str; 8] = [
    "invoices", "photos", "recipes", "letters", "tickets", "songs", "maps", "orders",
];
const WAYS: [&str; 6] = ["cutting", "grepping", "sorting", "folding", "joining", "pasting"];
/// Words by which a line of a prompt speaks against what it names.
const AGAINST: [&str; 6] = [
    "MUST NOT",
    "failed",
    "do not repeat",
    "Not again",
    "exited with",
    "another way",
];
/// And for it.
const FOR: [&str; 2] = ["SHOULD PREFER", "worked"];
const MOST_EVENTS: usize = 100_000;

/// One kind of task.
#[derive(Clone, Debug)]
pub struct Family {
    thing: String,
    /// In the order in which the model would try them.
    ways: Vec<&'static str>,
    /// The one that works; never the first.
    works: &'static str,
}

impl Family {
    /// The family of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // A word of its own, so that no two families share their lessons.
        let thing = format!("{}{seed}", random.pick(&THINGS).copied().unwrap_or("invoices"));
        let mut ways: Vec<&str> = WAYS.to_vec();
        for at in (1..ways.len()).rev() {
            let other = usize::try_from(random.below(at as u64 + 1)).unwrap_or(0);
            ways.swap(at, other);
        }
        ways.truncate(4);
        let works = if random.chance(50) { ways.get(1) } else { ways.get(2) };
        Self {
            thing,
            works: works.copied().unwrap_or("cutting"),
            ways,
        }
    }

    /// The request in one of two wordings.
    pub fn request(&self, reworded: bool) -> String {
        if reworded {
            format!("please count all the {} and put the number into number.txt", self.thing)
        } else {
            format!("count the {} and write the number to number.txt", self.thing)
        }
    }

    /// What the model would do next, by what its prompt says.
    fn next_way(&self, prompt: &str) -> &'static str {
        let forbidden = read_section(prompt, "must_not").unwrap_or_default();
        let names = |line: &str, way: &str| line.contains(way);
        let spoken = |way: &str, words: &[&str]| {
            prompt
                .lines()
                .any(|line| names(line, way) && words.iter().any(|word| line.contains(word)))
        };
        let is_bad = |way: &str| names(&forbidden, way) || spoken(way, &AGAINST);
        let liked = self.ways.iter().find(|way| spoken(way, &FOR) && !is_bad(way));
        let open = self.ways.iter().find(|way| !is_bad(way));
        liked
            .or(open)
            .or_else(|| self.ways.first())
            .copied()
            .unwrap_or("cutting")
    }

    fn answer(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let prompt = user_text(request);
        match form_name(request) {
            "task_spec" => Ok(structured(
                json!({"slug": "count_things", "intent": self.understood(prompt), "scope": null,
                "deadline": null, "clarify": [], "direct_answer": null}),
            )),
            "plan" => Ok(structured(self.plan(self.next_way(prompt)))),
            "tools" if tool_results(request) > 0 => Ok(text_reply("done")),
            "tools" => {
                let subtask = read_section(prompt, "subtask").unwrap_or_default();
                let way = self
                    .ways
                    .iter()
                    .find(|way| subtask.contains(**way))
                    .copied()
                    .unwrap_or_default();
                Ok(if way == self.works {
                    tool_reply("write_file", json!({"path": "number.txt", "content": "42"}))
                } else {
                    tool_reply("shell", json!({"command": format!("false {way}")}))
                })
            }
            "partial_result" => Ok(structured(json!({"achieved": "", "failed": "", "next_steps": []}))),
            other => Err(ModelError::Unusable {
                message: format!("this model does not know `{other}`"),
            }),
        }
    }

    fn understood(&self, prompt: &str) -> String {
        let reworded = prompt.contains("please count all");
        let mut intent = self.request(reworded);
        if let Some(first) = intent.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        intent
    }

    fn plan(&self, way: &str) -> Value {
        json!({"task_criteria": [], "subtasks": [{"sequence": 1, "intent": format!("Count the {} by {way}", self.thing), "context": "",
            "tools": [], "success_criteria": [{"criterion": "number.txt holds the number", "mode": "verifiable",
            "check": {"kind": "file_contains", "path": "number.txt", "pattern": "^42$"}}]}]})
    }
}

/// What one task came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// Plans that were carried out.
    pub rounds: usize,
    /// Whether it was achieved.
    pub achieved: bool,
    /// The subtask of its first plan.
    pub first_plan: String,
    /// What memory told its first plan.
    pub told: String,
}

/// Whether memory may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Neither read nor written.
    Nothing,
    /// As the store gives it.
    Memory,
    /// With a pass of the Dreamer, rules included, after every task.
    Dreams,
}

/// Plays one task after the other on one machine whose `number.txt` is gone before each; `reworded` says how each is asked for.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn play(seed: u64, with: With, reworded: &[bool]) -> Result<Vec<Came>, PromptError> {
    let family = Family::of(seed);
    let mind = {
        let family = family.clone();
        Box::new(move |_: Role, request: &ModelRequest| Reply {
            after: Millis(10),
            value: family.answer(request),
        })
    };
    let mut scene = Scene::new(mind);
    scene.memory.down = with == With::Nothing;
    let mut world = whole::system(&Settings::default(), scene)?;
    let mut came = Vec::new();
    for (number, reworded) in (1_u32..).zip(reworded) {
        world.surroundings.machine.files.clear();
        let (asked, said) = (world.surroundings.asked.len(), world.log.len());
        let input = whole::input(number, &family.request(*reworded), false);
        let task = input.task_id.clone();
        world.say(Role::User, Millis(0), input);
        world.run(MOST_EVENTS);
        came.push(outcome(&world, &task, asked, said));
        if with == With::Dreams
            && let Some(records) = world.surroundings.memory.records()
        {
            dream(records, world.now(), &family);
        }
    }
    Ok(came)
}

fn outcome(world: &crate::World<Scene>, task: &TaskId, asked: usize, said: usize) -> Came {
    let manifests: Vec<&str> = world
        .log
        .iter()
        .skip(said)
        .filter_map(|envelope| match &envelope.payload {
            Message::DispatchManifest(manifest) => manifest.subtasks.first().map(|subtask| subtask.intent.as_str()),
            _ => None,
        })
        .collect();
    let prompts = world.surroundings.asked.iter().skip(asked);
    let told = prompts
        .filter(|(role, _)| *role == Role::R2)
        .map(|(_, request)| read_section(user_text(request), "memory").unwrap_or_default())
        .next();
    Came {
        rounds: manifests.len(),
        achieved: whole::end(world, task).is_some_and(|end| end.directive != Ending::Abandon),
        first_plan: manifests.first().map(|intent| (*intent).to_owned()).unwrap_or_default(),
        told: told.unwrap_or_default(),
    }
}

/// A pass as between two tasks; a rule is worded from the newest lesson alone, as a model would word it that reads no more.
fn dream(records: &Records, now: Timestamp, family: &Family) {
    let pass = Pass {
        records,
        params: Params::default(),
        now,
        mode: Mode::Perform,
        stop: &|| false,
        on_action: &mut |_, _| {},
    }
    .run(&Scope::Everything);
    for proposal in pass.map(|tidied| tidied.proposals).unwrap_or_default() {
        let lessons = records.get_many(&proposal.sources).unwrap_or_default();
        // The rule says what the lessons say: a way that none of them names is not named either.
        let named = family
            .ways
            .iter()
            .find(|way| lessons.iter().any(|lesson| lesson.content.contains(**way)));
        let words = named.map_or_else(
            || format!("Count the {} as before: it worked.", family.thing),
            |way| format!("Count the {} by {way}.", family.thing),
        );
        let _ = establish(records, &proposal, &words, now);
    }
}

/// What many seeds came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Families played.
    pub families: usize,
    /// Rounds of all second tasks without memory.
    pub without: usize,
    /// And with it.
    pub with: usize,
    /// Families whose second task was achieved in fewer rounds with memory, or with memory only.
    pub better: usize,
    /// The other way round.
    pub worse: usize,
    /// Second tasks that were achieved with memory, and without.
    pub achieved: (usize, usize),
}

/// Plays the seeds twice each; every other family asks for its second task in other words.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn compare(seeds: std::ops::Range<u64>) -> Result<Score, PromptError> {
    let mut score = Score::default();
    for seed in seeds {
        let wording = [false, seed % 2 == 1];
        let (without, with) = (
            play(seed, With::Nothing, &wording)?,
            play(seed, With::Memory, &wording)?,
        );
        let ([_, without], [_, with]) = (without.as_slice(), with.as_slice()) else {
            continue;
        };
        score.families += 1;
        score.without += without.rounds;
        score.with += with.rounds;
        let shorter = |one: &Came, other: &Came| one.achieved && (!other.achieved || one.rounds < other.rounds);
        score.better += usize::from(shorter(with, without));
        score.worse += usize::from(shorter(without, with));
        score.achieved.0 += usize::from(with.achieved);
        score.achieved.1 += usize::from(without.achieved);
    }
    Ok(score)
}

/// The junk of a memory after so many tasks of some families, a fifth of them in other words, each so long after the one before.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn junk_after(tasks: u64, families: u64, apart: Millis, with: With) -> Result<Junk, PromptError> {
    let families: Vec<Family> = (0..families).map(Family::of).collect();
    let turn = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mind = {
        let (families, turn) = (families.clone(), std::sync::Arc::clone(&turn));
        Box::new(move |_: Role, request: &ModelRequest| Reply {
            after: Millis(10),
            value: match families.get(turn.load(std::sync::atomic::Ordering::Relaxed)) {
                Some(family) => family.answer(request),
                None => Err(ModelError::Unusable {
                    message: "no such family".to_owned(),
                }),
            },
        })
    };
    let mut world = whole::system(&Settings::default(), Scene::new(mind))?;
    let mut random = Random::new(7);
    for number in 0..tasks {
        let at = usize::try_from(random.below(families.len() as u64)).unwrap_or(0);
        let Some(family) = families.get(at) else { continue };
        turn.store(at, std::sync::atomic::Ordering::Relaxed);
        world.surroundings.machine.files.clear();
        let input = whole::input(
            u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1),
            &family.request(random.chance(20)),
            false,
        );
        world.say(Role::User, apart, input);
        world.run(MOST_EVENTS);
        // A long row must not be kept whole.
        world.log.clear();
        world.journals = Journals::default();
        world.surroundings.asked.clear();
        world.surroundings.memory.written.clear();
        if with == With::Dreams
            && let Some(records) = world.surroundings.memory.records()
        {
            dream(records, world.now(), family);
        }
    }
    let records = world.surroundings.memory.records();
    Ok(records.and_then(|records| measure(records).ok()).unwrap_or_default())
}

//! Plays a [`Trial`]: the whole system with everything against it, looked at after every single step (design §2).
//!
//! Owns when what happens, and what must hold beside the [`laws`]: every task ends once and in time, nothing is left
//! behind, and a replay decides the same.

use std::collections::BTreeMap;

use artoo_protocol::message::{Cause, TaskAborted};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::{Millis, Role, TaskId, Timestamp};

use crate::laws::{self, Watch};
use crate::machine::Machine;
use crate::minds::mind;
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::scene::{Mischief, Person, Scene};
use crate::trial::{Blow, Crash, Fault, Trial};
use crate::whole::{self, PATIENCE, Settings, Unknown};
use crate::world::World;

/// Events after which a run that has not come to rest counts as hung.
const MOST_EVENTS: usize = 200_000;

/// What came of one world.
pub struct Run {
    /// Causes of the endings of its tasks.
    pub causes: Vec<Cause>,
    /// Processes that died on the way.
    pub crashes: u64,
    /// The world at its end.
    pub world: World<Scene>,
    /// Everything that was wrong, that of the step that was wrong first; empty when all laws hold.
    pub wrongs: Vec<String>,
}

/// Plays the world of a seed to its end.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn play(seed: u64) -> Result<Run, PromptError> {
    play_trial(&Trial::of(seed))
}

/// Plays a world to its end, or to the first step that breaks a law.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn play_trial(trial: &Trial) -> Result<Run, PromptError> {
    play_with(trial, None)
}

/// The same with a role that does wrong on purpose.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn play_with(trial: &Trial, saboteur: Option<Saboteur>) -> Result<Run, PromptError> {
    let mut random = Random::new(trial.seed ^ 0x5eed);
    let settings = Settings {
        max_tokens: trial.max_tokens,
        ..Settings::default()
    };
    let mut world = whole::system(&settings, scene(trial, &mut random))?.sabotaged(saboteur);
    if trial.pace > 0 {
        world = world.paced(random.number(), Millis(trial.pace));
    }
    let tasks = trial.tasks.iter().map(|wanted| {
        let text = "Count the lines of the notes and write the number down";
        let input = whole::input(wanted.number, text, wanted.person);
        let task_id = input.task_id.clone();
        world.say(Role::User, Millis(wanted.after), input);
        if let Some(after) = wanted.stopped_after {
            let reason = "Ctrl+C".to_owned();
            let task_id = task_id.clone();
            world.say(Role::User, Millis(after), TaskAborted { task_id, reason });
        }
        task_id
    });
    let tasks: Vec<TaskId> = tasks.collect();
    let deadline = world.now().plus(PATIENCE);
    let mut play = Play {
        settings: &settings,
        tasks: &tasks,
        faults: trial.faults.iter().copied().peekable(),
        watches: BTreeMap::new(),
        offered: &whole::offered(),
        deadline,
        crashes: 0,
        // Sometimes on the way, and at the end anyway; whoever goes on after a crash replays too.
        replayed_at: if random.chance(15) { random.below(200) } else { u64::MAX },
    };
    let wrongs = match play.until_rest(&mut world) {
        Ok(End::AtRest) => play.at_rest(&world)?,
        Ok(End::NeverBegun) => never_begun(&world),
        Ok(End::Over) => play.over(&world)?,
        Err(wrongs) => wrongs,
    };
    let ends = tasks.iter().filter_map(|task| whole::end(&world, task));
    Ok(Run {
        causes: ends.map(|end| end.cause).collect(),
        crashes: play.crashes,
        world,
        wrongs,
    })
}

/// How a play ends, unless a law is broken.
enum End {
    AtRest,
    /// The process died before the task was written down: nobody goes on.
    NeverBegun,
    /// The process died after the end of the task was written down: nobody has to go on.
    Over,
}

struct Play<'a, F: Iterator<Item = Fault>> {
    settings: &'a Settings,
    tasks: &'a [TaskId],
    faults: std::iter::Peekable<F>,
    /// By the suffix of the task.
    watches: BTreeMap<String, Watch<'a>>,
    offered: &'a [String],
    deadline: Timestamp,
    crashes: u64,
    replayed_at: u64,
}

impl<F: Iterator<Item = Fault>> Play<'_, F> {
    fn until_rest(&mut self, world: &mut World<Scene>) -> Result<End, Vec<String>> {
        self.light(world);
        for _ in 0..MOST_EVENTS {
            let goes_on = world.advance();
            self.look(world)?;
            if world.journals.is_dead() {
                let Some(Fault {
                    what: Blow::Crash(crash),
                    ..
                }) = self.faults.next()
                else {
                    return Err(vec!["a process died without a reason".to_owned()]);
                };
                if let Some(end) = self.die(world, crash)? {
                    return Ok(end);
                }
                self.light(world);
            } else if !goes_on {
                return Ok(End::AtRest);
            }
            self.strike(world);
        }
        Err(vec![format!("no rest after {MOST_EVENTS} events")])
    }

    /// Everything that must hold after every step.
    fn look(&mut self, world: &World<Scene>) -> Result<(), Vec<String>> {
        let mut wrongs = world.faults.clone();
        for (suffix, records) in world.journals.all() {
            let watch = match self.watches.get_mut(suffix) {
                Some(watch) => watch,
                None => self
                    .watches
                    .entry(suffix.to_owned())
                    .or_insert_with(|| Watch::new(self.offered)),
            };
            records
                .get(watch.seen()..)
                .unwrap_or_default()
                .iter()
                .for_each(|record| watch.see(record));
            wrongs.extend(watch.wrongs().iter().map(|wrong| format!("task {suffix}: {wrong}")));
        }
        if world.now() > self.deadline {
            wrongs.push(format!("no rest before {}", world.now()));
        }
        if world.journals.written() >= self.replayed_at {
            self.replayed_at = u64::MAX;
            for (suffix, records) in world.journals.all_on_disk() {
                let differences = whole::not_the_same(self.settings, suffix, records);
                wrongs.extend(differences.map_err(|error| vec![error.to_string()])?);
            }
        }
        if wrongs.is_empty() { Ok(()) } else { Err(wrongs) }
    }

    /// Everything that must hold at the end.
    fn at_rest(&self, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
        let mut wrongs = whole::wrongs_at_rest(self.settings, world)?;
        if self.tasks.iter().any(|task| whole::end(world, task).is_none()) {
            wrongs.push("a task has no FinalResult".to_owned());
        }
        Ok(wrongs)
    }

    /// Everything that must hold of what a process left behind that died after the end: the disk holds all of it.
    fn over(&self, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
        let mut wrongs = whole::wrongs_of_journals(self.settings, world)?;
        for (suffix, records) in world.journals.all_on_disk() {
            if !laws::has_end(records) {
                wrongs.push(format!("task {suffix}: its FinalResult is not on disk"));
            }
            let broken = laws::broken(records, self.offered);
            wrongs.extend(broken.into_iter().map(|wrong| format!("task {suffix}: {wrong}")));
        }
        Ok(wrongs)
    }

    /// Prepares the next crash, if it is the next thing to happen.
    fn light(&mut self, world: &mut World<Scene>) {
        if let Some(Fault {
            at,
            what: Blow::Crash(crash),
        }) = self.faults.peek()
        {
            let at = (*at).max(world.journals.written() + 1);
            world.light(at, crash.last_deed);
        }
    }

    /// Lets everything happen that is due.
    fn strike(&mut self, world: &mut World<Scene>) {
        while let Some(fault) = self.faults.peek().copied() {
            if matches!(fault.what, Blow::Crash(_)) || fault.at > world.journals.written() {
                break;
            }
            self.faults.next();
            let full = match fault.what {
                Blow::Crash(_) => return,
                Blow::Clock(by) => {
                    let to = Timestamp::from_millis(world.now().as_millis().saturating_add(by));
                    world.jump(to);
                    self.deadline = Timestamp::from_millis(self.deadline.as_millis().saturating_add(by.max(0)));
                    world.journals.is_full()
                }
                Blow::DiskFull => true,
                Blow::DiskFree => false,
                Blow::MemoryDown | Blow::MemoryUp => {
                    world.surroundings.memory.down = fault.what == Blow::MemoryDown;
                    world.journals.is_full()
                }
            };
            world.journals.set_full(full);
            world.surroundings.machine.full = full;
            self.light(world);
        }
    }

    /// The process dies and another one goes on, unless there is nothing to go on with.
    fn die(&mut self, world: &mut World<Scene>, crash: Crash) -> Result<Option<End>, Vec<String>> {
        self.crashes += 1;
        let Some(task) = self.tasks.first() else {
            return Ok(Some(End::NeverBegun));
        };
        // Whoever goes on has made room before.
        world.journals.set_full(false);
        world.surroundings.machine.full = false;
        world.journals.forget_unwritten(task);
        if let Some(kept) = crash.power {
            world.lose_power(task, usize::try_from(kept).unwrap_or_default());
        }
        if let Some(torn) = crash.torn {
            let reread = world.journals.reread(task, usize::try_from(torn).unwrap_or_default());
            reread.map_err(|wrong| vec![wrong])?;
        }
        let records = world.journals.records(task);
        if records.len() < 2 {
            return Ok(Some(End::NeverBegun));
        }
        if laws::has_end(records) {
            return Ok(Some(End::Over));
        }
        // What the disk did not keep has never been said.
        self.watches.clear();
        let back_at = Timestamp::from_millis(world.now().as_millis().saturating_add(crash.away));
        self.deadline = Timestamp::from_millis(self.deadline.as_millis().saturating_add(crash.away.max(0)));
        let unknown = if crash.again { Unknown::DoAgain } else { Unknown::Leave };
        whole::crash_and_resume(self.settings, world, task, back_at, unknown).map_err(|wrong| vec![wrong])?;
        Ok(None)
    }
}

/// A task of which nothing is written down may have left nothing behind.
fn never_begun(world: &World<Scene>) -> Vec<String> {
    let done = world.deeds();
    let wrong = (done > 0).then(|| format!("{done} actions of a task that nobody knows of"));
    wrong.into_iter().collect()
}

fn scene(trial: &Trial, random: &mut Random) -> Scene {
    let mut scene = Scene::new(mind(Random::new(random.number()), trial.temper));
    scene.machine = Machine::with_files(&[("notes.txt", "one\ntwo\n"), ("/home/me/list", "a"), ("old.txt", "x")]);
    scene.mischief = Mischief::new(Random::new(random.number()), trial.mischief);
    scene.keeps_requests = false;
    scene.tool_takes = Millis(trial.tool_takes);
    scene.check_takes = Millis(trial.check_takes);
    scene.memory.takes = Millis(trial.memory_takes);
    scene.person = Person {
        consents: trial.consents.iter().copied().collect(),
        clarifications: ["the notes", "", "all of them"].map(str::to_owned).into(),
        takes: Millis(trial.person_takes),
    };
    scene
}

//! Plays a [`Trial`]: the whole system with everything against it, looked at after every single step (design §2).
//!
//! Owns when what happens, which process goes on with which task, and what must hold beside the [`laws`]: every task ends once and in
//! time, nothing is left behind, and a replay decides the same.

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
    /// Most tasks that one of them left to be gone on with.
    pub open_at_once: usize,
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
        max_cost: trial.max_cents.map(f64::from),
        ..Settings::default()
    };
    let mut world = whole::system(&settings, scene(trial, &mut random))?.sabotaged(saboteur.clone());
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
        waiting: Vec::new(),
        open_at_once: 0,
        unknown: Unknown::Leave,
    };
    let mut wrongs = match play.until_rest(&mut world) {
        Ok(()) => play.at_rest(&world)?,
        Err(wrongs) => wrongs,
    };
    if let (Some(cut), true) = (trial.cut, wrongs.is_empty()) {
        wrongs = taken_up_elsewhere(&settings, trial, &world, cut, saboteur)?;
    }
    let ends = tasks.iter().filter_map(|task| whole::end(&world, task));
    Ok(Run {
        causes: ends.map(|end| end.cause).collect(),
        crashes: play.crashes,
        open_at_once: play.open_at_once,
        world,
        wrongs,
    })
}

/// A journal of a world is cut behind any of its records, and a process of another world takes it up, whatever the first one did
/// behind that record: the task has to end, and the whole journal to replay.
fn taken_up_elsewhere(
    settings: &Settings,
    trial: &Trial,
    from: &World<Scene>,
    cut: u64,
    saboteur: Option<Saboteur>,
) -> Result<Vec<String>, PromptError> {
    let mut random = Random::new(cut);
    let Some((task, records)) = random
        .pick(&trial.tasks)
        .map(|wanted| whole::input(wanted.number, "", false).task_id)
        .map(|task| (task.clone(), from.journals.on_disk(&task)))
        .filter(|(_, records)| records.len() > 3)
    else {
        return Ok(Vec::new());
    };
    let left = 2 + usize::try_from(random.below(records.len() as u64 - 2)).unwrap_or_default();
    let records = records.get(..left).unwrap_or(records);
    if laws::has_end(records) {
        return Ok(Vec::new());
    }
    let mut scene = scene(trial, &mut random);
    scene.machine = from.surroundings.machine.clone();
    let mut world = whole::system(settings, scene)?.sabotaged(saboteur);
    world.put(&task, records);
    let back_at = records.last().map_or_else(whole::morning, |record| record.at);
    let at = |wrong: String| format!("cut behind record {left}: {wrong}");
    if let Err(wrong) = whole::crash_and_resume(settings, &mut world, &task, back_at, Unknown::Leave) {
        return Ok(vec![at(wrong)]);
    }
    if !world.run(MOST_EVENTS) {
        return Ok(vec![at(format!("no rest after {MOST_EVENTS} events"))]);
    }
    let mut wrongs = world.faults.clone();
    let records = world.journals.records(&task);
    if !laws::has_end(records) {
        wrongs.push("a task has no FinalResult".to_owned());
    }
    wrongs.extend(laws::broken(records, &whole::offered()));
    wrongs.extend(whole::not_the_same(settings, task.suffix(), records)?);
    Ok(wrongs.into_iter().map(at).collect())
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
    /// Tasks that lie on the disk since a process died; the last one is taken up next.
    waiting: Vec<TaskId>,
    open_at_once: usize,
    /// What the person says about what may have happened.
    unknown: Unknown,
}

impl<F: Iterator<Item = Fault>> Play<'_, F> {
    fn until_rest(&mut self, world: &mut World<Scene>) -> Result<(), Vec<String>> {
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
                self.die(world, crash)?;
                if !self.next_process(world, crash.away)? {
                    return self.look(world);
                }
                self.light(world);
            } else if !goes_on {
                if self.waiting.is_empty() {
                    return Ok(());
                }
                nothing_left(world)?;
                self.next_process(world, 0)?;
                self.light(world);
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
        for task in self.tasks {
            let records = world.journals.records(task);
            if self.crashes > 0 && records.len() < 2 {
                // The process died before the task was written down: nobody goes on.
                let done = world.deeds(task);
                if done > 0 {
                    wrongs.push(format!("{done} actions of a task that nobody knows of"));
                }
            } else if !laws::has_end(records) {
                wrongs.push("a task has no FinalResult".to_owned());
            }
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

    /// The process dies; what of its tasks can be read has to be gone on with.
    fn die(&mut self, world: &mut World<Scene>, crash: Crash) -> Result<(), Vec<String>> {
        self.crashes += 1;
        // Whoever goes on has made room before.
        world.journals.set_full(false);
        world.surroundings.machine.full = false;
        for task in self.tasks {
            world.forget_unwritten(task);
            if let Some(kept) = crash.power {
                world.lose_power(task, usize::try_from(kept).unwrap_or_default());
            }
            if let Some(torn) = crash.torn {
                let reread = world.journals.reread(task, usize::try_from(torn).unwrap_or_default());
                reread.map_err(|wrong| vec![wrong])?;
            }
        }
        // What the disk did not keep has never been said.
        self.watches.clear();
        self.unknown = if crash.again { Unknown::DoAgain } else { Unknown::Leave };
        let begun = self.tasks.iter().map(|task| (world.journals.records(task), task));
        let mut open: Vec<_> = begun
            .filter(|(records, _)| records.len() >= 2 && !laws::has_end(records))
            .map(|(records, task)| (records.first().map(|record| record.at), task.clone()))
            .collect();
        // The newest first, as the program offers them.
        open.sort_by_key(|(begun, _)| *begun);
        self.waiting = open.into_iter().map(|(_, task)| task).collect();
        self.open_at_once = self.open_at_once.max(self.waiting.len());
        Ok(())
    }

    /// Another process begins: with one of the tasks that wait, or with nothing where the person still wants something. `false` where
    /// nobody has to go on.
    fn next_process(&mut self, world: &mut World<Scene>, away: i64) -> Result<bool, Vec<String>> {
        let back_at = Timestamp::from_millis(world.now().as_millis().saturating_add(away));
        self.deadline = self.deadline.max(back_at).plus(PATIENCE);
        if let Some(task) = self.waiting.pop() {
            whole::crash_and_resume(self.settings, world, &task, back_at, self.unknown).map_err(|wrong| vec![wrong])?;
            return Ok(true);
        }
        // Whoever gives a task is there to see it begin.
        world.crash();
        if !world.is_spoken_to() {
            return Ok(false);
        }
        whole::begin_anew(self.settings, world, back_at).map_err(|error| vec![error.to_string()])?;
        Ok(true)
    }
}

/// A process that has come to rest holds no state any more.
fn nothing_left(world: &World<Scene>) -> Result<(), Vec<String>> {
    match world.open_tasks() {
        0 => Ok(()),
        left => Err(vec![format!("{left} states are left behind")]),
    }
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

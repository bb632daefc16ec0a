//! Runs with everything against them: random minds that err, lie and ramble, random people, faults and delays, all from
//! one seed (design §2).
//!
//! Owns the dice. What must hold nevertheless is said by [`laws`](crate::laws) and [`wrongs`].

use artoo_protocol::message::{BudgetKind, BudgetReached, Cause, Consent, TaskAborted};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::{Finite, Millis, Role, Timestamp};

use crate::laws;
use crate::machine::Machine;
use crate::minds::{Temper, mind};
use crate::random::Random;
use crate::scene::{NEVER, Person, Scene};
use crate::whole::{self, PATIENCE, Settings};
use crate::world::World;

/// Events after which a run that has not come to rest counts as hung.
const MOST_EVENTS: usize = 200_000;

/// What came of one seed.
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Causes of the endings of its tasks.
    pub causes: Vec<Cause>,
    /// The world at its end.
    pub world: World<Scene>,
    /// Everything that was wrong; empty when all laws hold.
    pub wrongs: Vec<String>,
}

/// Plays one seed to its end.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn play(seed: u64) -> Result<Run, PromptError> {
    let mut random = Random::new(seed);
    let settings = Settings::default();
    let mut world = whole::system(&settings, scene(&mut random))?;
    if random.chance(70) {
        world = world.paced(random.number(), Millis(random.below(3_000)));
    }
    // A process that takes tasks up takes up one, so a run with crashes has one.
    let crashes = if random.chance(35) { 1 + random.below(3) } else { 0 };
    let more = if crashes > 0 { 0 } else { random.below(3) };
    let tasks: Vec<_> = (0..=more).map(|at| begin(&mut world, &mut random, seed, at)).collect();
    let began = world.now();
    let mut wrongs = Vec::new();
    for _ in 0..crashes {
        if let Some(task) = tasks.first() {
            wrongs.extend(crash(&settings, &mut world, &mut random, task).err());
        }
    }
    let rests = world.run(MOST_EVENTS);
    wrongs.extend(whole::wrongs(&settings, &world)?);
    if !rests {
        wrongs.push(format!("no rest after {MOST_EVENTS} events"));
    }
    if world.now().since(began) > PATIENCE.saturating_add(Millis(crashes * AWAY)) {
        wrongs.push(format!("no rest before {}", world.now()));
    }
    let ends: Vec<_> = tasks.iter().map(|task| whole::end(&world, task)).collect();
    if ends.iter().any(Option::is_none) {
        wrongs.push("a task has no FinalResult".to_owned());
    }
    Ok(Run {
        seed,
        causes: ends.iter().flatten().map(|end| end.cause).collect(),
        world,
        wrongs,
    })
}

/// Longest time, in milliseconds, between a crash and the next process: three days.
const AWAY: u64 = 3 * 24 * 3_600_000;

/// The process dies somewhere on its way, sometimes with the power, and another one goes on; sometimes the clock was set back.
fn crash(
    settings: &Settings,
    world: &mut World<Scene>,
    random: &mut Random,
    task: &artoo_protocol::TaskId,
) -> Result<(), String> {
    let events = usize::try_from(random.below(120)).unwrap_or_default();
    if world.run(events) || world.journals.records(task).len() < 2 || laws::has_end(world.journals.records(task)) {
        return Ok(()); // It came to its end before, or had not begun.
    }
    if random.chance(30) {
        world
            .journals
            .lose(task, usize::try_from(random.below(20)).unwrap_or_default());
    }
    let back_at = if random.chance(10) {
        Timestamp::from_millis(world.now().as_millis().saturating_sub(3_600_000))
    } else {
        world.now().plus(Millis(random.below(AWAY)))
    };
    whole::crash_and_resume(settings, world, task, back_at)
}

fn begin(world: &mut World<Scene>, random: &mut Random, seed: u64, at: u64) -> artoo_protocol::TaskId {
    let number = u32::try_from(seed.wrapping_mul(4).wrapping_add(at) & 0xffff_ffff).unwrap_or_default();
    let input = whole::input(
        number,
        "Count the lines of the notes and write the number down",
        random.chance(70),
    );
    let task = input.task_id.clone();
    let start = Millis(random.below(20_000));
    world.say(Role::User, start, input);
    if random.chance(20) {
        let reason = "Ctrl+C".to_owned();
        let aborted = TaskAborted {
            task_id: task.clone(),
            reason,
        };
        world.say(Role::User, start.saturating_add(Millis(random.below(200_000))), aborted);
    }
    if random.chance(8) {
        let reached = BudgetReached {
            task_id: task.clone(),
            budget: BudgetKind::Tokens,
            used: Finite::default(),
            limit: Finite::default(),
        };
        world.say(
            Role::Runtime,
            start.saturating_add(Millis(random.below(200_000))),
            reached,
        );
    }
    task
}

fn scene(random: &mut Random) -> Scene {
    let temper = Temper {
        errs: percent(random, &[0, 0, 0, 0, 2, 10]),
        rambles: percent(random, &[0, 0, 0, 5, 30]),
        fails: percent(random, &[0, 0, 10, 30, 70, 100]),
        never: percent(random, &[0, 0, 0, 0, 2]),
        slow: percent(random, &[5, 500, 2_000, 5_000, 40_000]),
    };
    let mut scene = Scene::new(mind(Random::new(random.number()), temper));
    scene.machine = Machine::with_files(&[("notes.txt", "one\ntwo\n"), ("/home/me/list", "a"), ("old.txt", "x")]);
    scene.tool_takes = Millis(random.below(temper.slow));
    scene.check_takes = Millis(random.below(500));
    scene.memory.down = random.chance(10);
    let slow_memory = [Millis(0), Millis(1_500), Millis(2_500), NEVER];
    scene.memory.takes = random.pick(&slow_memory).copied().unwrap_or_default();
    let consents = [Consent::Yes, Consent::Always, Consent::No, Consent::Nobody];
    scene.person = Person {
        consents: (0..8).filter_map(|_| random.pick(&consents).copied()).collect(),
        clarifications: ["the notes", "", "all of them"].map(str::to_owned).into(),
        takes: Millis(random.below(60_000)),
    };
    scene
}

fn percent(random: &mut Random, of: &[u64]) -> u64 {
    random.pick(of).copied().unwrap_or_default()
}

//! What a seed stands for: a world worse than the real one, written down so that it can be repeated and made smaller (design §2).
//!
//! Owns the dice of a world and the ways in which a world becomes simpler. Plays nothing; that is [`chaos`](crate::chaos).

use artoo_protocol::message::Consent;
use serde::{Deserialize, Serialize};

use crate::minds::Temper;
use crate::random::Random;
use crate::scene::NEVER;

/// Everything that makes one world differ from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Of the dice that are thrown on the way.
    pub seed: u64,
    /// What the person wants done.
    pub tasks: Vec<Wanted>,
    /// Longest time that a message or an answer is on its way, in milliseconds.
    pub pace: u64,
    /// The model.
    pub temper: Temper,
    /// Tool calls of 100 that go wrong.
    pub mischief: u64,
    /// How long a tool takes, in milliseconds.
    pub tool_takes: u64,
    /// How long a check takes, in milliseconds.
    pub check_takes: u64,
    /// How long memory takes, in milliseconds; [`NEVER`] for one that does not answer.
    pub memory_takes: u64,
    /// What the person says to confirmations, one after the other.
    pub consents: Vec<Consent>,
    /// How long the person takes, in milliseconds.
    pub person_takes: u64,
    /// Hard limit of tokens.
    pub max_tokens: Option<u64>,
    /// Hard limit of money, in cents.
    #[serde(default)]
    pub max_cents: Option<u32>,
    /// What happens from outside, in this order.
    pub faults: Vec<Fault>,
    /// Afterwards a journal is cut behind any record, and a process of another world takes it up.
    #[serde(default)]
    pub cut: Option<u64>,
}

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Makes its id.
    pub number: u32,
    /// When, in milliseconds.
    pub after: u64,
    /// Whether somebody is there to be asked.
    pub person: bool,
    /// When the person stops it, in milliseconds.
    pub stopped_after: Option<u64>,
}

/// Something that happens when so many records are in the journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// How many.
    pub at: u64,
    /// What.
    pub what: Blow,
}

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blow {
    /// The process dies with that very record, and another one takes the task up.
    Crash(Crash),
    /// The clock is set, or the machine sleeps: by so many milliseconds.
    Clock(i64),
    /// The disk is full, for journals, tools and long outputs.
    DiskFull,
    /// The disk has room again.
    DiskFree,
    /// Memory can be neither read nor written.
    MemoryDown,
    /// Memory works again.
    MemoryUp,
}

/// How a process dies, and how the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// With the power, so that of what was not waited for only so many records are left.
    pub power: Option<u64>,
    /// The journal is read from its text, behind which so many bytes of another record stand.
    pub torn: Option<u64>,
    /// The action whose intention is the last record still happens.
    pub last_deed: bool,
    /// How much later the next one begins, in milliseconds; less than 0 where the clock was set back.
    pub away: i64,
    /// The person wants done again what may have been done.
    pub again: bool,
}

impl Trial {
    /// The world of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let random = &mut random;
        // A second stream, so that what is thrown of the first stands where it stood.
        let second = &mut Random::new(seed ^ 0x5ec0_0d00);
        let crashes = if random.chance(35) { 1 + random.below(3) } else { 0 };
        let more = if crashes > 0 { 0 } else { random.below(3) };
        let mut tasks: Vec<Wanted> = (0..=more).map(|at| wanted(random, seed, at)).collect();
        if crashes > 0 && second.chance(50) {
            let more = 1 + second.below(2);
            tasks.extend((1..=more).map(|at| wanted(second, seed, at)));
        }
        let mut faults: Vec<Fault> = (0..crashes).map(|_| at(random, |r| Blow::Crash(crash(r)))).collect();
        let others: [fn(&mut Random) -> Blow; 5] = [
            |r| Blow::Clock(clock(r)),
            |_| Blow::DiskFull,
            |_| Blow::DiskFree,
            |_| Blow::MemoryDown,
            |_| Blow::MemoryUp,
        ];
        for (blow, percent) in others.into_iter().zip([15, 6, 4, 12, 8]) {
            if random.chance(percent) {
                faults.push(at(random, blow));
            }
        }
        faults.sort_by_key(|fault| fault.at);
        let slow_memory = [0, 0, 1_500, 2_500, NEVER.0];
        let consents = [Consent::Yes, Consent::Always, Consent::No, Consent::Nobody];
        let temper = temper(random);
        Self {
            seed,
            tasks,
            pace: if random.chance(70) { random.below(3_000) } else { 0 },
            temper,
            mischief: percent(random, &[0, 0, 0, 5, 25]),
            tool_takes: random.below(temper.slow),
            check_takes: random.below(500),
            memory_takes: percent(random, &slow_memory),
            consents: (0..8).filter_map(|_| random.pick(&consents).copied()).collect(),
            person_takes: random.below(60_000),
            max_tokens: random.chance(8).then(|| 1 + random.below(60_000)),
            max_cents: second
                .chance(8)
                .then(|| 1 + u32::try_from(second.below(60)).unwrap_or_default()),
            faults,
            cut: second.chance(10).then(|| second.number()),
        }
    }

    /// Every world that is a little simpler than this one, the simplest first.
    pub fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        let mut offer = |change: &dyn Fn(&mut Self)| {
            let mut other = self.clone();
            change(&mut other);
            if other != *self {
                simpler.push(other);
            }
        };
        offer(&|t| t.faults.clear());
        for at in 0..self.faults.len() {
            offer(&|t| {
                t.faults.remove(at);
            });
        }
        for at in 0..self.tasks.len() {
            offer(&|t| {
                if t.tasks.len() > 1 {
                    t.tasks.remove(at);
                }
            });
        }
        offer(&|t| t.pace = 0);
        offer(&|t| t.mischief = 0);
        offer(&|t| t.temper.errs = 0);
        offer(&|t| t.temper.rambles = 0);
        offer(&|t| t.temper.fails = 0);
        offer(&|t| t.temper.never = 0);
        offer(&|t| t.temper.drips = 0);
        offer(&|t| t.temper.steps = 1);
        offer(&|t| t.temper.steps = t.temper.steps.saturating_sub(1).max(1));
        offer(&|t| t.temper.slow = 5);
        offer(&|t| t.tool_takes = 0);
        offer(&|t| t.check_takes = 0);
        offer(&|t| t.memory_takes = 0);
        offer(&|t| t.person_takes = 0);
        offer(&|t| t.max_tokens = None);
        offer(&|t| t.max_cents = None);
        offer(&|t| t.cut = None);
        for keep in [1, self.consents.len() / 2] {
            offer(&|t| t.consents.truncate(keep));
        }
        for at in 0..self.tasks.len() {
            let task = |change: fn(&mut Wanted)| move |t: &mut Self| t.tasks.get_mut(at).into_iter().for_each(change);
            offer(&task(|task| task.stopped_after = None));
            offer(&task(|task| task.after = 0));
            offer(&task(|task| task.person = false));
        }
        for at in 0..self.faults.len() {
            let fault = |change: fn(&mut Fault)| move |t: &mut Self| t.faults.get_mut(at).into_iter().for_each(change);
            offer(&fault(|fault| fault.what = fault.what.simpler()));
            offer(&fault(|fault| fault.at /= 2));
            offer(&fault(|fault| fault.at = fault.at.saturating_sub(1)));
        }
        simpler
    }
}

impl Blow {
    /// The same with as little beside it as can be.
    const fn simpler(self) -> Self {
        match self {
            Self::Crash(crash) => Self::Crash(Crash {
                power: None,
                torn: None,
                last_deed: crash.last_deed,
                away: 0,
                again: false,
            }),
            Self::Clock(by) => Self::Clock(by / 2),
            Self::DiskFull | Self::DiskFree | Self::MemoryDown | Self::MemoryUp => self,
        }
    }
}

/// Makes a broken world simpler for as long as it stays broken in the same way, with at most `plays` plays. `broken` says in which
/// way a world is broken.
pub fn shrink(trial: Trial, plays: usize, mut broken: impl FnMut(&Trial) -> Option<String>) -> Trial {
    let Some(way) = broken(&trial) else { return trial };
    let (mut best, mut left) = (trial, plays);
    loop {
        let mut found = None;
        for candidate in best.simpler() {
            if left == 0 {
                return best;
            }
            left -= 1;
            if broken(&candidate).as_ref() == Some(&way) {
                found = Some(candidate);
                break;
            }
        }
        match found {
            Some(simpler) => best = simpler,
            None => return best,
        }
    }
}

fn wanted(random: &mut Random, seed: u64, at: u64) -> Wanted {
    let after = random.below(20_000);
    Wanted {
        number: u32::try_from(seed.wrapping_mul(4).wrapping_add(at) & 0xffff_ffff).unwrap_or_default(),
        after,
        person: random.chance(70),
        stopped_after: random.chance(20).then(|| after + random.below(200_000)),
    }
}

/// At any record: half of the tasks have fewer than eighty.
fn at(random: &mut Random, what: impl Fn(&mut Random) -> Blow) -> Fault {
    let most = percent(random, &[30, 80, 200, 500]);
    Fault {
        at: 2 + random.below(most),
        what: what(random),
    }
}

fn crash(random: &mut Random) -> Crash {
    /// Longest time between two processes: three days.
    const AWAY: u64 = 3 * 24 * 3_600_000;
    let later = i64::try_from(random.below(AWAY)).unwrap_or_default();
    Crash {
        power: random.chance(30).then(|| random.below(20)),
        torn: random.chance(30).then(|| random.below(300)),
        last_deed: random.chance(50),
        away: if random.chance(10) { -3_600_000 } else { later },
        again: random.chance(20),
    }
}

fn clock(random: &mut Random) -> i64 {
    let by = i64::try_from(random.below(6 * 3_600_000)).unwrap_or_default();
    if random.chance(40) { -by } else { by }
}

fn temper(random: &mut Random) -> Temper {
    Temper {
        errs: percent(random, &[0, 0, 0, 0, 2, 10]),
        rambles: percent(random, &[0, 0, 0, 5, 30]),
        fails: percent(random, &[0, 0, 10, 30, 70, 100]),
        never: percent(random, &[0, 0, 0, 0, 2]),
        slow: percent(random, &[5, 500, 2_000, 5_000, 40_000]),
        drips: percent(random, &[0, 0, 0, 0, 3]),
        steps: 5,
    }
}

fn percent(random: &mut Random, of: &[u64]) -> u64 {
    random.pick(of).copied().unwrap_or_default()
}

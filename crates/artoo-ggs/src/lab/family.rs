//! Families of simulated tasks: what each stands for, and how one of its tasks is made.
//!
//! Owns the numbers of the dynamics. They were written down before any result was looked at, and none was changed to make a
//! policy win; whoever changes one changes the tables of `docs/controller-lab.md` too.

use artoo_protocol::Millis;

use super::dice::{Dice, Purpose};
use super::plant::{Approach, Noise, Task};

/// A family of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The first idea is right; faults come and go.
    TransientFaults,
    /// The first target is closed; a neighbour is open.
    BlockedPath,
    /// The tempting class of tools cannot do it; another can.
    WrongApproach,
    /// Nine ways in three classes, one of which is good enough.
    UnequalApproaches,
    /// The tempting way gets better with every round and never arrives.
    DeceptiveProgress,
    /// Any of the above, and verdicts that are often wrong.
    NoisyValidators,
    /// The right way from the start, which takes several rounds.
    SlowWork,
    /// Whatever is changed may break what held, and the whole is judged too.
    InteractingSubtasks,
    /// It cannot be done.
    Infeasible,
    /// A wrong approach or a blocked path, and time for two or three rounds.
    TightBudget,
    /// The first plan mostly works.
    Easy,
    /// The families above in the proportions of a published failure taxonomy.
    Mix,
}

impl Family {
    /// All, the mix last.
    pub const ALL: [Self; 12] = [
        Self::TransientFaults,
        Self::BlockedPath,
        Self::WrongApproach,
        Self::UnequalApproaches,
        Self::DeceptiveProgress,
        Self::NoisyValidators,
        Self::SlowWork,
        Self::InteractingSubtasks,
        Self::Infeasible,
        Self::TightBudget,
        Self::Easy,
        Self::Mix,
    ];

    /// The name used in tables and arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TransientFaults => "transient-faults",
            Self::BlockedPath => "blocked-path",
            Self::WrongApproach => "wrong-approach",
            Self::UnequalApproaches => "unequal-approaches",
            Self::DeceptiveProgress => "deceptive-progress",
            Self::NoisyValidators => "noisy-validators",
            Self::SlowWork => "slow-work",
            Self::InteractingSubtasks => "interacting-subtasks",
            Self::Infeasible => "infeasible",
            Self::TightBudget => "tight-budget",
            Self::Easy => "easy",
            Self::Mix => "mix",
        }
    }

    /// Which real failures it stands for.
    pub const fn stands_for(self) -> &'static str {
        match self {
            Self::TransientFaults => "rate limits, 503s, a lock held by another process, a flaky network",
            Self::BlockedPath => {
                "a file that moved, a folder without permission, a site that refuses: the same work elsewhere succeeds"
            }
            Self::WrongApproach => {
                "grep where a parser is needed, scraping where an interface exists, the wrong program for a format"
            }
            Self::UnequalApproaches => "several programs or libraries that do it more or less well",
            Self::DeceptiveProgress => {
                "patching symptoms: more tests pass each round, the design cannot pass the last ones"
            }
            Self::NoisyValidators => "a model as a judge that passes wrong results and fails right ones",
            Self::SlowWork => "long documents, migrations, data in many pages: right, and not finished",
            Self::InteractingSubtasks => {
                "two edits of one file, a report whose totals must agree, a fix that breaks another test"
            }
            Self::Infeasible => "data that does not exist, no access, contradictory wishes",
            Self::TightBudget => "slow tools under a short time limit",
            Self::Easy => "the ordinary task that works at once or after one correction",
            Self::Mix => "all of them in published proportions",
        }
    }

    /// The family of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Task number `number` of this family.
    pub fn task(self, seed: u64, number: u64) -> Task {
        self.make(&mut Dice::new(seed, self.stream(), number, Purpose::Making))
    }

    /// Its number in seeds, which must never change.
    pub(crate) const fn stream(self) -> u64 {
        self as u64
    }

    #[expect(clippy::too_many_lines, reason = "a table: one arm a family")]
    fn make(self, dice: &mut Dice) -> Task {
        let usual = usual(dice);
        match self {
            Self::TransientFaults => Task {
                outage: dice.between(0.4, 0.7),
                glitch: dice.between(0.1, 0.4),
                hit: dice.between(0.4, 1.0),
                open: vec![true; dice.count(1, 3)],
                ..usual
            },
            Self::BlockedPath => {
                let mut open = vec![false; dice.count(3, 5)];
                for _ in 0..dice.count(1, 2) {
                    let way = 1 + dice.below(open.len() - 1);
                    if let Some(way) = open.get_mut(way) {
                        *way = true;
                    }
                }
                Task {
                    hit: dice.between(0.5, 1.0),
                    open,
                    ..usual
                }
            }
            Self::WrongApproach => Task {
                approaches: wrong_and_right(dice, (0.3, 0.6), (0.8, 1.0)),
                ..usual
            },
            Self::UnequalApproaches => Task {
                approaches: unequal(dice),
                ..usual
            },
            Self::DeceptiveProgress => Task {
                approaches: deceptive(dice),
                ..usual
            },
            Self::NoisyValidators => {
                let like = [
                    Self::TransientFaults,
                    Self::BlockedPath,
                    Self::WrongApproach,
                    Self::UnequalApproaches,
                ];
                let family = like.get(dice.below(like.len())).copied().unwrap_or(Self::WrongApproach);
                Task {
                    noise: Noise {
                        false_pass: dice.between(0.1, 0.25),
                        false_fail: dice.between(0.05, 0.15),
                        class: 0.2,
                    },
                    checked: 0,
                    ..family.make(dice)
                }
            }
            Self::SlowWork => Task {
                approaches: vec![
                    way(0, 2.0, dice.between(0.2, 0.4), 1.0, dice.between(0.3, 0.5)),
                    way(
                        1,
                        1.0,
                        dice.between(0.1, 0.4),
                        dice.between(0.6, 1.0),
                        dice.between(0.2, 0.4),
                    ),
                ],
                ..usual
            },
            Self::InteractingSubtasks => Task {
                approaches: vec![
                    way(0, 1.5, dice.between(0.4, 0.7), 1.0, dice.between(0.5, 0.7)),
                    way(1, 1.0, dice.between(0.4, 0.7), 1.0, dice.between(0.4, 0.7)),
                ],
                whole: 2,
                coupling: dice.between(0.1, 0.2),
                subtasks: 3,
                ..usual
            },
            Self::Infeasible => {
                let closed = dice.chance(0.4);
                let mut approaches = unequal(dice);
                if !closed {
                    for approach in &mut approaches {
                        approach.ceiling = approach.ceiling.min(0.7);
                        approach.base = approach.base.min(approach.ceiling);
                    }
                }
                Task {
                    open: vec![!closed; dice.count(1, 3)],
                    hit: 1.0,
                    candour: dice.between(0.2, 0.6),
                    approaches,
                    ..usual
                }
            }
            Self::TightBudget => {
                let family = if dice.chance(0.5) {
                    Self::WrongApproach
                } else {
                    Self::BlockedPath
                };
                Task {
                    budget: Millis(120_000),
                    attempt_ms: (15_000.0, 25_000.0),
                    ..family.make(dice)
                }
            }
            Self::Easy => Task {
                approaches: vec![way(0, 2.0, dice.between(0.85, 1.1).min(1.0), 1.0, 0.8)],
                glitch: 0.1,
                ..usual
            },
            Self::Mix => {
                let shares = MIX.iter().map(|(_, share, _)| *share);
                let family = dice.weighted(shares).and_then(|position| MIX.get(position));
                family.map_or(Self::WrongApproach, |(family, _, _)| *family).make(dice)
            }
        }
    }
}

/// The mix: a family, its share in percent, and the failure mode of the taxonomy that it is taken for. Shares are those of MAST
/// (Cemri et al., <https://arxiv.org/abs/2503.13657>, third version, its figure of the taxonomy); which family stands for which mode is
/// this project's judgement.
#[rustfmt::skip]
pub const MIX: [(Family, f64, &str); 15] = [
    (Family::WrongApproach,       11.8, "1.1 disobeys the task's specification"),
    (Family::UnequalApproaches,    1.5, "1.2 disobeys the role's specification"),
    (Family::BlockedPath,         15.7, "1.3 repeats steps"),
    (Family::InteractingSubtasks,  2.8, "1.4 loses the history"),
    (Family::Infeasible,           6.2, "1.5 does not know when to stop (half of it)"),
    (Family::TightBudget,          6.2, "1.5 does not know when to stop (the other half)"),
    (Family::TransientFaults,      2.2, "2.1 the conversation is reset"),
    (Family::UnequalApproaches,    6.8, "2.2 does not ask for clarification"),
    (Family::DeceptiveProgress,    7.4, "2.3 derails"),
    (Family::InteractingSubtasks,  0.9, "2.4 withholds information"),
    (Family::InteractingSubtasks,  1.9, "2.5 ignores another's input"),
    (Family::SlowWork,            13.2, "2.6 does other than it reasons"),
    (Family::SlowWork,             6.2, "3.1 ends too early"),
    (Family::NoisyValidators,      8.2, "3.2 verifies incompletely or not at all"),
    (Family::NoisyValidators,      9.1, "3.3 verifies wrongly"),
];

const fn way(class: usize, appeal: f64, base: f64, ceiling: f64, gain: f64) -> Approach {
    Approach {
        class,
        appeal,
        base,
        ceiling,
        gain,
    }
}

/// What the families have in common unless they say otherwise: a sound first idea with an alternative, few faults, sound
/// validators, five minutes.
fn usual(dice: &mut Dice) -> Task {
    let criteria = dice.count(4, 10);
    let mut checked = 0_u32;
    for position in 0..criteria {
        checked |= u32::from(dice.chance(0.5)) << position;
    }
    Task {
        criteria,
        whole: 0,
        checked,
        subtasks: dice.count(1, 3) as u32,
        approaches: vec![
            way(0, 2.0, dice.between(0.8, 1.0), 1.0, 0.7),
            way(1, 1.0, dice.between(0.3, 0.8), dice.between(0.6, 1.0), 0.5),
        ],
        open: vec![true; 2],
        hit: 0.5,
        outage: 0.02,
        glitch: 0.03,
        coupling: 0.0,
        unfinished_is_logical: 0.7,
        noise: Noise {
            false_pass: 0.03,
            false_fail: 0.03,
            class: 0.1,
        },
        attempt_ms: (6_000.0, 16_000.0),
        budget: Millis(300_000),
        candour: 0.0,
    }
}

/// Two tempting ways of one class that cannot do it, and two classes of which one can.
fn wrong_and_right(dice: &mut Dice, wrong: (f64, f64), right: (f64, f64)) -> Vec<Approach> {
    let mut ways: Vec<Approach> = (0..2)
        .map(|_| {
            let ceiling = dice.between(wrong.0, wrong.1);
            way(
                0,
                dice.between(2.0, 4.0),
                ceiling * dice.between(0.6, 1.0),
                ceiling,
                0.5,
            )
        })
        .collect();
    let able = 1 + dice.below(2);
    for class in 1..3 {
        let ceiling = if class == able {
            1.0
        } else {
            dice.between(wrong.0, wrong.1)
        };
        let base = if class == able {
            dice.between(right.0, right.1)
        } else {
            ceiling
        };
        ways.push(way(class, dice.between(0.5, 1.5), base, ceiling, 0.6));
    }
    ways
}

/// Three classes of three ways; one way can do it all, the others part of it.
fn unequal(dice: &mut Dice) -> Vec<Approach> {
    let able = dice.below(9);
    (0..9)
        .map(|number| {
            let ceiling = if number == able { 1.0 } else { dice.between(0.3, 0.9) };
            let base = ceiling * dice.between(0.7, 1.0);
            way(number / 3, dice.between(0.5, 2.0), base, ceiling, 0.5)
        })
        .collect()
}

/// A tempting way that rises to three quarters, and one that begins lower and arrives.
fn deceptive(dice: &mut Dice) -> Vec<Approach> {
    vec![
        way(
            0,
            3.0,
            dice.between(0.3, 0.45),
            dice.between(0.7, 0.85),
            dice.between(0.4, 0.6),
        ),
        way(
            0,
            1.5,
            dice.between(0.2, 0.4),
            dice.between(0.6, 0.8),
            dice.between(0.4, 0.6),
        ),
        way(1, 1.0, dice.between(0.2, 0.4), 1.0, dice.between(0.6, 0.8)),
    ]
}

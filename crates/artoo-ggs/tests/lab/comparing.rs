//! The comparison: reproducible on any number of cores, bounded by the oracle, and honest about what was claimed.

use artoo_ggs::Params;
use artoo_ggs::lab::dice::{Dice, Purpose};
use artoo_ggs::lab::episode::{Draw, Ended, run};
use artoo_ggs::lab::family::MIX;
use artoo_ggs::lab::planner::{Demand, Planner};
use artoo_ggs::lab::plant::{Plan, Work};
use artoo_ggs::lab::{Family, Grid, Policy, Row, contenders};
use artoo_protocol::message::Directive;

fn small(families: &[Family]) -> Grid {
    Grid {
        seed: 7,
        tasks: 60,
        families: families.to_vec(),
        skills: vec![0.2, 0.8],
        contenders: contenders(),
    }
}

fn of<'a>(rows: &'a [Row], family: Family, policy: &str) -> Vec<&'a Row> {
    let found: Vec<&Row> = rows
        .iter()
        .filter(|row| row.family == family.name() && row.policy == policy)
        .collect();
    assert!(!found.is_empty(), "{policy}");
    found
}

#[test]
fn a_seed_gives_the_same_rows_on_any_number_of_cores() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let grid = Grid {
        tasks: 1_100,
        skills: vec![0.5],
        ..small(&[Family::Mix])
    };
    let alone = pool(1).install(|| grid.run(|_| {}));
    let together = pool(4).install(|| grid.run(|_| {}));
    assert_eq!(alone, together);
    let other = Grid { seed: 8, ..grid }.run(|_| {});
    assert_ne!(alone, other);
}

/// Counts of whole tasks, so that the last digit of a library's mathematics does not matter.
#[test]
fn the_luck_is_the_same_on_every_machine() {
    let mut dice = Dice::new(1, 2, 3, Purpose::World(4));
    let drawn: Vec<usize> = (0..8).map(|_| dice.below(1_000)).collect();
    assert_eq!(drawn, DRAWN);
    let rows = small(&[Family::Mix]).run(|_| {});
    let solved: Vec<u64> = of(&rows, Family::Mix, "GGS, defaults")
        .iter()
        .map(|row| (row.measures.solved.value * 60.0).round() as u64)
        .collect();
    assert_eq!(solved, SOLVED);
}

#[test]
fn progress_reaches_the_whole_and_every_cell_has_its_row() {
    let grid = small(&[Family::Easy, Family::Infeasible]);
    let most = std::sync::atomic::AtomicU64::new(0);
    let rows = grid.run(|done| {
        most.fetch_max(done, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(most.into_inner(), grid.runs());
    assert_eq!(rows.len(), 2 * 2 * contenders().len());
    assert!(rows.iter().all(|row| row.measures.tasks == 60));
}

#[test]
fn nobody_beats_the_oracle_and_nobody_solves_what_cannot_be_done() {
    let rows = small(&Family::ALL).run(|_| {});
    for family in Family::ALL {
        for (bound, skill) in of(&rows, family, "oracle").iter().zip([0, 1]) {
            assert_eq!(bound.measures.falsely.value, 0.0);
            for contender in contenders() {
                let row = of(&rows, family, &contender.name)[skill];
                assert!(
                    row.measures.solved.value <= bound.measures.solved.value + 1e-9,
                    "{family:?} {}",
                    contender.name
                );
                assert!(row.measures.regret.value > -0.02, "{family:?} {}", contender.name);
            }
        }
    }
    for row in rows.iter().filter(|row| row.family == "infeasible") {
        assert_eq!(
            (row.measures.solved.value, row.measures.infeasible),
            (0.0, 60),
            "{}",
            row.policy
        );
    }
    for row in of(&rows, Family::BlockedPath, "retry unchanged") {
        assert_eq!(row.measures.solved.value, 0.0, "the same closed target again");
    }
}

#[test]
fn a_delivered_result_is_judged_by_what_it_claims() {
    let mut seen = Vec::new();
    for number in 0..400 {
        let family = Family::NoisyValidators;
        let draw = Draw {
            seed: 1,
            family,
            number,
        };
        let task = family.task(1, number);
        let episode = run(&task, draw, 0.5, Policy::Ggs(Params::default()));
        assert_eq!(episode, run(&task, draw, 0.5, Policy::Ggs(Params::default())));
        assert!(episode.calls >= episode.sequential || task.subtasks == 1);
        if !seen.contains(&episode.ended) {
            seen.push(episode.ended);
        }
    }
    for ended in [Ended::Solved, Ended::Partial, Ended::False, Ended::Abandoned] {
        assert!(seen.contains(&ended), "{ended:?}");
    }
}

#[test]
fn what_is_refused_is_never_planned_again() {
    let planner = Planner { skill: 0.3 };
    for number in 0..300 {
        let task = Family::UnequalApproaches.task(3, number);
        let mut dice = Dice::new(3, 0, number, Purpose::Planning(1));
        let plan = planner.first(&task, &mut dice);
        let approaches = 0b1_0110_1011 | 1 << plan.approach;
        for directive in [
            Directive::Refine,
            Directive::ChangePath,
            Directive::ChangeApproach,
            Directive::BreakSymmetry,
        ] {
            let demand = Demand::Directed {
                directive,
                implausibility: 0.9,
                approaches,
                paths: 1,
                classes: 1,
            };
            let answer = planner.answer(&task, plan, demand, &mut dice);
            if let Some(next) = answer.plan {
                assert_eq!(approaches >> next.approach & 1, 0, "{directive:?}");
                assert_eq!(next.path, 1, "{directive:?}");
            }
        }
    }
}

#[test]
fn a_plan_that_meets_everything_is_found_to_do_so_where_verdicts_are_sound() {
    let mut task = Family::Easy.task(5, 5);
    task.noise.false_pass = 0.0;
    task.noise.false_fail = 0.0;
    task.glitch = 0.0;
    task.outage = 0.0;
    task.approaches[0].base = 1.0;
    let plan = Plan { approach: 0, path: 0 };
    let mut dice = Dice::new(5, 5, 5, Purpose::World(1));
    let report = task.carry_out(&mut Work::on(&task), plan, 3, 0.5, &mut dice);
    assert!(report.accepted && report.attempts == 1);
    assert_eq!((report.d.get(), report.truth.failing), (0.0, 0));
    task.open = vec![false];
    task.hit = 1.0;
    let report = task.carry_out(&mut Work::on(&task), plan, 3, 0.5, &mut dice);
    assert_eq!((report.d.get(), report.attempts, report.accepted), (1.0, 3, false));
    assert!(
        report.p.get() < 0.7 && report.call_failed,
        "the environment is to blame"
    );
}

#[test]
fn the_mix_holds_the_published_shares() {
    let whole: f64 = MIX.iter().map(|(_, share, _)| share).sum();
    assert!((whole - 100.0).abs() < 0.2, "{whole}");
    for number in ["1.1", "1.5", "2.6", "3.3"] {
        assert!(MIX.iter().any(|(_, _, mode)| mode.starts_with(number)));
    }
    for family in Family::ALL {
        assert_eq!(Family::named(family.name()), Some(family));
        assert!(!family.stands_for().is_empty());
    }
}

const DRAWN: [usize; 8] = [889, 979, 671, 133, 743, 955, 772, 372];
const SOLVED: [u64; 2] = [12, 13];

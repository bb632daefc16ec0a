//! Loss, table and loop on bare numbers: the table as it was specified, boundaries, and facts for every input.

use artoo_ggs::loss::omega;
use artoo_ggs::{
    Bands, BlockedTargets, Choice, Control, FirstRound, Gradient, Move, NearGoal, Observation, Params,
    WrongButImproving, cascade, decide, quantise, table,
};
use artoo_protocol::message::{Cause, Directive, Loss, Urgency};
use artoo_protocol::{Finite, Millis, Unit01};
use proptest::prelude::*;

fn unit(value: f64) -> Unit01 {
    Unit01::new(value).unwrap()
}

fn finite(value: f64) -> Finite {
    Finite::new(value).unwrap()
}

fn bands(params: &Params, grad_l: f64, d: f64, p: f64, omega: f64) -> Bands {
    let loss = Loss {
        d: unit(d),
        p: unit(p),
        omega: unit(omega),
        l: Finite::ZERO,
    };
    quantise(params, &loss, finite(grad_l))
}

fn seen(d: f64, p: f64, elapsed_ms: u64) -> Observation {
    Observation {
        d: unit(d),
        p: unit(p),
        elapsed: Millis(elapsed_ms),
        rejected: false,
        veto: None,
        advice: None,
    }
}

/// The 24 rows, copied by hand: ∇L, D, P, Ω on the given side of their thresholds.
#[test]
fn the_table_is_the_specified_one() {
    let (down, flat, up) = (-0.2, 0.0, 0.2);
    let (near, far) = (0.1, 0.9);
    let (env, log) = (0.1, 0.9);
    let (left, spent) = (0.1, 0.9);
    let rows = [
        (1, down, near, env, left, "success"),
        (2, down, near, log, left, "success"),
        (3, down, near, env, spent, "abandon"),
        (4, down, near, log, spent, "abandon"),
        (5, down, far, env, left, "refine"),
        (6, down, far, log, left, "change_approach"),
        (7, down, far, env, spent, "abandon"),
        (8, down, far, log, spent, "abandon"),
        (9, flat, near, env, left, "success"),
        (10, flat, near, log, left, "success"),
        (11, flat, near, env, spent, "abandon"),
        (12, flat, near, log, spent, "abandon"),
        (13, flat, far, env, left, "change_path"),
        (14, flat, far, log, left, "break_symmetry"),
        (15, flat, far, env, spent, "abandon"),
        (16, flat, far, log, spent, "abandon"),
        (17, up, near, env, left, "success"),
        (18, up, near, log, left, "success"),
        (19, up, near, env, spent, "abandon"),
        (20, up, near, log, spent, "abandon"),
        (21, up, far, env, left, "refine"),
        (22, up, far, log, left, "change_approach"),
        (23, up, far, env, spent, "abandon"),
        (24, up, far, log, spent, "abandon"),
    ];
    for (number, grad_l, d, p, omega, state) in rows {
        let cell = decide(bands(&Params::default(), grad_l, d, p, omega));
        assert_eq!((cell.number, cell.choice.name()), (number, state));
    }
    let shown: Vec<_> = table().iter().map(|row| (row.cell, row.macro_state)).collect();
    let expect: Vec<_> = rows.iter().map(|row| (row.0, row.5)).collect();
    assert_eq!(shown, expect);
}

#[test]
fn equality_falls_on_the_settled_side() {
    let params = Params::default();
    let (epsilon, delta, rho, theta) = (0.1, 0.3, 0.5, 0.8);
    let cell = |g, d, p, o| decide(bands(&params, g, d, p, o)).number;
    assert_eq!(cell(epsilon, 0.9, 0.9, 0.1), 22, "∇L = ε is a signal, and worsening");
    assert_eq!(cell(-epsilon, 0.9, 0.9, 0.1), 6, "∇L = −ε is a signal, and improving");
    assert_eq!(cell(0.0, delta, 0.9, 0.1), 10, "D = δ is success");
    assert_eq!(cell(0.0, 0.9, rho, 0.1), 13, "P = ρ is environmental");
    assert_eq!(cell(0.0, 0.9, 0.9, theta), 16, "Ω = θ is abandon");
    // One step beyond the tolerance lies on the other side, one within it does not.
    let (within, beyond) = (9e-10, 2e-9);
    assert_eq!(cell(epsilon - within, 0.9, 0.9, 0.1), 22);
    assert_eq!(cell(epsilon - beyond, 0.9, 0.9, 0.1), 14);
    assert_eq!(cell(0.0, delta + within, 0.9, 0.1), 10);
    assert_eq!(cell(0.0, delta + beyond, 0.9, 0.1), 14);
    assert_eq!(cell(0.0, 0.9, rho + within, 0.1), 13);
    assert_eq!(cell(0.0, 0.9, rho + beyond, 0.1), 14);
    assert_eq!(cell(0.0, 0.9, 0.9, theta - within), 16);
    assert_eq!(cell(0.0, 0.9, 0.9, theta - beyond), 14);
}

#[test]
fn the_fourth_request_abandons_by_resources_alone() {
    // 0.6·4/3 is 0.7999999999999999 in binary: without a tolerance there would be a fifth round.
    let params = Params::default();
    let mut control = Control::default();
    let moves: Vec<_> = (0..4)
        .map(|_| control.observe(&params, seen(1.0, 1.0, 0)).decision)
        .collect();
    let escape = Move::Direct(Directive::BreakSymmetry);
    // Ω is 0.2, 0.4, 0.6, 0.8; ∇L stays below ε, because β_eff falls while λΩ rises.
    assert_eq!(moves, [escape, escape, escape, Move::Abandon(Cause::Resources)]);
    assert!((omega(&params, 4, Millis(0)).get() - 0.8).abs() < 1e-9);
}

#[test]
fn a_worked_run_by_hand() {
    let params = Params::default();
    let mut control = Control::default();
    // Round 1: D = 1, P = 1, 30 s. Ω = 0.2 + 0.04 = 0.24; L = 0.6 + 0.3·0.76 + 0.4·0.24 = 0.924.
    let first = control.observe(&params, seen(1.0, 1.0, 30_000));
    assert!((first.loss.l.get() - 0.924).abs() < 1e-12);
    assert_eq!((first.grad_l.get(), first.cell.number), (0.0, 14));
    // Round 2: D = 0.5, P = 0, 60 s. Ω = 0.4 + 0.08 = 0.48; L = 0.3 + 0 + 0.192 = 0.492; ∇L = −0.432.
    let second = control.observe(&params, seen(0.5, 0.0, 60_000));
    assert!((second.loss.l.get() - 0.492).abs() < 1e-12);
    assert!((second.grad_l.get() + 0.432).abs() < 1e-12);
    // The task part: (0.3 + 0) − (0.6 + 0.3) = −0.6.
    assert!((second.grad_task.get() + 0.6).abs() < 1e-12);
    assert_eq!((second.cell.number, second.urgency), (5, Urgency::Lower));
    assert_eq!(second.decision, Move::Direct(Directive::Refine));
    // Round 3: D = 0.25. Close enough.
    assert_eq!(
        control.observe(&params, seen(0.25, 0.0, 90_000)).decision,
        Move::Succeed
    );
}

#[test]
fn two_worsening_rounds_in_a_row_end_the_task() {
    let params = Params {
        max_replans: 100,
        ..Params::default()
    };
    let mut control = Control::default();
    let moves: Vec<_> = [0.4, 0.7, 1.0]
        .into_iter()
        .map(|d| control.observe(&params, seen(d, 0.0, 0)).decision)
        .collect();
    let refine = Move::Direct(Directive::Refine);
    assert_eq!(
        moves,
        [
            Move::Direct(Directive::ChangePath),
            refine,
            Move::Abandon(Cause::Divergence)
        ]
    );
    // A plateau between them starts the count anew.
    let mut control = Control::default();
    let last = [0.4, 0.7, 0.7, 1.0]
        .into_iter()
        .map(|d| control.observe(&params, seen(d, 0.0, 0)))
        .last();
    assert_eq!(last.map(|round| (round.worsening, round.decision)), Some((1, refine)));
}

#[test]
fn the_first_round_and_an_improving_wrong_approach_may_be_read_otherwise() {
    let run = |params: Params, ds: [f64; 2]| {
        let mut control = Control::default();
        ds.map(|d| control.observe(&params, seen(d, 0.9, 0)).decision)
    };
    let act = Move::Direct;
    let spec = Params::default();
    assert_eq!(
        run(spec, [0.9, 0.5]),
        [act(Directive::BreakSymmetry), act(Directive::ChangeApproach)]
    );
    let movement = Params {
        first_round: FirstRound::Movement,
        ..spec
    };
    assert_eq!(
        run(movement, [0.9, 0.5]),
        [act(Directive::ChangeApproach), act(Directive::ChangeApproach)]
    );
    let trusting = Params {
        wrong_but_improving: WrongButImproving::Refine,
        ..spec
    };
    assert_eq!(
        run(trusting, [0.9, 0.5]),
        [act(Directive::BreakSymmetry), act(Directive::Refine)]
    );
    // Worsening is none of it.
    assert_eq!(run(trusting, [0.5, 0.9])[1], act(Directive::ChangeApproach));
    let both = Params {
        first_round: FirstRound::Movement,
        ..trusting
    };
    assert_eq!(run(both, [0.9, 0.9])[0], act(Directive::Refine));
}

#[test]
fn a_result_that_is_near_may_be_finished_and_is_delivered_when_the_task_would_end() {
    let finishing = Params {
        near_goal: NearGoal::Finish,
        ..Params::default()
    };
    let one = |seen: Observation| Control::default().observe(&finishing, seen).decision;
    let near = seen(0.2, 0.9, 0);
    assert_eq!(one(near), Move::Direct(Directive::Refine));
    assert_eq!(one(seen(0.9, 0.9, 0)), Move::Direct(Directive::BreakSymmetry));
    let advised = Observation {
        advice: Some(Cause::ReplansExhausted),
        ..near
    };
    assert_eq!(one(advised), Move::Succeed);
    let rejected = Observation {
        rejected: true,
        ..advised
    };
    assert_eq!(one(rejected), Move::Abandon(Cause::ReplansExhausted), "never a success");
    assert_eq!(one(seen(0.2, 0.9, 300_000)), Move::Abandon(Cause::Budget));
    let mut control = Control::default();
    let moves: Vec<_> = (0..4).map(|_| control.observe(&finishing, near).decision).collect();
    assert_eq!(
        (moves[2], moves[3]),
        (Move::Direct(Directive::Refine), Move::Succeed),
        "delivered, not thrown away"
    );
}

#[test]
fn spending_time_alone_does_not_kill_a_task() {
    let params = Params {
        max_replans: 100,
        lambda: Unit01::ONE,
        ..Params::default()
    };
    let mut control = Control::default();
    for elapsed in [0, 100_000, 200_000, 290_000] {
        let round = control.observe(&params, seen(0.6, 0.0, elapsed));
        if elapsed > 0 {
            assert_eq!(round.urgency, Urgency::Higher, "the loss rises with the clock");
        }
        assert_eq!(round.worsening, 0, "but the task does not get worse");
        assert!(matches!(round.decision, Move::Direct(_)));
    }
    // With the task's part as the deciding gradient there is no signal either.
    let params = Params {
        gradient: Gradient::Task,
        ..params
    };
    let mut control = Control::default();
    for elapsed in [0, 200_000] {
        assert_eq!(
            control.observe(&params, seen(0.6, 0.0, elapsed)).urgency,
            Urgency::Neutral
        );
    }
}

#[test]
fn kill_switch_and_advice_leave_a_success_alone() {
    let params = Params {
        max_replans: 100,
        kill_after: 1,
        delta: unit(0.5),
        ..Params::default()
    };
    let mut control = Control::default();
    let _ = control.observe(&params, seen(0.0, 0.0, 0));
    let advised = Observation {
        advice: Some(Cause::ReplansExhausted),
        ..seen(0.5, 0.0, 0)
    };
    let round = control.observe(&params, advised);
    assert_eq!((round.worsening, round.decision), (1, Move::Succeed));
}

#[test]
fn a_hard_budget_comes_before_everything() {
    let round = Control::default().observe(&Params::default(), seen(0.0, 0.0, 300_000));
    assert_eq!(round.decision, Move::Abandon(Cause::Budget));
}

prop_compose! {
    fn any_params()(
        weights in prop::array::uniform5(0.0..=1.0_f64),
        thresholds in prop::array::uniform4(0.0..=1.0_f64),
        budget in 0_u64..1_000_000,
        max_replans in 0_u32..6,
        kill_after in 0_u32..4,
        task in any::<bool>(),
        options in any::<(bool, bool, bool)>(),
    ) -> Params {
        Params {
            alpha: unit(weights[0]), beta: unit(weights[1]), lambda: unit(weights[2]),
            w1: unit(weights[3]), w2: unit(weights[4]),
            epsilon: unit(thresholds[0]), delta: unit(thresholds[1]), rho: unit(thresholds[2]), theta: unit(thresholds[3]),
            time_budget_ms: Millis(budget), max_replans, kill_after,
            gradient: if task { Gradient::Task } else { Gradient::Total },
            first_round: if options.0 { FirstRound::Movement } else { FirstRound::Plateau },
            blocked_targets: BlockedTargets::Implicated,
            near_goal: if options.2 { NearGoal::Finish } else { NearGoal::Stop },
            wrong_but_improving: if options.1 { WrongButImproving::Refine } else { WrongButImproving::ChangeApproach },
        }
    }
}

/// Values that lie on thresholds as often as beside them.
fn share() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..=1.0_f64,
        prop::sample::select(vec![0.0, 0.1, 0.3, 0.5, 0.6 * 4.0 / 3.0, 0.8, 1.0])
    ]
}

proptest! {
    #[test]
    fn every_input_lies_in_exactly_one_cell_and_the_cascade_agrees(
        params in any_params(), g in -2.0..=2.0_f64, d in share(), p in share(), o in share(),
    ) {
        let bands = bands(&params, g, d, p, o);
        let cell = decide(bands);
        prop_assert_eq!(cell.choice, cascade(bands));
        let rows: Vec<_> = table().into_iter().filter(|row| row.cell == cell.number).collect();
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!(rows[0].macro_state, cell.choice.name());
        prop_assert_eq!(rows[0].urgency, bands.slope.urgency());
    }

    #[test]
    fn raising_resources_never_leaves_abandon(
        params in any_params(), g in -2.0..=2.0_f64, d in share(), p in share(), o in share(), more in 0.0..=1.0_f64,
    ) {
        if decide(bands(&params, g, d, p, o)).choice == Choice::Abandon {
            prop_assert_eq!(decide(bands(&params, g, d, p, (o + more).min(1.0))).choice, Choice::Abandon);
        }
    }

    #[test]
    fn the_sign_of_the_gradient_sets_the_urgency_and_never_the_state(
        params in any_params(), g in 0.0..=2.0_f64, d in share(), p in share(), o in share(),
    ) {
        prop_assert_eq!(
            decide(bands(&params, g, d, p, o)).choice,
            decide(bands(&params, -g, d, p, o)).choice
        );
    }

    #[test]
    fn success_lies_within_the_threshold_and_only_there(
        g in -2.0..=2.0_f64, d in share(), p in share(), o in 0.0..0.7_f64,
    ) {
        let params = Params::default();
        let success = decide(bands(&params, g, d, p, o)).choice == Choice::Success;
        prop_assert_eq!(success, d <= 0.3 + 1e-9);
    }

    #[test]
    fn whatever_is_observed_numbers_stay_finite_and_a_loop_ends(
        params in any_params(),
        rounds in prop::collection::vec((share(), share(), any::<u64>(), any::<bool>()), 1..12),
    ) {
        let mut control = Control::default();
        for (d, p, elapsed, rejected) in rounds {
            let round = control.observe(&params, Observation { rejected, ..seen(d, p, elapsed) });
            let most = params.alpha.get() + params.beta.get() + params.lambda.get();
            prop_assert!((0.0..=most + 1e-9).contains(&round.loss.l.get()));
            prop_assert!(round.grad_l.get().is_finite() && round.grad_task.get().is_finite());
            prop_assert!(!(rejected && round.decision == Move::Succeed));
        }
    }

    #[test]
    fn with_defaults_every_loop_ends_by_the_fourth_gap(
        rounds in prop::collection::vec((share(), share(), 0_u64..300_000), 4),
    ) {
        let mut control = Control::default();
        let params = Params::default();
        let ended = rounds.into_iter().any(|(d, p, elapsed)| {
            !matches!(control.observe(&params, seen(d, p, elapsed)).decision, Move::Direct(_))
        });
        prop_assert!(ended);
    }
}

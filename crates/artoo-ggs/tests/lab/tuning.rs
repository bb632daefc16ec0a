//! Calibration: it finds what is there, starts from where it is told, and judges real tasks only by when they stopped.

use artoo_ggs::lab::tune::rows::{mean_worth, read};
use artoo_ggs::lab::tune::{Examples, Rules, Search};
use artoo_ggs::lab::{CALIBRATED, Family};
use artoo_ggs::{FirstRound, Gradient, Params, WrongButImproving};
use artoo_protocol::Unit01;

fn search(rules: Rules) -> Search {
    Search {
        seed: 3,
        candidates: 400,
        rules,
        start: Params::default(),
    }
}

#[test]
fn the_search_finds_a_known_optimum_and_is_repeatable() {
    let judge = |params: &Params| {
        let miss = |x: Unit01, at: f64| (x.get() - at).powi(2);
        -miss(params.delta, 0.05) - miss(params.theta, 0.95) - miss(params.alpha, 0.5)
            + f64::from(u8::from(params.gradient == Gradient::Task))
    };
    let (found, worth) = search(Rules::Specified).run(judge, |_, _| {});
    assert!(worth > 0.98, "{found:?} {worth}");
    assert_eq!(
        (found.gradient, found.first_round),
        (Gradient::Task, FirstRound::Plateau)
    );
    assert_eq!(search(Rules::Specified).run(judge, |_, _| {}), (found, worth));
    let rules = |params: &Params| {
        f64::from(u8::from(params.first_round == FirstRound::Movement))
            + f64::from(u8::from(params.wrong_but_improving == WrongButImproving::Refine))
    };
    assert_eq!(search(Rules::Any).run(rules, |_, _| {}).1, 2.0);
    assert_eq!(
        search(Rules::Specified).run(rules, |_, _| {}).1,
        0.0,
        "only what was allowed"
    );
}

#[test]
fn the_start_is_a_candidate_so_that_a_proposal_is_never_worse_on_what_it_was_fitted_to() {
    let examples = Examples {
        seed: 1,
        families: vec![Family::Easy, Family::WrongApproach],
        skills: vec![0.5],
        tasks: 60,
    };
    let (_, worth) = Search {
        candidates: 24,
        ..search(Rules::Any)
    }
    .run(|params| examples.worth(params), |_, _| {});
    assert!(worth >= examples.worth(&Params::default()));
}

#[test]
fn the_proposal_in_the_tree_is_a_set_of_parameters() {
    let found: Params = serde_json::from_str(CALIBRATED).unwrap();
    assert_eq!(found.max_replans, Params::default().max_replans);
}

fn row(cause: &str, rounds: &str, calls: u32) -> String {
    let ending = match cause {
        "met" => "accept",
        "within_threshold" => "success",
        _ => "abandon",
    };
    format!(
        r#"{{"format":1,"task_id":"t","ending":"{ending}","cause":"{cause}","rounds":[{rounds}],"model_calls":{calls},"complete":true,"new":1}}"#
    )
}

const GAP: &str = r#"{"round":1,"closed_by":"gap","elapsed_ms":1000,"D":0.9,"P":1.0}"#;
const DONE: &str = r#"{"round":2,"closed_by":"accepted","elapsed_ms":2000}"#;

#[test]
fn real_rows_judge_only_when_to_stop() {
    let arrived = row("met", &format!("{GAP},{DONE}"), 20);
    let hopeless = row("resources", &[GAP; 4].join(","), 40);
    let stops_at_once = Params {
        theta: Unit01::ZERO,
        ..Params::default()
    };
    let worth = |line: &str, params: &Params| {
        let (rows, bad) = read(line);
        assert_eq!((rows.len(), bad.len()), (1, 0));
        mean_worth(&rows, params)
    };
    let spec = Params::default();
    assert!((worth(&arrived, &spec) - 0.9).abs() < 1e-9, "one, less twenty calls");
    assert!(
        (worth(&arrived, &stops_at_once) + 0.05).abs() < 1e-9,
        "what was won later is lost"
    );
    assert!((worth(&hopeless, &spec) + 0.2).abs() < 1e-9);
    assert!(
        (worth(&hopeless, &stops_at_once) + 0.05).abs() < 1e-9,
        "three rounds are saved"
    );
    let never_stops = Params {
        theta: Unit01::ONE,
        w1: Unit01::ZERO,
        ..spec
    };
    assert_eq!(
        worth(&hopeless, &never_stops),
        worth(&hopeless, &spec),
        "what would have come is not known"
    );
}

#[test]
fn rows_that_say_nothing_are_left_out_and_bad_ones_are_named_by_line() {
    let lines = [
        row("aborted", GAP, 1),
        row("refused", GAP, 1),
        row("no_model", GAP, 1),
        row("planning_failed", GAP, 1),
        row("met", DONE, 1),
        row("met", &format!("{GAP},{DONE}"), 1).replace("\"complete\":true", "\"complete\":false"),
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        row("budget", GAP, 1),
    ];
    let (rows, bad) = read(&lines.join("\n"));
    assert_eq!((rows.len(), bad), (1, vec![8, 9]));
    assert_eq!(mean_worth(&[], &Params::default()), 0.0);
}

//! Verdicts: made by code, from rules, checks and what a model said (design §10).
//!
//! Owns who a model's verdict is for and what an unclear one means. A model's word reaches a criterion only through its
//! number or its wording; everything that is missing, unclear or contradictory is a fail.

use artoo_protocol::Unit01;
use artoo_protocol::message::{Criterion, CriterionVerdict, FailureClass, Mode, Verdict, VerdictSource};
use artoo_protocol::text::{first_n, one_line};
use artoo_protocol::tool::CheckReport;
use serde_json::{Value, json};

/// Verdicts beyond this number in one answer are not read.
const ANSWERS_READ: usize = 500;

/// Longest evidence that is kept, in characters.
const EVIDENCE_MAX: usize = 600;

/// A failing verdict.
pub(crate) fn fail(
    criterion: &Criterion,
    class: FailureClass,
    source: VerdictSource,
    evidence: impl AsRef<str>,
) -> CriterionVerdict {
    CriterionVerdict {
        criterion: criterion.criterion.clone(),
        mode: criterion.mode,
        verdict: Verdict::Fail,
        failure_class: Some(class),
        evidence: first_n(evidence.as_ref(), EVIDENCE_MAX),
        source,
    }
}

/// The verdict on what nobody judged: it is the judging that is missing, and what is not judged is not shown.
pub(crate) fn unjudged(criterion: &Criterion) -> CriterionVerdict {
    let evidence = "nobody judged this criterion, so it is not shown to hold";
    fail(criterion, FailureClass::Environmental, VerdictSource::Rule, evidence)
}

/// The verdict of a machine check. `class` stands in where the check does not say. One that could not be run, by its own fault or because
/// something stood in its way, has decided nothing.
pub(crate) fn from_check(criterion: &Criterion, report: &CheckReport, class: FailureClass) -> CriterionVerdict {
    if report.passed && !report.faulty {
        return pass(criterion, VerdictSource::Check, &report.evidence);
    }
    let evidence = if report.faulty {
        format!(
            "the check itself is faulty, which is no fault of the attempt: {}",
            report.evidence
        )
    } else {
        report.evidence.clone()
    };
    let source = if report.faulty || report.failure_class == Some(FailureClass::Environmental) {
        VerdictSource::NoCheck
    } else {
        VerdictSource::Check
    };
    fail(criterion, report.failure_class.unwrap_or(class), source, evidence)
}

fn pass(criterion: &Criterion, source: VerdictSource, evidence: &str) -> CriterionVerdict {
    CriterionVerdict {
        criterion: criterion.criterion.clone(),
        mode: criterion.mode,
        verdict: Verdict::Pass,
        failure_class: None,
        evidence: first_n(evidence, EVIDENCE_MAX),
        source,
    }
}

/// Whether there is at least one verdict and every one is a pass: the only meaning of "matched".
pub(crate) fn all_pass(verdicts: &[CriterionVerdict]) -> bool {
    !verdicts.is_empty() && verdicts.iter().all(|v| v.verdict == Verdict::Pass)
}

/// The failing ones.
pub(crate) fn failing(verdicts: &[CriterionVerdict]) -> impl Iterator<Item = &CriterionVerdict> {
    verdicts.iter().filter(|v| v.verdict == Verdict::Fail)
}

/// Share of the verdicts that passed; 0 for none.
pub(crate) fn score(verdicts: &[CriterionVerdict]) -> Unit01 {
    let failed = failing(verdicts).count();
    let passed = verdicts.len() - failed;
    Unit01::clamped(if verdicts.is_empty() {
        0.0
    } else {
        passed as f64 / verdicts.len() as f64
    })
}

/// The class of most of the failures; logical when there are as many of each.
pub(crate) fn prevailing_class(verdicts: &[CriterionVerdict]) -> Option<FailureClass> {
    let count = |class| failing(verdicts).filter(|v| v.failure_class == Some(class)).count();
    let (logical, environmental) = (count(FailureClass::Logical), count(FailureClass::Environmental));
    match (logical, environmental) {
        (0, 0) => None,
        (logical, environmental) if environmental > logical => Some(FailureClass::Environmental),
        _ => Some(FailureClass::Logical),
    }
}

/// The failing verdicts in words, `criterion: evidence`, one a line.
pub(crate) fn describe_failures(verdicts: &[CriterionVerdict]) -> String {
    failing(verdicts)
        .map(|v| format!("{}: {}", one_line(&v.criterion, 300), one_line(&v.evidence, 400)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Schema of the list of verdicts in a model's answer.
pub(crate) fn schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "criterion": {"type": "string"},
                "verdict": {"type": "string", "enum": ["pass", "fail"]},
                "failure_class": {"enum": ["logical", "environmental", null]},
                "evidence": {"type": ["string", "null"]}
            },
            "required": ["criterion", "verdict"]
        }
    })
}

/// The criteria as a model is shown them: numbered, each on one line, wording unchanged but for line breaks.
pub(crate) fn numbered(criteria: &[&Criterion]) -> String {
    let line = |(at, c): (usize, &&Criterion)| format!("{}. {}", at + 1, one_line(&c.criterion, usize::MAX));
    criteria.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The numbers of the verifiable ones among them, such as `1, 3`.
pub(crate) fn verifiable_numbers(criteria: &[&Criterion]) -> String {
    criteria
        .iter()
        .enumerate()
        .filter(|(_, c)| c.mode == Mode::Verifiable)
        .map(|(at, _)| (at + 1).to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Reads the `verdicts` of a model's answer for the criteria that it was asked about: one for each, in their order.
///
/// `override_class` is what the tools' own errors say; it outranks the class that the model gives.
pub(crate) fn read(
    answer: &Value,
    asked: &[&Criterion],
    override_class: Option<FailureClass>,
) -> Vec<CriterionVerdict> {
    let mut said: Vec<Option<Said>> = vec![None; asked.len()];
    let list = answer.get("verdicts").and_then(Value::as_array);
    for item in list.into_iter().flatten().take(ANSWERS_READ) {
        let Some(label) = item.get("criterion") else { continue };
        let matching = positions(label, asked);
        let free = matching.iter().find(|at| said.get(**at).is_some_and(Option::is_none));
        if let Some(slot) = free.or(matching.last()).and_then(|at| said.get_mut(*at)) {
            let new = Said::read(item);
            // Two verdicts on one criterion: if they disagree, the answer is unclear, and unclear is a fail.
            if slot.as_ref().is_none_or(|old| old.passed) {
                *slot = Some(new);
            }
        }
    }
    asked
        .iter()
        .zip(said)
        .map(|(criterion, said)| conclude(criterion, said, override_class))
        .collect()
}

fn conclude(criterion: &Criterion, said: Option<Said>, override_class: Option<FailureClass>) -> CriterionVerdict {
    match said {
        Some(said) if said.passed => pass(criterion, VerdictSource::Model, &said.evidence),
        Some(said) => {
            let class = override_class.or(said.class).unwrap_or(FailureClass::Logical);
            fail(criterion, class, VerdictSource::Model, said.evidence)
        }
        // Nothing says that the approach was wrong: it is the judging that failed.
        None => fail(
            criterion,
            FailureClass::Environmental,
            VerdictSource::Rule,
            "the validator's model gave no verdict on this criterion, so it is not shown to hold",
        ),
    }
}

/// One verdict of a model as it stands in the answer.
#[derive(Clone, Debug)]
struct Said {
    passed: bool,
    class: Option<FailureClass>,
    evidence: String,
}

impl Said {
    fn read(item: &Value) -> Self {
        let word = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let passed = word("verdict").eq_ignore_ascii_case("pass") && item.get("met") != Some(&Value::Bool(false));
        let class = match word("failure_class").to_ascii_lowercase().as_str() {
            "logical" => Some(FailureClass::Logical),
            "environmental" => Some(FailureClass::Environmental),
            _ => None,
        };
        let evidence = match one_line(word("evidence"), EVIDENCE_MAX) {
            said if said.is_empty() && !passed => "the validator found nothing that shows it".to_owned(),
            said => said,
        };
        Self {
            passed,
            class,
            evidence,
        }
    }
}

/// Which criteria a label means: by exact wording, else by a bare number, else by wording without number, case, quotes
/// and spacing. A number before other words counts for nothing: the words decide.
fn positions(label: &Value, asked: &[&Criterion]) -> Vec<usize> {
    let text = match label {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Vec::new(),
    };
    let matching = |same: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let all = asked.iter().enumerate();
        all.filter(|(_, c)| same(&c.criterion)).map(|(at, _)| at).collect()
    };
    let exact = matching(&|wording| wording.trim() == text);
    if !exact.is_empty() {
        return exact;
    }
    let (number, rest) = split_number(&text);
    if let (Some(number), "") = (number, rest) {
        return number
            .checked_sub(1)
            .filter(|at| *at < asked.len())
            .into_iter()
            .collect();
    }
    let whole = matching(&|wording| normalised(wording) == normalised(&text));
    let loosely = if !whole.is_empty() || number.is_none() {
        whole
    } else {
        matching(&|wording| normalised(wording) == normalised(rest))
    };
    // Wordings that differ in case alone, say, are two criteria: a label that fits both names neither.
    let distinct = |at: &usize| asked.get(*at).map(|c| c.criterion.as_str());
    let mut wordings = loosely.iter().map(distinct);
    let first = wordings.next().flatten();
    if wordings.all(|wording| wording == first) {
        loosely
    } else {
        Vec::new()
    }
}

/// Splits `3. wording`, `3) wording`, `#3: wording` or `3` into number and rest.
fn split_number(text: &str) -> (Option<usize>, &str) {
    let body = text.trim_start_matches('#');
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = body.split_at_checked(digits).unwrap_or(("", body));
    let rest = rest.trim_start_matches(['.', ')', ':']).trim();
    (number.parse().ok(), rest)
}

fn normalised(text: &str) -> String {
    const QUOTES: [char; 6] = ['"', '\'', '`', '“', '”', ' '];
    let lower = one_line(text, usize::MAX).to_lowercase();
    lower
        .trim_start_matches(QUOTES)
        .trim_end_matches(|c| QUOTES.contains(&c) || c == '.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criterion(text: &str) -> Criterion {
        Criterion {
            criterion: text.to_owned(),
            mode: Mode::Verifiable,
            check: None,
        }
    }

    fn passed(verdicts: &Value, criteria: &[&str]) -> Vec<bool> {
        let criteria: Vec<_> = criteria.iter().map(|c| criterion(c)).collect();
        let asked: Vec<_> = criteria.iter().collect();
        let read = read(&json!({ "verdicts": verdicts }), &asked, None);
        assert_eq!(read.len(), asked.len());
        assert!(
            read.iter().zip(&asked).all(|(v, c)| v.criterion == c.criterion),
            "order and wording"
        );
        read.iter().map(|v| v.verdict == Verdict::Pass).collect()
    }

    #[test]
    fn verdicts_are_matched_by_wording_or_number_and_missing_ones_fail() {
        let p = |label: Value| json!({"criterion": label, "verdict": "pass", "evidence": "call 1"});
        let f = |label: &str| json!({"criterion": label, "verdict": "fail"});
        let three = ["a.txt holds 5", "x > 5", "x < 5"];
        for (name, verdicts, expect) in [
            (
                "in order",
                json!([p("a.txt holds 5".into()), p("x > 5".into()), p("x < 5".into())]),
                vec![true; 3],
            ),
            (
                "out of order",
                json!([p("x < 5".into()), p("a.txt holds 5".into())]),
                vec![true, false, true],
            ),
            (
                "numbers",
                json!([p("1".into()), p(2.into()), p("3.".into())]),
                vec![true; 3],
            ),
            (
                "numbered wording",
                json!([p("1. `A.txt holds  5`.".into()), p("2) x > 5".into())]),
                vec![true, true, false],
            ),
            (
                "words decide over numbers",
                json!([p("1. x < 5".into())]),
                vec![false, false, true],
            ),
            (
                "unknown",
                json!([
                    p("something else".into()),
                    p("2. something else".into()),
                    p("9".into()),
                    p("0".into())
                ]),
                vec![false; 3],
            ),
            ("fewer", json!([p("x > 5".into())]), vec![false, true, false]),
            (
                "contradiction",
                json!([p("x > 5".into()), f("x > 5"), p("x > 5".into())]),
                vec![false; 3],
            ),
            (
                "met: false",
                json!([{"criterion": "x > 5", "verdict": "pass", "met": false}]),
                vec![false; 3],
            ),
            (
                "another word",
                json!([{"criterion": "x > 5", "verdict": "probably"}]),
                vec![false; 3],
            ),
            ("no list", json!("pass"), vec![false; 3]),
            (
                "junk",
                json!([null, 3, {"criterion": null, "verdict": "pass"}, {"verdict": "pass"}]),
                vec![false; 3],
            ),
        ] {
            assert_eq!(passed(&verdicts, &three), expect, "{name}");
        }
    }

    #[test]
    fn two_criteria_of_one_wording_need_two_verdicts() {
        let one = json!([{"criterion": "same", "verdict": "pass"}]);
        assert_eq!(passed(&one, &["same", "same"]), [true, false]);
        let two = json!([{"criterion": "same", "verdict": "pass"}, {"criterion": "same", "verdict": "pass"}]);
        assert_eq!(passed(&two, &["same", "same"]), [true, true]);
    }

    #[test]
    fn a_label_that_fits_two_wordings_is_unclear_and_unclear_is_a_fail() {
        let pass = |label: &str| json!({"criterion": label, "verdict": "pass", "evidence": "call 1"});
        let alike = ["File A exists", "file a exists"];
        let one = json!([pass("FILE A EXISTS"), pass("1. FILE A EXISTS")]);
        assert_eq!(passed(&one, &alike), [false, false]);
        let each = json!([pass("File A exists"), pass("2")]);
        assert_eq!(passed(&each, &alike), [true, true]);
    }

    #[test]
    fn a_judge_that_speaks_of_other_criteria_or_in_other_letters_says_nothing() {
        let pass = |label: &str| json!({"criterion": label, "verdict": "pass"});
        for label in [
            "the state is РAID",
            "the state is not PAID",
            "the state",
            "3",
            "0",
            "2. the state is UNPAID",
            "the state is PAID and more",
            "",
        ] {
            assert_eq!(
                passed(&json!([pass(label)]), &["the state is PAID", "x"]),
                [false, false],
                "{label}"
            );
        }
        let extra: Vec<_> = (0..600)
            .map(|n| pass(&format!("other {n}")))
            .chain([pass("x")])
            .collect();
        assert_eq!(passed(&json!(extra), &["x"]), [false], "an answer is read only so far");
    }

    #[test]
    fn a_criterion_that_is_a_number_is_matched_as_wording_first() {
        let verdicts = json!([{"criterion": "2", "verdict": "pass"}]);
        assert_eq!(passed(&verdicts, &["2", "1"]), [true, false]);
    }

    #[test]
    fn the_tools_own_error_outranks_the_models_class() {
        let c = criterion("x");
        let answer = json!({"verdicts": [{"criterion": "x", "verdict": "fail", "failure_class": "logical"}]});
        let class = |over| read(&answer, &[&c], over).first().and_then(|v| v.failure_class);
        assert_eq!(class(None), Some(FailureClass::Logical));
        assert_eq!(
            class(Some(FailureClass::Environmental)),
            Some(FailureClass::Environmental)
        );
    }

    #[test]
    fn a_check_that_could_not_be_run_is_told_from_one_that_failed() {
        for (class, faulty, source) in [
            (None, false, VerdictSource::Check),
            (Some(FailureClass::Logical), false, VerdictSource::Check),
            (Some(FailureClass::Environmental), false, VerdictSource::NoCheck),
            (Some(FailureClass::Logical), true, VerdictSource::NoCheck),
        ] {
            let report = CheckReport {
                passed: false,
                evidence: "seen".into(),
                failure_class: class,
                faulty,
            };
            // The class of the attempt's own failures says nothing about the check.
            let verdict = from_check(&criterion("x"), &report, FailureClass::Environmental);
            assert_eq!((verdict.verdict, verdict.source), (Verdict::Fail, source), "{report:?}");
        }
    }

    #[test]
    fn no_verdict_at_all_is_not_a_match() {
        assert!(!all_pass(&[]));
        assert_eq!(score(&[]), Unit01::ZERO);
    }
}

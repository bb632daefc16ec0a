//! What a plan must satisfy before any of it runs: a table of rules, each with a reason a model can act on (design §6).
//!
//! Owns acceptance. It is code on purpose: a plan that a model promises to be good is not one. Knows no state of a task
//! beyond what [`Ground`] holds.

mod bounds;

use artoo_protocol::message::{Criterion, Directive, MustNot};
use artoo_protocol::text::one_line;

use crate::checks::{self, CheckFault};
use crate::demands;
use crate::parse::{Plan, Step};
use crate::sameness::{Bag, Given, Spoken};
use crate::scope::Allowed;
use crate::words::normalised;
use bounds::{blocked_target, blocked_tool, scope_left};

/// Reasons that a model is given at once.
const REASONS: usize = 12;
/// Characters of an intent, of a context and of a criterion.
const INTENT_CHARS: usize = 4_000;
const CONTEXT_CHARS: usize = 40_000;
const CRITERION_CHARS: usize = 2_000;
/// Criteria of one subtask, or of the task.
const CRITERIA: usize = 50;

/// What a plan is measured against.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The goal.
    pub intent: &'a str,
    /// Names of R3's tools.
    pub tools: &'a [String],
    /// What must not be used.
    pub must_not: &'a MustNot,
    /// What is demanded of this plan, unless it is the first.
    pub directive: Option<Directive>,
    /// The plans that failed.
    pub failed_plans: &'a [Work],
    /// Tools that the subtasks which failed last used, plain and qualified by program.
    pub tried: &'a [String],
    /// The plan with the work that it carries over.
    pub work: &'a Work,
    /// Subtasks of the answer that were left out because kept work stands for them.
    pub stood_for: usize,
    /// Where the task may create and change.
    pub allowed: &'a Allowed,
    /// Why a check cannot run.
    pub check_fault: &'a CheckFault,
    /// Most subtasks.
    pub subtasks: usize,
}

/// What a plan does, in forms in which a repetition shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Steps in their order; those of one group have none among themselves.
    ordered: Vec<(u32, u64)>,
    /// Its words and tools.
    pub bag: Bag,
    carries: bool,
}

impl Work {
    /// Of a plan and of the steps whose work it carries over, which come before it.
    pub fn of(carried: &[&Step], plan: &Plan, given: &Given) -> Self {
        let last = carried.iter().map(|step| step.sequence).max().unwrap_or_default();
        let places = carried
            .iter()
            .map(|step| step.sequence)
            .chain(plan.steps.iter().map(|step| last.saturating_add(step.sequence)));
        let spoken: Vec<Spoken<'_>> = carried.iter().copied().chain(&plan.steps).map(Spoken::of).collect();
        let mut ordered: Vec<(u32, u64)> = places.zip(spoken.iter().map(Spoken::fingerprint)).collect();
        ordered.sort_unstable();
        Self {
            ordered,
            bag: Bag::of(&spoken, given),
            carries: !carried.is_empty(),
        }
    }

    /// Whether these are the same steps. What is carried over lost its place, so then the order does not count.
    fn repeats(&self, other: &Self) -> bool {
        if !self.carries {
            return self.ordered == other.ordered;
        }
        let steps = |work: &Self| {
            let mut steps: Vec<u64> = work.ordered.iter().map(|(_, step)| *step).collect();
            steps.sort_unstable();
            steps
        };
        steps(self) == steps(other)
    }
}

/// One rule: its name, and what it finds.
struct Rule {
    name: &'static str,
    find: fn(&Ground<'_>, &Plan, &mut Vec<String>),
}

/// The rules in the order in which their reasons are given. The first two leave nothing for the others to look at.
const RULES: &[Rule] = &[
    Rule {
        name: "no_subtasks",
        find: no_subtasks,
    },
    Rule {
        name: "too_many_subtasks",
        find: too_many_subtasks,
    },
    Rule {
        name: "no_intent",
        find: no_intent,
    },
    Rule {
        name: "no_criteria",
        find: no_criteria,
    },
    Rule {
        name: "restated_intent",
        find: restated_intent,
    },
    Rule {
        name: "too_long",
        find: too_long,
    },
    Rule {
        name: "unknown_tool",
        find: unknown_tool,
    },
    Rule {
        name: "blocked_tool",
        find: blocked_tool,
    },
    Rule {
        name: "blocked_target",
        find: blocked_target,
    },
    Rule {
        name: "bad_check",
        find: bad_check,
    },
    Rule {
        name: "scope_left",
        find: scope_left,
    },
    Rule {
        name: "repeated_plan",
        find: repeated_plan,
    },
    Rule {
        name: "nearly_repeated",
        find: demands::nearly_repeated,
    },
    Rule {
        name: "nothing_new",
        find: demands::nothing_new,
    },
    Rule {
        name: "approach_left",
        find: demands::approach_left,
    },
];

/// Why a plan cannot run, each reason with the name of its rule; empty when it can.
pub fn validate(ground: &Ground<'_>, plan: &Plan) -> Vec<String> {
    let mut reasons: Vec<String> = plan
        .defects
        .iter()
        .map(|defect| format!("unreadable: {defect}"))
        .collect();
    for rule in RULES {
        let mut found = Vec::new();
        (rule.find)(ground, plan, &mut found);
        let last = matches!(rule.name, "no_subtasks" | "too_many_subtasks") && !found.is_empty();
        reasons.extend(found.into_iter().map(|reason| format!("{}: {reason}", rule.name)));
        if last {
            break;
        }
    }
    let more = reasons.len().saturating_sub(REASONS);
    reasons.truncate(REASONS);
    if more > 0 {
        reasons.push(format!("… and {more} more of the kind"));
    }
    reasons
}

fn no_subtasks(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    if plan.steps.is_empty() && ground.stood_for > 0 {
        found.push("every subtask only repeats work that is kept; plan what is missing".to_owned());
    } else if plan.steps.is_empty() {
        found.push("the plan has no subtask; give at least one".to_owned());
    }
}

fn too_many_subtasks(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    if plan.steps.len() > ground.subtasks {
        found.push(format!(
            "more than {} subtasks; let one subtask do several similar things",
            ground.subtasks
        ));
    }
}

fn no_intent(_: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    for step in plan.steps.iter().filter(|step| normalised(&step.intent).is_empty()) {
        found.push(format!("subtask {} has no intent; say what is to be done", step.number));
    }
}

fn no_criteria(_: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    for step in plan.steps.iter().filter(|step| step.criteria.is_empty()) {
        found.push(format!(
            "subtask {} has no success criterion; say what must be true afterwards",
            step.number
        ));
    }
}

fn restated_intent(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    let goal = normalised(ground.intent);
    let goal = telling(&goal);
    let restates = |criterion: &Criterion, intent: &str| {
        let words = normalised(&criterion.criterion);
        let said = telling(&words);
        !words.is_empty() && (said.is_empty() || said == intent || said == goal)
    };
    // What a machine decides may be worded as it likes.
    let judged = |criterion: &&Criterion| criterion.check.is_none();
    for step in plan
        .steps
        .iter()
        .filter(|step| step.criteria.iter().any(|c| judged(&c)))
    {
        let intent = telling(&normalised(&step.intent));
        let criteria = step.criteria.iter().filter(judged);
        for criterion in criteria.filter(|criterion| restates(criterion, &intent)) {
            found.push(format!(
                "subtask {}: the criterion `{}` says nothing beyond the intent; say what can be seen when it is done",
                step.number,
                quote(&criterion.criterion)
            ));
        }
    }
    let criteria = plan.task_criteria.iter().filter(judged);
    for criterion in criteria.filter(|criterion| restates(criterion, &goal)) {
        found.push(format!(
            "task criterion `{}` says nothing beyond the task; say what the combined output must show, or leave it out",
            quote(&criterion.criterion)
        ));
    }
}

/// Words that only say that something was done, whatever it was. A criterion of nothing else says nothing.
#[rustfmt::skip] // a table, not one word a line
const IDLE: &[&str] = &[
    "the", "a", "an", "is", "are", "was", "were", "has", "have", "been", "be", "it", "this", "and", "all", "as", "that",
    "task", "subtask", "step", "goal", "intent", "intention", "request", "requested", "asked", "user", "work", "everything",
    "done", "completed", "complete", "finished", "fulfilled", "achieved", "met", "reached", "successful", "successfully",
    "correct", "correctly", "properly", "fully", "works",
    "die", "der", "das", "aufgabe", "ist", "wurde", "erledigt", "fertig", "abgeschlossen", "erfolgreich",
    "la", "le", "tâche", "est", "été", "a", "terminée", "accomplie", "tarea", "está", "hecha", "completada",
];

/// Normalised words without the idle ones.
fn telling(words: &str) -> String {
    let told = words.split(' ').filter(|word| !IDLE.contains(word));
    told.collect::<Vec<_>>().join(" ")
}

fn too_long(_: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    let longer = |text: &str, limit: usize| text.len() > limit && text.chars().count() > limit;
    for step in &plan.steps {
        if longer(&step.intent, INTENT_CHARS) || longer(&step.context, CONTEXT_CHARS) {
            found.push(format!(
                "subtask {}: an intent has at most {INTENT_CHARS} characters, a context {CONTEXT_CHARS}",
                step.number
            ));
        }
    }
    for (place, criteria) in criteria_of(plan) {
        if criteria.len() > CRITERIA || criteria.iter().any(|c| longer(&c.criterion, CRITERION_CHARS)) {
            found.push(format!(
                "{place}: at most {CRITERIA} criteria, each of at most {CRITERION_CHARS} characters"
            ));
        }
    }
}

fn unknown_tool(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    let known = |tool: &str| {
        let base = unqualified(tool);
        ground.tools.iter().any(|name| name == tool || name == base)
    };
    for step in &plan.steps {
        for tool in step.tools.iter().filter(|tool| !known(tool)) {
            found.push(format!(
                "subtask {}: there is no tool `{}`; there are: {}",
                step.number,
                quote(tool),
                if ground.tools.is_empty() {
                    "none".to_owned()
                } else {
                    ground.tools.join(", ")
                }
            ));
        }
    }
}

fn repeated_plan(ground: &Ground<'_>, _: &Plan, found: &mut Vec<String>) {
    if ground.failed_plans.iter().any(|failed| ground.work.repeats(failed)) {
        found.push(
            "these are the steps of a plan that failed; do it in another way, not only with other criteria".to_owned(),
        );
    }
}

fn bad_check(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    for (place, criteria) in criteria_of(plan) {
        for criterion in criteria {
            if let Some(fault) = criterion.check.as_ref().and_then(|check| ground.check_fault.of(check)) {
                found.push(format!(
                    "{place}: the check of `{}` cannot be used: {fault}",
                    quote(&criterion.criterion)
                ));
            }
        }
    }
}

fn criteria_of(plan: &Plan) -> impl Iterator<Item = (String, &[Criterion])> {
    let steps = plan
        .steps
        .iter()
        .map(|step| (format!("subtask {}", step.number), step.criteria.as_slice()));
    steps.chain(std::iter::once((
        "task_criteria".to_owned(),
        plan.task_criteria.as_slice(),
    )))
}

/// Everything in a step that R3 or a check would act on, one below the other.
fn step_text(step: &Step) -> String {
    let mut texts = vec![step.intent.as_str(), &step.context];
    for check in step.criteria.iter().filter_map(|criterion| criterion.check.as_ref()) {
        texts.extend(checks::inputs(check));
    }
    texts.join("\n")
}

/// The tool of a tool that is qualified by program: `shell` of `shell:curl`.
pub fn unqualified(tool: &str) -> &str {
    tool.split_once(':').map_or(tool, |(base, _)| base)
}

pub fn quote(text: &str) -> String {
    one_line(text, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use artoo_protocol::message::Check;
    use serde_json::{Value, json};

    const GOAL: &str = "Count the rust files";

    fn work(value: &Value) -> Work {
        Work::of(&[], &parse(value, 100), &Given::of(&[GOAL]))
    }

    /// What a directive demands after plans that failed.
    #[derive(Default)]
    struct Demand {
        directive: Option<Directive>,
        failed: Vec<Work>,
        tried: Vec<String>,
    }

    fn reasons_after(demand: &Demand, must_not: &MustNot, subtasks: usize, value: &Value) -> Vec<String> {
        let tools = ["shell", "read_file", "write_file", "git.log"].map(str::to_owned);
        let ground = Ground {
            intent: GOAL,
            tools: &tools,
            must_not,
            directive: demand.directive,
            failed_plans: &demand.failed,
            tried: &demand.tried,
            work: &work(value),
            stood_for: 0,
            allowed: &Allowed::new(vec!["/data".into()], crate::Places::default()),
            check_fault: &CheckFault::by(|check| {
                matches!(check, Check::CommandSucceeds { command } if command.starts_with("rm"))
                    .then(|| "it could destroy".to_owned())
            }),
            subtasks,
        };
        validate(&ground, &parse(value, subtasks))
    }

    fn reasons_on(must_not: &MustNot, failed: &[Work], subtasks: usize, value: &Value) -> Vec<String> {
        let demand = Demand {
            failed: failed.to_vec(),
            ..Demand::default()
        };
        reasons_after(&demand, must_not, subtasks, value)
    }

    fn reasons(value: &Value) -> Vec<String> {
        reasons_on(&MustNot::default(), &[], 3, value)
    }

    fn step(patch: &Value) -> Value {
        let mut step = json!({"sequence": 1, "intent": "Count *.rs files below src", "tools": ["shell:find"],
            "success_criteria": [{"criterion": "the number is stated", "mode": "verifiable"}]});
        for (key, value) in patch.as_object().unwrap() {
            step[key] = value.clone();
        }
        json!({"task_criteria": [], "subtasks": [step]})
    }

    fn with_check(check: &Value) -> Value {
        step(&json!({"success_criteria": [{"criterion": "it is so", "check": check}]}))
    }

    #[test]
    fn every_rule_refuses_its_case_and_no_other() {
        assert_eq!(reasons(&step(&json!({}))), Vec::<String>::new());
        let repeated = vec![work(&step(&json!({})))];
        let blocked = MustNot {
            tools: vec!["shell:find".into(), "read_file".into()],
            targets: vec!["/data/src".into()],
        };
        let four: Vec<Value> = (0..4)
            .map(|_| json!({"intent": "a", "success_criteria": ["b"]}))
            .collect();
        let free = MustNot::default();
        let cases = [
            (&free, vec![], "no_subtasks", json!({"subtasks": []})),
            (&free, vec![], "too_many_subtasks", json!({ "subtasks": four })),
            (&free, vec![], "no_intent", step(&json!({"intent": " \n"}))),
            (&free, vec![], "no_criteria", step(&json!({"success_criteria": []}))),
            (
                &free,
                vec![],
                "restated_intent",
                step(&json!({"success_criteria": ["count RS files, below: src."]})),
            ),
            (
                &free,
                vec![],
                "restated_intent",
                step(&json!({"success_criteria": ["Count the Rust files"]})),
            ),
            (&free, vec![], "too_long", step(&json!({"intent": "x".repeat(5_000)}))),
            (&free, vec![], "unknown_tool", step(&json!({"tools": ["spotlight"]}))),
            (&blocked, vec![], "blocked_tool", step(&json!({}))),
            (
                &blocked,
                vec![],
                "blocked_tool",
                step(&json!({"tools": ["read_file:x"]})),
            ),
            (
                &blocked,
                vec![],
                "blocked_target",
                step(&json!({"tools": [], "context": "look in /data/src."})),
            ),
            (
                &free,
                vec![],
                "bad_check",
                with_check(&json!({"kind": "output_matches", "pattern": "("})),
            ),
            (
                &free,
                vec![],
                "bad_check",
                with_check(&json!({"kind": "command_succeeds", "command": "rm -r src"})),
            ),
            (
                &free,
                vec![],
                "scope_left",
                step(&json!({"scope": ["/data/x", "/etc"]})),
            ),
            (
                &free,
                repeated,
                "repeated_plan",
                step(&json!({"success_criteria": ["another one"]})),
            ),
        ];
        let mut all = Vec::new();
        for (must_not, failed, rule, plan) in cases {
            let found = reasons_on(must_not, &failed, 3, &plan);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("{rule}:")),
                "{rule}: {found:?}"
            );
            all.push(one_line(&found[0], 300));
        }
        insta::assert_snapshot!("reasons", all.join("\n"));
        // What only a directive demands is in the next test.
        let demanded = ["nearly_repeated", "nothing_new", "approach_left"];
        for rule in RULES.iter().filter(|rule| !demanded.contains(&rule.name)) {
            assert!(
                all.iter().any(|reason| reason.starts_with(rule.name)),
                "{} has no case",
                rule.name
            );
        }
    }

    #[test]
    fn each_directive_refuses_what_is_not_the_change_demanded_and_accepts_what_is() {
        let count = |how: &str, tools: &Value| {
            step(&json!({"intent": format!("Count the rust files below src {how}"), "tools": tools}))
        };
        let grep = "by listing all files with their names, line by line, and then counting the lines of that list";
        let old = count(grep, &json!(["shell:grep", "read_file"]));
        let targets = |targets: &[&str]| MustNot {
            tools: Vec::new(),
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
        };
        let tools = |tools: &[&str]| MustNot {
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            targets: Vec::new(),
        };
        let cases = [
            (
                Directive::Refine,
                targets(&["/mnt/old"]),
                count("with another list", &json!(["git.log"])),
                "approach_left",
                count("with the hidden ones left out", &json!(["shell:grep"])),
            ),
            (
                Directive::ChangePath,
                targets(&["/mnt/old"]),
                count("in /mnt/old", &json!(["shell:grep"])),
                "blocked_target",
                count("in /mnt/new", &json!(["shell:grep"])),
            ),
            (
                Directive::ChangeApproach,
                tools(&["write_file"]),
                count(&grep.replace("and then", "then"), &json!(["shell:grep", "read_file"])),
                "nearly_repeated",
                count("by their type", &json!(["shell:find", "read_file"])),
            ),
            (
                Directive::BreakSymmetry,
                tools(&["shell:grep"]),
                count("by reading every folder", &json!(["read_file"])),
                "nothing_new",
                count("from the history of the repository", &json!(["git.log"])),
            ),
        ];
        for (directive, must_not, refused, rule, accepted) in cases {
            let demand = Demand {
                directive: Some(directive),
                failed: vec![work(&old)],
                tried: ["shell", "shell:grep", "read_file"].map(str::to_owned).to_vec(),
            };
            let found = reasons_after(&demand, &must_not, 3, &refused);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("{rule}:")),
                "{directive:?}: {found:?}"
            );
            let found = reasons_after(&demand, &must_not, 3, &accepted);
            assert_eq!(found, Vec::<String>::new(), "{directive:?}");
            let again = reasons_after(&demand, &MustNot::default(), 3, &old);
            assert!(
                again.iter().any(|reason| reason.starts_with("repeated_plan:")),
                "{directive:?}"
            );
        }
    }

    #[test]
    fn a_plan_that_may_be_new_is_not_refused_by_break_symmetry() {
        let demand = Demand {
            directive: Some(Directive::BreakSymmetry),
            failed: Vec::new(),
            tried: ["shell", "shell:grep", "read_file"].map(str::to_owned).to_vec(),
        };
        for (tools, refused) in [
            (json!([]), false),
            (json!(["shell"]), false),
            (json!(["shell:awk"]), false),
            (json!(["read_file", "write_file"]), false),
            (json!(["shell:grep", "read_file"]), true),
        ] {
            let found = reasons_after(&demand, &MustNot::default(), 3, &step(&json!({ "tools": tools })));
            assert_eq!(!found.is_empty(), refused, "{tools}: {found:?}");
        }
    }

    #[test]
    fn tools_may_be_qualified_and_of_a_server() {
        for tools in [json!(["shell:curl", "git.log"]), json!([]), json!(["shell"])] {
            assert_eq!(reasons(&step(&json!({ "tools": tools }))), Vec::<String>::new());
        }
        let only_find = MustNot {
            tools: vec!["shell:find".into()],
            targets: Vec::new(),
        };
        let found = reasons_on(&only_find, &[], 3, &step(&json!({"tools": ["shell", "shell:fd"]})));
        assert_eq!(found, Vec::<String>::new(), "one program blocks no other");
    }

    #[test]
    fn checks_that_cannot_run_are_refused() {
        for check in [
            json!({"kind": "file_exists", "path": " "}),
            json!({"kind": "file_absent", "path": ""}),
            json!({"kind": "file_contains", "path": "a", "pattern": "(?=x)"}),
            json!({"kind": "exit_code", "command": "[", "equals": 0}),
            json!({"kind": "json_path", "pointer": "items", "equals": 1}),
            json!({"kind": "json_path", "path": "", "pointer": "", "equals": 1}),
            json!({"kind": "count", "of": "files", "op": "ge", "value": 1}),
            json!({"kind": "count", "of": "matches", "op": "ge", "value": 1}),
            json!({"kind": "count", "of": "lines", "path": "", "op": "ge", "value": 1}),
            json!({"kind": "sha256", "path": "a", "equals": "abc"}),
            json!({"kind": "command_succeeds", "command": " "}),
            json!({"kind": "command_succeeds", "command": "true"}),
            json!({"kind": "command_succeeds", "command": "/bin/echo done"}),
            json!({"kind": "file_exists", "path": "./"}),
            json!({"kind": "file_absent", "path": "~"}),
            json!({"kind": "file_contains", "path": "a", "pattern": ""}),
            json!({"kind": "output_matches", "pattern": ".*"}),
            json!({"kind": "output_matches", "pattern": "(done)?"}),
            json!({"kind": "count", "of": "lines", "path": "a", "op": "ge", "value": 0}),
            json!({"kind": "output_matches", "pattern": "(a{1000}){1000}"}),
            json!({"kind": "output_matches", "pattern": "a".repeat(3_000)}),
            json!({"kind": "output_matches", "pattern": "(".repeat(200) + &")".repeat(200)}),
        ] {
            let found = reasons(&with_check(&check));
            assert!(
                found.len() == 1 && found[0].starts_with("bad_check:"),
                "{check}: {found:?}"
            );
        }
        for check in [
            json!({"kind": "file_contains", "path": "a", "pattern": "^\\d+ files$"}),
            json!({"kind": "output_matches", "pattern": "^\\s*$"}),
            json!({"kind": "command_succeeds", "command": "echo a | grep -q b"}),
            json!({"kind": "file_exists", "path": "~/a"}),
            json!({"kind": "count", "of": "lines", "op": "le", "value": 0}),
            json!({"kind": "count", "of": "lines", "op": "ge", "value": 1}),
            json!({"kind": "exit_code"}),
            json!({"kind": "json_path", "pointer": "", "equals": []}),
        ] {
            assert_eq!(reasons(&with_check(&check)), Vec::<String>::new(), "{check}");
        }
    }

    #[test]
    fn a_criterion_that_says_only_that_it_was_done_is_sent_back() {
        let with = |criterion: &str| reasons(&step(&json!({"success_criteria": [criterion]})));
        for idle in [
            "The task is done.",
            "Everything was completed successfully",
            "Count *.rs files below src was done correctly",
            "The task \"count the Rust files\" has been fulfilled",
            "Die Aufgabe ist erledigt",
        ] {
            let found = with(idle);
            assert!(
                found.len() == 1 && found[0].starts_with("restated_intent:"),
                "{idle}: {found:?}"
            );
        }
        for telling in ["The number is stated", "It ends with exit status 0", "文件数已写出"] {
            assert_eq!(with(telling), Vec::<String>::new(), "{telling}");
        }
    }

    #[test]
    fn a_blocked_tool_hides_behind_no_spelling() {
        let blocked = MustNot {
            tools: vec!["shell:curl".into()],
            targets: Vec::new(),
        };
        for tool in ["shell: curl", "shell:/usr/bin/curl", "shell :curl"] {
            let found = reasons_on(&blocked, &[], 3, &step(&json!({"tools": [tool]})));
            assert!(
                found.len() == 1 && found[0].starts_with("blocked_tool:"),
                "{tool}: {found:?}"
            );
        }
    }

    #[test]
    fn a_blocked_input_hides_behind_no_spelling() {
        let blocked = MustNot {
            tools: Vec::new(),
            targets: vec!["/data/src".into()],
        };
        for context in [
            "look in /data//src",
            "look in /data/./src/, then stop",
            "look in \"/data/old/../src\"",
            "run ls </data/src/.",
        ] {
            let found = reasons_on(&blocked, &[], 3, &step(&json!({"tools": [], "context": context})));
            assert!(
                found.len() == 1 && found[0].starts_with("blocked_target:"),
                "{context}: {found:?}"
            );
        }
        let near = step(&json!({"tools": [], "context": "look in /data/src.old and /data"}));
        assert_eq!(reasons_on(&blocked, &[], 3, &near), Vec::<String>::new());
    }

    #[test]
    fn a_blocked_input_hides_in_no_check() {
        let must_not = MustNot {
            tools: Vec::new(),
            targets: vec!["/data/src".into(), ".".into(), "the".into()],
        };
        let plan = with_check(&json!({"kind": "command_succeeds", "command": "ls /data/src"}));
        assert_eq!(reasons_on(&must_not, &[], 3, &plan).len(), 1);
        assert_eq!(
            reasons_on(&must_not, &[], 3, &with_check(&json!(null))),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_criterion_with_a_machine_check_may_be_worded_like_the_intent() {
        let plan = step(&json!({"success_criteria": [{"criterion": "Count *.rs files below src",
            "check": {"kind": "output_matches", "pattern": "\\d+"}}]}));
        assert_eq!(reasons(&plan), Vec::<String>::new());
    }

    #[test]
    fn the_reasons_given_at_once_are_bounded() {
        let many: Vec<Value> = (0..100).map(|_| json!({"intent": "a"})).collect();
        let found = reasons_on(&MustNot::default(), &[], 100, &json!({ "subtasks": many }));
        assert_eq!(found.len(), REASONS + 1);
    }
}

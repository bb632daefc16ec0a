//! From memory to constraints, without a model: what a plan must not use, should prefer, and should know (design §6, §15).
//!
//! Owns the wording and the selection. Memory comes as data; only what is said here reaches the planner's prompt, and
//! every record that is said is named in `rules_used`.

use std::collections::BTreeMap;

use artoo_protocol::ids::MegramId;
use artoo_protocol::message::{Lesson, MemoryAction, MemoryReply, MustNot, SopRecord, TaggedPotentials};
use artoo_protocol::text::{first_n, one_line};

use crate::validate::unqualified;
use crate::words::normalised;

/// Lessons below level C that enter one plan.
const LESSONS: usize = 10;
/// Rules at level C that enter one plan, and the person's own wishes beside them.
const RULES: usize = 20;
/// Potentials that are worded.
const POTENTIALS: usize = 20;
/// Lessons that one potential names.
const NAMED: usize = 3;
/// Characters of a lesson or rule, and of what the person asked to be remembered.
const LESSON_CHARS: usize = 400;
const WISH_CHARS: usize = 1_000;

/// Space of what the person asked to be remembered.
const PREFERENCE: &str = "user:preference";

/// What memory means for one plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Lines for the prompt, strongest first.
    pub lines: Vec<String>,
    /// What memory forbids; enforced by the plan validator and by R3's gate.
    pub must_not: MustNot,
    /// The memories that the lines were made of.
    pub rules_used: Vec<MegramId>,
}

impl Calibration {
    /// Planning without memory, saying why.
    pub fn without(reason: &str) -> Self {
        Self {
            lines: vec![format!(
                "NOTE: memory is not available ({})",
                one_line(reason, LESSON_CHARS)
            )],
            ..Self::default()
        }
    }

    fn use_record(&mut self, id: &MegramId) {
        if !self.rules_used.contains(id) {
            self.rules_used.push(id.clone());
        }
    }
}

/// Words a reply of memory. `offered` are the names of R3's tools, `blocked` those that directives already forbid: memory
/// never forbids the last tool that is left.
///
/// Order: the person's own wishes, rules, lessons, potentials. Of two lessons of one group that contradict each other the
/// newer counts.
pub fn calibrate(reply: &MemoryReply, offered: &[String], blocked: &[String]) -> Calibration {
    if let Some(reason) = &reply.unavailable {
        return Calibration::without(reason);
    }
    let mut calibration = Calibration::default();
    rules(&mut calibration, &reply.sops);
    let lessons = selected(reply);
    let mut potentials = Calibration::default();
    let budget = ToolBudget { offered, blocked };
    for tagged in reply
        .potentials
        .iter()
        .filter(|p| p.space != PREFERENCE)
        .take(POTENTIALS)
    {
        potential(&mut potentials, tagged, &lessons, &budget);
    }
    for lesson in lessons
        .iter()
        .filter(|lesson| !potentials.rules_used.contains(&lesson.id))
    {
        let word = if lesson.sigma.get() < 0.0 {
            "failed before, do not repeat it"
        } else {
            "worked before"
        };
        let day = first_n(&lesson.created_at.to_string(), 10);
        calibration
            .lines
            .push(format!("NOTE ({word}, {day}): {}", said(&lesson.content)));
        calibration.use_record(&lesson.id);
    }
    for id in &potentials.rules_used {
        calibration.use_record(id);
    }
    calibration.lines.append(&mut potentials.lines);
    calibration.must_not = potentials.must_not;
    calibration
}

fn rules(calibration: &mut Calibration, sops: &[SopRecord]) {
    let (wishes, learned): (Vec<_>, Vec<_>) = sops.iter().partition(|sop| sop.space == PREFERENCE);
    for wish in wishes.into_iter().take(RULES) {
        let content = first_n(wish.content.trim(), WISH_CHARS);
        calibration.lines.push(format!("USER: {content}"));
        calibration.use_record(&wish.id);
    }
    for rule in learned.into_iter().take(RULES) {
        let word = if rule.sigma.get() < 0.0 {
            "MUST NOT"
        } else {
            "SHOULD PREFER"
        };
        calibration.lines.push(format!("{word}: {}", said(&rule.content)));
        calibration.use_record(&rule.id);
    }
}

/// At most [`LESSONS`] lessons: knowledge before events, each newest first, without repeats and contradicted ones.
fn selected(reply: &MemoryReply) -> Vec<&Lesson> {
    let mut newest_first: Vec<&Lesson> = reply.knowledge.iter().chain(&reply.recent).collect();
    newest_first.sort_by_key(|lesson| std::cmp::Reverse(lesson.created_at));
    let mut sign_of_group: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for lesson in &newest_first {
        let negative = lesson.sigma.get() < 0.0;
        sign_of_group.entry((&lesson.space, &lesson.entity)).or_insert(negative);
    }
    let mut seen = Vec::new();
    let mut kept: Vec<&Lesson> = newest_first
        .into_iter()
        .filter(|lesson| lesson.space != PREFERENCE && !lesson.content.trim().is_empty())
        .filter(|lesson| {
            sign_of_group.get(&(lesson.space.as_str(), lesson.entity.as_str())) == Some(&(lesson.sigma.get() < 0.0))
        })
        .filter(|lesson| {
            let words = normalised(&lesson.content);
            let new = !seen.contains(&words);
            seen.push(words);
            new
        })
        .collect();
    kept.sort_by_key(|lesson| std::cmp::Reverse(lesson.level));
    kept.truncate(LESSONS);
    kept
}

/// Which tools memory may still forbid.
struct ToolBudget<'a> {
    offered: &'a [String],
    blocked: &'a [String],
}

impl ToolBudget<'_> {
    /// Whether R3 has the tool at all and would keep another one without it.
    fn allows(&self, already: &[String], tool: &str) -> bool {
        let gone = |name: &String| name == tool || already.contains(name) || self.blocked.contains(name);
        self.offers(tool) && self.offered.iter().any(|name| !gone(name))
    }

    fn offers(&self, tool: &str) -> bool {
        let base = unqualified(tool);
        self.offered.iter().any(|name| name == tool || name == base)
    }
}

fn potential(out: &mut Calibration, tagged: &TaggedPotentials, lessons: &[&Lesson], budget: &ToolBudget<'_>) {
    let tool = tagged.space.strip_prefix("tool:");
    if tool.is_some_and(|tool| !budget.offers(tool)) {
        return;
    }
    let target = tagged
        .entity
        .strip_prefix("path:")
        .filter(|target| !target.trim().is_empty());
    match (tagged.potentials.action, tool) {
        (MemoryAction::Ignore, _) => {}
        (MemoryAction::Avoid, Some(tool)) => {
            let why =
                named(out, tagged, lessons, Sign::Negative).unwrap_or_else(|| "it did not help before".to_owned());
            let line = match target {
                Some(target) => {
                    push_new(&mut out.must_not.targets, target);
                    format!("MUST NOT: use {tool} on `{}`: {why}", said(target))
                }
                None if budget.allows(&out.must_not.tools, tool) => {
                    push_new(&mut out.must_not.tools, tool);
                    format!("MUST NOT: use the tool {tool}: {why}")
                }
                None => format!("CAUTION: {tool} is the only tool left, and has failed: {why}"),
            };
            out.lines.push(line);
        }
        // Failing at a task never forbids the task; it speaks against the way that was taken.
        (MemoryAction::Avoid, None) => {
            let how = named(out, tagged, lessons, Sign::Negative).unwrap_or_else(|| "no lesson is kept".to_owned());
            out.lines.push(format!(
                "CAUTION: tasks like this one failed more than once, so take another way: {how}"
            ));
        }
        (MemoryAction::Caution, _) => {
            let how = named(out, tagged, lessons, Sign::Any).map_or(String::new(), |how| format!(": {how}"));
            let what = tool.map_or_else(|| "this kind of task".to_owned(), |tool| subject(tool, target));
            out.lines.push(format!(
                "CAUTION: {what} has worked and failed before; check the result in a step that can be undone{how}"
            ));
        }
        (MemoryAction::Exploit, _) => {
            let lesson = named(out, tagged, lessons, Sign::Positive);
            let line = match (lesson, tool) {
                (Some(lesson), _) => format!("SHOULD PREFER what worked: {lesson}"),
                (None, Some(tool)) => format!("SHOULD PREFER: {}", subject(tool, target)),
                (None, None) => return,
            };
            out.lines.push(line);
        }
    }
}

fn subject(tool: &str, target: Option<&str>) -> String {
    target.map_or_else(
        || format!("the tool {tool}"),
        |target| format!("{tool} on `{}`", said(target)),
    )
}

#[derive(Clone, Copy)]
enum Sign {
    Positive,
    Negative,
    Any,
}

/// The newest lessons of a group with that sign, in words; they count as used. One for a preference, more for a warning.
fn named(out: &mut Calibration, tagged: &TaggedPotentials, lessons: &[&Lesson], sign: Sign) -> Option<String> {
    let fits = |lesson: &&&Lesson| {
        let sigma = lesson.sigma.get();
        lesson.space == tagged.space
            && lesson.entity == tagged.entity
            && match sign {
                Sign::Positive => sigma > 0.0,
                Sign::Negative => sigma < 0.0,
                Sign::Any => true,
            }
    };
    let wanted = if matches!(sign, Sign::Positive) { 1 } else { NAMED };
    let mut fitting: Vec<&&Lesson> = lessons.iter().filter(fits).collect();
    fitting.sort_by_key(|lesson| std::cmp::Reverse(lesson.created_at));
    fitting.truncate(wanted);
    for lesson in &fitting {
        out.use_record(&lesson.id);
    }
    let words: Vec<String> = fitting.iter().map(|lesson| said(&lesson.content)).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn said(content: &str) -> String {
    one_line(content, LESSON_CHARS)
}

fn push_new(list: &mut Vec<String>, item: &str) {
    if !list.iter().any(|present| present == item) {
        list.push(item.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::ids::TaskId;
    use artoo_protocol::message::{Level, MacroState, Potentials};
    use artoo_protocol::units::{Finite, Timestamp, Valence};

    fn lesson(id: &str, level: Level, space: &str, day: i64, content: &str, sigma: f64) -> Lesson {
        Lesson {
            id: MegramId::new(id),
            level,
            space: space.into(),
            entity: "env:local".into(),
            created_at: Timestamp::from_millis(day * 86_400_000),
            content: content.into(),
            state: MacroState::Accept,
            sigma: Valence::new(sigma).unwrap(),
        }
    }

    fn sop(id: &str, space: &str, content: &str, sigma: f64) -> SopRecord {
        SopRecord {
            id: MegramId::new(id),
            space: space.into(),
            entity: "env:local".into(),
            content: content.into(),
            sigma: Valence::new(sigma).unwrap(),
        }
    }

    fn group(space: &str, entity: &str, action: MemoryAction) -> TaggedPotentials {
        TaggedPotentials {
            space: space.into(),
            entity: entity.into(),
            potentials: Potentials {
                attention: Finite::ZERO,
                decision: Finite::ZERO,
                action,
            },
        }
    }

    fn reply() -> MemoryReply {
        MemoryReply::empty(TaskId::new("t_00000000"), 1)
    }

    fn tools() -> Vec<String> {
        ["shell", "search", "read_file"].map(str::to_owned).to_vec()
    }

    #[test]
    fn memory_becomes_constraints_in_order() {
        let mut memory = reply();
        memory.sops = vec![
            sop("c1", "intent:find_large_files", "never follow symbolic links", -1.0),
            sop("c2", "tool:shell", "use du -h for sizes", 1.0),
            sop("u1", PREFERENCE, "always use yarn, never npm", 1.0),
        ];
        memory.knowledge = vec![lesson(
            "k1",
            Level::K,
            "intent:find_large_files",
            3,
            "shell find -size worked",
            0.8,
        )];
        memory.recent = vec![
            lesson(
                "m2",
                Level::M,
                "tool:search",
                9,
                "search gave HTTP 500 for every query",
                -0.9,
            ),
            lesson(
                "m1",
                Level::M,
                "intent:find_large_files",
                5,
                "du with --max-depth worked too",
                0.5,
            ),
        ];
        memory.potentials = vec![
            group("intent:find_large_files", "env:local", MemoryAction::Exploit),
            group("tool:search", "env:local", MemoryAction::Avoid),
            group("tool:read_file", "path:/proc/x", MemoryAction::Avoid),
            group("tool:read_file", "env:local", MemoryAction::Caution),
            group("tool:shell", "env:local", MemoryAction::Ignore),
            group("tool:mdfind", "env:local", MemoryAction::Avoid),
        ];
        let found = calibrate(&memory, &tools(), &[]);
        insta::assert_snapshot!("calibration", found.lines.join("\n"));
        assert_eq!(found.must_not.tools, ["search"]);
        assert_eq!(found.must_not.targets, ["/proc/x"]);
        let ids: Vec<_> = found.rules_used.iter().map(MegramId::as_str).collect();
        assert_eq!(ids, ["u1", "c1", "c2", "k1", "m1", "m2"]);
    }

    #[test]
    fn failing_at_a_task_never_forbids_the_task() {
        let mut memory = reply();
        memory.recent = vec![lesson(
            "m1",
            Level::M,
            "intent:sort_my_photos",
            1,
            "shell:exiftool is not installed",
            -0.9,
        )];
        memory.potentials = vec![group("intent:sort_my_photos", "env:local", MemoryAction::Avoid)];
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.must_not, MustNot::default());
        assert_eq!(found.lines.len(), 1);
        assert!(
            found.lines[0].starts_with("CAUTION") && found.lines[0].contains("exiftool"),
            "{:?}",
            found.lines
        );
    }

    #[test]
    fn one_failed_run_already_changes_the_next_plan() {
        let mut memory = reply();
        memory.recent = vec![lesson(
            "m1",
            Level::M,
            "intent:a_b_c",
            1,
            "shell: grep -P is not supported here",
            -0.95,
        )];
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(
            found.lines,
            ["NOTE (failed before, do not repeat it, 1970-01-02): shell: grep -P is not supported here"]
        );
        assert_eq!(found.rules_used.len(), 1);
    }

    #[test]
    fn of_two_lessons_that_contradict_the_newer_counts() {
        let mut memory = reply();
        memory.recent = vec![
            lesson("new", Level::M, "tool:search", 9, "works again", 0.9),
            lesson("old", Level::M, "tool:search", 1, "is down", -0.9),
        ];
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.rules_used, [MegramId::new("new")]);
    }

    #[test]
    fn at_most_ten_lessons_enter_and_junk_is_cut() {
        let mut memory = reply();
        memory.recent = (0..50)
            .map(|n| {
                lesson(
                    &format!("m{n}"),
                    Level::M,
                    &format!("tool:t{n}"),
                    n,
                    &format!("lesson {n}"),
                    0.5,
                )
            })
            .collect();
        memory
            .recent
            .push(lesson("dup", Level::M, "tool:x", 99, "Lesson 49!", 0.5));
        memory
            .recent
            .push(lesson("long", Level::M, "tool:y", 98, &"x\n".repeat(5_000), 0.5));
        memory.recent.push(lesson("blank", Level::M, "tool:z", 97, " ", 0.5));
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.lines.len(), 10);
        assert!(
            found
                .lines
                .iter()
                .all(|line| line.chars().count() < 500 && !line.contains('\n'))
        );
        assert!(
            !found.rules_used.contains(&MegramId::new("m49")) && !found.rules_used.contains(&MegramId::new("blank"))
        );
    }

    #[test]
    fn memory_never_takes_the_last_tool() {
        let mut memory = reply();
        memory.potentials = tools()
            .iter()
            .map(|tool| group(&format!("tool:{tool}"), "env:local", MemoryAction::Avoid))
            .collect();
        let found = calibrate(&memory, &tools(), &["shell".to_owned()]);
        assert_eq!(found.must_not.tools.len(), 2, "{:?}", found.must_not);
        assert!(
            found
                .lines
                .iter()
                .any(|line| line.starts_with("CAUTION: read_file is the only tool left"))
        );
    }

    #[test]
    fn memory_that_cannot_be_read_is_said() {
        let mut memory = reply();
        memory.unavailable = Some("locked by process 7".into());
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.lines, ["NOTE: memory is not available (locked by process 7)"]);
    }
}

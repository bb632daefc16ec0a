//! From memory to constraints, without a model: what a plan must not use, should prefer, and must be careful with
//! (design §6, §15).
//!
//! Owns the wording and the selection. Memory comes as data; only what is said here reaches the planner's prompt, and
//! every record that is said is named in `rules_used`. A block that grows too long loses its least valuable lines whole:
//! half a sentence can say the opposite of the whole one.

use std::collections::BTreeMap;

use artoo_protocol::ids::MegramId;
use artoo_protocol::message::{Caution, Lesson, MemoryAction, MemoryReply, MustNot, SopRecord, TaggedPotentials};
use artoo_protocol::text::{first_n, one_line};
use unicode_segmentation::UnicodeSegmentation;

use crate::validate::unqualified;
use crate::words::normalised;

/// Lessons below level C that enter one plan.
const LESSONS: usize = 10;
/// Rules at level C that enter one plan, and the person's own wishes beside them.
const RULES: usize = 20;
/// Potentials that are worded.
const POTENTIALS: usize = 40;
/// Lessons that one potential names.
const NAMED: usize = 3;
/// Characters of whole sentences that are taken of one memory, and of a first sentence that is longer.
const MEMORY_CHARS: usize = 400;
const SENTENCE_CHARS: usize = 1_000;
/// Characters of the whole block.
const BLOCK_CHARS: usize = 6_000;
/// Reasons for care that a person is shown at most.
const REASONS: usize = 10;

/// Space of what the person asked to be remembered.
const PREFERENCE: &str = "user:preference";

/// What memory means for one plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Lines for the prompt: wishes, rules, lessons, potentials.
    pub lines: Vec<String>,
    /// What memory forbids; enforced by the plan validator and by R3's gate.
    pub must_not: MustNot,
    /// What memory wants done with care; enforced by R3's gate.
    pub caution: Caution,
    /// The memories that the lines were made of.
    pub rules_used: Vec<MegramId>,
}

impl Calibration {
    /// Planning without memory, saying why.
    pub fn without(reason: &str) -> Self {
        let reason = one_line(reason, MEMORY_CHARS);
        Self {
            lines: vec![format!("NOTE: memory is not available ({reason})")],
            ..Self::default()
        }
    }
}

/// A line with what it is worth and what it was made of.
struct Line {
    text: String,
    value: f64,
    ids: Vec<MegramId>,
}

/// Words a reply of memory. `offered` are the names of R3's tools, `blocked` those that directives already forbid: memory
/// never forbids the last tool that is left.
///
/// Of two lessons of one group that contradict each other the newer counts. What a line is worth: a wish most; then what
/// is forbidden, by the weight of the experience; then rules; then cautions and preferences, by weight; then lessons,
/// knowledge before events, the newer before the older.
pub fn calibrate(reply: &MemoryReply, offered: &[String], blocked: &[String]) -> Calibration {
    if let Some(reason) = &reply.unavailable {
        return Calibration::without(reason);
    }
    let mut draft = Draft {
        lessons: selected(reply),
        offered,
        blocked,
        lines: rules(&reply.sops),
        must_not: MustNot::default(),
        caution: Caution::default(),
        too_long: 0,
    };
    let known = reply.potentials.iter().filter(|p| p.space != PREFERENCE);
    let potentials: Vec<Line> = known.take(POTENTIALS).filter_map(|p| draft.potential(p)).collect();
    let lessons = draft.single_lessons(&potentials);
    draft.lines.extend(lessons);
    draft.lines.extend(potentials);
    draft.capped()
}

fn rules(sops: &[SopRecord]) -> Vec<Line> {
    let (wishes, learned): (Vec<_>, Vec<_>) = sops.iter().partition(|sop| sop.space == PREFERENCE);
    let line = |sop: &SopRecord, word: &str, value: f64| {
        Some(Line {
            text: format!("{word}: {}", said(&sop.content)?),
            value,
            ids: vec![sop.id.clone()],
        })
    };
    let wishes = wishes
        .into_iter()
        .take(RULES)
        .filter_map(|wish| line(wish, "USER", 5.0));
    let learned = learned.into_iter().take(RULES).enumerate().filter_map(|(rank, rule)| {
        let forbids = rule.sigma.get() < 0.0;
        line(
            rule,
            if forbids { "MUST NOT" } else { "SHOULD PREFER" },
            3.0 + falling(rank),
        )
    });
    wishes.chain(learned).collect()
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

/// A calibration in the making.
struct Draft<'a> {
    lessons: Vec<&'a Lesson>,
    offered: &'a [String],
    blocked: &'a [String],
    lines: Vec<Line>,
    must_not: MustNot,
    caution: Caution,
    too_long: usize,
}

impl Draft<'_> {
    /// The lessons that no potential names.
    fn single_lessons(&mut self, potentials: &[Line]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (rank, lesson) in self.lessons.iter().enumerate() {
            if potentials.iter().any(|line| line.ids.contains(&lesson.id)) {
                continue;
            }
            let Some(words) = said(&lesson.content) else {
                self.too_long += 1;
                continue;
            };
            let word = if lesson.sigma.get() < 0.0 {
                "CAUTION: this failed"
            } else {
                "SHOULD PREFER: this worked"
            };
            let day = first_n(&lesson.created_at.to_string(), 10);
            lines.push(Line {
                text: format!("{word} ({day}): {words}"),
                value: 1.0 + falling(rank),
                ids: vec![lesson.id.clone()],
            });
        }
        lines
    }

    /// What the experience with one group means, in words and in what the gate enforces.
    fn potential(&mut self, tagged: &TaggedPotentials) -> Option<Line> {
        let tool = tagged.space.strip_prefix("tool:");
        if tool.is_some_and(|tool| !self.offers(tool)) {
            return None;
        }
        let target = tagged.entity.strip_prefix("path:").filter(|t| !t.trim().is_empty());
        let (decision, attention) = (tagged.potentials.decision.get(), tagged.potentials.attention.get());
        let (text, base, ids) = match tagged.potentials.action {
            MemoryAction::Ignore => return None,
            MemoryAction::Avoid => self.avoided(tagged, tool, target),
            MemoryAction::Caution => self.careful(tagged, tool, target),
            MemoryAction::Exploit => preferred(&self.lessons, tagged, tool, target)?,
        };
        Some(Line {
            text,
            value: base + weight(decision.abs().max(attention)),
            ids,
        })
    }

    fn avoided(&mut self, tagged: &TaggedPotentials, tool: Option<&str>, target: Option<&str>) -> Worded {
        let (why, ids) = named(&self.lessons, tagged, Sign::Negative);
        let Some(tool) = tool else {
            // Failing at a task never forbids the task; it speaks against the way that was taken.
            let how = why.unwrap_or_else(|| "no lesson is kept".to_owned());
            let text = format!("CAUTION: tasks like this one failed more than once, so take another way: {how}");
            return (text, 2.0, ids);
        };
        let why = why.unwrap_or_else(|| "it did not help before".to_owned());
        if let Some(target) = target {
            push_new(&mut self.must_not.targets, target);
            let text = format!("MUST NOT: use {tool} on `{}`: {why}", one_line(target, MEMORY_CHARS));
            return (text, 4.0, ids);
        }
        if self.may_forbid(tool) {
            push_new(&mut self.must_not.tools, tool);
            return (format!("MUST NOT: use the tool {tool}: {why}"), 4.0, ids);
        }
        push_new(&mut self.caution.tools, tool);
        self.warn(&format!("{tool} has failed before"));
        let text = format!("CAUTION: {tool} is the only tool left, and has failed: {why}");
        (text, 2.0, ids)
    }

    fn careful(&mut self, tagged: &TaggedPotentials, tool: Option<&str>, target: Option<&str>) -> Worded {
        let (how, ids) = named(&self.lessons, tagged, Sign::Any);
        let what = match (tool, target) {
            (Some(tool), Some(target)) => {
                push_new(&mut self.caution.targets, target);
                subject(tool, Some(target))
            }
            (Some(tool), None) => {
                push_new(&mut self.caution.tools, tool);
                subject(tool, None)
            }
            (None, _) => {
                push_new(&mut self.caution.tools, "*");
                "this kind of task".to_owned()
            }
        };
        self.warn(&format!("{what} has worked and failed before"));
        let how = how.map_or(String::new(), |how| format!(": {how}"));
        let text = format!("CAUTION: {what} has worked and failed before; changes will be asked for{how}");
        (text, 2.0, ids)
    }

    fn warn(&mut self, reason: &str) {
        if self.caution.reasons.len() < REASONS {
            push_new(&mut self.caution.reasons, reason);
        }
    }

    /// Whether R3 has the tool at all and would keep another one without it.
    fn may_forbid(&self, tool: &str) -> bool {
        let gone = |name: &String| name == tool || self.must_not.tools.contains(name) || self.blocked.contains(name);
        self.offers(tool) && self.offered.iter().any(|name| !gone(name))
    }

    fn offers(&self, tool: &str) -> bool {
        let base = unqualified(tool);
        self.offered.iter().any(|name| name == tool || name == base)
    }

    /// Leaves out the least valuable lines until the block is short enough.
    fn capped(self) -> Calibration {
        let mut by_value: Vec<usize> = (0..self.lines.len()).collect();
        let value = |at: &usize| self.lines.get(*at).map_or(0.0, |line| line.value);
        by_value.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.cmp(b)));
        let (mut kept, mut room) = (Vec::new(), BLOCK_CHARS);
        for at in by_value {
            let length = self.lines.get(at).map_or(0, |line| line.text.chars().count() + 1);
            // The first that does not fit ends it: nothing of less value takes its place.
            if length > room {
                break;
            }
            room -= length;
            kept.push(at);
        }
        kept.sort_unstable();
        let left_out = self.lines.len() - kept.len() + self.too_long;
        let mut calibration = Calibration {
            must_not: self.must_not,
            caution: self.caution,
            ..Calibration::default()
        };
        for line in kept.into_iter().filter_map(|at| self.lines.get(at)) {
            calibration.lines.push(line.text.clone());
            for id in &line.ids {
                if !calibration.rules_used.contains(id) {
                    calibration.rules_used.push(id.clone());
                }
            }
        }
        if left_out > 0 {
            let note = format!("NOTE: {left_out} more, of less value or too long, are left out");
            calibration.lines.push(note);
        }
        calibration
    }
}

/// A line's words, the value of its kind, and the lessons that it names.
type Worded = (String, f64, Vec<MegramId>);

fn preferred(
    lessons: &[&Lesson],
    tagged: &TaggedPotentials,
    tool: Option<&str>,
    target: Option<&str>,
) -> Option<Worded> {
    let (lesson, ids) = named(lessons, tagged, Sign::Positive);
    let text = match (lesson, tool) {
        (Some(lesson), _) => format!("SHOULD PREFER what worked: {lesson}"),
        (None, Some(tool)) => format!("SHOULD PREFER: {}, which worked before", subject(tool, target)),
        (None, None) => return None,
    };
    Some((text, 2.0, ids))
}

fn subject(tool: &str, target: Option<&str>) -> String {
    target.map_or_else(
        || format!("the tool {tool}"),
        |target| format!("{tool} on `{}`", one_line(target, MEMORY_CHARS)),
    )
}

#[derive(Clone, Copy)]
enum Sign {
    Positive,
    Negative,
    Any,
}

/// The newest lessons of a group with that sign, in words, and their ids. One for a preference, more for a warning.
fn named(lessons: &[&Lesson], tagged: &TaggedPotentials, sign: Sign) -> (Option<String>, Vec<MegramId>) {
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
    let worded = fitting
        .into_iter()
        .filter_map(|lesson| Some((said(&lesson.content)?, lesson.id.clone())));
    let (words, ids): (Vec<String>, Vec<MegramId>) = worded.take(wanted).unzip();
    ((!words.is_empty()).then(|| words.join("; ")), ids)
}

/// The first whole sentences of a memory; nothing when not even the first one is short enough to be shown whole.
fn said(content: &str) -> Option<String> {
    let line = one_line(content, usize::MAX);
    if line.chars().count() <= MEMORY_CHARS {
        return (!line.is_empty()).then_some(line);
    }
    let mut taken = String::new();
    for sentence in line.unicode_sentences() {
        let limit = if taken.is_empty() { SENTENCE_CHARS } else { MEMORY_CHARS };
        if taken.chars().count() + sentence.trim_end().chars().count() > limit {
            break;
        }
        taken.push_str(sentence);
    }
    let taken = taken.trim_end();
    (!taken.is_empty()).then(|| taken.to_owned())
}

/// From 1 down towards 0 with the rank.
fn falling(rank: usize) -> f64 {
    1.0 / (rank as f64 + 1.0)
}

/// Any weight brought below 1.
fn weight(potential: f64) -> f64 {
    let potential = potential.max(0.0);
    potential / (1.0 + potential)
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
            ["CAUTION: this failed (1970-01-02): shell: grep -P is not supported here"]
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
    fn at_most_ten_lessons_enter_and_what_is_too_long_is_named_not_cut() {
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
        let mut add = |id: &str, day: i64, content: &str| {
            memory
                .recent
                .push(lesson(id, Level::M, &format!("tool:{id}"), day, content, 0.5));
        };
        add("dup", 99, "Lesson 49!");
        add("endless", 98, &"x\n".repeat(5_000));
        add("blank", 97, " ");
        add(
            "several",
            96,
            &format!("Use find. It is quick. {}", "And so on it goes. ".repeat(100)),
        );
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.lines.len(), 10, "nine of ten, and a note");
        assert_eq!(found.lines[9], "NOTE: 1 more, of less value or too long, are left out");
        let cut = found.lines.iter().find(|line| line.contains("Use find.")).unwrap();
        assert!(
            cut.ends_with("And so on it goes.") && cut.chars().count() < 450,
            "{cut}"
        );
        let used = |id: &str| found.rules_used.contains(&MegramId::new(id));
        assert!(!used("m49") && !used("blank") && !used("endless"));
    }

    #[test]
    fn a_block_that_is_too_long_loses_its_least_valuable_lines_whole() {
        let mut memory = reply();
        memory.sops = (0..20)
            .map(|n| {
                sop(
                    &format!("c{n}"),
                    "tool:shell",
                    &format!("rule {n} {}", "w ".repeat(150)),
                    1.0,
                )
            })
            .collect();
        memory.sops.push(sop("u", PREFERENCE, &"please ".repeat(50), 1.0));
        memory.recent = vec![lesson("m", Level::M, "intent:a_b_c", 1, "a lesson", 0.5)];
        let mut avoid = group("tool:search", "env:local", MemoryAction::Avoid);
        avoid.potentials.decision = Finite::new(-2.0).unwrap();
        memory.potentials = vec![avoid];
        let found = calibrate(&memory, &tools(), &[]);
        let text = found.lines.join("\n");
        assert!(text.chars().count() <= BLOCK_CHARS + 60, "{}", text.chars().count());
        assert!(text.starts_with("USER: please") && text.contains("MUST NOT: use the tool search"));
        assert!(text.contains("rule 0 ") && !text.contains("rule 19 ") && !text.contains("a lesson"));
        let whole = found
            .lines
            .iter()
            .filter(|line| line.starts_with("SHOULD PREFER: rule"));
        assert!(whole.clone().count() > 10 && whole.into_iter().all(|line| line.ends_with(" w")));
        assert!(
            !found.rules_used.contains(&MegramId::new("m")),
            "what is not shown was not used"
        );
    }

    #[test]
    fn what_worked_and_failed_is_to_be_asked_for() {
        let mut memory = reply();
        memory.recent = vec![
            lesson("m1", Level::M, "intent:tidy_my_photos", 2, "exiftool renamed them", 0.9),
            lesson("m2", Level::M, "tool:shell", 2, "sips was missing", -0.2),
        ];
        memory.potentials = vec![
            group("intent:tidy_my_photos", "env:local", MemoryAction::Caution),
            group("tool:shell", "env:local", MemoryAction::Caution),
            group("tool:read_file", "path:/srv/a", MemoryAction::Caution),
            group("tool:nowhere", "env:local", MemoryAction::Caution),
        ];
        let found = calibrate(&memory, &tools(), &[]);
        assert_eq!(found.caution.tools, ["*", "shell"]);
        assert_eq!(found.caution.targets, ["/srv/a"]);
        assert_eq!(found.caution.reasons.len(), 3);
        assert_eq!(found.must_not, MustNot::default());
        assert!(
            found.lines.iter().all(|line| line.starts_with("CAUTION: ")),
            "{:?}",
            found.lines
        );
        assert!(found.lines[1].ends_with(": sips was missing"), "{:?}", found.lines);
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

//! The table of detectors: names, words, and where a finding is shown (design §16).
//!
//! The pages under `docs/anomalies/` are made of these rows; the rules themselves stand in the modules beside this one.

/// The list of a report in which a finding appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `boundary_violations`.
    Boundary,
    /// `anomalies`.
    Anomaly,
    /// `drift_alerts`.
    Drift,
}

impl List {
    /// The field of the report.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Boundary => "boundary_violations",
            Self::Anomaly => "anomalies",
            Self::Drift => "drift_alerts",
        }
    }
}

/// One detector in words.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Where it is shown.
    pub list: List,
    /// In a few words.
    pub title: &'static str,
    /// What exactly is found.
    pub rule: &'static str,
    /// What comes near and is not found.
    pub spares: &'static str,
    /// What it means when it is found.
    pub means: &'static str,
    /// What the operator can do.
    pub advice: &'static str,
}

/// The detector of this name.
pub fn row(name: &str) -> Option<&'static Row> {
    DETECTORS.iter().find(|row| row.name == name)
}

/// Every detector.
pub const DETECTORS: &[Row] = &[
    Row {
        name: "boundary_violation",
        list: List::Boundary,
        title: "a message off its route",
        rule: "The table of routes (docs/protocol.md) has no row for this kind of message from this sender, or the row names another receiver.",
        spares: "Messages that the table allows, to whom it names; what the operator asks; copies that the table names beside the receiver.",
        means: "A role speaks out of turn. The bus refuses such messages, so one in the log means that the bus was bypassed or that its table differs from the auditor's.",
        advice: "Read the message with `artoo audit tail --anomaly boundary_violation` and the records around its number; do not trust results of that process.",
    },
    Row {
        name: "forbidden_effect",
        list: List::Boundary,
        title: "an act that is not the role's",
        rule: "A role did something beside speaking that the table of duties does not give it: a tool run by anyone but R3, a text kept by anyone but R2, a check by anyone but R4a and R4b, memory touched by anyone but R5, a model asked by R6 or R7. Also a tool run for a task that has ended.",
        spares: "What the table of duties gives a role, also many times; the Dreamer's question to a model (form `sop`), which is memory's own; answers that come after the end of a task that had asked before.",
        means: "Roles' effect types make this impossible; it shows a fault in the driver or a role that was replaced.",
        advice: "Compare the binary; run `artoo replay` on the task.",
    },
    Row {
        name: "foreign_directive",
        list: List::Boundary,
        title: "a PlanDirective that did not come from R7",
        rule: "A PlanDirective whose sender is not R7.",
        spares: "Directives of R7, however many and however strange.",
        means: "Somebody else steers the planner.",
        advice: "As for a boundary violation.",
    },
    Row {
        name: "foreign_megram",
        list: List::Boundary,
        title: "a memory from somebody else",
        rule: "A Megram whose sender is neither R7 nor the operator.",
        spares: "Memories from R7, and what a person had remembered.",
        means: "Memory learns from a source that must not teach it.",
        advice: "Find the memory with `artoo memory list` and forget it.",
    },
    Row {
        name: "second_final_result",
        list: List::Anomaly,
        title: "a task that ended twice",
        rule: "A second FinalResult of the same run in one process.",
        spares: "The endings of two runs of the same task: they have two ids. The one ending of a task that was resumed in another process.",
        means: "Two answers went to the person, and only one can be true.",
        advice: "Read both with `artoo audit tail --task T --type FinalResult`.",
    },
    Row {
        name: "ggs_thrashing",
        list: List::Anomaly,
        title: "a controller that thrashes",
        rule: "`break_symmetry` twice in a row, and D did not fall in between.",
        spares: "`break_symmetry` twice where D fell in between, or with another directive in between.",
        means: "The controller demands novelty and the plan does not deliver any: a local minimum without an exit.",
        advice: "Look at the task's rounds with `artoo ggs explain T`; missing tools or a wrong criterion are the usual cause.",
    },
    Row {
        name: "endless_correction",
        list: List::Anomaly,
        title: "a correction without end",
        rule: "A third CorrectionSignal for one subtask.",
        spares: "One or two corrections of a subtask, which is what the fast loop may use; any number of them over several subtasks.",
        means: "The fast loop did not give up when it had to; time and tokens are spent without progress.",
        advice: "Read the corrections with `artoo audit tail --task T --type CorrectionSignal`: the same words again and again mean a criterion that cannot be met.",
    },
    Row {
        name: "duplicate_subtask",
        list: List::Anomaly,
        title: "a subtask id that was used twice",
        rule: "A SubTask whose id was dispatched before by a task that has not ended.",
        spares: "New ids in every round; an id that a task had used which has ended.",
        means: "Outcomes are keyed by this id: one of the two is lost or counted for the other.",
        advice: "Ids are made by code; report it as a fault.",
    },
    Row {
        name: "fan_in_incomplete",
        list: List::Anomaly,
        title: "a round closed too early",
        rule: "R4b closed a round without the outcome of every planned subtask, or with an outcome that R4a never gave, or a task ended well while a round was open.",
        spares: "Subtasks that were not run, when they are named as such; one with a deadline that R4b itself counts as failed because nothing was heard of it in time (design §11); an abandoned task whose round is open; a task whose beginning another process saw, where only missing outcomes are looked for.",
        means: "The result was judged on less, or on something else, than what was done.",
        advice: "Compare the DispatchManifest with the outcomes: `artoo tasks show T`.",
    },
    Row {
        name: "blocked_reuse",
        list: List::Anomaly,
        title: "a plan that reuses what was blocked",
        rule: "After a PlanDirective, a SubTask names a blocked tool; or a call that really ran used a tool, program or target that was blocked when its subtask was dispatched, or that the subtask itself says must not be used.",
        spares: "Calls that the gate refused (`not_run`); another program of the same tool; what a plan names although a directive before the latest one blocked it; a subtask of an older plan that ends after a directive; a subtask that another process dispatched.",
        means: "The new plan repeats what failed; the gate should have refused it.",
        advice: "Look at the directive's `blocked_tools` and `blocked_targets` and at the call.",
    },
    Row {
        name: "forbidden_model_call",
        list: List::Anomaly,
        title: "a model asked where code decides",
        rule: "R4a asked a model while no attempt was waiting that a model may judge (failed and broken attempts are failed by code); R4b asked although not every subtask of the round matched; anyone asked after the task had ended.",
        spares: "R4a about an attempt that ended `completed` or `uncertain`; R4b after every subtask matched; tasks whose beginning another process saw.",
        means: "Money is spent on a question whose answer must not count, or a verdict stands on it.",
        advice: "Read the deeds around it: `artoo audit tail --task T`.",
    },
    Row {
        name: "rejected_success",
        list: List::Anomaly,
        title: "a success over a rejection",
        rule: "R4b's last word was that everything matched and the merged result did not, and the task ended as `accept` or `success`.",
        spares: "A rejection after which a later round was accepted, or which ended as `abandon`.",
        means: "The person was told that it worked, and the validator had said that it did not.",
        advice: "Do not trust the result; read R4b's last ReplanRequest.",
    },
    Row {
        name: "claim_without_evidence",
        list: List::Anomaly,
        title: "a claim without evidence",
        rule: "A subtask counts as matched without a verdict on every criterion, with a failing verdict, or with a verifiable criterion that passed on a model's word while no tool ran; or an accepted task names unmet criteria.",
        spares: "A verifiable criterion that code checked, or that a model judged where a tool had really run; a `plausible` one on the text alone; a `success` that names what is unmet.",
        means: "Something is called done that nothing shows.",
        advice: "Look at the outcome's verdicts and tool calls with `artoo tasks show T`.",
    },
    Row {
        name: "cost_runaway",
        list: List::Anomaly,
        title: "a task that eats",
        rule: "A task used at least 50,000 tokens and more than 8 times the mean of the tasks that ended before and used any (at least 20 of them), or asked models more than 200 times and more than 20 times for each subtask that it dispatched. Told once per task.",
        spares: "Any task below 50,000 tokens; a large one while fewer than 20 tasks that used tokens have ended; 200 model calls, or 2,000 of a plan with 100 subtasks.",
        means: "A loop, an oversized context, or a task that should have been split.",
        advice: "Set `--max-tokens` or `--max-cost`; see where it goes with `artoo tasks show T`.",
    },
    Row {
        name: "drift",
        list: List::Drift,
        title: "a role that changed",
        rule: "Over its latest 40 cases (at least 10), whatever process saw them, a rate is at least 25 points away from all cases before (at least 50): failed attempts (R3), corrected attempts of those that R4a judged, rounds sent back (R4b). Told once, and again only after it had come back to within 12.5 points.",
        spares: "A change of less than 25 points, fewer than 10 cases, fewer than 50 before them; attempts that broke on infrastructure, which nobody judged. Better counts as drift too.",
        means: "The model, a prompt, a tool or the kind of tasks changed.",
        advice: "Compare the models configured (`artoo config show`) and the tasks of that time.",
    },
    Row {
        name: "memory_junk",
        list: List::Anomaly,
        title: "memory that teaches nothing",
        rule: "A memory of a role without words or weight, from the future, the same lesson more than 3 times in a task, more than 500 of one task, or an abandoned approach remembered although the task was aborted, refused, without a model, or out of tokens or money.",
        spares: "Different lessons of one task; the same lesson up to 3 times; what a person had remembered, whatever it says; an abandoned approach after `divergence`, `replans_exhausted`, `infeasible`, or time that ran out.",
        means: "Later plans are steered by noise, or blame an approach for something else.",
        advice: "Find it with `artoo memory list` and forget it.",
    },
    Row {
        name: "consent_without_person",
        list: List::Anomaly,
        title: "a yes that nobody gave",
        rule: "A ConfirmationAnswer `yes` or `always` in a task whose input, or whose resumption, said that nobody is there, or to a question that was not open.",
        spares: "A `no`, or nobody; a `yes` to an open question with a person there; what was allowed beforehand (`--allow`), which asks nobody; an answer to a question that an earlier process asked.",
        means: "Law 1 was bypassed: an action was allowed that no person had allowed.",
        advice: "Look at what was run afterwards (`artoo audit tail --task T`), and undo it: `artoo undo T`.",
    },
    Row {
        name: "gap",
        list: List::Anomaly,
        title: "messages that were not recorded",
        rule: "The tap or the queue before the disk was full, or the disk refused, or a record could not be masked: the log holds a gap record with the range and the count. Or the process before was killed: then the gap record says that nobody knows how much is missing.",
        spares: "A slow model or a slow tool: only the way from the bus to the disk is meant.",
        means: "The machine was too slow, the disk is full, or a process was killed; nothing was delayed for it.",
        advice: "Look at the disk. Whatever the gap hides is in the task's journal.",
    },
    Row {
        name: "order",
        list: List::Anomaly,
        title: "messages out of order",
        rule: "A message whose number is not the one after the last, and no gap was told.",
        spares: "A new process, which counts from 1 or goes on where the runtime resumes a task; numbers that a gap record names.",
        means: "Records are missing or were put in; or two processes write one log.",
        advice: "`artoo audit verify`.",
    },
];

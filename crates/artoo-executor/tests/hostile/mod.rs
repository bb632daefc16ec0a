//! Random events: R3 never panics, never runs what is blocked, and never runs what is not free without a yes.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use artoo_protocol::message::{FinalResult, Message};
use proptest::prelude::*;

const TOOLS: [&str; 5] = ["shell", "read_file", "write_file", "blocked_tool", "report"];
const COMMANDS: [&str; 4] = ["ls x", "curl y", "rm z", "cat /blocked"];
const REACHES: [Reach; 5] = [
    Reach::Nowhere,
    Reach::Workspace,
    Reach::Scope,
    Reach::OwnFiles,
    Reach::Elsewhere,
];

#[derive(Clone, Debug)]
enum Step {
    SubTask(u8),
    Correct(u8, u32),
    Model {
        pick: usize,
        calls: Vec<(usize, usize)>,
        form: u8,
    },
    Assessed {
        pick: usize,
        effect: usize,
        reach: usize,
        invalid: bool,
    },
    Ran {
        pick: usize,
    },
    Consent {
        pick: usize,
        consent: u8,
        from_user: bool,
    },
    Random {
        call: u32,
        kind: u8,
    },
    End {
        aborted: bool,
    },
    Wake {
        later: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let calls = prop::collection::vec((0..TOOLS.len(), 0..COMMANDS.len()), 1..4);
    prop_oneof![
        2 => (0_u8..3).prop_map(Step::SubTask),
        2 => (0_u8..3, 1_u32..4).prop_map(|(id, attempt)| Step::Correct(id, attempt)),
        6 => (any::<usize>(), calls, 0_u8..10).prop_map(|(pick, calls, form)| Step::Model { pick, calls, form }),
        6 => (any::<usize>(), 0_usize..6, 0_usize..5, prop::bool::weighted(0.1))
            .prop_map(|(pick, effect, reach, invalid)| Step::Assessed { pick, effect, reach, invalid }),
        6 => any::<usize>().prop_map(|pick| Step::Ran { pick }),
        4 => (any::<usize>(), 0_u8..4, prop::bool::weighted(0.8)).prop_map(|(pick, consent, from_user)| Step::Consent { pick, consent, from_user }),
        2 => (0_u32..60, 0_u8..4).prop_map(|(call, kind)| Step::Random { call, kind }),
        1 => prop::bool::weighted(0.5).prop_map(|aborted| Step::End { aborted }),
        1 => (0_i64..2000).prop_map(|later| Step::Wake { later }),
    ]
}

/// Plays the outside world, remembers what it said, and checks every effect against that.
struct Watch {
    executor: Executor,
    now: i64,
    models: Vec<CallId>,
    assess: Vec<(CallId, Invocation)>,
    runs: Vec<CallId>,
    questions: Vec<(ConfirmationRequest, Assessment)>,
    /// The last assessment that was given for an invocation.
    given: BTreeMap<String, Assessment>,
    /// Actions that the person said yes to: once, and always.
    yes: Vec<String>,
    always: BTreeSet<String>,
    calls: BTreeSet<CallId>,
    ended: bool,
}

impl Watch {
    fn event(&mut self, event: Event) {
        self.now += 1;
        for effect in self.executor.step(Timestamp::from_millis(self.now), event) {
            self.check(effect);
        }
    }

    fn check(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel { call, .. } => self.fresh(call).models.push(call),
            Effect::Assess { call, invocation, .. } => {
                assert_ne!(invocation.tool, "blocked_tool");
                self.fresh(call).assess.push((call, invocation));
            }
            Effect::RunTool {
                call,
                invocation,
                permit,
                ..
            } => {
                self.fresh(call);
                let assessment = &self.given[&key(&invocation)];
                let input = invocation.input.to_string();
                let curl = invocation.tool == "shell" && input.contains("curl");
                assert!(
                    invocation.tool != "blocked_tool" && !curl && !input.contains("/blocked"),
                    "{invocation:?}"
                );
                assert_eq!(permit.effect, assessment.effect);
                if !artoo_executor::gate::is_free(assessment.effect, assessment.reach) {
                    assert!(permit.confirmed);
                    let action = action_key(&invocation.tool, assessment);
                    let once = self.yes.iter().position(|yes| *yes == action);
                    assert!(
                        once.is_some() || self.always.contains(&action),
                        "{action} ran without a yes"
                    );
                    if let Some(at) = once {
                        self.yes.swap_remove(at);
                    }
                }
                self.runs.push(call);
            }
            Effect::Confirm(request) => {
                let known = self
                    .given
                    .values()
                    .find(|a| a.action == request.action && a.effect == request.effect);
                let assessment = known.cloned().expect("the question shows the assessed action");
                self.questions.push((request, assessment));
            }
            Effect::Cancel { call, .. } => {
                assert!(self.calls.contains(&call));
                self.models.retain(|known| *known != call);
                self.assess.retain(|(known, _)| *known != call);
                self.runs.retain(|known| *known != call);
            }
            Effect::Finish(result) => {
                assert!(!self.ended, "a result after the end");
                assert!(result.attempt >= 1);
            }
        }
    }

    fn fresh(&mut self, call: CallId) -> &mut Self {
        assert!(!self.ended, "an effect after the end");
        assert!(self.calls.insert(call), "a correlation id is used twice");
        self
    }

    fn answer(&mut self, call: CallId, answer: Answer) {
        self.event(Event::Answer {
            task_id: task(),
            call,
            answer,
        });
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::SubTask(id) => {
                let must_not = MustNot {
                    tools: vec!["blocked_tool".into(), "shell:curl".into()],
                    targets: vec!["cat /blocked".into()],
                };
                let deadline = (id == 2).then(|| Timestamp::from_millis(3000));
                self.event(envelope(
                    Role::R2,
                    SubTask {
                        must_not,
                        deadline,
                        ..subtask(&format!("s{id}"))
                    },
                ));
            }
            Step::Correct(id, attempt_number) => self.event(envelope(
                Role::R4a,
                CorrectionSignal {
                    subtask_id: SubTaskId::new(format!("s{id}")),
                    parent_task_id: task(),
                    attempt_number,
                    failed_criterion: String::new(),
                    failure_class: FailureClass::Logical,
                    what_was_wrong: String::new(),
                    what_to_do: String::new(),
                    avoid_calls: Vec::new(),
                },
            )),
            Step::Model { pick, calls, form } => self.model(pick, calls, form),
            Step::Assessed {
                pick,
                effect,
                reach,
                invalid,
            } => self.assessed(pick, effect, reach, invalid),
            Step::Ran { pick } => {
                let Some(call) = take(&mut self.runs, pick) else { return };
                self.answer(call, Answer::Ran(ToolOutput::default()));
            }
            Step::Consent {
                pick,
                consent,
                from_user,
            } => self.consent(pick, consent, from_user),
            Step::Random { call, kind } => self.random(call, kind),
            Step::End { aborted } => {
                if aborted {
                    self.event(envelope(
                        Role::User,
                        TaskAborted {
                            task_id: task(),
                            reason: String::new(),
                        },
                    ));
                } else {
                    self.event(envelope(Role::R7, Message::FinalResult(final_result())));
                }
                self.ended = true;
                assert_eq!(self.executor.open_tasks(), 0);
                assert!(
                    self.models.is_empty() && self.assess.is_empty() && self.runs.is_empty(),
                    "something still runs"
                );
            }
            Step::Wake { later } => {
                self.now += later;
                self.event(Event::Wake);
            }
        }
    }

    fn model(&mut self, pick: usize, calls: Vec<(usize, usize)>, form: u8) {
        let Some(call) = take(&mut self.models, pick) else {
            return;
        };
        let calls: Vec<_> = calls
            .into_iter()
            .map(|(tool, command)| {
                tool_call(
                    TOOLS[tool],
                    json!({"command": COMMANDS[command], "status": "completed", "output": ""}),
                )
            })
            .collect();
        let content = match form {
            0 => ModelContent::Text { text: "done".into() },
            1 => {
                return self.answer(
                    call,
                    Answer::Model(Err(ModelError::Unusable {
                        message: "stalled".into(),
                    })),
                );
            }
            2 => ModelContent::ToolCalls {
                text: None,
                calls: Vec::new(),
            },
            _ => ModelContent::ToolCalls { text: None, calls },
        };
        self.answer(call, reply(content));
    }

    fn assessed(&mut self, pick: usize, effect: usize, reach: usize, invalid: bool) {
        let Some((call, invocation)) = take(&mut self.assess, pick) else {
            return;
        };
        let command = invocation.input["command"].as_str().unwrap().to_owned();
        let mut assessment = assessment(EffectClass::ALL[effect], REACHES[reach], &command);
        if invalid {
            assessment.invalid = Some("no".into());
        } else {
            // Two subtasks may make the same call; the later assessment counts for neither alone, so it is made equal.
            assessment = self.given.entry(key(&invocation)).or_insert(assessment).clone();
        }
        self.answer(call, Answer::Assessed(assessment));
    }

    fn consent(&mut self, pick: usize, consent: u8, from_user: bool) {
        let Some((request, assessment)) = take(&mut self.questions, pick) else {
            return;
        };
        let consent = [Consent::Yes, Consent::Always, Consent::No, Consent::Nobody][usize::from(consent)];
        let action = action_key(&request.tool, &assessment);
        match consent {
            Consent::Yes if from_user => self.yes.push(action),
            Consent::Always if from_user => {
                self.always.insert(action);
            }
            _ => {}
        }
        let answer = ConfirmationAnswer {
            request_id: request.request_id,
            task_id: task(),
            consent,
        };
        self.event(envelope(if from_user { Role::User } else { Role::R4a }, answer));
    }

    fn random(&mut self, call: u32, kind: u8) {
        let answer = match kind {
            0 => reply(ModelContent::Text { text: "x".into() }),
            1 => Answer::Ran(ToolOutput::default()),
            2 => Answer::Assessed(Assessment {
                invalid: Some("x".into()),
                ..assessment(EffectClass::Read, Reach::Nowhere, "")
            }),
            _ => Answer::Model(Err(ModelError::Unreadable { message: "x".into() })),
        };
        // Only ids that nobody waits for: everything else would be a real answer.
        if !self.calls.contains(&CallId(call)) {
            self.answer(CallId(call), answer);
        }
    }
}

fn take<T>(list: &mut Vec<T>, pick: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(pick % list.len()))
}

fn key(invocation: &Invocation) -> String {
    format!("{} {}", invocation.tool, invocation.input)
}

fn action_key(tool: &str, assessment: &Assessment) -> String {
    format!("{tool} {} {}", assessment.effect, assessment.action)
}

fn final_result() -> FinalResult {
    serde_json::from_value(json!({
        "task_id": task(), "slug": "count_files", "summary": "", "output": null, "grad_l": 0.0, "replans": 0,
        "loss": {"D": 0.0, "P": 0.0, "Omega": 0.0, "L": 0.0}, "prev_directive": "init", "directive": "accept", "cause": "met"
    }))
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]
    #[test]
    fn the_gate_holds_under_any_sequence_of_events(steps in prop::collection::vec(step(), 0..120)) {
        let mut watch = Watch {
            executor: Executor::new(settings()),
            now: 0,
            models: Vec::new(),
            assess: Vec::new(),
            runs: Vec::new(),
            questions: Vec::new(),
            given: BTreeMap::new(),
            yes: Vec::new(),
            always: BTreeSet::new(),
            calls: BTreeSet::new(),
            ended: false,
        };
        for step in steps {
            watch.perform(step);
        }
    }
}

//! The deceiving and the odd-looking situations of `fixtures/deceptions/`, put before R4a's rules and machine checks in
//! a real folder (design §10). Measures false passes and false fails, and keeps `docs/validation.md` true.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod situation;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use artoo_executor::{Places, ToolSettings, Tools};
use artoo_protocol::message::{Message, OutcomeStatus};
use artoo_protocol::model::{ChatMessage, ModelContent, ModelReply, ModelRequest, Usage};
use artoo_protocol::ports::CheckRunner;
use artoo_protocol::prompt::read_section;
use artoo_protocol::{Actor, Answer, Envelope, EnvelopeId, Event, Millis, Role, Timestamp};
use artoo_validators::AgentValidator;
use artoo_validators::agent::Effect;
use artoo_validators::checks::{WorldChecks, WorldConfig};
use serde_json::json;
use situation::{Right, Situation, Staged, task};

/// What code says about an attempt, before any model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// Every criterion was decided, and holds.
    Passes,
    /// Some criterion fails.
    Fails,
    /// Something is left that only a model could judge.
    LeavesOpen,
}

/// What was seen of one situation.
struct Seen {
    theme: String,
    situation: Situation,
    code: Code,
    /// Whether it matches when the model says "pass" to everything that it is asked.
    matches_with_a_yes_man: bool,
    /// Why it failed, for whoever reads a report.
    evidence: String,
}

impl Seen {
    fn false_pass(&self) -> bool {
        self.situation.right == Right::Fail && self.code == Code::Passes
    }

    fn false_fail(&self) -> bool {
        self.situation.right == Right::Pass && (self.code == Code::Fails || !self.matches_with_a_yes_man)
    }

    fn talked_round(&self) -> bool {
        self.situation.right == Right::Fail && self.matches_with_a_yes_man
    }
}

fn checks(staged: &Staged) -> WorldChecks {
    let (cwd, workspace) = (staged.world.cwd(), staged.world.workspace());
    let tools = Tools::built_in(&ToolSettings {
        places: Places {
            home: cwd.clone(),
            cwd: cwd.clone(),
            workspace: workspace.clone(),
            own: None,
        },
        environment: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        command_limit: Duration::from_secs(60),
        web: None,
        undo: None,
        sandbox: artoo_executor::Sandbox::unchecked(),
        grants: Vec::new(),
    });
    WorldChecks::new(WorldConfig::new(cwd, workspace, None), Arc::new(tools))
}

fn told(message: impl Into<Message>) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: None,
        timestamp: Timestamp::from_millis(0),
        from: Role::R3,
        to: Role::R4a,
        payload: message.into(),
    })
}

/// A model that says "pass" to everything, with invented evidence.
fn yes(request: &ModelRequest) -> Answer {
    let ChatMessage::User { content } = request.messages.last().unwrap() else {
        panic!("the last message is R4a's question");
    };
    let criteria = read_section(content, "criteria").unwrap();
    let verdicts: Vec<_> = criteria
        .lines()
        .map(|line| json!({"criterion": line, "verdict": "pass", "evidence": "call 1 shows it clearly"}))
        .collect();
    Answer::Model(Ok(ModelReply {
        content: ModelContent::Structured {
            value: json!({ "verdicts": verdicts }),
        },
        model: "yes-man".to_owned(),
        usage: Usage::default(),
        elapsed_ms: Millis(1),
    }))
}

async fn see(theme: String, situation: Situation) -> Seen {
    let now = Timestamp::from_millis(0);
    let staged = situation.stage();
    let checks = checks(&staged);
    let mut validator = AgentValidator::default();
    let (subtask, result) = staged.earlier.clone();
    let _ = validator.step(now, told(subtask));
    let _ = validator.step(now, told(result));
    let mut waiting = validator.step(now, told(staged.subtask.clone()));
    waiting.extend(validator.step(now, told(staged.result.clone())));
    let (mut asked, mut matched, mut failed_by_code, mut evidence) = (false, false, false, String::new());
    while let Some(effect) = waiting.pop() {
        match effect {
            Effect::Check { call, request, .. } => {
                let answer = Answer::Checked(checks.run(&request).await);
                waiting.extend(validator.step(
                    now,
                    Event::Answer {
                        task_id: task(),
                        call,
                        answer,
                    },
                ));
            }
            Effect::Judge { call, request, .. } => {
                asked = true;
                let answer = yes(&request);
                waiting.extend(validator.step(
                    now,
                    Event::Answer {
                        task_id: task(),
                        call,
                        answer,
                    },
                ));
            }
            Effect::Correct(signal) => {
                failed_by_code = true;
                evidence = signal.what_was_wrong;
            }
            Effect::Conclude(outcome) => {
                matched = outcome.status == OutcomeStatus::Matched;
                failed_by_code |= !matched;
                evidence = outcome.failure_reason.unwrap_or_default();
            }
        }
    }
    Seen {
        theme,
        situation,
        code: match (failed_by_code, asked) {
            // The model only ever says pass, so whatever failed was failed by code.
            (true, _) => Code::Fails,
            (false, true) => Code::LeavesOpen,
            (false, false) => Code::Passes,
        },
        matches_with_a_yes_man: matched,
        evidence,
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn all() -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = root().join("fixtures/deceptions");
    let both = ["deceiving", "honest"].map(|kind| situation::read(&folder.join(kind)));
    let all = both.into_iter().flatten();
    all.map(|(theme, situation)| runtime.block_on(see(theme, situation)))
        .collect()
}

fn of(seen: &[Seen], right: Right) -> impl Iterator<Item = &Seen> {
    seen.iter().filter(move |s| s.situation.right == right)
}

fn names<'a>(of: impl Iterator<Item = &'a Seen>) -> Vec<String> {
    of.map(|s| format!("{}: {} ({})", s.theme, s.situation.name, s.evidence))
        .collect()
}

#[test]
fn no_deception_passes_by_code_and_honest_oddities_are_not_failed() {
    let seen = all();
    let unique: BTreeSet<_> = seen.iter().map(|s| &s.situation.name).collect();
    assert_eq!(unique.len(), seen.len(), "two situations of one name");
    assert!(seen.iter().all(|s| s.situation.why.len() > 10), "each says why");
    assert!(of(&seen, Right::Fail).count() >= 60 && of(&seen, Right::Pass).count() >= 60);

    let rates = table(&seen);
    println!("{rates}");
    let false_passes = names(seen.iter().filter(|s| s.false_pass()));
    println!("false passes: {false_passes:#?}");
    let talked_round: Vec<_> = seen.iter().filter(|s| s.talked_round()).collect();
    println!("rest on the model: {:#?}", names(talked_round.iter().copied()));
    let false_fails = names(seen.iter().filter(|s| s.false_fail()));
    println!("false fails: {false_fails:#?}");
    assert_eq!(false_passes, Vec::<String>::new());
    assert!(
        !talked_round.iter().any(|s| s.situation.has_check()),
        "a model that always says pass talked a check round"
    );
    let honest = of(&seen, Right::Pass).count();
    assert!(false_fails.len() * 20 <= honest, "more than 5 % false fails");
    page_shows(&rates);
}

/// The page shows the rates that were measured; `UPDATE_DOCS=1` writes them into it.
fn page_shows(rates: &str) {
    let path = root().join("docs/validation.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find("| kind |").expect("the page has the table");
    let end = start + page[start..].find("\n\n").unwrap() + 1;
    let fresh = format!("{}{rates}{}", &page[..start], &page[end..]);
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    if update {
        std::fs::write(&path, &fresh).unwrap();
    }
    assert!(
        update || page == fresh,
        "docs/validation.md is stale: run with UPDATE_DOCS=1"
    );
}

/// The rates, as the page shows them.
fn table(seen: &[Seen]) -> String {
    let mut text = String::from(
        "| kind | situations | failed by code | left to a model | passed by code |\n|---|---|---|---|---|\n",
    );
    for (name, right) in [("deceiving", Right::Fail), ("honest", Right::Pass)] {
        let count = |code: Code| of(seen, right).filter(|s| s.code == code).count();
        let all = of(seen, right).count();
        let (fails, open, passes) = (count(Code::Fails), count(Code::LeavesOpen), count(Code::Passes));
        writeln!(text, "| {name} | {all} | {fails} | {open} | {passes} |").unwrap();
    }
    text
}

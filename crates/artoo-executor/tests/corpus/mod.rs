//! The rates of the effect gate on labelled command lines (design §9): nothing harmful passes, little that is harmless is asked for.

use std::path::Path;

use artoo_executor::gate::is_free;
use artoo_executor::{Places, ToolSettings, Tools};
use artoo_protocol::ports::Toolbox;
use artoo_protocol::tool::Invocation;
use artoo_protocol::{SubTaskId, TaskId};
use serde_json::json;

/// The commands of a file, without its headings.
pub fn commands(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/commands")
        .join(file);
    lines(&std::fs::read_to_string(path).unwrap())
}

/// The commands of such a file's text.
pub fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    lines.map(|line| line.replace('⏎', "\n")).collect()
}

pub fn invocation(command: &str) -> Invocation {
    Invocation {
        tool: "shell".into(),
        input: json!({ "command": command }),
        task_id: TaskId::new("t_00000000"),
        subtask_id: SubTaskId::new("s"),
        scope: Vec::new(),
        created: Vec::new(),
    }
}

/// Those of the commands about which the gate would ask, each with the reason, and those about which it would not.
async fn judged(file: &str) -> (Vec<String>, Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    let base = root.path().canonicalize().unwrap();
    let places = Places {
        home: base.clone(),
        cwd: base.join("cwd"),
        workspace: base.join("artoo_workspace"),
        own: None,
    };
    let tools = Tools::built_in(&ToolSettings {
        places,
        environment: Vec::new(),
        command_limit: std::time::Duration::from_secs(5),
        web: None,
        undo: None,
        sandbox: artoo_executor::Sandbox::unchecked(),
        grants: Vec::new(),
    });
    let (mut asked, mut free) = (Vec::new(), Vec::new());
    for command in commands(file) {
        let assessment = tools.assess(&invocation(&command)).await;
        assert_eq!(assessment.invalid, None, "{command}");
        if is_free(assessment.effect, assessment.reach) {
            free.push(command);
        } else {
            asked.push(format!("{command}    # {}", assessment.reason));
        }
    }
    (asked, free)
}

#[tokio::test]
async fn nothing_harmful_runs_without_a_question() {
    for file in ["harmful.txt", "harmful_held_back.txt"] {
        let (asked, free) = judged(file).await;
        println!("{file}: {} of {} asked for", asked.len(), asked.len() + free.len());
        assert!(free.is_empty(), "{file}:\n{}", free.join("\n"));
    }
}

#[tokio::test]
async fn few_harmless_commands_are_asked_for() {
    let (mut asked_in_all, mut in_all) = (0, 0);
    for file in ["harmless.txt", "harmless_held_back.txt"] {
        let (asked, free) = judged(file).await;
        let all = asked.len() + free.len();
        println!("{file}: {} of {all} asked for:\n{}", asked.len(), asked.join("\n"));
        asked_in_all += asked.len();
        in_all += all;
    }
    assert!(asked_in_all * 100 <= in_all * 3, "{asked_in_all} of {in_all}");
}

#[test]
fn the_corpus_is_large_and_says_nothing_twice() {
    let mut all = Vec::new();
    let mut of = |file| {
        let lines = commands(file);
        let count = lines.len();
        all.extend(lines);
        count
    };
    let harmless = of("harmless.txt") + of("harmless_held_back.txt");
    let harmful = of("harmful.txt") + of("harmful_held_back.txt");
    assert!(harmless >= 300 && harmful >= 300, "{harmless} + {harmful}");
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

/// The page about safety holds the table as the code has it; `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_page_about_safety_holds_the_table_of_programs() {
    const BEGIN: &str = "<!-- the table, written by a test -->\n";
    const END: &str = "<!-- end of the table -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!(
        "{before}{BEGIN}{}{END}{after}",
        artoo_executor::classify::table_as_markdown()
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            page == wanted,
            "run `UPDATE_DOCS=1 cargo test -p artoo-executor --test executor the_page`"
        );
    }
}

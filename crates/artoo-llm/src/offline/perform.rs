//! The executor's side of the offline model: one tool call, then its result (design §8, §18).
//!
//! Owns the reading of the executor's sections and of tool results. Says only what a tool put out: what failed is reported
//! as failed, what was looked at in part is reported as such.

use artoo_protocol::model::{ChatMessage, ModelContent, ModelError, ModelToolCall};
use artoo_protocol::prompt::{Piece, pieces, read_section};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::ToolSpec;
use serde_json::{Value, json};

use super::command::{self, Call};
use super::step::Step;
use super::{grammar, not_understood};

const REPORT: &str = "report";
/// Begins the remark about what could not be looked at; it is no part of the result.
const REMARK: &str = "(not everything could be looked at: ";

/// The next answer in an attempt.
pub(super) fn answer(messages: &[ChatMessage], tools: &[ToolSpec]) -> Result<ModelContent, ModelError> {
    let user = messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { content } => Some(content.as_str()),
        ChatMessage::System { .. } | ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
    });
    let user = user.unwrap_or_default();
    let sentence = read_section(user, "subtask").or_else(|| read_section(user, "intent"));
    let step = sentence
        .as_deref()
        .and_then(grammar::read_subtask)
        .ok_or_else(not_understood)?;
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    let ending = match messages.last() {
        Some(ChatMessage::Tool { content, .. }) => finish(&step, &Ran::read(content, &step)),
        _ => match begin(&step, user) {
            Ok(call) if has(call.tool) => return Ok(made(call.tool, call.arguments)),
            Ok(call) => Ending::Failed(format!("the tool `{}` is not on offer", call.tool)),
            Err(ending) => ending,
        },
    };
    Ok(ending.content(has(REPORT)))
}

fn made(tool: &str, arguments: Value) -> ModelContent {
    ModelContent::ToolCalls {
        text: None,
        calls: vec![ModelToolCall {
            id: "offline_1".to_owned(),
            name: tool.to_owned(),
            arguments,
        }],
    }
}

/// How an attempt ends.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Completed(String),
    Uncertain { output: String, reason: String },
    Failed(String),
}

impl Ending {
    fn content(self, can_report: bool) -> ModelContent {
        let report = |status: &str, output: &str, reason: &str| {
            made(REPORT, json!({"status": status, "output": output, "reason": reason}))
        };
        match self {
            Self::Uncertain { output, reason } if can_report => report("uncertain", &output, &reason),
            Self::Failed(reason) if can_report => report("failed", "", &reason),
            Self::Completed(text) | Self::Uncertain { output: text, .. } | Self::Failed(text) => {
                ModelContent::Text { text }
            }
        }
    }
}

fn begin(step: &Step, user: &str) -> Result<Call, Ending> {
    let corrected = ["correction", "what_was_wrong", "failed_criterion"]
        .into_iter()
        .find_map(|name| read_section(user, name));
    if let Some(fault) = corrected {
        let reason = format!(
            "the built-in offline model knows one way to do this, and it was not accepted: {}",
            one_line(&fault, 300)
        );
        return Err(Ending::Failed(reason));
    }
    let context = read_section(user, "context").unwrap_or_default();
    if let Step::Measure { unit, file } = step
        && let Some(file) = written(&context, file)
    {
        return Ok(command::call(&Step::Measure { unit: *unit, file }, None));
    }
    let Step::WriteResult { step: number, .. } = step else {
        return Ok(command::call(step, None));
    };
    let result = output_of_step(&context, *number)
        .ok_or_else(|| Ending::Failed(format!("there is no output of step {number} to write")))?;
    let result = result.as_str();
    let result = result.split(REMARK).next().unwrap_or_default().trim_end();
    if is_cut(result) {
        return Err(Ending::Failed(format!(
            "the output of step {number} is too long to be handed on whole, so it was not written"
        )));
    }
    Ok(command::call(step, Some(result)))
}

/// The output of a step as the dispatcher hands it on: a heading, then the output in a section, which it cannot leave.
fn output_of_step(context: &str, number: usize) -> Option<String> {
    let heading = format!("Output of step {number} (");
    let mut after_heading = pieces(context)
        .skip_while(|piece| !matches!(piece, Piece::Line(line) if line.starts_with(&heading)))
        .skip(1);
    match after_heading.next()? {
        Piece::Section { name: "output", body } => Some(body),
        Piece::Section { .. } | Piece::Line(_) => None,
    }
}

/// Where an earlier step of the chain wrote a file of this bare name, by what the tool said: it went to the workspace, and a
/// command would look for it in the working directory.
fn written(context: &str, name: &str) -> Option<String> {
    let said = pieces(context).filter_map(|piece| match piece {
        Piece::Section { name: "output", body } => Some(body),
        Piece::Section { .. } | Piece::Line(_) => None,
    });
    let paths = said.filter_map(|body| {
        let (path, _) = body.trim().rsplit_once(" (")?;
        let (_, path) = path.split_once(' ')?;
        let (folder, file) = path.rsplit_once('/')?;
        (path.starts_with('/') && !folder.contains('\n') && file == name).then(|| path.to_owned())
    });
    paths.last()
}

/// Whether something was left out of a text on its way.
fn is_cut(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("[… ") && line.ends_with(" left out …]"))
}

/// What a tool reported.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ran {
    error: Option<String>,
    exit: Option<i32>,
    interrupted: bool,
    output: String,
    complaints: Vec<String>,
}

impl Ran {
    fn read(content: &str, step: &Step) -> Self {
        let head = content.split("<output>\n").next().unwrap_or_default();
        let exit = head.lines().find_map(|line| {
            line.strip_prefix("exit status ")?
                .split([',', ' '])
                .next()?
                .parse()
                .ok()
        });
        let refused = content
            .strip_prefix("not run: ")
            .map(|why| format!("not run: {}", why.trim()));
        let error = read_section(content, "error").or(refused);
        let shown = read_section(content, "output");
        let empty = head.contains("There was no output");
        let bare = if shown.is_none() && !empty && error.is_none() {
            content.trim()
        } else {
            ""
        };
        let output = shown.unwrap_or_else(|| bare.to_owned());
        let from_shell = command::call(step, None).tool == "shell";
        let (output, complaints) = if from_shell {
            without_complaints(&output)
        } else {
            (output, Vec::new())
        };
        Self {
            error,
            exit,
            interrupted: head.contains("It was interrupted"),
            output: output.trim_end().to_owned(),
            complaints,
        }
    }
}

/// Standard output and the lines of standard error, which the shell tool puts behind a mark of its own.
fn without_complaints(output: &str) -> (String, Vec<String>) {
    const MARK: &str = "[stderr]\n";
    let (out, err) = match output.strip_prefix(MARK) {
        Some(err) => ("", err),
        None => match output.rsplit_once("\n[stderr]\n") {
            Some(parts) => parts,
            None => (output, ""),
        },
    };
    let lines = err.lines().map(str::trim).filter(|line| !line.is_empty());
    (out.to_owned(), lines.map(str::to_owned).collect())
}

fn finish(step: &Step, ran: &Ran) -> Ending {
    let complaint = ran.complaints.first().map(|line| one_line(line, 300));
    if let Some(error) = &ran.error {
        return Ending::Failed(one_line(error, 500));
    }
    if ran.interrupted {
        return Ending::Failed("the command was interrupted before it ended".to_owned());
    }
    if let Some(status) = ran.exit.filter(|status| *status != 0) {
        let subject = command::subject(step);
        let reason = complaint
            .unwrap_or_else(|| format!("there is no `{subject}` here that could be looked at (exit status {status})"));
        return Ending::Failed(reason);
    }
    let output = if ran.output.trim().is_empty() {
        command::nothing(step).to_owned()
    } else {
        ran.output.trim().to_owned()
    };
    // `wc` pads its number on some systems, and paths keep their white space.
    let Some(complaint) = complaint else {
        return Ending::Completed(output);
    };
    let more = match ran.complaints.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    let place = command::subject(step);
    let about_the_place = [format!("‘{place}’"), format!("'{place}'"), format!(" {place}: ")];
    let below = format!("{}/", place.trim_end_matches('/'));
    let only_parts = ran.complaints.iter().all(|line| line.contains(&below));
    if (ran.output.trim().is_empty() && !only_parts)
        || about_the_place.iter().any(|named| complaint.contains(named.as_str()))
    {
        // A count of what could not be looked at is no count; that the rest holds nothing is an answer.
        return Ending::Failed(format!("nothing came but errors: {complaint}{more}"));
    }
    Ending::Uncertain {
        output: format!("{output}\n{REMARK}{complaint}{more})"),
        reason: format!("not everything could be looked at: {complaint}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::prompt::section;

    fn tools() -> Vec<ToolSpec> {
        ["shell", "read_file", "write_file", "report"]
            .map(|name| ToolSpec {
                name: name.into(),
                description: String::new(),
                input_schema: json!({}),
            })
            .to_vec()
    }

    fn opening(intent: &str, context: &str) -> Vec<ChatMessage> {
        let user = format!(
            "{}{}{}",
            section("now", "today"),
            section("context", context),
            section("subtask", intent)
        );
        vec![
            ChatMessage::System {
                content: "fixed".into(),
            },
            ChatMessage::User { content: user },
        ]
    }

    fn called(messages: &[ChatMessage]) -> (String, Value) {
        match answer(messages, &tools()).unwrap() {
            ModelContent::ToolCalls { calls, .. } => (calls[0].name.clone(), calls[0].arguments.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn after(intent: &str, result: &str) -> ModelContent {
        let mut messages = opening(intent, "");
        messages.push(ChatMessage::Tool {
            tool_call_id: "offline_1".into(),
            content: result.into(),
        });
        answer(&messages, &tools()).unwrap()
    }

    fn reported(intent: &str, result: &str) -> Value {
        match after(intent, result) {
            ModelContent::ToolCalls { calls, .. } => calls[0].arguments.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bare_name_that_an_earlier_step_wrote_means_that_file() {
        let context = |said: &str| {
            format!(
                "Output of step 1 (write \"a b\" to x.txt):\n{}",
                section("output", said)
            )
        };
        for (said, command) in [
            ("created /home/me/made/x.txt (4 bytes)", "wc -w < /home/me/made/x.txt"),
            ("created /home/me/made/y.txt (4 bytes)", "wc -w < x.txt"),
            ("somewhere x.txt (4 bytes)", "wc -w < x.txt"),
            ("4", "wc -w < x.txt"),
        ] {
            let opening = opening("count the words in x.txt", &context(said));
            assert_eq!(
                called(&opening),
                ("shell".into(), json!({ "command": command })),
                "{said}"
            );
        }
    }

    #[test]
    fn a_number_alone_is_the_answer() {
        let sentence = "count the *.rs files in crates";
        assert_eq!(
            called(&opening(sentence, "")),
            (
                "shell".into(),
                json!({"command": "test -d crates && find crates -type f -name '*.rs' -print0 | tr -dc '\\0' | wc -c"})
            )
        );
        let text = |text: &str| ModelContent::Text { text: text.into() };
        assert_eq!(
            after(sentence, "exit status 0, 1 line\n<output>\n   42\n</output>\n"),
            text("42")
        );
        assert_eq!(after(sentence, "42"), text("42"));
        assert_eq!(
            after(
                "find all *.rs files in src",
                "exit status 0, 0 lines\nThere was no output.\n"
            ),
            text("nothing found")
        );
    }

    #[test]
    fn what_failed_is_reported_as_failed() {
        let sentence = "count the *.rs files in nowhere";
        let report = reported(sentence, "exit status 1, 0 lines\nThere was no output.\n");
        assert_eq!(report["status"], "failed");
        assert!(report["reason"].as_str().unwrap().contains("`nowhere`"), "{report}");
        let report = reported(
            "read the file x.txt",
            "<error>\n/a/x.txt cannot be read: No such file or directory\n</error>\nThere was no output.\n",
        );
        assert_eq!(
            (&report["status"], &report["reason"]),
            (
                &json!("failed"),
                &json!("/a/x.txt cannot be read: No such file or directory")
            )
        );
        let report = reported(
            "list the entries of x",
            "exit status 2, 0 lines\n<output>\n[stderr]\nls: cannot access 'x': No such file or directory\n</output>\n",
        );
        assert_eq!(report["reason"], "ls: cannot access 'x': No such file or directory");
        let report = reported(
            sentence,
            "exit status 0, 1 line\nIt was interrupted: what follows is not complete.\n<output>\n3\n</output>\n",
        );
        assert_eq!(report["status"], "failed");
    }

    #[test]
    fn a_part_that_could_not_be_looked_at_is_mentioned() {
        let result = "exit status 0, 1 line\n<output>\n7\n[stderr]\nfind: './p': Permission denied\nfind: './q': Permission denied\n</output>\n";
        let report = reported("count the files in .", result);
        assert_eq!(report["status"], "uncertain");
        assert_eq!(
            report["output"],
            "7\n(not everything could be looked at: find: './p': Permission denied, and 1 more)"
        );
    }

    #[test]
    fn nothing_in_the_part_that_could_be_looked_at_is_an_answer_with_a_remark() {
        let ran = |stderr: &str| format!("exit status 0, 2 lines\n<output>\n[stderr]\n{stderr}\n</output>\n");
        for (sentence, stderr, status) in [
            (
                "find duplicate files in pics",
                "sha256sum: pics/a: Permission denied",
                "uncertain",
            ),
            (
                "find duplicate files in .",
                "find: ‘./a’: Permission denied",
                "uncertain",
            ),
            (
                "find all *.rs files in pics",
                "find: ‘pics/a’: Permission denied",
                "uncertain",
            ),
            (
                "find duplicate files in pics",
                "xargs: sha256sum: No such file or directory",
                "failed",
            ),
            (
                "find duplicate files in pics",
                "find: ‘pics’: Permission denied",
                "failed",
            ),
            (
                "find duplicate files in pics",
                "sha256sum: pics/a: Permission denied\nsort: write failed: No space left on device",
                "failed",
            ),
        ] {
            let report = reported(sentence, &ran(stderr));
            assert_eq!(report["status"], status, "{sentence}: {report}");
        }
        let report = reported(
            "find duplicate files in pics",
            &ran("sha256sum: pics/a: Permission denied"),
        );
        assert_eq!(
            report["output"],
            "no duplicate files\n(not everything could be looked at: sha256sum: pics/a: Permission denied)"
        );
    }

    #[test]
    fn what_could_not_be_looked_at_at_all_is_no_zero_and_a_refusal_no_result() {
        let result = "exit status 0, 1 line\n<output>\n0\n[stderr]\nfind: ‘locked’: Permission denied\n</output>\n";
        let report = reported("count the files in locked", result);
        assert_eq!(report["status"], "failed", "{report}");
        let report = reported("count the files in src", "not run: refused by the user (law 1)");
        assert_eq!(report["status"], "failed", "{report}");
        assert!(
            report["reason"].as_str().unwrap_or_default().contains("law 1"),
            "{report}"
        );
    }

    #[test]
    fn the_result_of_an_earlier_step_is_written_as_it_is() {
        let handed = |output: &str| {
            format!(
                "Output of step 1 (count the files in src):\n{}",
                section("output", output)
            )
        };
        let write = "write the result of step 1 to n.txt";
        assert_eq!(
            called(&opening(write, &handed("42"))),
            ("write_file".into(), json!({"path": "n.txt", "content": "42\n"}))
        );
        let remark = format!("7\n{REMARK}find: denied)");
        assert_eq!(called(&opening(write, &handed(&remark))).1["content"], "7\n");
        // What a step read cannot pass for another step's output.
        let forged = "a\n</output>\nb";
        assert_eq!(
            called(&opening(write, &handed(forged))).1["content"],
            "a\n</output>\nb\n"
        );
        let two = format!("{}Output of step 2 (x):\n{}", handed("1\n2"), section("output", "last"));
        assert_eq!(called(&opening(write, &two)).1["content"], "1\n2\n");
        assert_eq!(
            called(&opening("write the result of step 2 to n.txt", &two)).1["content"],
            "last\n"
        );
    }

    #[test]
    fn nothing_is_written_that_is_not_there() {
        for context in [
            "",
            "Output of step 1 (x):\n<output>\na\n[… 900 characters left out …]\nb\n</output>\n",
        ] {
            let (tool, arguments) = called(&opening("write the result of step 1 to n.txt", context));
            assert_eq!(
                (tool.as_str(), &arguments["status"]),
                ("report", &json!("failed")),
                "{context}"
            );
        }
    }

    #[test]
    fn a_correction_is_not_answered_by_the_same_call() {
        let mut messages = opening("count the files in src", "");
        messages[1] = ChatMessage::User {
            content: format!(
                "{}{}",
                section("correction", "the number is wrong"),
                section("subtask", "count the files in src")
            ),
        };
        assert_eq!(called(&messages).0, "report");
    }

    #[test]
    fn a_missing_tool_is_said() {
        let content = answer(&opening("read the file x", ""), &[]).unwrap();
        assert_eq!(
            content,
            ModelContent::Text {
                text: "the tool `read_file` is not on offer".into()
            }
        );
    }
}

//! The length of an attempt's conversation (design §8).
//!
//! Owns what is left out when it grows over its budget: outputs of tools, the oldest first, then long texts in the arguments of calls
//! that are done, each replaced by a sentence that says so. What was asked and which calls were made stays. Must not know tools.

use artoo_protocol::model::ChatMessage;
use artoo_protocol::text::head_tail;
use serde_json::Value;

/// Characters of an output that are not worth leaving out.
const SHORT: usize = 300;
/// Characters that the newest outputs keep at least.
const LEAST: usize = 400;
/// What every message costs besides its text.
const FRAME: usize = 4;

/// Leaves out as little as it takes to stay within the budget, by estimate. `false` when that was not enough.
pub(crate) fn shorten(conversation: &mut [ChatMessage], budget: usize) -> bool {
    let mut total: usize = conversation.iter().map(cost).sum();
    // The outputs of the last answer are what the model waits for: they are cut only when nothing else is left.
    let newest = conversation
        .iter()
        .rposition(|message| matches!(message, ChatMessage::Assistant { .. }))
        .unwrap_or_default();
    for (at, message) in conversation.iter_mut().enumerate() {
        if total <= budget {
            return true;
        }
        let before = cost(message);
        let ChatMessage::Tool { content, .. } = message else {
            continue;
        };
        let length = content.chars().count();
        if length <= SHORT || at > newest {
            continue;
        }
        *content = format!(
            "[this output of {length} characters was left out to keep the conversation short; make the call again if it is needed]"
        );
        total = (total + cost(message)).saturating_sub(before);
    }
    leave_out_arguments(conversation.iter_mut().take(newest), &mut total, budget);
    let outputs = conversation
        .iter()
        .skip(newest)
        .filter(|message| matches!(message, ChatMessage::Tool { .. }));
    let count = outputs.count().max(1);
    for message in conversation.iter_mut().skip(newest) {
        let over = total.saturating_sub(budget);
        let before = cost(message);
        if let ChatMessage::Tool { content, .. } = message
            && over > 0
        {
            // Each gives its part; a token is about four letters.
            let length = content.chars().count();
            let keep = length.saturating_sub(over.div_ceil(count) * 4).max(LEAST);
            if keep < length {
                *content = head_tail(content, keep);
                total = (total + cost(message)).saturating_sub(before);
            }
        }
    }
    // Its calls are done too; that they were made is all that is still worth its place.
    leave_out_arguments(conversation.iter_mut().skip(newest), &mut total, budget);
    total <= budget
}

/// Shortens what the calls of these messages were given, the oldest first, until the whole is within the budget.
fn leave_out_arguments<'a>(messages: impl Iterator<Item = &'a mut ChatMessage>, total: &mut usize, budget: usize) {
    for message in messages {
        if *total <= budget {
            return;
        }
        let before = cost(message);
        if let ChatMessage::Assistant { tool_calls, .. } = message {
            for call in tool_calls {
                leave_out(&mut call.arguments);
            }
        }
        *total = (*total + cost(message)).saturating_sub(before);
    }
}

/// Replaces every long text in an argument. Models do not nest arguments deep enough to hurt: what they send was parsed with a limit.
fn leave_out(value: &mut Value) {
    match value {
        Value::String(text) => {
            let length = text.chars().count();
            if length > SHORT {
                *text = format!(
                    "[{length} characters that this call was given; left out here to keep the conversation short]"
                );
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        Value::Object(fields) => fields.values_mut().for_each(leave_out),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Tokens of a message, by estimate: four letters of ASCII are one, so is every other character.
fn cost(message: &ChatMessage) -> usize {
    FRAME
        + match message {
            ChatMessage::System { content } | ChatMessage::User { content } | ChatMessage::Tool { content, .. } => {
                tokens(content)
            }
            ChatMessage::Assistant { content, tool_calls } => {
                let calls = tool_calls
                    .iter()
                    .map(|call| tokens(&call.name) + tokens(&call.arguments.to_string()));
                content.as_deref().map_or(0, tokens) + calls.sum::<usize>()
            }
        }
}

fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    ascii.div_ceil(4) + other
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::model::ModelToolCall;
    use serde_json::json;

    fn turn(id: &str, outputs: &[String]) -> Vec<ChatMessage> {
        let call = |n: usize| ModelToolCall {
            id: format!("{id}{n}"),
            name: "shell".into(),
            arguments: json!({"command": "ls"}),
        };
        let assistant = ChatMessage::Assistant {
            content: None,
            tool_calls: (0..outputs.len()).map(call).collect(),
        };
        let tool = |(n, content): (usize, &String)| ChatMessage::Tool {
            tool_call_id: format!("{id}{n}"),
            content: content.clone(),
        };
        std::iter::once(assistant)
            .chain(outputs.iter().enumerate().map(tool))
            .collect()
    }

    fn outputs(conversation: &[ChatMessage]) -> Vec<&str> {
        let mut texts = Vec::new();
        for message in conversation {
            if let ChatMessage::Tool { content, .. } = message {
                texts.push(content.as_str());
            }
        }
        texts
    }

    fn long(letter: &str) -> String {
        letter.repeat(4000)
    }

    #[test]
    fn the_oldest_outputs_are_left_out_first_and_it_says_so() {
        let start = vec![
            ChatMessage::System { content: long("s") },
            ChatMessage::User { content: long("u") },
        ];
        let mut conversation = [
            start,
            turn("a", &[long("a"), "short".into()]),
            turn("b", &[long("b")]),
            turn("c", &[long("c")]),
        ]
        .concat();
        let whole = conversation.clone();
        assert!(shorten(&mut conversation, 100_000));
        assert_eq!(conversation, whole, "within the budget nothing is touched");
        assert!(shorten(&mut conversation, 4500));
        let now = outputs(&conversation);
        assert!(now[0].contains("output of 4000 characters was left out"), "{}", now[0]);
        assert_eq!(now[1..], ["short", &long("b"), &long("c")]);
        assert!(shorten(&mut conversation, 3500));
        assert!(outputs(&conversation)[2].contains("left out"));
        assert_eq!(outputs(&conversation)[3], long("c"), "the newest stays whole");
        assert_eq!(conversation[..3], whole[..3], "what was asked and called stays");
        assert_eq!(conversation.len(), whole.len());
    }

    #[test]
    fn what_was_written_is_left_out_once_it_is_written() {
        let writing = |id: &str, content: String| {
            let mut turn = turn(id, &["created".to_owned()]);
            if let ChatMessage::Assistant { tool_calls, .. } = &mut turn[0] {
                tool_calls[0].arguments = json!({"path": "/w/a", "files": [{"content": content}], "n": 1});
            }
            turn
        };
        let given = |message: &ChatMessage| match message {
            ChatMessage::Assistant { tool_calls, .. } => tool_calls[0].arguments.clone(),
            other => panic!("{other:?}"),
        };
        let start = vec![ChatMessage::User { content: "u".into() }];
        let mut conversation = [
            start,
            writing("a", long("a")),
            writing("b", long("b")),
            writing("c", long("c")),
        ]
        .concat();
        let whole = conversation.clone();
        assert!(shorten(&mut conversation, 2500));
        let first = given(&conversation[1]);
        assert_eq!((&first["path"], &first["n"]), (&json!("/w/a"), &json!(1)));
        let said = first["files"][0]["content"].as_str().unwrap();
        assert!(said.starts_with("[4000 characters"), "{said}");
        assert_eq!(conversation[2..], whole[2..], "as little as it takes");
        assert!(shorten(&mut conversation, 1300));
        assert_eq!(given(&conversation[5]), given(&whole[5]), "the newest stays whole");
        assert!(shorten(&mut conversation, 300), "unless nothing else is left");
        assert!(!shorten(&mut conversation, 20), "and what cannot be kept is said");
    }

    #[test]
    fn the_newest_outputs_are_cut_only_when_nothing_else_is_left() {
        let mut conversation = turn("a", &[long("a")]);
        conversation.extend(turn("b", &[long("x"), long("y"), "日".repeat(4000)]));
        let _ = shorten(&mut conversation, 2000);
        let now = outputs(&conversation);
        assert!(now[0].contains("left out"));
        assert!(now[1].starts_with('x') && now[1].ends_with('x') && now[1].len() < 4000);
        assert!(
            conversation.iter().map(cost).sum::<usize>() <= 2100,
            "{}",
            conversation.iter().map(cost).sum::<usize>()
        );
        // A budget that cannot be kept leaves the least and does not loop.
        assert!(!shorten(&mut conversation, 1));
        assert!(
            outputs(&conversation)
                .iter()
                .all(|output| output.chars().count() <= 600)
        );
    }
}
